// The browser's speech recognition, while the user wants it: started again whenever it ends by itself. Knows when what it
// hears may leave the device; must not know the page, nor what its results mean (client/recognisers).

import { Browser } from "../../client/recognisers/browser.js";
import { t } from "../words/words.js";

/** @import {RecognisedSpeech} from "../../client/recognisers/utterances.js" */

/** "retrying": its service cannot be reached, so that nothing is heard. @typedef {"off" | "starting" | "listening" | "retrying"} Hearing */

/**
 * @typedef {object} Recognition The parts used here; TypeScript's library does not declare it.
 * @property {string} lang
 * @property {boolean} continuous
 * @property {boolean} interimResults
 * @property {(() => void) | null} onstart
 * @property {((event: SpeechResults) => void) | null} onresult
 * @property {((event: {error: string}) => void) | null} onerror
 * @property {(() => void) | null} onend
 * @property {() => void} start
 * @property {() => void} stop
 * @property {() => void} abort
 */
/** @typedef {{type?: string, results: SpeechRecognitionResultList}} SpeechResults */

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
 * @property {(open: {id: string, text: string} | null) => void} onOpen What was heard of an utterance that is not final yet; null once it is.
 */

// Errors that stop it. After all others, such as silence or another page that listens, it is started again.
const PROBLEMS = new Map([
  ["not-allowed", t("mic.blocked")],
  ["service-not-allowed", t("mic.not_allowed_here")],
  ["audio-capture", t("mic.none")],
  ["language-not-supported", t("mic.language")],
]);

// If a recogniser ends sooner than this without hearing anything, the next one is started after a growing delay.
const SHORT_MS = 2_000;
const RETRY_MS = 300;
const MAX_RETRY_MS = 10_000;
// How long a sentence waits for its end when its recogniser was started again and hears nothing.
const PATIENCE_MS = 3_000;
// How long the end of a sentence that was begun before a stop may take to be recognised.
const LAST_WORDS_MS = 2_000;

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

/** Whether it may continue listening after a stop, as Safari does. */
function listensOn() {
  return /^Apple/.test(navigator.vendor) || /^(?!.*(Chrom|Android)).*Safari/.test(navigator.userAgent);
}

export class Microphone {
  #options;
  #lang;
  #isWanted = false;
  /** The one that runs. @type {Recognition | null} */
  #recognition = null;
  #results = newResults();
  /** What was sent last of the utterance that is not final yet. @type {RecognisedSpeech | null} */
  #open = null;
  /** Whether it was stopped, and only the end of the open utterance is still sent. */
  #isClosing = false;
  /** Whether its service could not be reached since something was heard. */
  #isUnreachable = false;
  #startedAt = 0;
  /** How many times in a row it ended at once. */
  #failures = 0;
  /** @type {number | undefined} */
  #retry;
  /** Runs while the open utterance waits for its end. @type {number | undefined} */
  #patience;

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
    this.#close();
    this.#lang = lang;
    if (this.#isWanted) this.#begin();
  }

