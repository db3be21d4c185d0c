// Chooses the one language that is shown where there is no room for columns. Must not know the transcript.

import { element } from "../ui/dom.js";
import { radioButtons } from "../ui/form_controls.js";
import { nativeName, textDirection } from "../ui/languages.js";
import { loadPreference, savePreference } from "../ui/preferences.js";
import { t } from "../words/words.js";

const PREFERENCE = "shown-language";

export class LanguageSwitch {
  element = element("fieldset", "language-switch");
  #onChange;
  /** @type {readonly string[]} */
  #offered = [];
  #choice = loadPreference(PREFERENCE) ?? "";

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange;
    this.element.dataset.testid = "language-switch";
    this.element.ariaLabel = t("transcript.shown_language");
  }

  /** The language that is shown, of those offered; empty if none is. */
  get selected() {
    return this.#offered.includes(this.#choice) ? this.#choice : (this.#offered[0] ?? "");
  }

  /**
   * @param {readonly string[]} tags
   * @param {(tag: string) => string} nameOf
   */
  offer(tags, nameOf) {
    if (this.#offered.join() === tags.join()) return;
    this.#offered = [...tags];
    const options = tags.map((tag) => /** @type {const} */ ([tag, nativeName(tag) || nameOf(tag)]));
    const chips = radioButtons("shown", options, this.selected, (tag) => this.#choose(tag));
    for (const input of chips.querySelectorAll("input")) {
      const name = input.nextElementSibling;
      if (name instanceof HTMLElement) Object.assign(name, { lang: input.value, dir: textDirection(input.value) });
    }
    this.element.replaceChildren(chips);
  }

  /** @param {string} tag */
  #choose(tag) {
    this.#choice = tag;
    savePreference(PREFERENCE, tag);
    this.#onChange();
  }
}
