// One utterance on the page: what is said and, beside it, each translation as it grows.
// Knows elements and numbers; must not know the connection. Whatever was said or translated is set as text.

import { element } from "./elements.js";

/** @typedef {import("./messages.js").Stability} Stability */
/** @typedef {import("./messages.js").TranslationFinal} TranslationFinal */
/** @typedef {import("./speak_panel.js").Said} Said */

/**
 * Why nothing is there yet.
 * @type {Readonly<Record<Stability, string>>}
 */
const WAITING = {
  live: "Waiting …",
  stable: "Waiting for words that stay …",
  final: "Waiting for the whole sentence …",
};

/** @param {number} ms */
function duration(ms) {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A translation into one language. */
class Column {
  #lang;
  #stability;
  /** What will stay, and what may change behind it; shown as far as the stability asks for it. */
  #committed = "";
  #tentative = "";
  #words = document.createTextNode("");
  #tail = element("span", "tentative");
  #text = element("p", "words");
  #note = element("p", "note");
  #reason = "";
  #open = true;

  /**
   * @param {string} lang
   * @param {string} name
   * @param {Stability} stability
   */
  constructor(lang, name, stability) {
    this.#lang = lang;
    this.#stability = stability;
    this.element = element("div", "column waiting");
    this.#text.lang = lang;
    this.#text.dir = "auto";
    this.#text.dataset.testid = `translation-${lang}`;
    this.#text.append(this.#words, this.#tail);
    this.element.append(element("h3", "", name), this.#text, this.#note);
    this.#tail.dataset.testid = `tentative-${lang}`;
    this.#render();
  }

  /** Whether something may still arrive. */
  get open() {
    return this.#open;
  }

  /** @param {Stability} stability What is to be seen of a translation before it is final. */
  show(stability) {
    this.#stability = stability;
    this.#render();
  }

  /**
   * What was there is void.
   * @param {string} [reason] Why nothing is there yet.
   */
  wait(reason = "") {
    this.#committed = this.#tentative = "";
    this.#reason = reason;
    this.#render();
  }

  /**
   * @param {string} committed
   * @param {string} tentative
   */
  grow(committed, tentative) {
    this.#committed += committed;
    this.#tentative = tentative;
    this.#reason = "";
    this.#render();
  }

  /** As long as something may still arrive. */
  #render() {
    if (!this.#open) return;
    const tentative = this.#stability === "live" ? this.#tentative : "";
    const tail = tentative.trimStart();
    // The space between the two is no word that may change: nothing marks it.
    const space = tentative.slice(0, tentative.length - tail.length);
    const words = this.#stability === "final" ? "" : this.#committed + space;
    const streaming = words !== "" || tail !== "";
    if (this.#words.data !== words) this.#words.data = words;
    if (this.#tail.textContent !== tail) this.#tail.textContent = tail;
    this.element.className = streaming ? "column streaming" : "column waiting";
    this.#note.textContent = streaming ? "Translating …" : this.#reason || WAITING[this.#stability];
  }

  /** @param {TranslationFinal} final */
  finish(final) {
    this.#open = false;
    this.#words.data = final.text;
    this.#tail.textContent = "";
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
    this.#tail.textContent = "";
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
  /** @type {Map<string, Column>} In the order in which they stand. */
  #columns = new Map();
  #time = element("time", "");
  #cancel = element("button", "quiet cancel", "Cancel");
  #spoken = element("h3", "");
  #original = element("p", "words");
  #grid = element("div", "columns");
  #name;
  #stability;

  /**
   * @param {object} utterance
   * @param {Stability} utterance.stability
   * @param {(tag: string) => string} utterance.name What a language is called.
   * @param {() => void} utterance.onCancel
   */
  constructor({ stability, name, onCancel }) {
    this.#stability = stability;
    this.#name = name;
    this.element = element("li", "card utterance");
    this.element.dataset.testid = "utterance";
    this.#cancel.type = "button";
    this.#cancel.dataset.testid = "cancel";
    this.#cancel.setAttribute("aria-label", "Cancel this translation");
    this.#cancel.addEventListener("click", () => {
      this.#cancel.disabled = true;
      onCancel();
    });
    const top = element("div", "top");
    top.append(this.#time, this.#cancel);

    const original = element("div", "column original");
    this.#original.dir = "auto";
    this.#original.dataset.testid = "original";
    original.append(this.#spoken, this.#original);
    this.#grid.append(original);
    this.element.append(top, this.#grid);
  }

  /**
   * What was said so far. Once on the page, which decides how much room it takes.
   * @param {Said} said
   * @param {"typed" | "spoken" | "said"} how It is being typed, is being spoken word by word, or is the last word.
   */
  say({ text, lang, reads }, how) {
    const now = new Date();
    this.#time.dateTime = now.toISOString();
    this.#time.textContent = now.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    this.element.dataset.state = how === "said" ? "running" : how;
    this.#spoken.textContent = this.#name(lang);
    this.#original.textContent = text;
    this.#original.lang = lang;
    this.#original.classList.toggle("tentative", how !== "said");
    this.#translateInto(reads);
    this.#reserveRoom();
  }

  /** @param {readonly string[]} reads */
  #translateInto(reads) {
    if ([...this.#columns.keys()].join() === reads.join()) return;
    const before = this.#columns;
    this.#columns = new Map(
      reads.map((tag) => [tag, before.get(tag) ?? new Column(tag, this.#name(tag), this.#stability)]),
    );
    for (const column of before.values()) column.element.remove();
    this.#grid.append(...[...this.#columns.values()].map((column) => column.element));
  }

  /** A translation is about as long as what was said, so keep that much room for it. */
  #reserveRoom() {
    this.element.style.setProperty("--room", `${this.#original.offsetHeight}px`);
  }

  /** The page's width changed: the room is another one now. */
  releaseRoom() {
    this.element.style.removeProperty("--room");
  }

  /** @param {Stability} stability What is to be seen of translations before they are final. */
  show(stability) {
    this.#stability = stability;
    for (const column of this.#columns.values()) column.show(stability);
  }

  /** @param {string} reason Why translations wait, and begin anew. */
  wait(reason) {
    for (const column of this.#columns.values()) column.wait(reason);
    this.#cancel.disabled = false;
  }

  /** What was there of translations that are not final is void. */
  forgetUnfinished() {
    for (const column of this.#columns.values()) column.wait();
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
