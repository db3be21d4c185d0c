// Says a text as somebody speaks: one word after another. Knows words and time; must not know who listens.

// 150 words a minute.
const WORD_MS = 400;

// Scripts that put no space between words.
const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Mymr}]/u;

/**
 * Where the words of a text end, what closes a word being part of it.
 * @param {string} text
 * @param {string} lang
 * @returns {number[]}
 */
function wordEnds(text, lang) {
  const parts = UNSPACED.test(text)
    ? [...new Intl.Segmenter(lang, { granularity: "word" }).segment(text)].filter((part) => part.isWordLike)
    : [...text.matchAll(/\S+/gu)];
  // A word lasts until the next one begins.
  return parts.map((_, index) => parts[index + 1]?.index ?? text.length);
}

/**
 * Who listens.
 * - `heard`: what was said so far, one word longer each time
 * - `over`: all of it was said
 * @typedef {object} Listener
 * @property {(text: string) => void} heard
 * @property {() => void} over
 */

export class Playback {
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
    if (end !== undefined) return this.#listener.heard(this.#text.slice(0, end).trimEnd());
    this.stop();
    this.#listener.over();
  }
}
