// How early translations are shown: the choice, explained and remembered. Knows elements and the browser's storage;
// must not know the connection.

import { element, find } from "./elements.js";

/** @typedef {import("./messages.js").Stability} Stability */

const REMEMBERED = "stability";

/** @typedef {{mode: Stability, name: string, explanation: string}} Mode */

/** @type {Mode} */
const LIVE = {
  mode: "live",
  name: "as early as possible",
  explanation: "Words appear while the sentence is being said; dotted ones may change.",
};

/** @type {readonly Mode[]} */
const MODES = [
  LIVE,
  {
    mode: "stable",
    name: "only what stays",
    explanation: "Words appear a little later, once they can stay; none is taken back in mid-sentence.",
  },
  { mode: "final", name: "whole sentences", explanation: "Nothing before the sentence is finished, then all of it." },
];

/** @returns {string | null} */
function remembered() {
  try {
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null; // a browser may be told to keep nothing
  }
}

/** @param {Stability} mode */
function remember(mode) {
  try {
    localStorage.setItem(REMEMBERED, mode);
  } catch {
    // Then it holds until the page is left.
  }
}

export class StabilityChoice {
  #hint = find("stability-hint", HTMLParagraphElement);
  #chosen;

  /** @param {(mode: Stability) => void} onChange */
  constructor(onChange) {
    const kept = remembered();
    this.#chosen = MODES.find(({ mode }) => mode === kept) ?? LIVE;
    this.#hint.textContent = this.#chosen.explanation;
    find("stabilities", HTMLDivElement).append(
      ...MODES.map((choice) => {
        const radio = element("input", "");
        radio.type = "radio";
        radio.name = "stability";
        radio.value = choice.mode;
        radio.checked = choice === this.#chosen;
        radio.dataset.testid = `stability-${choice.mode}`;
        radio.addEventListener("change", () => {
          this.#chosen = choice;
          this.#hint.textContent = choice.explanation;
          remember(choice.mode);
          onChange(choice.mode);
        });
        const chip = element("label", "chip");
        chip.append(radio, element("span", "", choice.name), element("span", "own-name", choice.mode));
        return chip;
      }),
    );
  }

  get mode() {
    return this.#chosen.mode;
  }
}