  start() {
    if (this.#isWanted) return;
    if (!globalThis.isSecureContext) return this.#end(t("mic.insecure"));
    if (recogniserClass() === undefined) return this.#end(t("mic.unsupported"));
    this.#close(); // one that was stopped may never say that it has ended
    this.#isWanted = true;
    this.#isUnreachable = false;
    this.#failures = 0;
    this.#options.onState("starting", "");
    this.#begin();
  }

  /**
   * Stop listening. The end of the sentence that was begun is still recognised, where the browser no longer listens;
   * nothing else that is heard from now on is sent.
   */
  stop() {
    if (!this.#isWanted) return;
    this.#end("");
    if (this.#open === null || this.#recognition === null || listensOn()) return this.#close();
    this.#isClosing = true;
    this.#patience = setTimeout(() => this.#close(), LAST_WORDS_MS);
    this.#recognition.stop();
  }

  /** Stop listening, and drop what is not final. */
  abort() {
    if (this.#isWanted) this.#end("");
    this.#open = null;
    this.#close();
  }

  /** @param {string} problem */
  #end(problem) {
    this.#isWanted = false;
    clearTimeout(this.#retry);
    clearTimeout(this.#patience);
    this.#options.onState("off", problem);
  }

  /** Make final what was sent, and listen to this recogniser no longer. */
  #close() {
    clearTimeout(this.#retry);
    clearTimeout(this.#patience);
    const open = this.#open;
    if (open !== null) this.#say([{ ...open, kind: "final" }]);
    this.#isClosing = false;
    this.#results = newResults();
    const recognition = this.#recognition;
    this.#recognition = null;
    if (recognition === null) return;
    recognition.onstart = recognition.onresult = recognition.onerror = recognition.onend = null;
    recognition.abort();
  }

  // ---------------------------------------------------------------- the recogniser

  #begin() {
    const Recogniser = recogniserClass();
    if (Recogniser === undefined) return;
    const recognition = new Recogniser();
    recognition.lang = regionalTag(this.#lang);
    recognition.interimResults = true;
    // On Android a continuous recogniser repeats its results.
    recognition.continuous = !/Android/.test(navigator.userAgent);
    recognition.onstart = () => {
      if (this.#isWanted) this.#options.onState(this.#isUnreachable ? "retrying" : "listening", "");
    };
    recognition.onresult = (event) => this.#onResult(event);
    recognition.onerror = ({ error }) => this.#onError(error);
    recognition.onend = () => this.#onEnd();
    this.#recognition = recognition;
    this.#startedAt = performance.now();
    this.#results.hear({ type: "start" });
    try {
      recognition.start();
    } catch {
      this.#onEnd(); // the last one still runs
    }
  }

  /** @param {SpeechResults} event */
  #onResult(event) {
    this.#failures = 0;
    const said = this.#results.hear(event);
    if (this.#isClosing) {
      const last = said.find(({ kind, id }) => kind !== "partial" && id === this.#open?.id);
      if (last === undefined) return;
      this.#say([last]);
      return this.#close();
    }
    clearTimeout(this.#patience);
    if (this.#isUnreachable) {
      this.#isUnreachable = false;
      this.#options.onState("listening", "");
    }
    this.#say(said);
  }

  /** @param {RecognisedSpeech[]} said */
  #say(said) {
    const { client } = this.#options;
    for (const speech of said) {
      const { kind, id, text } = speech;
      this.#open = kind === "partial" ? speech : null;
      if (kind === "cancel") client.cancel(id);
      else client[kind]({ text, lang: this.#lang, id });
      this.#options.onOpen(this.#open);
    }
  }

  /** @param {string} error */
  #onError(error) {
    if (!this.#isWanted) return;
    const problem = PROBLEMS.get(error);
    if (problem !== undefined) {
      this.#end(problem);
      this.#close();
    } else if (error === "network" || this.#isUnreachable) {
      this.#isUnreachable = error === "network";
      this.#options.onState(this.#isUnreachable ? "retrying" : "listening", "");
    }
  }

  /** A recogniser also ends by itself: after a silence, or after about a minute, also in the middle of a sentence. */
  #onEnd() {
    this.#recognition = null;
    const said = this.#results.hear({ type: "end" });
    if (!this.#isClosing) this.#say(said);
    if (!this.#isWanted) return this.#close();
    const isShort = performance.now() - this.#startedAt < SHORT_MS;
    this.#failures = isShort || this.#isUnreachable ? this.#failures + 1 : 0;
    const delayMs = this.#failures > 1 ? Math.min(RETRY_MS * 2 ** this.#failures, MAX_RETRY_MS) : 0;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#begin(), delayMs);
    if (this.#open === null) return;
    clearTimeout(this.#patience);
    this.#patience = setTimeout(() => this.#say(this.#results.rest()), delayMs + PATIENCE_MS);
  }
}

/** Ids differ from those of other visits, which may be of the same session. */
function newResults() {
  return new Browser(`${Math.random().toString(36).slice(2, 10)}-`);
}
