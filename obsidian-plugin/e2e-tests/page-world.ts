import { expect, test as base, type Locator, type Page } from "@playwright/test";
import { TOKEN } from "../tests/contract/tarsd";
import { Chat, lasting, World } from "./world";

export { expect, TOKEN };

const NOTES: Readonly<Record<string, string>> = {
	"House/Boiler.md": "---\ntags: [house]\n---\n# Boiler\n\n## Pressure\n\nThe gauge should read 1.2 bar when cold. See [[Plumber]].\n\n## Summer\n\nTurn it off in June.\n",
	"House/Plumber.md": "# Plumber\n\nOlla Brandt repairs the boiler and its gauge. She comes on Tuesdays.\n",
	"Tea.md": "---\ntags: [tea]\n---\n# Tea\n\nGyokuro wants water of 60 degrees. <b>Not</b> more.\n\n- [ ] buy sencha\n- [x] wash the pot\n",
	"House/Paint.md": "# Paint\n\nThe kitchen is painted in a warm white, number 9010.\n",
};

/** The daemon's own page in a browser. */
export class Phone extends Chat {
	/** Every request that leaves for elsewhere is a complaint, too. */
	constructor(page: Page, world: World) {
		super(page, world);
		page.on("request", (request) => {
			const url = request.url();
			if (!url.startsWith(`${world.daemon.address}/`) && !url.startsWith("data:")) this.complaints.push(`asked for ${url}`);
		});
	}

	/** Load the page with a token, and wait until it is connected. */
	async open(hash = ""): Promise<void> {
		await this.page.goto(`${this.world.daemon.address}/#token=${TOKEN}${hash}`);
		await this.connected();
	}

	async connected(): Promise<void> {
		await expect(this.page.locator("body")).toHaveAttribute("data-state", "connected", { timeout: 20_000 });
	}

	get root(): Locator {
		return this.page.locator("body");
	}
	get box(): Locator {
		return this.page.getByRole("textbox", { name: "Message" });
	}
	get turns(): Locator {
		return this.page.locator(".turn");
	}
	get replies(): Locator {
		return this.turns.locator(".reply");
	}
	/** The newest answer, as it is drawn. */
	get answer(): Locator {
		return this.turns.last().locator(".reply > .text");
	}
}

export const test = base.extend<{ phone: Phone }, { world: World }>({
	world: lasting(() => World.begin(NOTES, "", "Notes & more")),
	phone: async ({ page, world }, use) => {
		const phone = new Phone(page, world);
		await use(phone);
		phone.leave();
	},
});
