// The panel beside the transcript, on a phone a sheet above it: one tab at a time. Must not know what is in the tabs.

import { button, element, setIfChanged } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @typedef {{id: string, name: string, content: readonly HTMLElement[]}} Tab */

const WIDE = matchMedia("(min-width: 64rem)");

export class SidePanel {
  /** @type {Map<string, {button: HTMLButtonElement, pane: HTMLElement}>} */
  #tabs = new Map();
  #current = "";
  /** @type {HTMLElement | null} */
  #opener = null;

  /** @param {readonly Tab[]} tabs The first one is open at first. */
  constructor(tabs) {
    this.element = element("aside", "side");
    this.element.ariaLabel = t("page.panel");
    this.element.dataset.testid = "side-panel";
    const list = element("div", "tabs");
    const strip = element("div", "strip");
    strip.role = "tablist";
    strip.addEventListener("keydown", (event) => this.#onKey(event));
    const close = button("quiet", "✕", "close-panel", () => this.close());
    close.ariaLabel = t("page.close");
    list.append(strip, close);
    this.element.append(list);
    for (const { id, name, content } of tabs) {
      const button = element("button", "", name);
      const pane = element("div", "tab");
      button.type = "button";
      button.role = "tab";
      button.id = `tab-${id}`;
      button.dataset.testid = `tab-${id}`;
      button.setAttribute("aria-controls", `pane-${id}`);
      button.addEventListener("click", () => this.#select(id));
      pane.id = `pane-${id}`;
      pane.role = "tabpanel";
      pane.tabIndex = 0;
      pane.setAttribute("aria-labelledby", button.id);
      pane.append(...content);
      strip.append(button);
      this.element.append(pane);
      this.#tabs.set(id, { button, pane });
    }
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !WIDE.matches) this.close();
    });
    document.addEventListener("pointerdown", ({ target }) => {
      const isOutside = target instanceof Node && !this.element.contains(target) && !this.#opener?.contains(target);
      if (this.isOpen && !WIDE.matches && isOutside && document.querySelector("dialog[open]") === null) this.close();
    });
    this.#select(tabs[0]?.id ?? "");
    // A user who has just chosen the page's language continues where they were.
    this.element.hidden = !WIDE.matches && history.state?.isPanelOpen !== true;
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** @param {HTMLElement} opener The button that opens the panel. It gets the focus when the panel closes. */
  setOpener(opener) {
    this.#opener = opener;
    this.#updateOpener();
  }

  /** Open it at a tab, with the focus on the first control there. @param {string} id */
  show(id) {
    this.element.hidden = false;
    this.#updateOpener();
    this.#select(id);
    const first = this.#tabs.get(id)?.pane.querySelector("input, select, button");
    if (first instanceof HTMLElement) first.focus();
  }

  toggle() {
    if (this.isOpen) return this.close();
    this.element.hidden = false;
    this.#updateOpener();
    if (!WIDE.matches) this.#tabs.get(this.#current)?.button.focus();
  }

  close() {
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = true;
    this.#updateOpener();
    if (hadFocus) this.#opener?.focus();
  }

  /** Close it where it would leave the columns of a sample meeting too narrow. */
  makeRoom() {
    if (matchMedia("(max-width: 90rem)").matches) this.close();
  }

  #updateOpener() {
    this.#opener?.setAttribute("aria-expanded", String(this.isOpen));
  }

  /** @param {string} id @param {string} name */
  rename(id, name) {
    const tab = this.#tabs.get(id);
    if (tab !== undefined) setIfChanged(tab.button, "textContent", name);
  }

  /** @param {string} id */
  #select(id) {
    if (!this.#tabs.has(id)) return;
    this.#current = id;
    for (const [other, { button, pane }] of this.#tabs) {
      pane.hidden = other !== id;
      button.ariaSelected = String(other === id);
      button.tabIndex = other === id ? 0 : -1;
    }
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const ids = [...this.#tabs.keys()];
    const id = ids[(ids.indexOf(this.#current) + step + ids.length) % ids.length] ?? "";
    this.#select(id);
    this.#tabs.get(id)?.button.focus();
    event.preventDefault();
  }
}
