// The overlay's plate for one language: one utterance at a time, in turns that can be read, then the next one. Must not know
// the connection.

import { element, setIfChanged } from "../ui/dom.js";
import { nameIn, textDirection } from "../ui/languages.js";
import { isSpoken, onOneLine, showTurn, wordsOf } from "./caption_words.js";
import { charsThatFit, takesOver, Turns } from "./turns.js";

/** @import {Stability} from "../../client/messages.js" */
/** @import {Entry} from "../transcript/entry.js" */
/** @import {Change} from "../transcript/transcript.js" */
/** @import {CaptionOptions} from "./caption_options.js" */
/** @import {Words} from "./caption_words.js" */

/**
 * An utterance that is shown, or waits for that.
 * @typedef {object} Item
 * @property {Entry} entry
 * @property {Words} words
 * @property {Turns} turns
 * @property {number} waitsSince When it had words that were not shown yet, in ms.
 */

export class OverlayPlate {
  #lang;
  #options;
  #entries;
  #spokenBy;
  #tag = element("p", "caption-name");
  #original = element("p", "caption-original");
  #read = element("p", "caption-read");
  #caption = element("div", "caption");
  /** Utterances that are not done with, oldest first. @type {Map<string, Item>} */
  #items = new Map();
  /** Keys of the entries that are not shown any more. @type {Set<string>} */
  #done = new Set();
  #shown = "";
  #quietSince = 0;
  #timer = 0;

