// Whether a text is in another language than was chosen, as far as its letters and the browser's own detector tell. Must
// not know what is done about it.

/** @import {Language} from "../ui/languages.js" */

// Scripts that are written with letters of others (ISO 15924). Any other is its own.
/** @type {Record<string, RegExp>} */
const LETTERS = {
  Jpan: /[\p{Script=Hani}\p{Script=Hira}\p{Script=Kana}]/u,
  Hans: /\p{Script=Hani}/u,
  Hant: /\p{Script=Hani}/u,
  Kore: /[\p{Script=Hang}\p{Script=Hani}]/u,
};
// The browser's detector knows little about a shorter text.
const LEAST_CHARS = 12;
const CERTAIN = 0.9;

/** @typedef {{detect: (text: string) => Promise<{detectedLanguage: string, confidence: number}[]>}} Detector */

/** @type {Promise<Detector | null> | undefined} */
let detector;

/** The browser's own, where it is there already: nothing is downloaded for it. @returns {Promise<Detector | null>} */
async function browsersDetector() {
  const { LanguageDetector } = /** @type {any} */ (globalThis);
  try {
    return (await LanguageDetector?.availability()) === "available" ? await LanguageDetector.create() : null;
  } catch {
    return null;
  }
}

/**
 * Whether a text has a letter with which a language is written, or none at all.
 * @param {string} text
 * @param {string} tag
 */
function isWrittenIn(text, tag) {
  if (!/\p{L}/u.test(text)) return true;
  try {
    const script = new Intl.Locale(tag).maximize().script ?? "";
    return (LETTERS[script] ?? new RegExp(`\\p{Script=${script}}`, "u")).test(text);
  } catch {
    return true; // a language that the browser does not know
  }
}

/**
 * Whether a text does not look like the chosen language.
 * @param {string} text
 * @param {string} chosen A tag.
 * @param {readonly Language[]} offered
 * @returns {Promise<Language | "other" | null>} The one that it looks like, if that is known; null if it may be the chosen one.
 */
export async function otherLanguage(text, chosen, offered) {
  if (!isWrittenIn(text, chosen)) {
    const written = offered.filter(({ tag }) => isWrittenIn(text, tag));
    return (written.length === 1 && written[0]) || "other";
  }
  if ([...text].length < LEAST_CHARS) return null;
  const [best] = (await (await (detector ??= browsersDetector()))?.detect(text)) ?? [];
  if (best === undefined || best.confidence < CERTAIN) return null;
  const [base] = best.detectedLanguage.split("-");
  if (base === chosen.split("-")[0]) return null;
  return offered.find(({ tag }) => tag.split("-")[0] === base) ?? null;
}
