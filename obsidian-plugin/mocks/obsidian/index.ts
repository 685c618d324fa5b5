/**
 * The fake app that tests and the browser harness see as `obsidian`. It stands on `obsidian-test-mocks` and
 * replaces what that gets wrong: each replacement is held to the real type, so an update of the app's types
 * that moves something stops the build here.
 */
import type * as Real from "obsidian";
import { Keymap, Platform, normalizePath } from "obsidian-test-mocks/obsidian";
import "./vault";
import "./workspace";

export * from "obsidian-test-mocks/obsidian";
export { DisplayValueComponent, DropdownComponent, SecretComponent, SliderComponent } from "./choices";
export {
	AbstractTextComponent,
	BaseComponent,
	ButtonComponent,
	ExtraButtonComponent,
	SearchComponent,
	TextAreaComponent,
	TextComponent,
	ToggleComponent,
	ValueComponent,
} from "./components";
export { parseFrontMatterAliases } from "./front-matter";
export { getIcon, setIcon, setTooltip } from "./icons";
export { MarkdownRenderer } from "./markdown";
export { Menu, MenuItem } from "./menu";
export { ConfirmationButton, ConfirmationModal, Modal } from "./modal";
export { Notice } from "./notice";
export { Plugin } from "./plugin";
export { request, requestUrl } from "./request-url";
export { Scope } from "./scope";
export { prepareFuzzySearch, renderMatches, renderResults } from "./search";
export { Setting, SettingGroup } from "./setting";
export { PluginSettingTab, SettingPage, SettingTab } from "./settings-tab";
export { AbstractInputSuggest, FuzzySuggestModal, SuggestModal } from "./suggest";
export { ItemView } from "./view";

/** A Linux desktop; the package says Windows. */
Object.assign(Platform, { isWin: false, isLinux: true });

// What is used as the package has it, held to the real types as well.
const _path: typeof Real.normalizePath = normalizePath;
const _mod: typeof Real.Keymap.isModEvent = Keymap.isModEvent;
const _platform: { [K in keyof typeof Real.Platform]?: unknown } = Platform;
void [_path, _mod, _platform];
