// Reads whole translations into one language aloud, with the browser's own voices, if asked to. Must not know what else
// the page shows of the transcript.

import { button, element } from "../ui/dom.js";
import { dropdown, labelled, setOptions } from "../ui/form_controls.js";
import { t } from "../words/words.js";
import { isSaid, isToCome } from "./entry.js";

/** @typedef {import("./entry.js").Entry} Entry */
/** @typedef {import("./transcript.js").Change} Change */
/** @typedef {import("./transcript.js").Transcript} Transcript */

// What waited longer for its turn is skipped: the meeting is further on by then.
const LATE_MS = 15_000;
// How long a translation waits for those of what was said before it, which may take longer.
const IN_ORDER_MS = 3_000;
const OFF = "";

export class SpokenTranslation {
  /** Shown while it is on, with a button that stops it. */
  element = element("div", "banner spoken-translation");
  /** The choice of a language. */
  control;
  #options;
  /** @type {readonly string[]} */
  #reads = [];
  #lang = OFF;
  #choice = dropdown("spoken-translation");
  #words = element("span", "");
  #hasStarted = false;
  /** Utterances from before the start. Their translations may still arrive. @type {WeakSet<Entry>} */
  #history = new WeakSet();
  /** Not read yet, in the order in which it was said. @type {{entry: Entry, text: string, arrived: number}[]} */
  #waiting = [];
  /** @type {number | undefined} */
  #timer;
  /** The one that is read now. Kept, or some browsers forget to say that it ended. @type {SpeechSynthesisUtterance | null} */
  #current = null;

  /**
   * @param {object} options
   * @param {Transcript} options.transcript
   * @param {(tag: string) => string} options.nameOf
   */
  constructor(options) {
    this.#options = options;
    this.control = labelled(t("aloud.choose"), this.#choice);
    // Some browsers list their voices late.
    window.speechSynthesis?.addEventListener?.("voiceschanged", () => this.offer(this.#reads));
    this.#choice.addEventListener("change", () => this.#choose(this.#choice.value));
    // iPhones speak only once something was spoken within a tap, if it was nothing; the choice comes after the tap.
    this.#choice.addEventListener("click", () => speechSynthesis.speak(new SpeechSynthesisUtterance("")));
    const stop = button("quiet", t("aloud.stop"), "stop-reading-aloud", () => this.stop());
    // The field where one types keeps the focus: without it, what is below grows, and the button moves from under the finger.
    stop.addEventListener("mousedown", (event) => event.preventDefault());
    this.element.append(this.#words, stop);
    this.element.hidden = true;
    this.offer([]);
    options.transcript.listen((change) => this.#onChange(change));
    window.addEventListener("pagehide", () => this.stop());
  }

  /** What is translated from now on may be read. */
  start() {
    this.#hasStarted = true;
  }

  /** Those for which there is a voice can be chosen. @param {readonly string[]} reads The languages that are read. */
  offer(reads) {
    this.#reads = [...reads];
    const spoken = reads.filter((tag) => voiceFor(tag) !== null);
    const names = spoken.map((tag) => /** @type {const} */ ([tag, this.#options.nameOf(tag)]));
    setOptions(this.#choice, [[OFF, t("aloud.off")], ...names], this.#lang);
    this.control.hidden = spoken.length === 0;
    if (this.#lang !== OFF && !spoken.includes(this.#lang)) this.stop();
  }

  stop() {
    const hadFocus = this.element.contains(document.activeElement);
    this.#choice.value = OFF;
    this.#choose(OFF);
    if (!hadFocus) return;
    /** @type {HTMLElement | null} */ (document.querySelector('[role="log"][tabindex]'))?.focus({
      preventScroll: true,
    });
  }

  /** @param {string} lang */
  #choose(lang) {
    this.#lang = lang;
    this.#waiting = [];
    this.#current = null;
    if (window.speechSynthesis === undefined) return;
    speechSynthesis.cancel();
    const isOn = lang !== OFF;
    this.element.hidden = !isOn;
    if (isOn) this.#words.textContent = t("aloud.now", { language: this.#options.nameOf(lang) });
  }

  /** @param {Change} change */
  #onChange({ entry, lang, what }) {
    if (!this.#hasStarted && entry.final) this.#history.add(entry);
    if (this.#lang === OFF || !this.#hasStarted) return;
    const cell = entry.cells.get(lang);
    const isWanted = what === "translation" && lang === this.#lang && cell?.state === "final";
    if (isWanted && cell.text && this.#isToRead(entry)) {
      this.#waiting.push({ entry, text: cell.text, arrived: performance.now() });
      this.#waiting.sort((one, other) => Number(one.entry.at) - Number(other.entry.at));
    }
    // Whatever the browser was reading, it has ended without saying so.
    if (this.#current !== null && !speechSynthesis.speaking && !speechSynthesis.pending) this.#current = null;
    this.#next();
  }

  #next() {
    clearTimeout(this.#timer);
    if (this.#current !== null) return;
    const now = performance.now();
    this.#waiting = this.#waiting.filter(({ arrived }) => now - arrived <= LATE_MS);
    const [first] = this.#waiting;
    if (first === undefined) return;
    const waitMs = first.arrived + IN_ORDER_MS - now;
    if (waitMs > 0 && this.#isOneBefore(first.entry)) {
      this.#timer = setTimeout(() => this.#next(), waitMs);
      return;
    }
    this.#waiting.shift();
    const utterance = new SpeechSynthesisUtterance(first.text);
    utterance.lang = this.#lang;
    utterance.voice = voiceFor(this.#lang);
    const onEnd = () => {
      if (this.#current !== utterance) return;
      this.#current = null;
      this.#next();
    };
    utterance.addEventListener("end", onEnd);
    utterance.addEventListener("error", onEnd);
    this.#current = utterance;
    speechSynthesis.speak(utterance);
  }

  /** @param {Entry} entry */
  #isToRead(entry) {
    return !entry.own && !this.#history.has(entry);
  }

  /** Whether the translation of something that was said before an entry is still to come. @param {Entry} entry */
  #isOneBefore(entry) {
    return [...this.#options.transcript.entries.values()].some((other) => {
      const isBefore = Number(other.at) < Number(entry.at) && this.#isToRead(other);
      const isComplete = isSaid(other) || other.participant === entry.participant;
      return isBefore && isComplete && !other.reason && isToCome(other, this.#lang);
    });
  }
}

/**
 * The best voice for a language: one on this device, which needs no network and tells nobody what is said.
 * @param {string} lang
 */
function voiceFor(lang) {
  const [base] = lang.split("-");
  const voices = window.speechSynthesis?.getVoices() ?? [];
  const fitting = voices.filter((voice) => voice.lang.toLowerCase().split(/[-_]/)[0] === base);
  return fitting.find((voice) => voice.localService) ?? fitting[0] ?? null;
}
