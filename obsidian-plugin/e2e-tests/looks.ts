import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import type { AxeResults, RunOptions } from "axe-core";
import { expect } from "./world";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Where pictures go, for a person to look at. */
export const LOOKS = join(import.meta.dirname, "../test-results/looks");

export const QUESTION = "What should the boiler gauge read, and who repairs it when it does not?";

/** An answer with everything in it that is drawn in its own way; its code is too long for a narrow window. */
export const ANSWER = `The gauge should read **1.2 bar** when cold [1], and [[Plumber]] repairs it [2]. A note that is [[not there]] is no link, and neither is [9].

## What to do

1. Look at the gauge, \`cold\`.
2. Open the valve a little.
   - Slowly.

| State | Pressure | What it means |
| --- | ---: | --- |
| cold | 1.2 bar | as it should be, a cell that is long enough to be wider than a phone |
| warm | 1.6 bar | also right |

> [!note] Mind
> Above 3 bar the safety valve opens.

\`\`\`python
def pressure(cold: bool) -> float:
    return 1.2 if cold else 1.6  # a line that is long enough to be cut or wrapped in a narrow pane
\`\`\`
`;

/** What is to be added to a note. */
export const CHANGE = ["## Yearly", "", "- Checked in November, the gauge reads 1.2 bar.", "- Next time: ask for the new filter, and whether the pump is still loud."].join("\n");

/** What is wrong with a page as it is now: what axe finds in `where`, and, softly, whether it is wider than its window. */
export async function faults(page: Page, name: string, where = "html", options: RunOptions = { resultTypes: ["violations"] }): Promise<string[]> {
	const { wide, width } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, width: window.innerWidth }));
	expect.soft(wide, `${name}: nothing is cut off`).toBeLessThanOrEqual(width);
	// a page's policy may let no script in but its own; what a debugger evaluates is not the page's
	await page.evaluate(AXE);
	const { violations } = await page.evaluate(
		([place, how]) => (window as unknown as { axe: { run(place: string, how: RunOptions): Promise<AxeResults> } }).axe.run(place, how),
		[where, options] as const,
	);
	return violations.map(({ id, nodes }) => `${name} ${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary ?? ""}`).join("\n")}`);
}
