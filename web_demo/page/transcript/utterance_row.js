// One utterance in the transcript: its speaker, the original and its translations, a cell each. Must not know the other
// rows. What people said and models wrote is only ever set as text.

import { button, element, setIfChanged } from "../ui/dom.js";
import { textDirection } from "../ui/languages.js";
import { showVoice } from "../ui/voices.js";
import { clock, t } from "../words/words.js";
import { isSaid, isToCome, speakerName } from "./entry.js";

/** @typedef {import("./entry.js").Cell} Cell */
/** @typedef {import("./entry.js").Entry} Entry */
/** @typedef {import("../../client/messages.js").Stability} Stability */
/**
 * @typedef {object} Shown
 * @property {readonly string[]} columns Languages, a column each.
 * @property {readonly string[]} reads Those that are translated for the reader, shown or not.
 * @property {boolean} originals Whether what was said in a language without a column is shown above the columns.
 * @property {Stability} stability
 */

/** The place of an original above the columns. */
export const AS_SPOKEN = "";

// The name, language and time of a speaker who continues are shown again after so long.
const GROUP_MS = 300_000;

// The first sign of a stretch that the model is unsure of says what it means; the others say it when asked.
let isExplained = false;

/** What begins a stretch of unsure translations. */
function unsureSign() {
  const sign = element("details", "unsure-sign");
  sign.dataset.testid = "unsure-sign";
  sign.append(element("summary", "", t("transcript.unsure_word")), element("p", "", t("transcript.unsure")));
  sign.open = !isExplained;
  isExplained = true;
  return sign;
}

