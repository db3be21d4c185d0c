// Whether a text is in another language than was chosen, as far as its letters and a detector tell: the browser's own, or
// the gateway's. Must not know what is done about it.

/** @import {Language} from "../ui/languages.js" */

// Scripts that are written with letters of others (ISO 15924). Any other is its own.
/** @type {Record<string, RegExp>} */
const LETTERS = {
  Jpan: /[\p{Script=Hani}\p{Script=Hira}\p{Script=Kana}]/u,
  Hans: /\p{Script=Hani}/u,
  Hant: /\p{Script=Hani}/u,
  Kore: /[\p{Script=Hang}\p{Script=Hani}]/u,
};
// Detectors know little about a shorter text, or one of fewer words.
const LEAST_CHARS = 12;
const LEAST_WORDS = 3;
const CERTAIN = 0.9;
// How much likelier a text is in the chosen language than a detector takes it, which knows the text alone.
const CHOSEN = 5;
// Loading the gateway's model takes a second or so.
const TIMEOUT_MS = 10_000;
// How long a token is used: half of its time.
const TOKEN_MS = 300_000;

/** The likeliest first. @typedef {(text: string) => Promise<{detectedLanguage: string, confidence: number}[]>} Detect */

/** @type {Promise<Detect | null> | undefined} */
let browsers;

/** The browser's own, where it is there already: nothing is downloaded for it. @returns {Promise<Detect | null>} */
async function browsersDetector() {
  const { LanguageDetector } = /** @type {any} */ (globalThis);
  try {
    if ((await LanguageDetector?.availability()) !== "available") return null;
    const detector = await LanguageDetector.create();
    return (text) => detector.detect(text);
  } catch {
    return null;
  }
}

/**
 * The gateway's detector, for texts that it is sent anyway. Where it is not reached, as behind some proxies, it is asked once.
 * @param {(() => Promise<string>) | null} token Gets a fresh token; null where none is needed.
 * @returns {Detect}
 */
export function gatewaysDetector(token) {
  let isThere = true;
  let [kept, keptSince] = ["", -Infinity];
  return async (text) => {
    if (!isThere) return [];
    try {
      if (token && performance.now() - keptSince > TOKEN_MS) {
        kept = await token();
        keptSince = performance.now();
      }
      const response = await fetch("./detect", {
        method: "POST",
        headers: { "Content-Type": "application/json", ...(kept && { Authorization: `Bearer ${kept}` }) },
        body: JSON.stringify({ q: text }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      isThere = response.ok || response.status >= 429; // which is for the moment
      if (!response.ok) return [];
      /** @type {{language: string, confidence: number}[]} In percent. */
      const found = await response.json();
      return found.map(({ language, confidence }) => ({ detectedLanguage: language, confidence: confidence / 100 }));
    } catch {
      return [];
    }
  };
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
 * A text without what is the same in many languages: words with a capital, most of which are names, numbers and addresses.
 * @param {string} text
 */
function tellingWords(text) {
  const words = text
    .split(/\s+/)
    .filter((word) => /^\P{L}*[\p{Ll}\p{Lo}]/u.test(word) && !/[\d/@_.][\p{Ll}\p{Lu}]/u.test(word));
  // Where letters have no case, words have no blanks between them, or what is left tells more.
  return words.length >= LEAST_WORDS || /\p{Lo}/u.test(text) ? words.join(" ") : "";
}

/**
 * Whether a text does not look like the chosen language.
 * @param {string} text
 * @param {string} chosen A tag.
 * @param {readonly Language[]} offered
 * @param {Detect | null} detect Where the browser has no detector.
 * @returns {Promise<Language | "other" | null>} The one that it looks like, if that is known; null if it may be the chosen one.
 */
export async function otherLanguage(text, chosen, offered, detect) {
  if (!isWrittenIn(text, chosen)) {
    const written = offered.filter(({ tag }) => isWrittenIn(text, tag));
    return (written.length === 1 && written[0]) || "other";
  }
  const words = tellingWords(text);
  if ([...words].length < LEAST_CHARS) return null;
  const found = (await ((await (browsers ??= browsersDetector())) ?? detect)?.(words)) ?? [];
  const [best] = found;
  const own = found.find(({ detectedLanguage }) => isSame(detectedLanguage, chosen))?.confidence ?? 0;
  if (best === undefined || best.confidence < CERTAIN * (1 + (CHOSEN - 1) * own)) return null;
  return offered.find(({ tag }) => isSame(tag, best.detectedLanguage) && !isSame(tag, chosen)) ?? null;
}

/** Whether two tags are of one language. @param {string} one @param {string} other */
function isSame(one, other) {
  return one.split("-")[0] === other.split("-")[0];
}
