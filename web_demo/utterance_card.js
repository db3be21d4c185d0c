// One utterance on the page: what was said and, beside it, each translation as it grows.
// Knows elements and numbers; must not know the connection. Whatever was said or translated is set as text.

import { element } from "./elements.js";

/** @typedef {import("./messages.js").TranslationFinal} TranslationFinal */

/** @param {number} ms */
function duration(ms) {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A translation into one language. */
class Column {
  #lang;
  #committed = document.createTextNode("");
  #tentative = element("span", "tentative");
  #text = element("p", "words");
  #note = element("p", "note", "Waiting …");
  #open = true;

  /**
   * @param {string} lang
   * @param {string} name
   */
  constructor(lang, name) {
    this.#lang = lang;
    this.element = element("div", "column waiting");
    this.#text.lang = lang;
    this.#text.dir = "auto";
    this.#text.dataset.testid = `translation-${lang}`;
    this.#text.append(this.#committed, this.#tentative);
    this.element.append(element("h3", "", name), this.#text, this.#note);
  }

  /** Whether something may still arrive. */
  get open() {
    return this.#open;
  }

  /** @param {string} note Why nothing is there yet. */
  wait(note) {
    if (!this.#open) return;
    this.#committed.data = "";
    this.#tentative.textContent = "";
    this.#note.textContent = note;
    this.element.className = "column waiting";
  }

  /**
   * @param {string} committed
   * @param {string} tentative
   */
  grow(committed, tentative) {
    if (this.#committed.length === 0) {
      this.element.className = "column streaming";
      this.#note.textContent = "Translating …";
    }
    this.#committed.appendData(committed);
    this.#tentative.textContent = tentative;
  }

  /** @param {TranslationFinal} final */
  finish(final) {
    this.#open = false;
    this.#committed.data = final.text;
    this.#tentative.textContent = "";
    this.element.className = "column done";
    const facts = element("dl", "note");
    facts.append(
      this.#fact("First token", duration(final.timings.first_token_ms), "first-token"),
      this.#fact("Total", duration(final.timings.total_ms), "total"),
      this.#fact("Tokens", String(final.tokens), "tokens"),
    );
    if (final.truncated) facts.append(this.#fact("Cut short", "output limit", "truncated"));
    this.#note.replaceWith(facts);
  }

  /** @param {string} reason */
  fail(reason) {
    this.#open = false;
    this.#tentative.textContent = "";
    this.#note.textContent = reason;
    this.#note.dataset.testid = `failed-${this.#lang}`;
    this.element.className = "column failed";
  }

  /**
   * @param {string} term
   * @param {string} value
   * @param {string} hook
   */
  #fact(term, value, hook) {
    const fact = element("div", "");
    const shown = element("dd", "", value);
    shown.dataset.testid = `${hook}-${this.#lang}`;
    fact.append(element("dt", "", term), shown);
    return fact;
  }
}

export class UtteranceCard {
  /** @type {Map<string, Column>} */
  #columns = new Map();
  #cancel = element("button", "quiet cancel", "Cancel");
  #original = element("p", "words");

  /**
   * @param {object} utterance
   * @param {string} utterance.text
   * @param {string} utterance.lang
   * @param {readonly string[]} utterance.targets
   * @param {(tag: string) => string} utterance.name What a language is called.
   * @param {() => void} utterance.onCancel
   */
  constructor({ text, lang, targets, name, onCancel }) {
    const said = new Date();
    this.element = element("li", "card utterance");
    this.element.dataset.testid = "utterance";
    this.element.dataset.state = "running";

    const time = element("time", "", said.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
    time.dateTime = said.toISOString();
    this.#cancel.type = "button";
    this.#cancel.dataset.testid = "cancel";
    this.#cancel.setAttribute("aria-label", "Cancel this translation");
    this.#cancel.addEventListener("click", () => {
      this.#cancel.disabled = true;
      onCancel();
    });
    const top = element("div", "top");
    top.append(time, this.#cancel);

    const original = element("div", "column original");
    this.#original.textContent = text;
    this.#original.lang = lang;
    this.#original.dir = "auto";
    this.#original.dataset.testid = "original";
    original.append(element("h3", "", name(lang)), this.#original);

    const grid = element("div", "columns");
    grid.append(original);
    for (const target of targets) {
      const column = new Column(target, name(target));
      this.#columns.set(target, column);
      grid.append(column.element);
    }
    this.element.append(top, grid);
  }

  /** Once on the page: a translation is about as long as what was said, so keep that much room for it. */
  reserveRoom() {
    this.element.style.setProperty("--room", `${this.#original.offsetHeight}px`);
  }

  /** The page's width changed: the room is another one now. */
  releaseRoom() {
    this.element.style.removeProperty("--room");
  }

  /** @param {string} note Why translations wait. */
  wait(note) {
    for (const column of this.#columns.values()) column.wait(note);
    this.#cancel.disabled = false;
  }

  /**
   * @param {string} lang
   * @param {string} committed
   * @param {string} tentative
   */
  grow(lang, committed, tentative) {
    this.#columns.get(lang)?.grow(committed, tentative);
  }

  /** @param {TranslationFinal} final */
  finish(final) {
    this.#columns.get(final.lang)?.finish(final);
  }

  /**
   * @param {string} lang
   * @param {string} reason
   */
  fail(lang, reason) {
    this.#columns.get(lang)?.fail(reason);
  }

  /**
   * Nothing more will come.
   * @param {string} [reason] For what is missing.
   */
  settle(reason = "") {
    for (const column of this.#columns.values()) {
      if (column.open) column.fail(reason);
    }
    this.element.dataset.state = "settled";
    // Hidden, not removed: the card keeps its height. The focus must not be lost with it.
    if (document.activeElement === this.#cancel) document.getElementById("text")?.focus();
    this.#cancel.disabled = true;
  }
}
