// Recognisers that write a line for each result: Vosk, and pocketsphinx in Vosk's form or its own. Must not know what
// becomes of what they heard.
//
//     {"partial": "good mor"}
//     {"text": "good morning", "result": [{"word": "good", "start": 0.4, "end": 0.6}, …]}   final; may be empty
//     {"alternatives": [{"text": "good morning", …}, …]}                                    final, the best one first
//     {"b": 0.4, "d": 0.9, "t": "good morning", "w": […]}                                   final, of `pocketsphinx`

import { NO_TIMES, timesOf, Utterances } from "./utterances.js";

export class Lines {
  #utterances;

  /** @param {string} prefix */
  constructor(prefix) {
    this.#utterances = new Utterances(prefix);
  }

  /** @param {Record<string, any>} result */
  hear(result) {
    const { voice } = result;
    if (typeof result["t"] === "string") {
      const { b, d, t } = result;
      return this.#utterances.final(
        t,
        typeof b === "number" && typeof d === "number" ? timesOf(b, b + d) : NO_TIMES,
        voice,
      );
    }
    if ("partial" in result) return this.#utterances.partial(result["partial"], times(result["partial_result"]), voice);
    const best = result["alternatives"]?.[0] ?? result;
    return this.#utterances.final(best.text, times(best.result), voice);
  }

  /** See `Utterances.restarted`. @param {number} [beginMs] */
  restarted(beginMs) {
    this.#utterances.restarted(beginMs);
  }

  /** See `Utterances.rest`. */
  rest() {
    return this.#utterances.rest();
  }
}

/** @param {{start: unknown, end: unknown}[] | undefined} words */
function times(words) {
  return words?.length ? timesOf(words[0]?.start, words[words.length - 1]?.end) : NO_TIMES;
}
