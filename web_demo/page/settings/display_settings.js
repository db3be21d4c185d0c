// How the page looks: text size, theme and contrast. Knows the attributes of the document that style.css goes by; must
// not know what the page shows.

import { choice, group, radios } from "../ui/form_controls.js";
import { button, element } from "../ui/dom.js";
import { recall, remember } from "../ui/preferences.js";

const SCALES = [0.875, 1, 1.25, 1.5, 2];
const THEMES = /** @type {const} */ ([
  ["auto", "Automatic"],
  ["light", "Light"],
  ["dark", "Dark"],
]);
const { dataset, style } = document.documentElement;

export class Appearance {
  element = element("div", "panel");
  #step;
  #shown = element("output", "panel-size");
  #smaller = button("quiet", "−", "text-smaller", () => this.#resize(this.#step - 1));
  #larger = button("quiet", "+", "text-larger", () => this.#resize(this.#step + 1));

  constructor() {
    this.#step = SCALES.indexOf(Number(recall("text-scale") ?? 1));
    if (this.#step < 0) this.#step = SCALES.indexOf(1);
    this.#smaller.ariaLabel = "Smaller text";
    this.#larger.ariaLabel = "Larger text";
    const sizes = element("div", "panel-sizes");
    sizes.append(this.#smaller, this.#shown, this.#larger);
    this.#resize(this.#step);

    const theme = THEMES.find(([kept]) => kept === recall("theme"))?.[0] ?? "auto";
    const themes = radios("theme", THEMES, theme, applyTheme);
    applyTheme(theme);

    const contrast = choice("panel-check", "contrast", "High contrast", applyContrast);
    contrast.input.checked = recall("contrast") === "high";
    applyContrast(contrast.input.checked);
    this.element.append(group("Text size", sizes), group("Theme", themes), contrast.label);
  }

  /** @param {number} step */
  #resize(step) {
    const scale = SCALES[step];
    if (scale === undefined) return;
    this.#step = step;
    style.setProperty("--text-scale", String(scale));
    remember("text-scale", String(scale));
    this.#shown.textContent = `${scale * 100} %`;
    // Not `disabled`, which would take the focus from whoever pressed it.
    this.#smaller.ariaDisabled = String(step === 0);
    this.#larger.ariaDisabled = String(step === SCALES.length - 1);
  }
}

/** @param {string} theme */
function applyTheme(theme) {
  dataset["theme"] = theme;
  remember("theme", theme);
}

/** @param {boolean} high */
function applyContrast(high) {
  if (high) dataset["contrast"] = "high";
  else delete dataset["contrast"];
  remember("contrast", high ? "high" : "");
}
