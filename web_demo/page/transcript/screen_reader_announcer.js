// Gives the meeting to screen readers in one language: complete sentences, each once. Must not know what else the page
// shows of the transcript.

import { element } from "../ui/dom.js";
import { t } from "../words/words.js";
import { speakerName } from "./entry.js";

/** @typedef {import("./transcript.js").Change} Change */
/** @typedef {import("./transcript.js").Transcript} Transcript */

const MAX_SENTENCES = 20;

export class ScreenReaderAnnouncer {
  /** The language to announce; empty for none. */
  lang = "";
  element = element("div", "visually-hidden");
  #hasStarted = false;
  /** Whether the translation that was announced last is one that the model is unsure of. */
  #wasUnsure = false;
  /** Utterances from before the start. Their translations may still arrive. @type {WeakSet<import("./entry.js").Entry>} */
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

  /** Announce what is said from now on. */
  start() {
    this.#hasStarted = true;
  }

  /** @param {Change} change */
  #onChange({ entry, lang, what }) {
    if (!this.#hasStarted && entry.final) this.#history.add(entry);
    if (!this.#hasStarted || this.lang === "" || this.#history.has(entry)) return;
    const cell = entry.cells.get(this.lang);
    if (what === "translation" && lang === this.lang && cell?.state === "final") {
      this.#announce(speakerName(entry), cell.text, this.#certainty(cell.unsure));
    } else if (what === "original" && entry.final && entry.lang === this.lang && !entry.own) {
      this.#announce(speakerName(entry), entry.text);
    }
  }

  /** Where a stretch of unsure translations begins and ends. @param {boolean} isUnsure */
  #certainty(isUnsure) {
    if (isUnsure === this.#wasUnsure) return "";
    this.#wasUnsure = isUnsure;
    return t(isUnsure ? "transcript.unsure_from_here" : "transcript.sure_again");
  }

  /**
   * @param {string} speaker
   * @param {string} text
   */
  #announce(speaker, text, remark = "") {
    const words = element("span", "", text);
    words.lang = this.lang;
    const sentence = element("p", "");
    sentence.append(element("bdi", "", speaker), remark ? ` (${remark}): ` : ": ", words);
    this.element.append(sentence);
    while (this.element.childElementCount > MAX_SENTENCES) this.element.firstElementChild?.remove();
  }
}
