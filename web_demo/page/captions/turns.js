// A text that is longer than its place is shown in turns: as much of it as there is room for, for as long as it takes to
// read, then what comes next. Knows how long reading takes; must not know where the text stands.

/** Characters of Latin and its like that are read in a second; of wide scripts, half as many. */
const READ_PER_SECOND = 17;
/** The least time that a turn is shown, in ms. */
const LEAST_MS = 1_000;
/** How long words may wait for earlier ones to be read while a participant speaks, in ms; and while nobody does. */
const WAIT_MS = 10_000;
const WAIT_IN_SILENCE_MS = 60_000;

// With their punctuation.
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]/gu;

/**
 * @param {string} text
 * @returns {number} How long it takes to read, in ms.
 */
export function readingTimeMs(text) {
  return ((text.length + (text.match(WIDE)?.length ?? 0)) / READ_PER_SECOND) * 1000;
}

/**
 * Whether words that came later take the place of those that are not read yet.
 * @param {number} waitedMs How long they have waited.
 * @param {boolean} isSpoken Whether a participant speaks.
 */
export function takesOver(waitedMs, isSpoken) {
  return waitedMs >= (isSpoken ? WAIT_MS : WAIT_IN_SILENCE_MS);
}

/** One text, which may still grow and change. Times are in ms, of one clock. */
export class Turns {
  #text = "";
  /** Where in the text this turn begins, and where it ends. */
  #start = 0;
  #end = 0;
  #since = 0;
  #readAt = 0;

  /** Where the text that is shown begins. */
  get start() {
    return this.#start;
  }

  get shown() {
    return this.#text.slice(this.#start, this.#end).trimEnd();
  }

  /** Whether there is more than what is shown. */
  get hasMore() {
    return this.#end < this.#text.length;
  }

  /** Which part of the text is shown: where it begins and ends, from 0 to 1. */
  get part() {
    const length = this.#text.length || 1;
    return [this.#start / length, this.#end / length];
  }

  /** When what is shown will have been read. */
  get readAt() {
    return Math.max(this.#readAt, this.#since + LEAST_MS);
  }

  /**
   * The text is another one, or its place is. The turn begins where it began: no word is moved out of it.
   * @param {string} text
   * @param {number} now
   * @param {(rest: string) => number} fit How many characters of a text have room.
   */
  write(text, now, fit) {
    const before = this.#text;
    // What was read is another text now: what was not read keeps at least its length.
    if (!text.startsWith(before.slice(0, this.#start)))
      this.#start = wordStart(text, this.#start + Math.min(0, text.length - before.length));
    this.#text = text;
    this.#show(before.slice(this.#start, this.#end), now, fit);
  }

  /**
   * The next turn, if what is shown has been read.
   * @param {number} now
   * @param {(rest: string) => number} fit
   * @returns {boolean} Whether there was one.
   */
  turn(now, fit) {
    if (!this.hasMore || now < this.readAt) return false;
    this.#start = this.#end;
    while (this.#text[this.#start] === " ") this.#start += 1;
    this.#since = now;
    this.#show("", now, fit);
    return true;
  }

  /** @param {string} before What was shown. @param {number} now @param {(rest: string) => number} fit */
  #show(before, now, fit) {
    const rest = this.#text.slice(this.#start);
    const length = fit(rest);
    const isFirst = this.#since === 0;
    if (isFirst) this.#since = now;
    let same = 0;
    while (same < length && rest[same] === before[same]) same += 1;
    const added = rest.slice(same, length);
    if (added) this.#readAt = Math.max(this.#readAt, now) + readingTimeMs(added);
    this.#end = this.#start + length;
  }
}

/** The beginning of the word in which an offset lies. @param {string} text @param {number} offset */
function wordStart(text, offset) {
  const at = Math.max(0, Math.min(offset, text.length));
  return text.lastIndexOf(" ", at) + 1 || (text.includes(" ") ? 0 : at);
}

/**
 * How many characters of a text have room in a paragraph. Leaves the text in it.
 * @param {HTMLElement} paragraph
 * @param {string} text
 * @param {number} lines How many lines there is room for.
 */
export function charsThatFit(paragraph, text, lines) {
  paragraph.textContent = text;
  const node = paragraph.firstChild;
  if (node === null) return 0;
  const range = document.createRange();
  const top = (/** @type {number} */ at) => {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getBoundingClientRect().top;
  };
  // Letters of other fonts stand a little higher or lower on their line.
  const below = top(0) + (lines - 0.5) * lineHeight(paragraph);
  if (top(text.length - 1) < below) return text.length;
  let [fits, first] = [1, text.length - 1];
  while (fits < first) {
    const middle = (fits + first) >> 1;
    if (top(middle) < below) fits = middle + 1;
    else first = middle;
  }
  return first;
}

/** @param {HTMLElement} element @returns {number} In px. */
export function lineHeight(element) {
  return Number.parseFloat(getComputedStyle(element).lineHeight);
}
