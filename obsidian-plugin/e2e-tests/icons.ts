import type * as Real from "obsidian";

/** Plain drawings on a grid of 24, under the names of the app's icons; an unknown one is a dashed box that is seen. */
const SHAPES: Readonly<Record<string, string>> = {
	"arrow-up": "M12 20V5M5 12l7-7 7 7",
	"at-sign": "M16 12a4 4 0 1 1-8 0a4 4 0 0 1 8 0v1.5a2.5 2.5 0 0 0 5 0V12a9 9 0 1 0-4 7.5",
	calendar: "M4 6h16v15H4zM4 10h16M8 3v5M16 3v5",
	check: "M4 12l6 6L20 6",
	"chevron-down": "M6 9l6 6 6-6",
	"chevron-right": "M9 6l6 6-6 6",
	"circle-alert": "M3 12a9 9 0 1 1 18 0a9 9 0 0 1-18 0M12 8v5M12 16v1",
	"circle-check": "M3 12a9 9 0 1 1 18 0a9 9 0 0 1-18 0M8 12l3 3 5-5",
	"circle-off": "M3 12a9 9 0 1 1 18 0a9 9 0 0 1-18 0M5 5l14 14",
	copy: "M9 9h12v12H9zM5 15H3V3h12v2",
	"file-plus": "M5 3h9l5 5v13H5zM14 3v5h5M12 11v6M9 14h6",
	"external-link": "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
	"file-output": "M6 8V3h8l5 5v13H6v-3M14 3v5h5M2 13h9M8 10l3 3-3 3",
	"file-plus-2": "M6 10V3h8l5 5v13h-9M14 3v5h5M2 17h7M5.5 13.5v7",
	"file-question": "M5 3h9l5 5v13H5zM10 11a2 2 0 1 1 3 2l-1 1M12 17v1",
	"file-text": "M5 3h9l5 5v13H5zM14 3v5h5M8 13h8M8 17h8",
	file: "M5 3h9l5 5v13H5zM14 3v5h5",
	folder: "M3 5h6l2 3h10v12H3z",
	hash: "M4 9h16M4 15h16M10 3L8 21M16 3l-2 18",
	history: "M4 5v5h5M4 10a8.5 8.5 0 1 1 0 5M12 8v5l3 2",
	link: "M10 14a4 4 0 0 0 6 0l4-4a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-4 4a4 4 0 0 0 6 6l1-1",
	loader: "M12 3v4M12 17v4M3 12h4M17 12h4M6 6l3 3M15 15l3 3M6 18l3-3M15 9l3-3",
	list: "M8 6h13M8 12h13M8 18h13M3 6h1M3 12h1M3 18h1",
	"maximize-2": "M15 3h6v6M9 21H3v-6M21 3l-7 7M3 21l7-7",
	"message-circle": "M4 20l2-5a8 8 0 1 1 3 3z",
	"panel-top-open": "M3 4h18v16H3zM3 9h18M9 14l3 3 3-3",
	pencil: "M4 20l1-5L16 4l4 4L9 19z",
	"refresh-cw": "M20 5v5h-5M4 19v-5h5M5 9a8 8 0 0 1 14 0M19 15a8 8 0 0 1-14 0",
	"picture-in-picture-2": "M21 9V4H3v14h6M12 13h9v7h-9z",
	search: "M4 11a7 7 0 1 1 14 0a7 7 0 0 1-14 0M16 16l5 5",
	sparkles: "M12 3l2 6 6 3-6 3-2 6-2-6-6-3 6-3z",
	square: "M6 6h12v12H6z",
	"square-arrow-out-up-right": "M12 4H4v16h16v-8M15 3h6v6M21 3l-9 9",
	"square-pen": "M12 4H4v16h16v-8M9 15l1-4L18 3l3 3-8 8z",
	terminal: "M4 17l6-5-6-5M12 19h8",
	tag: "M3 3h9l9 9-9 9-9-9zM8 8h.1",
	"text-cursor-input": "M5 4h2a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2H5M13 4h-2a2 2 0 0 0-2 2M13 20h-2a2 2 0 0 1-2-2M13 8h8v8h-8M5 8H3v8h2",
	"text-select": "M4 4h3M10 4h4M17 4h3M4 20h3M10 20h4M17 20h3M4 9v6M20 9v6M8 10h8M8 14h5",
	"thumbs-down": "M17 14V3H7L4 11v3h6l-1 6h2l6-6h4V3h-4",
	"thumbs-up": "M7 10v11h10l3-8v-3h-6l1-6h-2l-6 6H3v11h4",
	"triangle-alert": "M12 4l9 16H3zM12 10v4M12 17v.1",
	trash: "M4 7h16M9 7V4h6v3M6 7l1 14h10l1-14",
	"trash-2": "M4 7h16M9 7V4h6v3M6 7l1 14h10l1-14M10 11v6M14 11v6",
	wrench: "M14 6a5 5 0 0 1 6-2l-3 4 1 2 2 1 2-2a5 5 0 0 1-7 4L7 21l-4-4 9-8a5 5 0 0 1 2-3",
	x: "M5 5l14 14M19 5L5 19",
};

const NS = "http://www.w3.org/2000/svg";

export const getIcon: typeof Real.getIcon = (id) => icon(id);

export const setIcon: typeof Real.setIcon = (parent, id) => {
	parent.empty();
	parent.append(icon(id));
};

export const setTooltip: typeof Real.setTooltip = (el, text) => {
	el.setAttribute("aria-label", text);
};

function icon(id: string): SVGSVGElement {
	const name = id.replace(/^lucide-/, "");
	const svg = document.createElementNS(NS, "svg");
	svg.setAttribute("class", `svg-icon lucide-${name}`);
	svg.setAttribute("viewBox", "0 0 24 24");
	const path = document.createElementNS(NS, "path");
	const shape = SHAPES[name];
	path.setAttribute("d", shape ?? "M3 3h18v18H3z");
	if (shape === undefined) path.setAttribute("stroke-dasharray", "3 3");
	svg.append(path);
	return svg;
}
