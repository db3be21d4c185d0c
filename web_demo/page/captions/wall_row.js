// One utterance on the wall: who said it, and below that its words in each language, a column each. A text that is longer
// than the screen is shown in turns. Must not know the other rows.

import { element, setIfChanged } from "../ui/dom.js";
import { textDirection } from "../ui/languages.js";
import { showVoice } from "../ui/voices.js";
import { languageName, t } from "../words/words.js";
import { onOneLine, showTurn, wordsOf } from "./caption_words.js";
import { charsThatFit, lineHeight, Turns } from "./turns.js";

/** @import {Stability} from "../../client/messages.js" */
/** @import {Entry} from "../transcript/entry.js" */
/** @import {Voice} from "../ui/voices.js" */
/** @import {CaptionOptions} from "./caption_options.js" */
/** @import {Words} from "./caption_words.js" */

// The end of a sentence in any script, with the marks that may close a quotation.
const SENTENCE_END = /[.!?…。！？؟۔।][\s"'”’»«）)」』]*$/;

export class WallRow {
  element = element("article", "said");
  #name = element("p", "said-name");
  #speaker = element("bdi", "");
  #language = element("small", "");
  #original = element("p", "said-original");
  #withName;
  #withOriginal;
  #options;
  /** @type {Map<string, {element: HTMLElement, turns: Turns, words: Words | null, drawn: string}>} */
  #cells;

  /**
   * @param {readonly string[]} langs
   * @param {CaptionOptions} options
   * @param {Voice} voice The speaker's.
   */
  constructor(langs, options, voice) {
    this.#options = options;
    this.#withName = options.names === "1";
    this.#withOriginal = options.original === "1";
    showVoice(this.element, voice);
    this.#name.append(this.#speaker, this.#language);
    this.#original.dir = "auto";
    this.#cells = new Map(
      langs.map((lang) => [lang, { element: column(lang), turns: new Turns(), words: null, drawn: "" }]),
    );
    const head = [...(this.#withName ? [this.#name] : []), ...(this.#withOriginal ? [this.#original] : [])];
    this.element.append(...head, ...[...this.#cells.values()].map((cell) => cell.element));
  }

  /** @param {Entry} entry @param {string} lang @param {CaptionOptions} options */
  static wordsOf(entry, lang, { stability }) {
    return wordsOf(entry, lang, /** @type {Stability} */ (stability));
  }

  /** How high what stands above the words is, in px. */
  get headHeight() {
    const space = Number.parseFloat(getComputedStyle(this.element).paddingTop);
    return (
      space + (this.#withName ? this.#name.offsetHeight : 0) + (this.#withOriginal ? this.#original.offsetHeight : 0)
    );
  }

  /**
   * @param {Entry} entry
   * @param {string} spoken The language in which it was said; empty if it is not known.
   * @param {() => number} roomFor The height for its words in one language, in px, once its name is there.
   * @param {number} now
   */
  write(entry, spoken, roomFor, now) {
    const isOwn = spoken === "" || this.#cells.has(spoken);
    setIfChanged(this.#speaker, "textContent", entry.speaker);
    const language = isOnlyColumn(spoken, this.#cells) ? "" : languageName(spoken);
    setIfChanged(this.#language, "textContent", language && t("captions.from", { language }));
    setIfChanged(this.#original, "textContent", isOwn ? "" : onOneLine(entry.text));
    setIfChanged(this.#original, "lang", spoken);
    const room = roomFor();
    for (const [lang, cell] of this.#cells) {
      cell.words = WallRow.wordsOf(entry, lang, this.#options);
      this.#writeCell(lang, cell.words, room, now);
    }
  }

  /** @param {string} lang @param {Words} words @param {number} room @param {number} now */
  #writeCell(lang, words, room, now) {
    const cell = this.#cells.get(lang);
    if (cell === undefined) return;
    const { element: paragraph, turns } = cell;
    // Measuring costs most, and most of what is on the screen is as it was.
    const drawn = JSON.stringify([words, room, paragraph.clientWidth]);
    if (drawn === cell.drawn && !turns.hasMore) return;
    cell.drawn = drawn;
    const lines = Math.max(1, Math.floor(room / lineHeight(paragraph)));
    const fit = (/** @type {string} */ text) => charsThatFit(paragraph, text, lines);
    turns.write(words.text, now, fit);
    turns.turn(now, fit);
    showTurn(paragraph, words, turns);
  }

  /** Whether the name is left out, as the row above has it. @param {boolean} follows */
  follow(follows) {
    this.element.classList.toggle("follows", follows);
  }

  /** Whether some of it is not read yet, because there was no room for all of it. @param {number} now */
  isInTurns(now) {
    return [...this.#cells.values()].some(({ turns }) => turns.hasMore || (turns.start > 0 && now < turns.readAt));
  }

  /** Whether all that is shown of it has been read. @param {number} now */
  isRead(now) {
    return [...this.#cells.values()].every(({ turns }) => !turns.hasMore && now >= turns.readAt);
  }

  /** When it changes by itself, in ms; null if it does not. @param {number} now */
  nextTurnAt(now) {
    if (!this.isInTurns(now)) return null;
    return Math.min(...[...this.#cells.values()].map(({ turns }) => (turns.readAt > now ? turns.readAt : Infinity)));
  }

  /** Whether nothing that is shown of it goes on. @param {number} now */
  isAtSentenceEnd(now) {
    if (this.isInTurns(now)) return false;
    return [...this.#cells.values()].every(
      ({ words }) => !words?.text || words.isComplete || SENTENCE_END.test(words.text),
    );
  }
}

/**
 * Whether nothing is translated: what is not known is taken for it.
 * @param {string} spoken
 * @param {ReadonlyMap<string, unknown>} columns
 */
function isOnlyColumn(spoken, columns) {
  return spoken === "" || (columns.size === 1 && columns.has(spoken));
}

/** @param {string} lang */
function column(lang) {
  const made = element("p", "said-words");
  Object.assign(made, { lang, dir: textDirection(lang) });
  made.dataset["testid"] = `column-${lang}`;
  return made;
}
