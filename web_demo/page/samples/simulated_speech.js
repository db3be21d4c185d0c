// Says a text word by word, at the speed of speech. Must not know who listens.

// 150 words a minute.
const WORD_MS = 400;

// Scripts without spaces between words.
const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Mymr}]/u;

/**
 * The positions at which the words of a text end, with the punctuation after them.
 * @param {string} text
 * @param {string} lang
 * @returns {number[]}
 */
function wordEnds(text, lang) {
  const parts = UNSPACED.test(text)
    ? [...new Intl.Segmenter(lang, { granularity: "word" }).segment(text)].filter((part) => part.isWordLike)
    : [...text.matchAll(/\S+/gu)];
  // A word ends where the next one begins.
  return parts.map((_, index) => parts[index + 1]?.index ?? text.length);
}

/**
 * @typedef {object} Listener
 * @property {(text: string) => void} onWords What was said so far, one word longer each time.
 * @property {() => void} onEnd
 */

export class SimulatedSpeech {
  #text;
  #ends;
  #listener;
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {string} text
   * @param {string} lang
   * @param {Listener} listener
   */
  constructor(text, lang, listener) {
    this.#text = text;
    this.#ends = wordEnds(text, lang);
    this.#listener = listener;
  }

  start() {
    this.#timer = setInterval(() => this.#speak(), WORD_MS);
    this.#speak();
  }

  stop() {
    clearInterval(this.#timer);
  }

  #speak() {
    const end = this.#ends.shift();
    if (end !== undefined) return this.#listener.onWords(this.#text.slice(0, end).trimEnd());
    this.stop();
    this.#listener.onEnd();
  }
}
