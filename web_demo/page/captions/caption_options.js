// The parameters in the address of the captions view. docs/page.md lists them.

import { pageLanguage, t } from "../words/words.js";

/** @param {string[]} values @returns {string} Those that are allowed, in words. */
function oneOf(...values) {
  return new Intl.ListFormat(pageLanguage(), { type: "disjunction" }).format(values);
}

/**
 * Each parameter's default, the values allowed, and these in words.
 * @satisfies {Record<string, [string, RegExp, () => string]>}
 */
const PARAMETERS = {
  meeting: ["", /^[\w.~-]{1,64}$/, () => t("captions.value.meeting")],
  lang: ["", /^[a-z]{2,3}(-[a-z\d]+)*(,[a-z]{2,3}(-[a-z\d]+)*)*$/i, () => t("captions.value.langs")],
  lines: ["2", /^[1-6]$/, () => t("captions.value.number", { least: 1, most: 6 })],
  size: ["", /^(([1-9]\d?(\.\d+)?|0\.[1-9]\d*)(rem)?)?$/, () => t("captions.value.size")],
  align: ["left", /^(left|center)$/, () => oneOf("left", "center")],
  position: ["bottom", /^(bottom|top)$/, () => oneOf("bottom", "top")],
  stability: ["stable", /^(stable|live|final)$/, () => oneOf("stable", "live", "final")],
  names: ["1", /^[01]$/, () => oneOf("1", "0")],
  original: ["0", /^[01]$/, () => oneOf("0", "1")],
  box: ["92", /^(\d\d?|100)$/, () => t("captions.value.number", { least: 0, most: 100 })],
  linger: ["6", /^\d{1,4}(\.\d+)?$/, () => t("captions.value.seconds")],
};

/** @typedef {Record<keyof typeof PARAMETERS, string>} CaptionOptions */

/** Parameters of the overlay, which the wall of a room has no use for. */
const OVERLAY_ONLY = new Set(["lines", "position", "box", "linger"]);

/**
 * @param {URLSearchParams} query
 * @returns {[CaptionOptions, string[]]} The options, and a sentence for each one that is not valid.
 */
export function captionOptions(query) {
  /** @type {string[]} */
  const problems = [];
  const isWall = query.get("view") === "reading";
  const options = Object.entries(PARAMETERS).map(([name, [initial, allowed, words]]) => {
    if (isWall && OVERLAY_ONLY.has(name)) return [name, initial];
    const value = query.get(name) ?? initial;
    if (!allowed.test(value))
      problems.push(t(value ? "captions.wrong" : "captions.missing", { name, values: words() }));
    return [name, value];
  });
  return [Object.fromEntries(options), problems];
}

/**
 * A language tag as the gateway writes it: it knows regions for Chinese only.
 * @param {string} tag
 */
function gatewayTag(tag) {
  return /^zh-(tw|hk|hant)/.test(tag) ? "zh-hant" : (tag.split("-")[0] ?? tag);
}

/**
 * @param {CaptionOptions} options
 * @returns {string[]} The languages to read, each once.
 */
export function captionLanguages({ lang }) {
  return [...new Set(lang.toLowerCase().split(",").map(gatewayTag))];
}
