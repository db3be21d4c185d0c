// Languages as people know them. Knows the browser's own lists; must not know which of them the gateway offers.

/** @typedef {{tag: string, name: string}} Language As the gateway lists it; `name` is English. */

/**
 * What a language is called by those who speak it; empty where the browser does not know.
 * @param {string} tag
 */
export function ownName(tag) {
  try {
    return new Intl.DisplayNames([tag], { type: "language", fallback: "none" }).of(tag) ?? "";
  } catch {
    return "";
  }
}

const RIGHT_TO_LEFT = new Set(["ar", "arc", "ckb", "dv", "fa", "he", "ks", "ku", "ps", "sd", "syr", "ug", "ur", "yi"]);

/**
 * The direction in which a language is written.
 * @param {string} tag
 * @returns {"ltr" | "rtl"}
 */
export function direction(tag) {
  return RIGHT_TO_LEFT.has(tag.split("-")[0] ?? "") ? "rtl" : "ltr";
}

/**
 * The languages this browser's user prefers, of those there are, best first.
 * @param {readonly Language[]} offered
 * @returns {string[]} Tags.
 */
export function preferred(offered) {
  const tags = offered.map(({ tag }) => tag);
  const wanted = navigator.languages.map((language) => language.toLowerCase()).flatMap(candidates);
  return [...new Set(wanted)].filter((tag) => tags.includes(tag));
}

/** @param {string} language */
function candidates(language) {
  const [base = ""] = language.split("-");
  return base === "zh" && /tw|hk|hant/.test(language) ? ["zh-hant", base] : [language, base];
}