  /**
   * @param {string} lang
   * @param {CaptionOptions} options
   * @param {ReadonlyMap<string, Entry>} entries
   * @param {(participant: string) => string} spokenBy The language that a participant speaks; empty if it is not known.
   */
  constructor(lang, options, entries, spokenBy) {
    this.#lang = lang;
    this.#options = options;
    this.#entries = entries;
    this.#spokenBy = spokenBy;
    this.element = element("div", "captions-block");
    this.element.dataset.testid = `captions-${lang}`;
    this.element.lang = lang;
    Object.assign(this.#read, { lang, dir: textDirection(lang) });
    this.#tag.dir = textDirection(lang);
    this.#original.dir = "auto";
    const plate = element("div", "caption-plate");
    if (options.original === "1") plate.append(this.#original);
    plate.append(this.#read);
    this.#caption.append(...(options.names === "1" ? [this.#tag] : []), plate);
  }

  /** What was said before is not caught up with, but for the last of it. */
  skipHistory() {
    const [, ...earlier] = [...this.#entries.values()].filter((entry) => this.#wordsOf(entry).text).reverse();
    for (const entry of earlier) if (!isSpoken(entry)) this.#done.add(entry.key);
  }

  /** A correction of what is not shown any more is not shown. @param {Change} change */
  skipCorrection({ entry, what, before }) {
    const isLate = what === "replaced" ? this.#done.delete(before) : what === "new" && entry.isCorrected;
    if (isLate) this.#done.add(entry.key);
  }

  draw(now = Date.now()) {
    this.#collect(now);
    this.#choose(now);
    this.#write();
    this.#schedule(now);
  }

  /** @param {Entry} entry */
  #wordsOf(entry) {
    return wordsOf(entry, this.#lang, /** @type {Stability} */ (this.#options.stability));
  }

  /** How much of a text there is room for. */
  #fit = (/** @type {string} */ text) => charsThatFit(this.#read, text, Number(this.#options.lines));

  /** @param {number} now */
  #collect(now) {
    /** @type {Map<string, Item>} */
    const items = new Map();
    for (const entry of this.#entries.values()) {
      const words = this.#done.has(entry.key) ? null : this.#wordsOf(entry);
      if (!words?.text) continue;
      const item = this.#items.get(entry.key) ?? { entry, words, turns: new Turns(), waitsSince: now };
      items.set(entry.key, Object.assign(item, { entry, words }));
      if (!hasUnread(item)) item.waitsSince = now;
    }
    this.#items = items;
    for (const key of this.#done) if (!this.#entries.has(key)) this.#done.delete(key);
  }

  /** Which utterance is shown now, and which part of it. @param {number} now */
  #choose(now) {
    const shown = this.#items.get(this.#shown);
    if (shown === undefined) this.#shown = "";
    const waiting = [...this.#items.values()].filter((item) => item !== shown && hasUnread(item));
    const isSpeaking = [...this.#items.values()].some(({ words }) => !words.isComplete);
    const late = waiting
      .filter(({ entry, words, waitsSince }) => {
        // A long text comes in several utterances, which do not overtake each other.
        const isSameText = words.isComplete && entry.participant === shown?.entry.participant;
        return !isSameText && takesOver(now - waitsSince, isSpeaking);
      })
      .at(-1);
    if (late !== undefined) {
      this.#giveUpBefore(late, now);
      return this.#show(late, now);
    }
    if (shown === undefined) return void (waiting[0] && this.#show(waiting[0], now));
    this.#update(shown, now);
    if (now < shown.turns.readAt || shown.turns.turn(now, this.#fit) || !waiting[0]) return;
    if (shown.words.isComplete) this.#done.add(shown.entry.key);
    shown.waitsSince = now;
    this.#show(waiting[0], now);
  }

  /** @param {Item} item @param {number} now */
  #show(item, now) {
    this.#shown = item.entry.key;
    this.#reveal();
    this.#update(item, now);
  }

  /** @param {Item} item @param {number} now */
  #update({ words, turns }, now) {
    turns.write(words.text, now, this.#fit);
  }

  /** What waited too long is shown now: what should have been read before it is left out. @param {Item} late @param {number} now */
  #giveUpBefore(late, now) {
    for (const [key, item] of this.#items) {
      if (item === late) return;
      if (item.words.isComplete) this.#done.add(key);
      item.waitsSince = now;
    }
  }

  #reveal() {
    if (!this.#caption.isConnected) this.element.append(this.#caption);
    // A new line does not fade in.
    this.element.classList.remove("faded");
  }

  #write() {
    const item = this.#items.get(this.#shown);
    if (item === undefined) {
      if (!this.element.classList.contains("faded")) this.#caption.remove();
      return;
    }
    const { entry, words, turns } = item;
    showTurn(this.#read, words, turns);
    this.#writeName(entry, words);
    this.#writeOriginal(entry, turns);
  }

  /** @param {Entry} entry @param {Words} words */
  #writeName({ speaker, lang, participant }, words) {
    const spoken = lang || this.#spokenBy(participant);
    const from = spoken && spoken !== this.#lang ? nameIn(this.#lang, spoken) : "";
    const parts = [speaker ? element("bdi", "", speaker) : "", from && element("small", "", from)];
    this.#tag.replaceChildren(...parts.filter(Boolean));
    setIfChanged(this.#tag, "hidden", !speaker);
    this.#tag.classList.toggle("live", !words.isComplete);
  }

  /** The part of what was said that is about as far as that of the translation. @param {Entry} entry @param {Turns} turns */
  #writeOriginal({ text, lang }, turns) {
    const said = lang === this.#lang ? "" : onOneLine(text);
    const [from = 0, to = 1] = turns.part.map((part) => Math.round(part * said.length));
    const start = from && said.lastIndexOf(" ", from) + 1;
    setIfChanged(this.#original, "textContent", said.slice(start || from, turns.hasMore ? to : undefined));
    setIfChanged(this.#original, "lang", lang);
  }

  /** @param {number} now */
  #schedule(now) {
    clearTimeout(this.#timer);
    const items = [...this.#items.values()];
    const shown = this.#items.get(this.#shown);
    const isQuiet =
      items.every(({ words }) => words.isComplete) && !items.some((item) => item !== shown && hasUnread(item));
    const linger = Number(this.#options.linger) * 1000;
    if (shown === undefined) return;
    if (!isQuiet || shown.turns.hasMore || now < shown.turns.readAt) {
      this.#quietSince = 0;
      // At the latest when the next words may be due; a second more or less is not seen.
      const next = shown.turns.readAt > now ? shown.turns.readAt - now : 1_000;
      this.#timer = setTimeout(() => this.draw(), Math.min(next, 1_000));
      return;
    }
    this.#quietSince ||= now;
    if (linger === 0) return;
    const left = this.#quietSince + linger - now;
    if (left <= 0) this.#fade();
    else this.#timer = setTimeout(() => this.draw(), left);
  }

  #fade() {
    for (const key of this.#items.keys()) this.#done.add(key);
    this.#items.clear();
    this.#shown = "";
    this.#quietSince = 0;
    this.element.classList.add("faded");
  }
}

/** Whether it has words that were not shown yet. @param {Item} item */
function hasUnread({ words, turns }) {
  return turns.start + turns.shown.length < words.text.length;
}
