// The parameters in the address of the captions view. docs/page.md lists them.

import { isReached } from "../meeting/offered_languages.js";
import { pageLanguage, t } from "../words/words.js";

/** @import {Access} from "../access/access.js" */

/** @param {string[]} values @returns {string} Those that are allowed, in words. */
function oneOf(...values) {
  return listOf(values, "disjunction");
}

/** @param {Iterable<string>} values @param {"conjunction" | "disjunction"} type */
function listOf(values, type) {
  return new Intl.ListFormat(pageLanguage(), { type }).format(values);
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

/** What else an address may have. */
const OTHERS = new Set(["view", "record"]);

/**
 * @param {URLSearchParams} query
 * @param {boolean} isInvited Whether an invite names the meeting.
 * @returns {[CaptionOptions, string[]]} The options, and a sentence for each one that is not valid or unknown.
 */
export function captionOptions(query, isInvited) {
  /** @type {string[]} */
  const problems = [];
  const isWall = query.get("view") === "reading";
  const options = Object.entries(PARAMETERS).map(([name, [initial, allowed, words]]) => {
    if (isWall && OVERLAY_ONLY.has(name)) return [name, initial];
    const value = query.get(name) ?? initial;
    const isOthers = isInvited && name === "meeting";
    if (!isOthers && !allowed.test(value))
      problems.push(t(value ? "captions.wrong" : "captions.missing", { name, values: words() }));
    return [name, value];
  });
  const names = Object.keys(PARAMETERS);
  for (const name of new Set(query.keys()))
    if (!names.includes(name) && !OTHERS.has(name))
      problems.push(t("captions.unknown", { name, values: listOf(names, "conjunction") }));
  return [Object.fromEntries(options), problems];
}

/**
 * Asks the gateway which of the languages nothing is translated into.
 * @param {CaptionOptions} options
 * @param {Access["token"]} [token]
 * @returns {Promise<string[]>} A sentence about all of them; none if they are all there, or the gateway does not tell.
 */
export async function languageProblems(options, token) {
  if (!PARAMETERS.lang[1].test(options.lang)) return [];
  try {
    const headers = token ? { Authorization: `Bearer ${await token()}` } : undefined;
    const response = await fetch("./v1/languages", { signal: AbortSignal.timeout(5_000), ...(headers && { headers }) });
    if (!response.ok) return [];
    const info = await response.json();
    const languages = info.languages.map((/** @type {{tag: string}} */ { tag }) => tag);
    const wrong = captionLanguages(options).filter((tag) => !isReached(tag, { languages, targets: info.targets }));
    if (wrong.length === 0) return [];
    const values = t("captions.value.offered", { languages: languages.join(), wrong: wrong.join() });
    return [t("captions.wrong", { name: "lang", values })];
  } catch {
    return [];
  }
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
