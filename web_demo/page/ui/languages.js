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
 * A language's name in another language; empty if the browser does not know it.
 * @param {string} language Tag of the language of the name.
 * @param {string} tag
 */
export function nameIn(language, tag) {
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
  const tags = new Map(offered.flatMap(({ tag }) => [canonical(tag), tag.toLowerCase()].map((known) => [known, tag])));
  const wanted = navigator.languages.flatMap(candidates).map((candidate) => tags.get(candidate) ?? "");
  return [...new Set(wanted)].filter(Boolean);
}

/** Languages that the gateway knows by another name than browsers do. @type {Record<string, string>} */
const NAMES = { nb: "no", nn: "no" };

/** The name that is in force: `fil` of `tl`, `he` of `iw`, `zh-cn` of `cmn-cn`. @param {string} tag */
function canonical(tag) {
  try {
    return (Intl.getCanonicalLocales(tag)[0] ?? tag).toLowerCase();
  } catch {
    return tag.toLowerCase();
  }
}

/** @param {string} tag */
function candidates(tag) {
  const language = canonical(tag);
  const [base = ""] = language.split("-");
  const known = NAMES[base] ?? base;
  return base === "zh" && /tw|hk|mo|hant/.test(language) ? ["zh-hant", base] : [language, known];
}
