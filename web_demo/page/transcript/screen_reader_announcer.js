// Reads the meeting out to a screen reader, in one language: whole sentences, once. Knows the transcript; must not know
// what else the page shows of it.

import { element } from "../ui/dom.js";
import { speakerOf } from "./transcript.js";

/** @typedef {import("./transcript.js").Change} Change */
/** @typedef {import("./transcript.js").Transcript} Transcript */

const MOST_SENTENCES = 20;

export class Announcer {
  /** The language that is read out; empty: none. */
  lang = "";
  element = element("div", "visually-hidden");
  #begun = false;
  /** What was said before that, though it may be translated only now. @type {WeakSet<import("./transcript.js").Entry>} */
  #history = new WeakSet();

  /**
   * @param {object} options
   * @param {Transcript} options.transcript
   */
  constructor({ transcript }) {
    Object.assign(this.element, { role: "log", ariaLive: "polite" });
    this.element.dataset.testid = "announcer";
    transcript.listen((change) => this.#onChange(change));
  }

  /** What was said until now is history, and not read out. */
  begin() {
    this.#begun = true;
  }

  /** @param {Change} change */
  #onChange({ entry, lang, what }) {
    if (!this.#begun && entry.final) this.#history.add(entry);
    if (!this.#begun || this.lang === "" || this.#history.has(entry)) return;
    const cell = entry.cells.get(this.lang);
    if (what === "translation" && lang === this.lang && cell?.state === "final") {
      this.#say(speakerOf(entry), cell.text);
    } else if (what === "original" && entry.final && entry.lang === this.lang && !entry.own) {
      this.#say(speakerOf(entry), entry.text);
    }
  }

  /**
   * @param {string} speaker
   * @param {string} text
   */
  #say(speaker, text) {
    const words = element("span", "", text);
    words.lang = this.lang;
    const sentence = element("p", "");
    sentence.append(element("bdi", "", speaker), ": ", words);
    this.element.append(sentence);
    while (this.element.childElementCount > MOST_SENTENCES) this.element.firstElementChild?.remove();
  }
}
