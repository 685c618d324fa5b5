/** Makes elements. Text goes in as text, never as HTML. */

export const $ = (id) => document.getElementById(id);

/** `h("p", { class: "x" }, "text", child)`; attributes and children that are false, null or "" are left out. */
export function h(tag, attributes = {}, ...children) {
	const el = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) if (value !== false && value != null) el.setAttribute(name, value);
	el.append(...children.filter(Boolean));
	return el;
}

/** A copy of a template as `el`, and its parts by their names. */
export function copyOf(template) {
	const el = $(template).content.firstElementChild.cloneNode(true);
	return { el, ...Object.fromEntries([...el.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part])) };
}

export const button = (text, onclick, cls = "") => Object.assign(h("button", { type: "button", class: cls }, text), { onclick });

/** For a screen reader. */
export const say = (text) => $("say").replaceChildren(text);

/** A sentence, for a while. */
export function notice(text) {
	const el = h("p", { role: "status" }, text);
	$("notices").append(el);
	setTimeout(() => el.remove(), 6000);
}

export const wordsOf = (error) => error.sentence ?? String(error);

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString()} ${count === 1 ? one : many}`;

export const behindWords = (behind) => behind > 0 && `${plural(behind, "changed note is", "changed notes are")} not in the index yet.`;

/** A random name; `crypto.randomUUID` is missing without HTTPS. */
export const fresh = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** A store of the browser, or of the page where there is none. */
function store(name) {
	const spare = new Map();
	const attempt = (act) => {
		try {
			return act(window[name]);
		} catch {
			return null;
		}
	};
	return {
		get: (key) => attempt((place) => place.getItem(`tarsd.${key}`)) ?? spare.get(key) ?? "",
		put(key, value) {
			spare.set(key, value);
			attempt((place) => (value ? place.setItem(`tarsd.${key}`, value) : place.removeItem(`tarsd.${key}`)));
		},
	};
}

/** What this device keeps, and what this tab does. */
export const [kept, brief] = [store("localStorage"), store("sessionStorage")];
