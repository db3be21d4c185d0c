// What one reads, and how: languages, how early, with what was said or without. Knows what this browser remembers of
// it; must not know the connection.

import { choice, dropdown, group, labelled, radios, refill } from "../ui/form_controls.js";
import { element } from "../ui/dom.js";
import { ownName, preferred } from "../ui/languages.js";
import { recall, remember } from "../ui/preferences.js";

/** @typedef {import("../../client/messages.js").Stability} Stability */
/** @typedef {import("../ui/languages.js").Language} Language */

/**
 * @typedef {object} Reading
 * @property {string[]} reads Tags, in the order in which they were chosen.
 * @property {Stability} stability
 * @property {boolean} originals Whether what was said is shown, too.
 * @property {string} announce Which of `reads` a screen reader speaks; empty: none.
 */

const MODES = /** @type {const} */ ([
  ["live", "as early as possible", "Words appear while the sentence is being said; dotted ones may change."],
  ["stable", "only what stays", "Words appear a little later, once they can stay; none is taken back in mid-sentence."],
  ["final", "whole sentences", "Nothing before the sentence is finished, then all of it."],
]);
const NOTHING = "none";

export class ReadingChoice {
  element = element("div", "panel");
  #nameOf;
  #onChange;
  #value;
  #limit = Infinity;
  /** As in `announce`; null: the first language that is read. @type {string | null} */
  #wish;
  /** @type {Map<string, HTMLInputElement>} */
  #languages = new Map();
  #modes;
  #note = element("p", "hint");
  #explanation = element("p", "hint");
  #originals;
  #announce = dropdown("announce");

  /** @param {{languages: readonly Language[], nameOf: (tag: string) => string, onChange: (value: Reading) => void}} options */
  constructor({ languages, nameOf, onChange }) {
    this.#nameOf = nameOf;
    this.#onChange = onChange;
    this.#value = remembered(languages);
    const wish = recall("announce");
    this.#wish = wish === NOTHING ? "" : wish;

    const chips = element("div", "chips");
    for (const { tag } of languages) {
      const name = nameOf(tag);
      const { label, input } = choice("chip", `read-${tag}`, name, () => this.#change({ reads: this.#toggled(tag) }));
      if (ownName(tag) !== name) label.append(element("span", "own-name", ownName(tag)));
      this.#languages.set(tag, input);
      chips.append(label);
    }
    this.#note.role = "status";
    /** @param {Stability} stability */
    const onMode = (stability) => this.#change({ stability });
    this.#modes = radios("stability", MODES, "live", onMode);
    this.#explanation.id = "stability-explanation";
    const modes = group("Show translations", this.#modes, this.#explanation);
    modes.setAttribute("aria-describedby", this.#explanation.id);
    const originals = choice("panel-check", "originals", "Show what was said, too", (shown) => this.#change({ originals: shown }));
    this.#originals = originals.input;
    this.#announce.addEventListener("change", () => this.#change({ announce: this.#announce.value }));
    this.element.append(
      group("Languages you read", chips, this.#note),
      modes,
      originals.label,
      labelled("Screen reader announces", this.#announce),
    );
    this.#show();
  }

  get value() {
    return { ...this.#value, reads: [...this.#value.reads] };
  }

  /**
   * Choose for the user: nothing is remembered, and `onChange` is not called.
   * @param {Partial<Reading>} value
   */
  set(value) {
    this.#value = { ...this.#value, ...value };
    this.#value.reads = [...new Set(this.#value.reads)].filter((tag) => this.#languages.has(tag));
    if (value.announce !== undefined) this.#wish = value.announce;
    this.#show();
  }

  /** The most languages at a time; chosen ones that are too many are left out. @param {number} most */
  set limit(most) {
    this.#limit = most;
    this.set({ reads: this.#value.reads.slice(0, most) });
  }

  /** The languages can be read: from now on one begins with them. */
  keep() {
    remember("reads", this.#value.reads.join());
  }

  /** @param {Partial<Reading>} changes */
  #change(changes) {
    this.set(changes);
    const { stability, originals, announce } = changes;
    if (stability) remember("stability", stability);
    if (originals !== undefined) remember("originals", originals ? "yes" : "no");
    if (announce !== undefined) remember("announce", announce || NOTHING);
    this.#onChange(this.value);
  }

  /** @param {string} tag */
  #toggled(tag) {
    const { reads } = this.#value;
    return reads.includes(tag) ? reads.filter((read) => read !== tag) : [...reads, tag];
  }

  #show() {
    const { reads, stability, originals } = this.#value;
    const full = reads.length >= this.#limit && this.#languages.size > reads.length;
    for (const [tag, input] of this.#languages) {
      input.checked = reads.includes(tag);
      input.disabled = full && !input.checked;
    }
    for (const input of this.#modes.querySelectorAll("input")) input.checked = input.value === stability;
    this.#originals.checked = originals;
    this.#explanation.textContent = MODES.find(([mode]) => mode === stability)?.[2] ?? "";
    const most = `${this.#limit} at a time is the most: leave one out to choose another.`;
    this.#note.textContent = full ? most : reads.length ? "" : "Nothing is translated for you.";
    const wish = this.#wish ?? NOTHING;
    this.#value.announce = wish === "" || reads.includes(wish) ? wish : (reads[0] ?? "");
    const names = reads.map((tag) => /** @type {const} */ ([tag, this.#nameOf(tag)]));
    refill(this.#announce, [["", "Nothing"], ...names], this.#value.announce);
  }
}

/**
 * @param {readonly Language[]} languages
 * @returns {Reading}
 */
function remembered(languages) {
  const tags = languages.map(({ tag }) => tag);
  const kept = recall("reads");
  let reads = (kept ?? "").split(",").filter((tag) => tags.includes(tag));
  if (kept !== "" && !reads.length) reads = preferred(languages); // the first time, or with another model
  if (kept !== "" && !reads.length) reads = tags.slice(0, 2);
  const stability = MODES.find(([mode]) => mode === recall("stability"))?.[0] ?? "live";
  return { reads, stability, originals: recall("originals") !== "no", announce: "" };
}
