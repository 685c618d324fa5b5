import { expect, test, TOKEN } from "./page-world";

const HOSTILE = [
	"<img src=x onerror=\"document.title='broken'\">",
	"<script>document.title='broken'</script>",
	"<svg onload=\"document.title='broken'\"><image href='http://evil.example/s.png'/></svg>",
	"<iframe src='http://evil.example/f'></iframe><object data='http://evil.example/o'></object><embed src='http://evil.example/e'>",
	"<style>@import 'http://evil.example/c.css'; body { display: none }</style><link rel=stylesheet href='http://evil.example/l.css'>",
	"<meta http-equiv=refresh content='0;url=http://evil.example/m'><base href='http://evil.example/'>",
	"<form action='http://evil.example/p'><input autofocus onfocus=\"document.title='broken'\"></form>",
	"<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=document.title='broken'&gt;\">",
	"<form><math><mtext></form><form><mglyph><svg><mtext><style><path id=\"</style><img onerror=document.title='broken' src>\">",
	"<noscript><p title=\"</noscript><img src=x onerror=document.title='broken'>\"></noscript>",
	"<svg></p><style><a id=\"</style><img src=1 onerror=document.title='broken'>\">",
	"<a href='javascript:document.title=1' target=_top>a</a> <a id=turns name=turns href='http://evil.example/clobber'>b</a>",
	"[go](javascript:document.title='broken') [go](JaVaScRiPt&colon;document.title='broken') <javascript:document.title='broken'>",
	"[go](data:text/html,<script>document.title='broken'</script>) [go](vbscript:x) [go](blob:x) [go](//evil.example/x) [go](\\\\evil.example)",
	"[note](obsidian://new?vault=Notes&name=x&content=owned) ![note](obsidian://new?name=y) [out][ref]",
	"[ref]: javascript:document.title='broken'",
	"![remote](http://evil.example/a.png \"t\") ![](https://evil.example/b.png) ![[http://evil.example/c.png]]",
	"[[x\" onmouseover=\"document.title='broken']] [[javascript:alert(1)|run]] [t](Tea.md \"a\\\" onclick=\\\"document.title='broken'\")",
	"`<img src=x onerror=alert(1)>`\n\n```html\n<script>document.title='broken'</script>\n```",
	"A [good link](https://example.org/path?a=1&b=2).",
	"The end.",
].join("\n\n");

test("nothing in a reply runs or loads, and no link leads where it must not", async ({ phone }) => {
	await phone.open();
	await phone.hear("Show me.", ...(HOSTILE.match(/[^]{1,40}/g) ?? []));
	await expect(phone.answer).toContainText("The end.");
	await expect(phone.answer.locator("script, img, svg, iframe, object, embed, style, link, meta, form, input, math, base, [id], [name], [style]")).toHaveCount(0);
	for (const href of await phone.answer.locator("a").evaluateAll((links: HTMLAnchorElement[]) => links.map((link) => `${link.getAttribute("href")} ${link.rel}`))) {
		expect(href).toMatch(/^(?:https?:\/\/\S*|obsidian:\/\/open\?vault=Notes%20%26%20more&file=[^&]*) noopener/);
	}
	await expect(phone.answer.getByRole("link", { name: "remote" })).toHaveAttribute("href", "http://evil.example/a.png");
	const good = phone.answer.getByRole("link", { name: "good link" });
	await expect(good).toHaveAttribute("href", "https://example.org/path?a=1&b=2");
	await expect(good).toHaveAttribute("target", "_blank");
	await expect(phone.page).toHaveTitle(/^Show me\./);
});

test("the sanitiser alone holds what Markdown would let through", async ({ phone }) => {
	const { page } = phone;
	await page.route("**/vendor/markdown-it.umd.min.js", async (route) => {
		const reply = await route.fetch();
		const lax = "{ const make = globalThis.markdownit; globalThis.markdownit = (options) => make({ ...options, html: true }); }";
		await route.fulfill({ response: reply, body: `${await reply.text()}\n;${lax}` });
	});
	// what is parsed to be cleaned is still under the page's policy, and the browser says so
	phone.expected.push(/Content Security Policy/);
	await phone.open();
	await phone.hear("Show me.", HOSTILE, "\n\n<b>bold</b> <em>raw</em>");
	await expect(phone.answer.locator("em")).toHaveText("raw");
	await expect(phone.answer.locator("script, img, svg, iframe, object, embed, style, link, meta, form, input, math, base, [id], [name], [style], [onclick]")).toHaveCount(0);
	for (const href of await phone.answer.locator("a[href]").evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""))) expect(href).toMatch(/^(https?:|mailto:|obsidian:\/\/open\?)/);
	await expect(page).toHaveTitle(/^Show me\./);
});

