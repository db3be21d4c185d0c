// SpeechRecognition of browsers, as its events come: on a computer, and on Android, where finals are not final. Must not
// know what becomes of what it heard, nor when it is started again.
//
// `results` of an event are all since the start. Chrome on Android calls every interim result final, with confidence 0,
// repeats in each all that was said, and gives the last one twice. A recogniser that ends in mid-sentence is started
// again, and what it hears then belongs to the same sentence.

import { commonBeginning, join, knownWords, plain, sameWords, withoutWords, wordsOf } from "./texts.js";
import { GUESS_WORDS, Utterances } from "./utterances.js";

/** @import {RecognisedSpeech} from "./utterances.js" */

/** @typedef {{readonly isFinal: boolean, readonly [0]?: {transcript: string, confidence?: number}}} BrowserResult */

export class Browser {
  #utterances;
  /** How many results are done, and how many there were. */
  #done = 0;
  #length = 0;
  /** Results that were not final at first: their final is one. @type {Set<number>} */
  #interim = new Set();
  /** What was final in this run, and the last of it. */
  #settled = "";
  #last = "";
  /** Whether finals repeat what was said before. */
  #repeats = false;
  /** Whether the newest text is only called final. */
  #isLoose = false;

  /** @param {string} prefix */
  constructor(prefix) {
    this.#utterances = new Utterances(prefix);
  }

  /**
   * One event: `start`, `result` or `end`. Any other one says nothing.
   * @param {{readonly type?: string, readonly results?: ArrayLike<BrowserResult>}} event
   * @returns {RecognisedSpeech[]}
   */
  hear({ type, results }) {
    if (results !== undefined) return this.#results(Array.from(results));
    if (type === "start") {
      this.#begin();
    } else if (type === "end") {
      // What it called final is final, as it will say nothing else; the rest continues in its next run.
      if (this.#isLoose) return this.rest();
      this.restarted();
    }
    return [];
  }

  /** See `Utterances.restarted`. @param {number} [beginMs] */
  restarted(beginMs) {
    this.#begin();
    this.#utterances.restarted(beginMs);
  }

  /** See `Utterances.rest`. What the same run still says of it is left out. */
  rest() {
    this.#done = this.#length;
    this.#isLoose = false;
    return this.#utterances.rest();
  }

  #begin() {
    this.#done = this.#length = 0;
    this.#interim.clear();
    this.#settled = this.#last = "";
    this.#repeats = this.#isLoose = false;
  }

  /** @param {BrowserResult[]} results */
  #results(results) {
    if (results.length < this.#length) this.#begin();
    this.#length = results.length;
    /** @type {RecognisedSpeech[]} */
    const said = [];
    let [text, isLoose] = ["", false];
    for (let index = this.#done; index < results.length; index += 1) {
      const { isFinal = false, 0: best } = results[index] ?? {};
      let heard = plain(best?.transcript);
      if (!isFinal) this.#interim.add(index);
      const isBornFinal = isFinal && !this.#interim.has(index);
      if (isBornFinal || this.#repeats) heard = this.#unsaid(heard);
      if (isBornFinal && best?.confidence === 0) this.#repeats = true;
      const grows = isLoose && isGrown(text, heard);
      if (isBornFinal && this.#repeats && !best?.confidence) {
        if (text && !grows) said.push(...this.#settle(text, index));
        if (!grows || wordsOf(heard).length >= wordsOf(text).length) text = heard;
        isLoose = true;
      } else if (isFinal) {
        if (isLoose && !grows) {
          said.push(...this.#settle(text, index));
          text = "";
        }
        text = grows ? heard : join(text, heard);
        if (isBornFinal && sameWords(wordsOf(text), wordsOf(this.#last))) text = ""; // the same final again
        said.push(...this.#settle(text, index + 1));
        [text, isLoose] = ["", false];
      } else {
        [text, isLoose] = [grows ? heard : join(text, heard), false];
      }
    }
    this.#isLoose = isLoose;
    return [...said, ...this.#utterances.partial(text)];
  }

  /**
   * It is final, and so many results are done.
   * @param {string} text
   * @param {number} done
   */
  #settle(text, done) {
    [this.#settled, this.#last, this.#done] = [join(this.#settled, text), text || this.#last, done];
    return this.#utterances.final(text);
  }

  /** The text without what was final before it, if it repeats that. @param {string} heard */
  #unsaid(heard) {
    const [words, settled] = [wordsOf(heard), wordsOf(this.#settled)];
    if (settled.length === 0 || words.length <= settled.length || commonBeginning(words, settled) < settled.length)
      return heard;
    this.#repeats = true;
    return withoutWords(heard, settled.length);
  }
}

/**
 * Whether it is the same sentence, heard further or better.
 * @param {string} text
 * @param {string} heard
 */
function isGrown(text, heard) {
  const [earlier, words] = [wordsOf(text), wordsOf(heard)];
  const common = commonBeginning(earlier, words);
  if (earlier.length < GUESS_WORDS || common === words.length) return true;
  const same = Math.max(common, knownWords(earlier, words));
  return 2 * same >= earlier.length && words.length >= same;
}
