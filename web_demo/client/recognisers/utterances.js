// The utterance that a recogniser hears, and those before it: what is said of them, once and whole. Knows texts and
// times; must not know the form of any recogniser's results. Its twin is gateway/client/recognisers/utterances.py.

import { commonBeginning, join, knownWords, plain, sameWords, wordsOf } from "./texts.js";

/**
 * What is to be said in a meeting.
 * @typedef {object} RecognisedSpeech
 * @property {"partial" | "final" | "cancel"} kind
 * @property {string} id The utterance's.
 * @property {string} text Empty for a cancel.
 * @property {number | undefined} start_ms Milliseconds from the beginning of the audio.
 * @property {number | undefined} end_ms
 */
/** Where it is in the audio. @typedef {Pick<RecognisedSpeech, "start_ms" | "end_ms">} AudioTimes */

// A text of fewer words is a guess: another text in its place is a better one, not another sentence.
export const GUESS_WORDS = 3;
// A text of fewer words is not known to be a sentence, which another one could follow without its final.
const SENTENCE_WORDS = 5;
// How many earlier utterances can be repeated.
const EARLIER = 8;
// So often people say the same without a pause. Whisper does it endlessly.
const TWICE = 2;
// The longest gap between two texts that is not a pause.
const PAUSE_MS = 100;

/** @typedef {{words: string[], times: AudioTimes}} Earlier */

/** @type {AudioTimes} */
export const NO_TIMES = { start_ms: undefined, end_ms: undefined };

/**
 * Times given in seconds. Those that cannot be are left out: nothing is lost for a time.
 * @param {unknown} start_s
 * @param {unknown} end_s
 * @returns {AudioTimes}
 */
export function timesOf(start_s, end_s) {
  const [start_ms, end_ms] = [milliseconds(start_s), milliseconds(end_s)];
  if (start_ms !== undefined && end_ms !== undefined && end_ms < start_ms) return NO_TIMES;
  return { start_ms, end_ms };
}

/** @param {unknown} time_s */
function milliseconds(time_s) {
  if (typeof time_s !== "number" || !Number.isFinite(time_s) || time_s < 0) return undefined;
  return Math.floor(time_s * 1000 + 0.5);
}

/** The utterance that is being said. */
class Open {
  /** What an earlier run of the recogniser heard of it. */
  kept = "";
  /** The newest text that is not just a small part of the one before it. */
  whole = "";
  hasShrunk = false;
  times = NO_TIMES;
  /** Whether a voice was there, where that is known. @type {boolean | undefined} */
  voice;
  /** The newest text that was said. */
  shown = "";

  /** @param {string} id */
  constructor(id) {
    this.id = id;
  }

  /**
   * @param {AudioTimes} times
   * @param {unknown} voice
   */
  note(times, voice) {
    this.times = { start_ms: this.kept ? this.times.start_ms : times.start_ms, end_ms: times.end_ms };
    if (typeof voice === "boolean") this.voice = this.voice === true || voice;
  }
}

export class Utterances {
  #prefix;
  #believesRepeats;
  #count = 0;
  /** @type {Open | null} */
  #open = null;
  /** @type {Earlier[]} */
  #earlier = [];
  /** Where the recogniser's clock began, on ours. */
  #beginMs = 0;
  #latestMs = 0;

  /**
   * @param {string} prefix What ids begin with.
   * @param {boolean} [believesRepeats] Whether what was said before of the same audio is said again.
   */
  constructor(prefix, believesRepeats = true) {
    this.#prefix = prefix;
    this.#believesRepeats = believesRepeats;
  }