test("no text becomes HTML but through the sanitiser, and nothing goes elsewhere", async ({ phone }) => {
	await phone.open();
	phone.expected.push(/TrustedHTML|Content Security Policy|violates/, /asked for http:\/\/evil\.example/);
	const outcome = await phone.page.evaluate(async () => {
		const tried: string[] = [];
		const attempt = async (name: string, act: () => unknown) => {
			try {
				await act();
				tried.push(name);
			} catch {
				// as it should be
			}
		};
		await attempt("HTML", () => Reflect.set(document.body, "innerHTML", "<b>x</b>"));
		await attempt("policy", () => (window as unknown as { trustedTypes: { createPolicy(name: string, rules: object): unknown } }).trustedTypes.createPolicy("other", {}));
		await attempt("fetch", () => fetch("http://evil.example/"));
		return tried;
	});
	expect(outcome).toEqual([]);
});

test("hostile names and notes are text, in search, in the note and in the list of conversations", async ({ phone }) => {
	const { page, world } = phone;
	const name = "Odd <img src=x onerror=alert(1)> & [[x]] #1 100%";
	world.daemon.write(`${name}.md`, `# ${name}\n\nA xylophone. ${HOSTILE}\n`);
	await phone.open();
	await expect.poll(async () => (await world.call<{ hits: unknown[] }>("POST", "/v1/search", { query: "xylophone", mode: "fts" })).hits.length).toBe(1);
	await page.locator("body").press("Escape");
	await phone.button("Search").click();
	await page.getByRole("searchbox", { name: "Search the notes" }).fill("xylophone");
	const hit = page.locator(".hit").first();
	await expect(hit.getByRole("heading")).toContainText("<img src=x onerror=alert(1)>");
	await hit.getByRole("button", { name: "Read the note" }).click();
	await expect(page.locator("#note-text")).toContainText("The end.");
	await expect(page.locator("#note-text").locator("script, img, svg, iframe, style, form, input")).toHaveCount(0);
	await expect(page.locator("#note-path").getByRole("link")).toHaveAttribute("href", /file=Odd%20%3Cimg%20src%3Dx/);
	await page.keyboard.press("Escape");
	await page.keyboard.press("Escape");
	await phone.hear("<img src=x onerror=\"document.title='broken'\">", "<b>no</b>");
	await phone.button("Conversations").click();
	await expect(page.locator("#history-list")).toContainText("<img src=x onerror=");
	await expect(page.locator("img")).toHaveCount(0);
});

test("a token in the address is kept once the daemon has taken it, and costs no other one", async ({ phone }) => {
	phone.expected.push(/401/);
	const { page } = phone;
	const stored = () => page.evaluate(() => [localStorage.getItem("tarsd.token"), sessionStorage.getItem("tarsd.token")]);
	await phone.open();
	for (const bad of ["", "wrong"]) {
		await page.evaluate((token) => (location.hash = `token=${token}`), bad);
		await expect.poll(() => page.url()).not.toContain("token");
		await expect(page.locator("body")).toHaveAttribute("data-state", "connected");
		expect(await stored()).toEqual([null, TOKEN]);
		await page.goto("about:blank");
		const tried = page.waitForResponse((reply) => reply.url().endsWith("/v1/hello"));
		await page.goto(`${phone.world.daemon.address}/#token=${bad}`);
		expect((await tried).status()).toBe(bad ? 401 : 200);
		await expect(page.locator("body")).toHaveAttribute("data-state", "connected");
		await expect(page.getByLabel("Token", { exact: true })).toBeHidden();
		expect(await stored()).toEqual([null, TOKEN]);
	}
});
