// Names of languages, the direction of their scripts, and those that the user prefers. Knows the browser's lists; must
// not know which languages the gateway offers.

/** @typedef {{tag: string, name: string}} Language From the gateway's list; `name` is English. */

/**
 * A language's name in that language; empty if the browser does not know it.
 * @param {string} tag
 */
export function nativeName(tag) {
  return nameIn(tag, tag);
}

/**
 * @param {string} language
 * @param {string} tag
 */
function nameIn(language, tag) {
  try {
    return new Intl.DisplayNames([language], { type: "language", fallback: "none" }).of(tag) ?? "";
  } catch {
    return "";
  }
}

/**
 * A language's English name; empty if the browser does not know it.
 * @param {string} tag
 */
export function englishName(tag) {
  return nameIn("en", tag);
}

/**
 * A language's English name, with its native name if that is different.
 * @param {string} name
 * @param {string} tag
 */
export function bilingualName(name, tag) {
  const native = nativeName(tag);
  return native && native !== name ? `${name} (${native})` : name;
}

const RIGHT_TO_LEFT = new Set(["ar", "arc", "ckb", "dv", "fa", "he", "ks", "ku", "ps", "sd", "syr", "ug", "ur", "yi"]);

/**
 * @param {string} tag
 * @returns {"ltr" | "rtl"} The direction in which the language is written.
 */
export function textDirection(tag) {
  return RIGHT_TO_LEFT.has(tag.split("-")[0] ?? "") ? "rtl" : "ltr";
}

/**
 * The offered languages that the user's browser prefers, best first.
 * @param {readonly Language[]} offered
 * @returns {string[]} Tags.
 */
export function preferredLanguages(offered) {
  const tags = offered.map(({ tag }) => tag);
  const wanted = navigator.languages.map((language) => language.toLowerCase()).flatMap(candidates);
  return [...new Set(wanted)].filter((tag) => tags.includes(tag));
}

/** @param {string} language */
function candidates(language) {
  const [base = ""] = language.split("-");
  return base === "zh" && /tw|hk|hant/.test(language) ? ["zh-hant", base] : [language, base];
}
