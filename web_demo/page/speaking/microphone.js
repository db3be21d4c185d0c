// The browser's own speech recognition, for as long as its user wants it: what was heard goes to the client, a sentence
// at a time. Knows recognisers and their whims; must not know the page.

/** @typedef {"off" | "starting" | "listening"} Hearing */

/**
 * @typedef {object} Recognition As far as it is used here; TypeScript's own library does not have it.
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
 * Who is told what was heard: a client.
 * @typedef {object} Listener
 * @property {(said: {text: string, lang: string, id?: string | undefined}) => string} partial
 * @property {(said: {text: string, lang: string, id?: string | undefined}) => string} final
 * @property {(id: string) => void} cancel
 */

/**
 * @typedef {object} Options
 * @property {Listener} client
 * @property {string} lang A language tag as the gateway lists it.
 * @property {(state: Hearing, problem: string) => void} onState `problem`: a sentence, where it ended by itself.
 */

const NOT_SUPPORTED =
  "This browser has no speech recognition; Chrome, Edge and Safari have it. You can type, or play the sample meeting.";
const NOT_SECURE = "Browsers open the microphone only to pages from https or from this computer itself (localhost).";

/** What ends it for good. Everything else is passing: silence, or another page that wanted to hear. */
const PROBLEMS = new Map([
  ["not-allowed", "The microphone is blocked for this page: allow it in the browser's site settings, then try again."],
  ["service-not-allowed", "This browser does not allow its speech recognition here. You can type instead."],
  ["audio-capture", "No microphone was found, or another program is using it."],
  ["network", "The browser could not reach its speech recognition service. Is this computer online?"],
  ["language-not-supported", "This browser does not recognise speech in this language. You can type it."],
]);

// A recogniser that ends sooner than this, with nothing heard, is started again less and less eagerly.
const SHORT_MS = 2_000;
const RETRY_MS = 300;
const LONGEST_RETRY_MS = 10_000;

/** @returns {(new () => Recognition) | undefined} */
function recognisers() {
  const { SpeechRecognition, webkitSpeechRecognition } = /** @type {any} */ (globalThis);
  return SpeechRecognition ?? webkitSpeechRecognition;
}

/**
 * As recognisers want it, with a region: the user's own, or the one where most speak it.
 * @param {string} tag
 */
export function regional(tag) {
  const { language, region } = new Intl.Locale(tag).maximize();
  if (region === undefined) return tag;
  const likely = `${language}-${region}`;
  if (tag.includes("-") || language === "zh") return likely;
  return navigator.languages.find((own) => new RegExp(`^${language}-[A-Z]{2}$`).test(own)) ?? likely;
}

export class Microphone {
  #options;
  #lang;
  #wanted = false;
  /** The one that runs, until it has ended. @type {Recognition | null} */
  #recognition = null;
  /** The utterance that is being said. @type {{id: string, text: string, lang: string} | undefined} */
  #open;
  #startedAt = 0;
  /** How often in a row it ended at once. */
  #failures = 0;
  /** @type {number | undefined} */
  #retry;

  /** @param {Options} options */
  constructor(options) {
    this.#options = options;
    this.#lang = options.lang;
  }

  /** Whether its user wants it to listen. */
  get on() {
    return this.#wanted;
  }

  get lang() {
    return this.#lang;
  }

  /** What is spoken from now on. */
  set lang(lang) {
    if (lang === this.#lang) return;
    this.#lang = lang;
    this.#finish();
    this.#recognition?.abort(); // and with its end the next one begins
  }

  start() {
    if (this.#wanted) return;
    if (!globalThis.isSecureContext) return this.#end(NOT_SECURE);
    if (recognisers() === undefined) return this.#end(NOT_SUPPORTED);
    this.#wanted = true;
    this.#failures = 0;
    this.#options.onState("starting", "");
    if (this.#recognition === null) this.#begin();
  }

  /** What is being said is still recognised to its end. */
  stop() {
    if (!this.#wanted) return;
    this.#end("");
    this.#recognition?.stop();
  }

  /** What is being said is lost. */
  abort() {
    if (this.#wanted) this.#end("");
    this.#open = undefined;
    if (this.#recognition === null) return;
    this.#recognition.onresult = null;
    this.#recognition.abort();
  }

  /** @param {string} problem */
  #end(problem) {
    this.#wanted = false;
    clearTimeout(this.#retry);
    this.#options.onState("off", problem);
  }

  // ---------------------------------------------------------------- the recogniser

  #begin() {
    const Recogniser = recognisers();
    if (Recogniser === undefined) return;
    const lang = this.#lang;
    const recognition = new Recogniser();
    recognition.lang = regional(lang);
    recognition.interimResults = true;
    // On Android a continuous one says everything again and again.
    recognition.continuous = !/Android/.test(navigator.userAgent);
    recognition.onstart = () => {
      if (this.#wanted) this.#options.onState("listening", "");
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
      this.#onEnd(); // it is not over the last one yet
    }
  }

  /**
   * @param {SpeechRecognitionResultList} results All since the recogniser was started.
   * @param {number} from The first that was not final.
   * @param {string} lang
   * @returns {number} The first that is not final.
   */
  #onResults(results, from, lang) {
    this.#failures = 0;
    let index = from;
    for (; results[index]?.isFinal; index += 1) this.#finish(heard(results[index]), lang);
    // What is not final comes in pieces, some of them unchanged: the certain beginning, and the rest.
    const pieces = Array.from(results).slice(index).map(heard);
    const text = pieces.join("").trim();
    if (text) this.#open = { id: this.#options.client.partial({ text, lang, id: this.#open?.id }), text, lang };
    return index;
  }

  /**
   * That was the last word on what is being said.
   * @param {string} [text] Without one, what was heard so far is it. An empty one: nothing was said after all.
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
    if (problem !== undefined && this.#wanted) this.#end(problem);
  }

  /** By itself, after a silence or a minute or so; or because it was told to. */
  #onEnd() {
    this.#recognition = null;
    this.#finish();
    if (!this.#wanted) return;
    const short = performance.now() - this.#startedAt < SHORT_MS;
    this.#failures = short ? this.#failures + 1 : 0;
    const delayMs = this.#failures > 1 ? Math.min(RETRY_MS * 2 ** this.#failures, LONGEST_RETRY_MS) : 0;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#begin(), delayMs);
  }
}

/** @param {SpeechRecognitionResult | undefined} result */
function heard(result) {
  return result?.[0]?.transcript ?? "";
}
