// The browser's speech recognition, while the user wants it. What it hears goes to the client, one utterance per sentence.
// Knows the quirks of recognisers; must not know the page.

import { t } from "../words/words.js";

/** @typedef {"off" | "starting" | "listening"} Hearing */

/**
 * @typedef {object} Recognition The parts used here; TypeScript's library does not declare it.
 * @property {string} lang
 * @property {boolean} continuous
 * @property {boolean} interimResults
 * @property {(() => void) | null} onstart
 * @property {((event: {results: SpeechRecognitionResultList}) => void) | null} onresult
 * @property {((event: {error: string}) => void) | null} onerror
 * @property {(() => void) | null} onend
 * @property {() => void} start
 * @property {() => void} stop
 * @property {() => void} abort
 */

/**
 * The client that gets what was heard.
 * @typedef {object} Listener
 * @property {(said: {text: string, lang: string, id?: string | undefined}) => string} partial
 * @property {(said: {text: string, lang: string, id?: string | undefined}) => string} final
 * @property {(id: string) => void} cancel
 */

/**
 * @typedef {object} Options
 * @property {Listener} client
 * @property {string} lang A tag from the gateway's list.
 * @property {(state: Hearing, problem: string) => void} onState `problem`: a sentence for people if it stopped by itself, else empty.
 */

// Errors that stop it. After all others, such as silence or another page that listens, it is started again.
const PROBLEMS = new Map([
  ["not-allowed", t("mic.blocked")],
  ["service-not-allowed", t("mic.not_allowed_here")],
  ["audio-capture", t("mic.none")],
  ["network", t("mic.network")],
  ["language-not-supported", t("mic.language")],
]);

// If a recogniser ends sooner than this without hearing anything, the next one is started after a growing delay.
const SHORT_MS = 2_000;
const RETRY_MS = 300;
const MAX_RETRY_MS = 10_000;

/** @returns {(new () => Recognition) | undefined} */
function recogniserClass() {
  const { SpeechRecognition, webkitSpeechRecognition } = /** @type {any} */ (globalThis);
  return SpeechRecognition ?? webkitSpeechRecognition;
}

/**
 * A tag with a region, as recognisers need it: the user's region, or the one with most speakers.
 * @param {string} tag
 */
export function regionalTag(tag) {
  const { language, region } = new Intl.Locale(tag).maximize();
  if (region === undefined) return tag;
  const likely = `${language}-${region}`;
  if (tag.includes("-") || language === "zh") return likely;
  return navigator.languages.find((own) => new RegExp(`^${language}-[A-Z]{2}$`).test(own)) ?? likely;
}

export class Microphone {
  #options;
  #lang;
  #isWanted = false;
  /** The one that runs. @type {Recognition | null} */
  #recognition = null;
  /** The utterance that is not final yet. @type {{id: string, text: string, lang: string} | undefined} */
  #open;
  #startedAt = 0;
  /** How many times in a row it ended at once. */
  #failures = 0;
  /** @type {number | undefined} */
  #retry;

  /** @param {Options} options */
  constructor(options) {
    this.#options = options;
    this.#lang = options.lang;
  }

  /** Whether the user wants it to listen. */
  get isOn() {
    return this.#isWanted;
  }

  get lang() {
    return this.#lang;
  }

  set lang(lang) {
    if (lang === this.#lang) return;
    this.#lang = lang;
    this.#finish();
    this.#recognition?.abort(); // when it has ended, one in the new language is started
  }

  start() {
    if (this.#isWanted) return;
    if (!globalThis.isSecureContext) return this.#end(t("mic.insecure"));
    if (recogniserClass() === undefined) return this.#end(t("mic.unsupported"));
    this.#isWanted = true;
    this.#failures = 0;
    this.#options.onState("starting", "");
    if (this.#recognition === null) this.#begin();
  }

  /** Stop listening. What was said until now is still recognised. */
  stop() {
    if (!this.#isWanted) return;
    this.#end("");
    this.#recognition?.stop();
  }

  /** Stop listening, and drop what is not final. */
  abort() {
    if (this.#isWanted) this.#end("");
    this.#open = undefined;
    if (this.#recognition === null) return;
    this.#recognition.onresult = null;
    this.#recognition.abort();
  }

  /** @param {string} problem */
  #end(problem) {
    this.#isWanted = false;
    clearTimeout(this.#retry);
    this.#options.onState("off", problem);
  }

  // ---------------------------------------------------------------- the recogniser

  #begin() {
    const Recogniser = recogniserClass();
    if (Recogniser === undefined) return;
    const lang = this.#lang;
    const recognition = new Recogniser();
    recognition.lang = regionalTag(lang);
    recognition.interimResults = true;
    // On Android a continuous recogniser repeats its results.
    recognition.continuous = !/Android/.test(navigator.userAgent);
    recognition.onstart = () => {
      if (this.#isWanted) this.#options.onState("listening", "");
    };
    let done = 0;
    recognition.onresult = ({ results }) => {
      if (lang === this.#lang) done = this.#onResults(results, done, lang);
    };
    recognition.onerror = ({ error }) => this.#onError(error);
    recognition.onend = () => this.#onEnd();
    this.#recognition = recognition;
    this.#startedAt = performance.now();
    try {
      recognition.start();
    } catch {
      this.#onEnd(); // the last one still runs
    }
  }

  /**
   * @param {SpeechRecognitionResultList} results All results since the recogniser was started.
   * @param {number} from The first one that was not final.
   * @param {string} lang
   * @returns {number} The first one that is not final.
   */
  #onResults(results, from, lang) {
    this.#failures = 0;
    let index = from;
    for (; results[index]?.isFinal; index += 1) this.#finish(heard(results[index]), lang);
    // Text that is not final comes in pieces: the part that is nearly certain, and the rest.
    const pieces = Array.from(results).slice(index).map(heard);
    const text = pieces.join("").trim();
    if (text) this.#open = { id: this.#options.client.partial({ text, lang, id: this.#open?.id }), text, lang };
    return index;
  }

  /**
   * Make the utterance final.
   * @param {string} [text] Its text; what was heard so far if absent. If empty, nothing was said and it is cancelled.
   * @param {string} [lang]
   */
  #finish(text, lang = this.#open?.lang) {
    const open = this.#open;
    this.#open = undefined;
    const words = (text ?? open?.text ?? "").trim();
    if (words && lang !== undefined) this.#options.client.final({ text: words, lang, id: open?.id });
    else if (open !== undefined) this.#options.client.cancel(open.id);
  }

  /** @param {string} error */
  #onError(error) {
    const problem = PROBLEMS.get(error);
    if (problem !== undefined && this.#isWanted) this.#end(problem);
  }

  /** A recogniser also ends by itself: after a silence, or after about a minute. */
  #onEnd() {
    this.#recognition = null;
    this.#finish();
    if (!this.#isWanted) return;
    const isShort = performance.now() - this.#startedAt < SHORT_MS;
    this.#failures = isShort ? this.#failures + 1 : 0;
    const delayMs = this.#failures > 1 ? Math.min(RETRY_MS * 2 ** this.#failures, MAX_RETRY_MS) : 0;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#begin(), delayMs);
  }
}

/** @param {SpeechRecognitionResult | undefined} result */
function heard(result) {
  return result?.[0]?.transcript ?? "";
}
