// The page's own words in the language of its user, which is loaded before anything is shown. Knows the message files; must
// not know where a message stands. A new message gets a key in every file; what people and the gateway say has none.

import { englishName, nativeName, textDirection } from "../ui/languages.js";
import { loadPreference, savePreference } from "../ui/preferences.js";
import { en } from "./en.js";

/** @import {Key, Messages} from "./en.js" */

/** @type {Record<string, () => Promise<Messages>>} */
const FILES = {
  en: async () => en,
  ar: async () => (await import("./ar.js")).ar,
  de: async () => (await import("./de.js")).de,
  es: async () => (await import("./es.js")).es,
  fr: async () => (await import("./fr.js")).fr,
  ja: async () => (await import("./ja.js")).ja,
  zh: async () => (await import("./zh.js")).zh,
};
const CHOICE = "page-language";
// Letters that are written from right to left, and characters that turn the direction.
const TURNS = /[\p{Script=Arab}\p{Script=Hebr}\p{Script=Syrc}\p{Script=Thaa}\u202a-\u202e\u2066-\u2069]/u;

let language = "en";
/** @type {Messages} */
let messages = en;
let plurals = new Intl.PluralRules(language);

/** The languages that the page speaks, each by its own name. @returns {[tag: string, name: string][]} */
export function pageLanguages() {
  return Object.keys(FILES).map((tag) => [tag, nativeName(tag) || tag]);
}

/** The language in force. */
export function pageLanguage() {
  return language;
}

/** Use the language that was chosen, or the first of the browser's that there is. Must end before anything is shown. */
export async function loadWords() {
  const wanted = [loadPreference(CHOICE) ?? "", ...navigator.languages].map((tag) => tag.toLowerCase().split("-")[0] ?? "");
  await use(wanted.find((tag) => Object.hasOwn(FILES, tag)) ?? "en");
}

/** @param {string} tag */
async function use(tag) {
  try {
    messages = (await FILES[tag]?.()) ?? en;
    language = tag;
  } catch {
    // The file could not be fetched: English is here already.
  }
  plurals = new Intl.PluralRules(language);
  document.documentElement.lang = language;
  document.documentElement.dir = textDirection(language);
}

/** Use another language from now on. What is shown already was said in the old one, so the page starts again. @param {string} tag */
export function chooseLanguage(tag) {
  savePreference(CHOICE, tag);
  history.replaceState({ isPanelOpen: true }, "");
  location.reload();
}

/**
 * A message in the page's language.
 * @param {Key} key
 * @param {Record<string, string | number>} [values] For the names in the message; `count` chooses its plural form.
 */
export function t(key, values = {}) {
  const message = messages[key];
  const text = typeof message === "string" ? message : (message[plurals.select(Number(values["count"]))] ?? message.other ?? "");
  return text.replace(/\{(\w+)\}/g, (_, name) => isolated(values[name] ?? ""));
}

/**
 * A value that does not change the order of the words around it, nor they its own.
 * @param {string | number} value
 */
function isolated(value) {
  const isTurned = typeof value === "string" && (textDirection(language) === "rtl" || TURNS.test(value));
  return isTurned ? `\u2068${value}\u2069` : String(value);
}

/** A time of day in the page's language, as it is written where the browser is from if they speak it there. @param {Date} at */
export function clock(at) {
  const own = new Intl.DateTimeFormat().resolvedOptions().locale;
  return at.toLocaleTimeString(own.split("-")[0] === language ? own : language, { timeStyle: "short" });
}

/**
 * The name of a language in the page's language.
 * @param {string} tag
 * @param {string} [english] Its English name, where the gateway tells it.
 */
export function languageName(tag, english = englishName(tag) || tag) {
  if (language === "en") return english;
  try {
    return new Intl.DisplayNames([language], { type: "language", fallback: "none" }).of(tag) ?? english;
  } catch {
    return english;
  }
}