  /**
   * What was heard so far. Empty: nothing is known.
   * @param {unknown} text
   * @param {AudioTimes} [times]
   * @param {unknown} [voice]
   * @returns {RecognisedSpeech[]}
   */
  partial(text, times = NO_TIMES, voice) {
    const heard = plain(text);
    if (!heard) return [];
    if (!this.#open?.kept && this.isRepeated(heard, times)) {
      // What was shown of it is not part of another text.
      if (this.#open !== null && goesOn(this.#open.whole, heard)) this.#open.whole = heard;
      return [];
    }
    const before = this.#before(heard);
    const now = this.#now();
    now.note(this.#onOurClock(times), voice);
    const whole = wordsOf(now.whole).length;
    now.hasShrunk = whole >= GUESS_WORDS && 2 * wordsOf(heard).length <= whole;
    if (!now.hasShrunk) now.whole = heard;
    const shown = join(now.kept, heard);
    if (shown === now.shown || now.voice === false) return before;
    now.shown = shown;
    return [...before, { kind: "partial", id: now.id, text: shown, ...now.times }];
  }

  /**
   * The last word on it. Empty: nothing was said.
   * @param {unknown} text
   * @param {AudioTimes} [times]
   * @param {unknown} [voice]
   * @returns {RecognisedSpeech[]}
   */
  final(text, times = NO_TIMES, voice) {
    const heard = plain(text);
    if (this.#open === null && !heard) return [];
    // A final is the last word on what was heard, however different, unless that had begun again before.
    const before = this.#open?.hasShrunk ? this.#before(heard) : [];
    const now = this.#now();
    now.note(this.#onOurClock(times), voice);
    return [...before, ...this.#conclude(now, join(now.kept, heard))];
  }

  /** Nothing more comes: what was heard is the last word. @returns {RecognisedSpeech[]} */
  rest() {
    const now = this.#open;
    return now === null ? [] : this.#conclude(now, join(now.kept, now.whole));
  }

  /**
   * The recogniser no longer shows any of it. A guess is given up; more stays, as it may come back.
   * @param {string} [done] Its newest line, which was said. What was shown of it once more is given up, too.
   * @returns {RecognisedSpeech[]}
   */
  withdrawn(done = "") {
    const now = this.#open;
    if (now === null || now.kept) return [];
    if (wordsOf(now.whole).length >= GUESS_WORDS && !goesOn(now.whole, done)) return [];
    return this.#conclude(now, "");
  }

  /**
   * The recogniser begins again: what comes belongs to the same utterance.
   * @param {number} [beginMs] Where its clock begins now; by default at the newest time so far.
   */
  restarted(beginMs = this.#latestMs) {
    this.#beginMs = beginMs;
    const now = this.#open;
    if (now !== null) [now.kept, now.whole] = [join(now.kept, now.whole), ""];
  }

  /**
   * Whether this is what was said before of the same audio, and not the same said again.
   * @param {string} text
   * @param {AudioTimes} times
   */
  isRepeated(text, times) {
    return !this.#believesRepeats && this.#repeats({ words: wordsOf(text), times: this.#onOurClock(times) });
  }

  #now() {
    if (this.#open === null) {
      this.#count += 1;
      this.#open = new Open(`${this.#prefix}${this.#count}`);
    }
    return this.#open;
  }

  /** The utterance so far, made final, if a text without a final begins another one in its place. @param {string} heard */
  #before(heard) {
    const now = this.#open;
    if (now === null) return [];
    const [whole, words] = [wordsOf(now.whole), wordsOf(heard)];
    if (whole.length < SENTENCE_WORDS || words.length === 0) return [];
    if (!now.hasShrunk && 2 * words.length > whole.length) return [];
    if (2 * knownWords(words, whole) >= words.length) return [];
    return this.#conclude(now, join(now.kept, now.whole));
  }

  /**
   * @param {Open} now
   * @param {string} text
   * @returns {RecognisedSpeech[]}
   */
  #conclude(now, text) {
    this.#open = null;
    const said = { words: wordsOf(text), times: now.times };
    const last = this.#earlier[this.#earlier.length - 1];
    const repeats = !this.#believesRepeats && !now.kept && this.#repeats(said);
    if (repeats && last !== undefined && sameWords(last.words, said.words))
      last.times = { start_ms: last.times.start_ms, end_ms: now.times.end_ms };
    if (!text || now.voice === false || repeats)
      return now.shown ? [{ kind: "cancel", id: now.id, text: "", ...NO_TIMES }] : [];
    this.#earlier = [...this.#earlier, said].slice(-EARLIER);
    return [{ kind: "final", id: now.id, text, ...now.times }];
  }

  /** @param {Earlier} said */
  #repeats(said) {
    const same = this.#earlier.filter(({ words }) => sameWords(words, said.words));
    const last = this.#earlier[this.#earlier.length - 1];
    if (same.length === 0 || last === undefined) return false;
    if (said.times.start_ms === undefined || last.times.start_ms === undefined) return same.includes(last);
    if (same.some((earlier) => overlap(earlier, said))) return true;
    const run = this.#earlier.slice(-TWICE);
    if (run.length < TWICE || !run.every((earlier) => same.includes(earlier))) return false;
    return [...run, said].every((each, at, all) => at === 0 || follows(each, all[at - 1]));
  }

  /** @param {AudioTimes} times */
  #onOurClock(times) {
    const [start_ms, end_ms] = [times.start_ms, times.end_ms].map((each) =>
      each === undefined ? each : each + this.#beginMs,
    );
    this.#latestMs = Math.max(this.#latestMs, start_ms ?? 0, end_ms ?? 0);
    return { start_ms, end_ms };
  }
}

/** Where it begins and ends; NaN if that is not known. @param {Earlier} said */
const span = ({ times: { start_ms = NaN, end_ms = start_ms } }) => ({ start_ms, end_ms });

/**
 * @param {Earlier} earlier
 * @param {Earlier} said
 */
function overlap(earlier, said) {
  const [one, other] = [span(earlier), span(said)];
  return one.start_ms === other.start_ms || (one.start_ms < other.end_ms && other.start_ms < one.end_ms);
}

/**
 * Whether there is no pause between them.
 * @param {Earlier} said
 * @param {Earlier | undefined} before
 */
function follows(said, before) {
  return before !== undefined && Math.abs(span(said).start_ms - span(before).end_ms) <= PAUSE_MS;
}

/**
 * Whether a text begins with the words of another one.
 * @param {string} text
 * @param {string} more
 */
function goesOn(text, more) {
  const words = wordsOf(text);
  return commonBeginning(words, wordsOf(more)) === words.length;
}
