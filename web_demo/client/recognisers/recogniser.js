// Any recogniser: which one it is shows in the form of its first result. Must not know what is in them.

import { Browser } from "./browser.js";
import { Lines } from "./lines.js";
import { Increments, States } from "./states.js";

/** @import {RecognisedSpeech} from "./utterances.js" */

const INCREMENT = /^(\d+)(?:\.\d+)? (\d+)(?:\.\d+)? +(.*)$/s;

/** What one recogniser hears, as utterances: results in; partials, finals and cancels out. */
export class Recogniser {
  #prefix;
  /** @type {Lines | States | Browser | Increments | null} */
  #form = null;

  /** @param {string} [prefix] What the ids of utterances begin with. Within a session it is used for one recogniser. */
  constructor(prefix = "u") {
    this.#prefix = prefix;
  }

  /**
   * @param {object | string} result What it says at a time: an object out of JSON, an event of SpeechRecognition, or a
   *   line of whisper_streaming.
   * @returns {RecognisedSpeech[]} What is to be said after it. A result of no known form says nothing.
   */
  hear(result) {
    if (typeof result === "string") {
      const [, begin, end, text] = INCREMENT.exec(result.trim()) ?? [];
      if (text === undefined) return [];
      if (!(this.#form instanceof Increments)) this.#form = new Increments(this.#prefix);
      return this.#form.hear(Number(begin), Number(end), text);
    }
    this.#form ??= formOf(result, this.#prefix);
    return this.#form === null || this.#form instanceof Increments ? [] : this.#form.hear(result);
  }

  /**
   * The recogniser was started again, or its connection: what comes next continues the sentence.
   * @param {number} [beginMs] Where its clock begins now; by default at the newest time that it said.
   */
  restarted(beginMs) {
    this.#form?.restarted(beginMs);
  }

  /** What is to be said when the recogniser has ended. @returns {RecognisedSpeech[]} */
  rest() {
    return this.#form?.rest() ?? [];
  }
}

/**
 * @param {Record<string, any>} result
 * @param {string} prefix
 */
function formOf(result, prefix) {
  if ("lines" in result || "segments" in result) return new States(prefix);
  if ("results" in result || result["type"] === "start") return new Browser(prefix);
  if ("partial" in result || "text" in result || "alternatives" in result) return new Lines(prefix);
  return typeof result["t"] === "string" ? new Lines(prefix) : null;
}
