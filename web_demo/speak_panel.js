// The form in which something is said: the text, its language, sentences to pick and the languages to translate into.
// Knows elements and what the gateway accepts; must not know the connection.

import { element, find } from "./elements.js";
import { sentencesIn } from "./sentences.js";

/** @typedef {import("./messages.js").Limits} Limits */
/** @typedef {{tag: string, name: string}} Language */
/** @typedef {{text: string, lang: string, reads: string[]}} Said */

/**
 * Who hears what people do in the panel.
 * - `draft`: what stands in the field so far, after a word or a pause; null where that is nothing to be translated
 * - `say`: something is said
 * - `play`: something is to be said word by word
 * - `read`: other languages are to be translated into, from the next utterance on
 * - `object`: a sentence for people: what is missing
 * @typedef {object} Owner
 * @property {(said: Said | null) => void} draft
 * @property {(said: Said) => void} say
 * @property {(said: Said) => void} play
 * @property {(reads: string[]) => void} read
 * @property {(words: string) => void} object
 */

const PRESELECTED_TARGETS = 2;

// Typing that pauses for so long may stop for longer.
const PAUSE_MS = 250;
// An apostrophe or a hyphen may be in the middle of one.
const WORD_ENDS = /(?:\s|(?!['’-])\p{P})$/u;

/**
 * What a language is called by those who speak it.
 * @param {string} tag
 */
function ownName(tag) {
  try {
    return new Intl.DisplayNames([tag], { type: "language", fallback: "none" }).of(tag) ?? "";
  } catch {
    return "";
  }
}

/** @param {Language} language */
function targetChip({ tag, name }) {
  const box = element("input", "");
  box.type = "checkbox";
  box.value = tag;
  box.dataset.testid = `target-${tag}`;
  const chip = element("label", "chip");
  chip.append(box, element("span", "", name));
  const own = ownName(tag);
  if (own && own.toLowerCase() !== name.toLowerCase()) {
    const aside = element("span", "own-name", own);
    aside.lang = tag;
    chip.append(aside);
  }
  return chip;
}

export class SpeakPanel {
  #owner;
  #form = find("speak", HTMLFormElement);
  #lang = find("source-lang", HTMLSelectElement);
  #text = find("text", HTMLTextAreaElement);
  #count = find("count", HTMLSpanElement);
  #tooLong = find("too-long", HTMLSpanElement);
  #demoModel = find("demo-model", HTMLParagraphElement);
  #samples = find("samples", HTMLDivElement);
  #sentences = find("sentences", HTMLDivElement);
  #targets = find("targets", HTMLDivElement);
  #send = find("send", HTMLButtonElement);
  #play = find("play", HTMLButtonElement);
  /** @type {number | undefined} */
  #pausing;
  /** @type {Limits | null} */
  #limits = null;

  /** @param {Owner} owner */
  constructor(owner) {
    this.#owner = owner;
    this.#form.addEventListener("submit", (event) => this.#onSubmit(event));
    this.#text.addEventListener("keydown", (event) => this.#onKey(event));
    this.#text.addEventListener("input", (event) => this.#onInput(event));
    this.#text.addEventListener("compositionend", () => this.#draft());
    this.#play.addEventListener("click", () => this.#hand(this.#owner.play));
    this.#lang.addEventListener("change", () => {
      this.#showSource();
      this.#draft();
    });
    this.#targets.addEventListener("change", () => {
      this.#showTargets();
      this.#draft();
    });
  }

  /** What the gateway accepts; null while that is not known. @param {Limits | null} limits */
  set limits(limits) {
    this.#limits = limits;
    this.#showCount();
    this.#showTargets();
  }

  /** @param {boolean} shown */
  show(shown) {
    const opens = shown && this.#form.hidden;
    this.#form.hidden = !shown;
    // Ready to type, where that does not raise an on-screen keyboard and nobody is busy elsewhere.
    if (opens && matchMedia("(hover: hover)").matches && document.activeElement === document.body) {
      this.#text.focus({ preventScroll: true });
    }
  }

  focus() {
    this.#text.focus();
  }

  /**
   * @param {readonly Language[]} languages
   * @param {boolean} demo Whether the model knows little more than the sentences to pick.
   */
  offer(languages, demo) {
    this.#demoModel.hidden = !demo;
    for (const language of languages) {
      const option = element("option", "", language.name);
      option.value = language.tag;
      this.#lang.append(option);
      this.#targets.append(targetChip(language));
    }
    const preferred = navigator.language.split("-")[0] ?? "";
    const tags = languages.map((language) => language.tag);
    const spoken = [preferred, "en"].find((tag) => tags.includes(tag)) ?? tags[0];
    if (spoken !== undefined) this.#lang.value = spoken;
    for (const box of this.#boxes().filter((box) => box.value !== spoken).slice(0, PRESELECTED_TARGETS)) {
      box.checked = true;
    }
    this.#showSource();
  }

  // ---------------------------------------------------------------- languages and sentences

  #boxes() {
    return [...this.#targets.querySelectorAll("input")];
  }

  /** Languages to translate into, besides the spoken one. */
  get targets() {
    return this.#boxes()
      .filter((box) => box.checked && !box.disabled)
      .map((box) => box.value);
  }

  /** The spoken language changed: other sentences, and it is no target of itself. */
  #showSource() {
    const lang = this.#lang.value;
    this.#text.lang = lang;
    this.#sentences.replaceChildren(
      ...sentencesIn(lang).map((sentence) => {
        const chip = element("button", "chip", sentence);
        chip.type = "button";
        chip.lang = lang;
        chip.addEventListener("click", () => this.#pick(sentence));
        return chip;
      }),
    );
    this.#sentences.scrollLeft = 0;
    this.#samples.hidden = this.#sentences.childElementCount === 0;
    this.#showTargets();
    if (this.targets.length === 0) {
      const first = this.#boxes().find((box) => !box.disabled);
      if (first !== undefined) first.checked = true;
      this.#showTargets();
    }
  }

  #showTargets() {
    const boxes = this.#boxes();
    const chosen = boxes.filter((box) => box.checked && box.value !== this.#lang.value).length;
    const full = chosen >= (this.#limits?.languages ?? Infinity);
    for (const box of boxes) box.disabled = box.value === this.#lang.value || (full && !box.checked);
    this.#owner.read(this.targets);
  }

  /** @param {string} sentence */
  #pick(sentence) {
    // It is not said yet: that begins with a button.
    this.#clear();
    this.#owner.draft(null);
    this.#text.value = sentence;
    this.#showCount();
    this.#send.focus();
  }

  /** What would be sent. */
  #said() {
    return this.#text.value.trim();
  }

  #isTooLong() {
    return [...this.#said()].length > (this.#limits?.text_chars ?? Infinity);
  }

  #showCount() {
    const most = this.#limits?.text_chars ?? Infinity;
    const length = [...this.#said()].length;
    const tooLong = this.#isTooLong();
    this.#count.textContent = length > most * 0.8 ? `${length} of ${most} characters` : "";
    this.#count.classList.toggle("over", tooLong);
    this.#tooLong.textContent = tooLong ? "Too long to translate:" : "";
    this.#text.ariaInvalid = String(tooLong);
    this.#send.disabled = this.#play.disabled = tooLong;
  }

  // ---------------------------------------------------------------- saying something

  /** @param {Event} event */
  #onInput(event) {
    this.#showCount();
    clearTimeout(this.#pausing);
    // While an input method composes, what stands there is no text yet.
    if (event instanceof InputEvent && event.isComposing) return;
    if (this.#text.value === "" || WORD_ENDS.test(this.#text.value)) this.#draft();
    else this.#pausing = setTimeout(() => this.#draft(), PAUSE_MS);
  }

  #draft() {
    clearTimeout(this.#pausing);
    const said = { text: this.#said(), lang: this.#lang.value, reads: this.targets };
    if (this.#isTooLong()) return;
    this.#owner.draft(said.text && said.reads.length > 0 ? said : null);
  }

  #clear() {
    clearTimeout(this.#pausing);
    this.#text.value = "";
    this.#showCount();
  }

  /** @param {Event} event */
  #onSubmit(event) {
    event.preventDefault();
    this.#hand(this.#owner.say);
  }

  /**
   * Hand over what stands in the field, or say what is missing.
   * @param {(said: Said) => void} take
   */
  #hand(take) {
    if (this.#isTooLong()) return; // Enter submits even so; what is wrong is said beside the count
    const text = this.#said();
    if (!text) {
      this.#owner.object("There is nothing to translate yet: type a sentence, or pick one.");
      this.#text.focus();
      return;
    }
    const reads = this.targets;
    if (reads.length === 0) {
      this.#owner.object("Choose at least one language to translate into.");
      this.#boxes().find((box) => !box.disabled)?.focus();
      return;
    }
    this.#clear();
    take({ text, lang: this.#lang.value, reads });
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    // While an input method composes, Enter chooses a candidate.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#form.requestSubmit();
  }
}