/** @param {number} ms */
function duration(ms) {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** The text in one column. */
class TextCell {
  #label = element("span", "cell-label");
  #text = element("p", "cell-text");
  #words = document.createTextNode("");
  #tail = element("span", "tentative");
  #note = element("p", "cell-note");
  /** @type {HTMLElement | null} */
  #sign = null;

  /** @param {string} column */
  constructor(column) {
    this.element = element("div", "cell");
    this.#note.dir = "auto"; // it may be the gateway's own sentence, in English
    this.#text.dataset.testid = column === AS_SPOKEN ? "original" : `cell-${column}`;
    this.#tail.dataset.testid = `tentative-${column}`;
    this.#text.append(this.#words, this.#tail);
    this.element.append(this.#label, this.#text);
  }

  /** @param {string} label Visible where cells are stacked; a screen reader always reads it. */
  set label(label) {
    setIfChanged(this.#label, "textContent", label);
  }

  /** Its place in a stretch of unsure translations, if it is in one. @param {"begins" | "continues" | ""} place */
  set unsure(place) {
    setIfChanged(this.element.dataset, "unsure", place);
    if (place !== "begins") this.#sign?.remove();
    else if (!this.#sign?.isConnected) this.#text.before((this.#sign ??= unsureSign()));
  }

  /**
   * @param {Entry} entry
   * @param {Stability} stability
   */
  showOriginal({ text, lang, final }, stability) {
    const words = final || stability !== "final" ? text : "";
    this.#write(lang, "auto", words, "", final ? "final" : "growing");
    this.remark("");
  }

  /**
   * @param {string} lang
   * @param {Cell | undefined} cell
   * @param {Stability} stability
   * @param {boolean} isExpected Whether a translation will come.
   */
  showTranslation(lang, cell, stability, isExpected) {
    const dir = textDirection(lang);
    if (cell?.state === "final") {
      this.#write(lang, dir, cell.text, "", "final");
      this.#showTimings(cell);
      return this.remark(cell.truncated ? t("transcript.cut") : "", " mild");
    }
    const words = stability === "final" ? "" : (cell?.committed ?? "");
    const tentative = stability === "live" ? (cell?.tentative ?? "") : "";
    this.#write(lang, dir, words, tentative, cell?.state ?? (isExpected ? "growing" : "none"));
    this.remark(cell?.reason);
  }

  /**
   * @param {string} lang
   * @param {string} dir
   * @param {string} words
   * @param {string} tentative
   * @param {"growing" | "final" | "failed" | "none"} state
   */
  #write(lang, dir, words, tentative, state) {
    setIfChanged(this.#text, "lang", lang);
    setIfChanged(this.#text, "dir", dir);
    const tail = tentative.trimStart();
    // The space before tentative text is not marked as tentative.
    setIfChanged(this.#words, "data", words + tentative.slice(0, tentative.length - tail.length));
    setIfChanged(this.#tail, "textContent", tail);
    setIfChanged(this.#text.dataset, "state", state === "growing" && !words && !tail ? "waiting" : state);
  }

  /** @param {Cell} cell */
  #showTimings({ timings, tokens }) {
    if (timings === null) return;
    const { first_token_ms: first, total_ms: total } = timings;
    const facts = t("transcript.facts", { first: duration(first), total: duration(total) });
    Object.assign(this.#text.dataset, { firstTokenMs: first, totalMs: total });
    this.#text.title = t("transcript.tokens", { facts, count: tokens });
  }

  remark(words = "", kind = "") {
    setIfChanged(this.#note, "textContent", words);
    setIfChanged(this.#note, "className", `cell-note${kind}`);
    if (!words) this.#note.remove();
    else if (!this.#note.isConnected) this.element.append(this.#note);
  }
}

/** @param {Entry} entry */
function unsentWords({ unsent, correction }) {
  if (correction !== undefined) return `${t("transcript.unsent")} · ${correction.text || t("transcript.take_back")}`;
  return unsent ? t("transcript.unsent") : "";
}

export class UtteranceRow {
  entry;
  #nameOf;
  #head = element("div", "row-head");
  #name = element("bdi", ""); // a right-to-left name must not change the direction around it
  #lang = element("span", "");
  #time = element("time", "");
  #corrected = element("span", "");
  #correct;
  #takeBack;
  #mayCorrect;
  #cancel;
  #grid = element("div", "cells");
  #note = element("p", "");
  /** @type {Shown} */
  #shown = { columns: [], reads: [], originals: false, stability: "live" };
  /** Column → cell, in the order on the page. @type {Map<string, TextCell>} */
  #cells = new Map();
  /** Languages into which what follows is translated, and this is not. @type {ReadonlySet<string>} */
  #begins = new Set();
  /** Languages in which the row above is unsure. @type {ReadonlySet<string>} */
  #continued = new Set();
  /** The time that is shown with it, or with a row above, in ms since 1970. */
  shownAt = 0;

  /**
   * @param {Entry} entry
   * @param {object} options
   * @param {import("../ui/voices.js").Voice} options.voice
   * @param {(tag: string) => string} options.nameOf
   * @param {(entry: Entry) => void} options.onCancel
   * @param {(entry: Entry) => void} options.onCorrect
   * @param {(entry: Entry) => void} options.onTakeBack
   * @param {(entry: Entry) => boolean} options.mayCorrect
   */
  constructor(entry, { voice, nameOf, onCancel, onCorrect, onTakeBack, mayCorrect }) {
    this.entry = entry;
    this.#mayCorrect = mayCorrect;
    this.#nameOf = nameOf;
    this.element = element("li", entry.own ? "utterance own" : "utterance");
    Object.assign(this.element.dataset, { testid: "utterance", key: entry.key });
    showVoice(this.element, voice);
    const head = this.#head;
    const name = element("span", "voice-name");
    name.append(this.#name);
    head.append(name, this.#lang);
    this.#corrected.dataset.testid = "corrected";
    head.append(this.#time, this.#corrected);
    this.#correct = button("quiet row-act", t("transcript.correct"), "correct", () => onCorrect(entry));
    this.#correct.ariaLabel = t("transcript.correct_long");
    this.#takeBack = button("quiet row-act", t("transcript.take_back"), "take-back", () => onTakeBack(entry));
    this.#takeBack.ariaLabel = t("transcript.take_back_long");
    this.#cancel = button("quiet row-cancel", t("transcript.cancel"), "cancel", () => {
      this.#cancel.ariaDisabled = "true"; // not `disabled`: a disabled button loses the focus
      onCancel(entry);
    });
    this.#cancel.ariaLabel = t("transcript.cancel_long");
    if (entry.own) {
      const acts = element("span", "row-acts");
      acts.append(this.#correct, this.#takeBack, this.#cancel);
      head.append(acts);
    }
    this.#time.dir = this.#note.dir = "auto";
    this.element.append(head, this.#grid);
  }

  /** Where the name ends, in px of the viewport; far above it if the name is hidden. */
  get nameBottom() {
    return this.element.classList.contains("follows") ? -Infinity : this.#head.getBoundingClientRect().bottom;
  }

  /**
   * Hide name, language and time if a row above shows them, and continue its stretches of unsure translations.
   * @param {UtteranceRow | undefined} above
   */
  follow(above) {
    this.#continued = new Set(above?.unsureLangs);
    for (const [column, cell] of this.#cells) cell.unsure = this.#unsurePlace(column);
    const { participant, own, lang, at, isCorrected } = this.entry;
    const before = above?.entry;
    const isSame = before?.participant === participant && (!lang || !before.lang || before.lang === lang);
    const saidAt = at?.getTime() ?? above?.shownAt ?? 0;
    const follows = !own && !isCorrected && isSame && saidAt - (above?.shownAt ?? 0) < GROUP_MS;
    this.shownAt = follows ? (above?.shownAt ?? saidAt) : saidAt;
    this.element.classList.toggle("follows", follows);
  }

  /** Languages of the translations that the model is unsure of. @returns {string[]} */
  get unsureLangs() {
    const { lang, cells } = this.entry;
    return [...cells.values()].filter((cell) => cell.unsure && cell.lang !== lang).map((cell) => cell.lang);
  }

  /** @param {string} column */
  #unsurePlace(column) {
    if (!this.unsureLangs.includes(column)) return "";
    return this.#continued.has(column) ? "continues" : "begins";
  }

  /** Whether it was said before any participant read this language. @param {string} lang */
  isUntranslated(lang) {
    return this.entry.lang !== lang && this.entry.optional.has(lang) && !this.entry.cells.has(lang);
  }

  /** It is the last one that is not translated into these languages: say so. @param {ReadonlySet<string>} langs */
  endUntranslated(langs) {
    if ([...langs].join() === [...this.#begins].join()) return;
    this.#begins = langs;
    this.render(this.#cells.keys());
  }

  /** @param {Shown} shown */
  show(shown) {
    this.#shown = shown;
    this.render([AS_SPOKEN]);
  }

  /** The columns, and whether the original stands above them, which depends on its language. */
  #arrange() {
    const { columns, originals } = this.#shown;
    const { lang, unsent, cells } = this.entry;
    // An unsent utterance of which no part was translated: its original is all there is.
    const isAlone = unsent && cells.size === 0;
    const isWanted = columns.length === 0 || (!columns.includes(lang) && (unsent || (originals && lang !== "")));
    const wanted = isWanted ? [AS_SPOKEN, ...(isAlone ? [] : columns)] : columns;
    const before = this.#cells;
    if (before.size === wanted.length && [...before.keys()].join() === wanted.join()) return;
    this.#cells = new Map(wanted.map((column) => [column, before.get(column) ?? new TextCell(column)]));
    this.#grid.replaceChildren(...[...this.#cells.values()].map((cell) => cell.element));
  }

  /** @param {Iterable<string>} columns Those that changed. The original can be in any column. */
  render(columns) {
    const langs = new Set(columns);
    if (langs.has(AS_SPOKEN)) this.#arrange();
    for (const column of langs.has(AS_SPOKEN) ? this.#cells.keys() : langs) this.#renderCell(column);
    const { lang, reason } = this.entry;
    setIfChanged(this.#name, "textContent", speakerName(this.entry));
    setIfChanged(this.#lang, "textContent", lang && this.#nameOf(lang));
    this.#showTime();
    setIfChanged(this.#corrected, "textContent", this.entry.isCorrected ? t("transcript.corrected") : "");
    const mayCorrect = this.#mayCorrect(this.entry);
    for (const act of [this.#correct, this.#takeBack]) setIfChanged(act, "hidden", !mayCorrect);
    this.#remark(reason || unsentWords(this.entry));
    const state = this.#state();
    if (document.activeElement === this.#cancel && state !== "running") {
      /** @type {HTMLElement | null} */ (this.element.closest("[tabindex]"))?.focus({ preventScroll: true });
    }
    setIfChanged(this.element.dataset, "state", state);
  }

  #showTime() {
    const { at } = this.entry;
    setIfChanged(this.#time, "hidden", at === null);
    setIfChanged(this.#time, "dateTime", at?.toISOString() ?? "");
    setIfChanged(this.#time, "textContent", at ? clock(at) : "");
  }

  /** @param {string} words A remark on the whole utterance. */
  #remark(words) {
    setIfChanged(this.#note, "textContent", words);
    setIfChanged(this.#note, "className", this.entry.reason ? "cell-note" : "cell-note mild");
    if (!words) this.#note.remove();
    else if (!this.#note.isConnected) this.element.append(this.#note);
  }

  /** @param {string} column */
  #renderCell(column) {
    const cell = this.#cells.get(column);
    if (cell === undefined) return;
    const { lang, cells } = this.entry;
    const { stability } = this.#shown;
    const isOriginal = column === lang || column === AS_SPOKEN;
    const kind = column === AS_SPOKEN ? "original" : "spoken";
    setIfChanged(cell.element, "className", isOriginal ? `cell ${kind}` : "cell");
    const original = lang
      ? t("transcript.cell_as_spoken", { language: this.#nameOf(lang) })
      : t("transcript.as_spoken");
    cell.label = isOriginal ? original : this.#nameOf(column);
    cell.unsure = this.#unsurePlace(column);
    if (isOriginal) cell.showOriginal(this.entry, stability);
    else cell.showTranslation(column, cells.get(column), stability, isToCome(this.entry, column));
    if (!isOriginal && this.#begins.has(column))
      cell.remark(t("transcript.begins_here", { language: this.#nameOf(column) }), " mild");
  }

  /** @returns {"speaking" | "running" | "settled" | "unsent"} */
  #state() {
    if (this.entry.unsent && !this.entry.reason) return "unsent";
    if (!isSaid(this.entry)) return "speaking";
    const isRunning = this.#shown.reads.some((tag) => tag !== this.entry.lang && isToCome(this.entry, tag));
    return isRunning ? "running" : "settled";
  }
}
