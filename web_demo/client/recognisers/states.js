// Recognisers that say everything they heard so far, again and again: those around Whisper. Knows which line is new, by
// its time and its text, as lines leave the list at its top, grow, and are divided otherwise later. Must not know what
// becomes of what they heard.
//
//     {"lines": [{"text": "Good morning.", "start": "0:00:00.00", "end": "0:00:01.06", "speaker": 1}, …],
//      "buffer_transcription": " Can you"}                                                 WhisperLiveKit
//     {"segments": [{"text": "Good morning.", "start": "0.0", "end": "1.1", "completed": true}, …]}   WhisperLive
//     1060 2640 Can you hear me?                                          whisper_streaming: what was added

import { commonBeginning, join, plain, sameWords, withoutWords, wordsOf } from "./texts.js";
import { NO_TIMES, timesOf, Utterances } from "./utterances.js";

/** @import {AudioTimes, RecognisedSpeech} from "./utterances.js" */

/**
 * @typedef {object} Line
 * @property {string} text
 * @property {AudioTimes} times
 * @property {boolean} complete Whether it will no longer grow.
 * @property {unknown} voice
 */

// Above this probability of silence, Whisper invents.
const NO_SPEECH = 0.6;
// After such a pause, text that was added is another utterance.
const PAUSE_MS = 2_000;

/** @param {Line} line */
const begin = ({ times }) => times.start_ms ?? 0;
/** @param {Line} line */
const end = (line) => line.times.end_ms ?? begin(line);

export class States {
  #utterances;
  /** The newest line that was complete. @type {Line | null} */
  #done = null;

  /** @param {string} prefix */
  constructor(prefix) {
    this.#utterances = new Utterances(prefix, false);
  }

  /**
   * One state. `ready_to_stop` of WhisperLiveKit: nothing more comes.
   * @param {Record<string, any>} state
   * @returns {RecognisedSpeech[]}
   */
  hear(state) {
    if (state["type"] === "ready_to_stop") return this.rest();
    const items = state["lines"] ?? state["segments"];
    if (!Array.isArray(items)) return []; // a setting
    /** @type {RecognisedSpeech[]} */
    const said = [];
    const lines = linesOf(items);
    let fresh = this.#new(lines);
    while (fresh[0]?.complete) {
      said.push(...this.#utterances.final(fresh[0].text, fresh[0].times, fresh[0].voice));
      this.#done = lines[lines.length - fresh.length] ?? null;
      fresh = fresh.slice(1);
    }
    const unsure = plain(`${state["buffer_diarization"] ?? ""} ${state["buffer_transcription"] ?? ""}`);
    const [growing] = fresh;
    if (growing !== undefined) {
      // With a buffer, it ends later than it says.
      const times = unsure ? { start_ms: growing.times.start_ms, end_ms: undefined } : growing.times;
      const text = join(growing.text, unsure);
      return [...said, ...this.#utterances.partial(text, times, state["voice"] ?? growing.voice)];
    }
    const rest = unsure
      ? this.#utterances.partial(unsure, NO_TIMES, state["voice"])
      : this.#utterances.withdrawn(lines[lines.length - 1]?.text);
    return [...said, ...rest];
  }

  /** See `Utterances.restarted`. @param {number} [beginMs] */
  restarted(beginMs) {
    this.#done = null;
    this.#utterances.restarted(beginMs);
  }

  /** See `Utterances.rest`. */
  rest() {
    return this.#utterances.rest();
  }

  /**
   * The lines behind those that are done; of one that has grown since, the rest.
   * @param {Line[]} lines
   * @returns {Line[]}
   */
  #new(lines) {
    const done = this.#done;
    const last = lines[lines.length - 1];
    if (done === null) return lines;
    const isTimed = lines.every(({ times }) => times.start_ms !== undefined) && done.times.start_ms !== undefined;
    if (last === undefined || !isTimed) return behind(lines, done);
    if (begin(last) < begin(done)) {
      if (this.#utterances.isRepeated(last.text, last.times)) return []; // an older state
      this.restarted(); // its clock has begun again
      return lines;
    }
    const doneWords = wordsOf(done.text);
    return lines.flatMap((line) => {
      if (end(line) <= end(done)) return [];
      const repeats = begin(line) < end(done) && commonBeginning(wordsOf(line.text), doneWords) === doneWords.length;
      if (begin(line) > begin(done) && !repeats) return [line];
      const text = withoutWords(line.text, doneWords.length);
      return text ? [{ ...line, text, times: { start_ms: end(done), end_ms: line.times.end_ms } }] : [];
    });
  }
}

/**
 * Lines without times behind the one that is done: the same text, else a similar one.
 * @param {Line[]} lines
 * @param {Line} done
 */
function behind(lines, done) {
  const doneWords = wordsOf(done.text);
  const texts = lines.map(({ text }) => wordsOf(text));
  const isSimilar = texts.map((words) => 2 * commonBeginning(words, doneWords) > doneWords.length);
  const same = texts.map((words) => sameWords(words, doneWords)).lastIndexOf(true);
  return lines.slice((same >= 0 ? same : isSimilar.lastIndexOf(true)) + 1);
}

/**
 * The lines with a text. Each but the last is complete, and that one, too, if there is silence behind it.
 * @param {Record<string, any>[]} items
 */
function linesOf(items) {
  /** @type {Line[]} */
  const lines = [];
  for (const item of items) {
    const text = plain(item["text"]);
    const before = lines[lines.length - 1];
    if (before !== undefined) before.complete = true;
    if (!text) continue;
    const voice = item["no_speech_prob"] > NO_SPEECH ? false : item["voice"];
    const times = timesOf(seconds(item["start"]), seconds(item["end"]));
    lines.push({ text, times, complete: item["completed"] === true, voice });
  }
  return lines;
}

/** `0:01:05.50`, `65.5` or a number of seconds. @param {unknown} time */
function seconds(time) {
  if (typeof time !== "string") return time;
  return time.split(":").reduce((sum, part) => sum * 60 + (part.trim() === "" ? NaN : Number(part)), 0);
}

/** Only what was added, which never changes. An utterance ends with a pause. */
export class Increments {
  #utterances;
  #text = "";
  #times = NO_TIMES;

  /** @param {string} prefix */
  constructor(prefix) {
    this.#utterances = new Utterances(prefix);
  }

  /**
   * A piece of text, and where it is in the audio.
   * @param {number} begin_ms
   * @param {number} end_ms
   * @param {string} text
   */
  hear(begin_ms, end_ms, text) {
    const said = this.#text && begin_ms - (this.#times.end_ms ?? 0) >= PAUSE_MS ? this.rest() : [];
    const start_ms = this.#text ? this.#times.start_ms : begin_ms;
    this.#text = join(this.#text, plain(text));
    this.#times = { start_ms, end_ms };
    return [...said, ...this.#utterances.partial(this.#text, this.#times)];
  }

  /** See `Utterances.restarted`. @param {number} [beginMs] */
  restarted(beginMs) {
    this.#text = "";
    this.#utterances.restarted(beginMs);
  }

  /** See `Utterances.rest`. */
  rest() {
    this.#text = "";
    return this.#utterances.rest();
  }
}
