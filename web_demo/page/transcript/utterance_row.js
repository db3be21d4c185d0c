// One utterance in the transcript: who said it and, in one cell each, what was said and its translations. Knows the
// entry and the columns; must not know the other rows. Whatever was said or translated is set as text.

import { button, element } from "../ui/dom.js";
import { direction } from "../ui/languages.js";
import { isSaid, speakerOf } from "./transcript.js";

/** @typedef {import("./transcript.js").Cell} Cell */
/** @typedef {import("./transcript.js").Entry} Entry */
/** @typedef {import("../../client/messages.js").Stability} Stability */
/** @typedef {{columns: readonly string[], originals: boolean, stability: Stability}} Shown */

/** The column of what was said, in whatever language. */
export const AS_SPOKEN = "";

/**
 * Browsers take what is set for a change even where it is none.
 * @template T
 * @template {keyof T} K
 * @param {T} target
 * @param {K} key
 * @param {T[K]} value
 */
export function put(target, key, value) {
  if (target[key] !== value) target[key] = value;
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

  /** @param {string} column */
  constructor(column) {
    this.element = element("div", "cell");
    this.#text.dataset.testid = column === AS_SPOKEN ? "original" : `cell-${column}`;
    this.#tail.dataset.testid = `tentative-${column}`;
    this.#text.append(this.#words, this.#tail);
    this.element.append(this.#label, this.#text);
  }

  /** @param {string} label Seen where cells are stacked, always heard by a screen reader. */
  set label(label) {
    put(this.#label, "textContent", label);
  }

  /**
   * @param {Entry} entry
   * @param {Stability} stability
   */
  speak({ text, lang, final }, stability) {
    const words = final || stability !== "final" ? text : "";
    this.#write(lang, "auto", words, "", final ? "final" : "growing");
    this.#remark("");
  }

  /**
   * @param {string} lang
   * @param {Cell | undefined} cell
   * @param {Stability} stability
   * @param {boolean} isOwed Whether something will come of it.
   */
  translate(lang, cell, stability, isOwed) {
    const dir = direction(lang);
    if (cell?.state === "final") {
      this.#write(lang, dir, cell.text, "", "final");
      this.#time(cell);
      return this.#remark(cell.truncated ? "Cut short: the translation is longer than the output limit." : "", " mild");
    }
    const words = stability === "final" ? "" : (cell?.committed ?? "");
    const tentative = stability === "live" ? (cell?.tentative ?? "") : "";
    this.#write(lang, dir, words, tentative, cell?.state ?? (isOwed ? "growing" : "none"));
    this.#remark(cell?.reason);
  }

  /**
   * @param {string} lang
   * @param {string} dir
   * @param {string} words
   * @param {string} tentative
   * @param {"growing" | "final" | "failed" | "none"} state
   */
  #write(lang, dir, words, tentative, state) {
    put(this.#text, "lang", lang);
    put(this.#text, "dir", dir);
    const tail = tentative.trimStart();
    // The space between the two is no word that may change: nothing marks it.
    put(this.#words, "data", words + tentative.slice(0, tentative.length - tail.length));
    put(this.#tail, "textContent", tail);
    put(this.#text.dataset, "state", state === "growing" && !words && !tail ? "waiting" : state);
  }

  /** @param {Cell} cell */
  #time({ timings, tokens }) {
    if (timings === null) return;
    const { first_token_ms: first, total_ms: total } = timings;
    const facts = `First token ${duration(first)}, total ${duration(total)}`;
    Object.assign(this.#text.dataset, { firstTokenMs: first, totalMs: total, timings: facts });
    this.#text.title = `${facts}, ${tokens} tokens`;
  }

  #remark(words = "", kind = "") {
    put(this.#note, "textContent", words);
    put(this.#note, "className", `cell-note${kind}`);
    if (!words) this.#note.remove();
    else if (!this.#note.isConnected) this.element.append(this.#note);
  }
}

export class UtteranceRow {
  /** What it shows. */
  entry;
  #nameOf;
  #name = element("bdi", ""); // whatever a name is made of, it turns nothing around it
  #lang = element("span", "");
  #cancel;
  #grid = element("div", "cells");
  #note = element("p", "");
  /** @type {Shown} */
  #shown = { columns: [], originals: false, stability: "live" };
  /** @type {Map<string, TextCell>} In the order in which they stand. */
  #cells = new Map();

  /**
   * @param {Entry} entry
   * @param {object} options
   * @param {number} options.voice Which of the speakers' colours.
   * @param {(tag: string) => string} options.nameOf
   * @param {(entry: Entry) => void} options.onCancel
   */
  constructor(entry, { voice, nameOf, onCancel }) {
    this.entry = entry;
    this.#nameOf = nameOf;
    this.element = element("li", entry.own ? "utterance own" : "utterance");
    Object.assign(this.element.dataset, { testid: "utterance", key: entry.key });
    this.element.style.setProperty("--voice", `var(--voice-${voice})`);
    const head = element("div", "row-head");
    const name = element("span", "voice-name");
    name.append(this.#name);
    head.append(name, this.#lang);
    if (entry.at !== null) {
      const time = element("time", "", entry.at.toLocaleTimeString([], { timeStyle: "short" }));
      time.dateTime = entry.at.toISOString();
      head.append(time);
    }
    this.#cancel = button("quiet row-cancel", "Cancel", "cancel", () => {
      this.#cancel.ariaDisabled = "true"; // not `disabled`, which would lose the focus
      onCancel(entry);
    });
    this.#cancel.ariaLabel = "Cancel this translation";
    if (entry.own) head.append(this.#cancel);
    this.element.append(head, this.#grid);
  }

  /** @param {Entry | undefined} above Of one voice that goes on the name is not repeated. */
  follow(above) {
    const { participant, own } = this.entry;
    this.element.classList.toggle("follows", !own && above?.participant === participant);
  }

  /** @param {Shown} shown */
  show(shown) {
    this.#shown = shown;
    const columns = this.#columns(shown);
    const before = this.#cells;
    if (before.size !== columns.length || [...before.keys()].join() !== columns.join()) {
      this.#cells = new Map(columns.map((column) => [column, before.get(column) ?? new TextCell(column)]));
      this.#grid.replaceChildren(...[...this.#cells.values()].map((cell) => cell.element));
    }
    this.render(this.#cells.keys());
  }

  /**
   * @param {Shown} shown
   * @returns {readonly string[]}
   */
  #columns({ columns, originals }) {
    if (originals) return [AS_SPOKEN, ...columns];
    // What is not sent is seen as it was said: there is nothing else of it.
    return this.entry.unsent && !columns.includes(this.entry.lang) ? [AS_SPOKEN] : columns;
  }

  /** @param {Iterable<string>} columns Those that changed; what was said may stand in any of them. */
  render(columns) {
    const langs = new Set(columns);
    for (const column of langs.has(AS_SPOKEN) ? this.#cells.keys() : langs) this.#renderCell(column);
    const { lang, unsent, reason } = this.entry;
    put(this.#name, "textContent", speakerOf(this.entry));
    put(this.#lang, "textContent", lang && this.#nameOf(lang));
    this.#remark(reason || (unsent ? "Not sent yet" : ""));
    const state = this.#state();
    if (document.activeElement === this.#cancel && state !== "running") {
      /** @type {HTMLElement | null} */ (this.element.closest("[tabindex]"))?.focus({ preventScroll: true });
    }
    put(this.element.dataset, "state", state);
  }

  /** @param {string} words About all of it. */
  #remark(words) {
    put(this.#note, "textContent", words);
    put(this.#note, "className", this.entry.reason ? "cell-note" : "cell-note quiet-note");
    if (!words) this.#note.remove();
    else if (!this.#note.isConnected) this.element.append(this.#note);
  }

  /** @param {string} column */
  #renderCell(column) {
    const cell = this.#cells.get(column);
    if (cell === undefined) return;
    const { lang, cells } = this.entry;
    const { stability } = this.#shown;
    const spoken = column === lang || column === AS_SPOKEN;
    put(cell.element, "className", spoken && column ? "cell spoken" : "cell");
    cell.label = spoken ? `${lang && `${this.#nameOf(lang)}, `}as spoken` : this.#nameOf(column);
    if (spoken) cell.speak(this.entry, stability);
    else cell.translate(column, cells.get(column), stability, this.#isOwed(column));
  }

  /** @param {string} lang */
  #isOwed(lang) {
    const { unsent, reason, unowed } = this.entry;
    return !unsent && !reason && !unowed.has(lang);
  }

  /** @returns {"speaking" | "running" | "settled" | "unsent"} */
  #state() {
    const { lang, cells, reason, unsent } = this.entry;
    if (unsent && !reason) return "unsent";
    if (!isSaid(this.entry)) return "speaking";
    const runs = this.#shown.columns.some((tag) => {
      const cell = cells.get(tag);
      return tag !== lang && (cell === undefined ? this.#isOwed(tag) : cell.state === "growing");
    });
    return runs ? "running" : "settled";
  }
}
