import type * as Real from "obsidian";

/** The app draws an icon from its own set; here an empty picture carries the name, so a test can ask for it. */
export const setIcon: typeof Real.setIcon = (parent, id) => {
	parent.empty();
	parent.append(iconElement(id));
};

export const getIcon: typeof Real.getIcon = (id) => iconElement(id);

export const setTooltip: typeof Real.setTooltip = (el, text) => {
	el.setAttribute("aria-label", text);
};

function iconElement(id: string): SVGSVGElement {
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
	svg.setAttribute("class", `svg-icon lucide-${id.replace(/^lucide-/, "")}`);
	return svg;
}
