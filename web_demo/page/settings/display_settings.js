// Text size, theme and contrast. Knows the attributes of the document that style.css reads; must not know what the page
// shows.

import { button, element } from "../ui/dom.js";
import { checkbox, dropdown, fieldset, labelled, radioButtons } from "../ui/form_controls.js";
import { loadPreference, savePreference } from "../ui/preferences.js";
import { chooseLanguage, pageLanguage, pageLanguages, t } from "../words/words.js";

const SCALES = [0.875, 1, 1.25, 1.5, 2];
const THEMES = /** @type {const} */ ([
  ["auto", t("display.auto")],
  ["light", t("display.light")],
  ["dark", t("display.dark")],
]);
const { dataset, style } = document.documentElement;

export class DisplaySettings {
  element = element("div", "panel");
  #step;
  #size = element("output", "panel-size");
  #smaller = button("quiet", "−", "text-smaller", () => this.#resize(this.#step - 1));
  #larger = button("quiet", "+", "text-larger", () => this.#resize(this.#step + 1));

  constructor() {
    this.#step = SCALES.indexOf(Number(loadPreference("text-scale") ?? 1));
    if (this.#step < 0) this.#step = SCALES.indexOf(1);
    this.#smaller.ariaLabel = t("display.smaller");
    this.#larger.ariaLabel = t("display.larger");
    const sizes = element("div", "panel-sizes");
    sizes.append(this.#smaller, this.#size, this.#larger);
    this.#resize(this.#step);

    const theme = THEMES.find(([value]) => value === loadPreference("theme"))?.[0] ?? "auto";
    const themes = radioButtons("theme", THEMES, theme, applyTheme);
    applyTheme(theme);

    const contrast = checkbox("panel-check", "contrast", t("display.contrast"), applyContrast);
    contrast.input.checked = loadPreference("contrast") === "high";
    applyContrast(contrast.input.checked);
    const language = dropdown("page-language", pageLanguages(), pageLanguage());
    language.addEventListener("change", () => chooseLanguage(language.value));
    this.element.append(
      fieldset(t("display.size"), sizes),
      fieldset(t("display.theme"), themes),
      contrast.label,
      labelled(t("display.language"), language),
    );
  }

  /** @param {number} step */
  #resize(step) {
    const scale = SCALES[step];
    if (scale === undefined) return;
    this.#step = step;
    style.setProperty("--text-scale", String(scale));
    savePreference("text-scale", String(scale));
    this.#size.textContent = `${scale * 100} %`;
    // Not `disabled`: a disabled button loses the focus.
    this.#smaller.ariaDisabled = String(step === 0);
    this.#larger.ariaDisabled = String(step === SCALES.length - 1);
  }
}

/** @param {string} theme */
function applyTheme(theme) {
  dataset["theme"] = theme;
  savePreference("theme", theme);
}

/** @param {boolean} isHigh */
function applyContrast(isHigh) {
  if (isHigh) dataset["contrast"] = "high";
  else delete dataset["contrast"];
  savePreference("contrast", isHigh ? "high" : "");
}
