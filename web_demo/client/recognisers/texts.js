// Texts as far as they are compared: their words, without capitals and punctuation. In scripts without spaces a
// character counts as a word. Must not know utterances.

// Thai, Lao, Burmese, Khmer, kana, Chinese characters.
const WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff";
const WORD = new RegExp(`[${WIDE}]|[^\\s${WIDE}]+`, "g");
const WIDE_END = new RegExp(`[${WIDE}、。！？，]$`);
const WIDE_START = new RegExp(`^[${WIDE}、。！？，]`);
const MARKS = '.,;:!?…"“”„«»()[]¿¡、。！？，-–—';
const ESCAPED_MARKS = MARKS.replace(/[[\]-]/g, "\\$&");
const OUTER_MARKS = new RegExp(`^[${ESCAPED_MARKS}]+|[${ESCAPED_MARKS}]+$`, "g");
const FIRST_MARKS = new RegExp(`^[ ${ESCAPED_MARKS}]+`);

/** The text with single spaces; what is not a text is empty. @param {unknown} text */
export function plain(text) {
  return typeof text === "string" ? text.trim().replace(/\s+/g, " ") : "";
}

/** @param {string} word */
const withoutMarks = (word) => word.replace(OUTER_MARKS, "");

/** The words, to be compared with those of another text. @param {string} text */
export function wordsOf(text) {
  return (text.match(WORD) ?? []).map((word) => withoutMarks(word).toLowerCase()).filter((word) => word !== "");
}

/**
 * One text behind the other; there is no space where the script has none.
 * @param {string} text
 * @param {string} more
 */
export function join(text, more) {
  if (!text || !more) return text || more;
  return text + (WIDE_END.test(text) && WIDE_START.test(more) ? "" : " ") + more;
}

/**
 * What is behind so many words.
 * @param {string} text
 * @param {number} count
 */
export function withoutWords(text, count) {
  if (count === 0) return text;
  let left = count;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (withoutMarks(word)) left -= 1;
    if (left === 0) return text.slice(index + word.length).replace(FIRST_MARKS, "");
  }
  return "";
}

/**
 * Whether they are the same words.
 * @param {readonly string[]} words
 * @param {readonly string[]} others
 */
export function sameWords(words, others) {
  return words.length === others.length && commonBeginning(words, others) === words.length;
}

/**
 * How many words both begin with.
 * @param {readonly string[]} words
 * @param {readonly string[]} others
 */
export function commonBeginning(words, others) {
  let same = 0;
  while (same < Math.min(words.length, others.length) && words[same] === others[same]) same += 1;
  return same;
}

/**
 * How many of `words` are among the others.
 * @param {readonly string[]} words
 * @param {readonly string[]} others
 */
export function knownWords(words, others) {
  const known = new Set(others);
  return words.filter((word) => known.has(word)).length;
}
