// Where its user speaks: typed, into the microphone, or by a sentence picked. Knows elements and the client's
// utterances; must not know who reads them.

import { element } from "../ui/dom.js";
import { direction, preferred } from "../ui/languages.js";
import { Microphone } from "./microphone.js";
import { Playback } from "../samples/simulated_speech.js";
import { sentencesIn } from "../samples/sample_sentences.js";
import { recall, remember } from "../ui/preferences.js";

/** @typedef {import("../../client/messages.js").Limits} Limits */
/** @typedef {import("./microphone.js").Hearing} Hearing */

// Typing that pauses for so long may stop for longer.
const PAUSE_MS = 250;
// An apostrophe or a hyphen may be in the middle of one.
const WORD_ENDS = /(?:\s|(?!['’-])\p{P})$/u;

const INVITATION = "Type what you say";
const DISABLED = "Disconnected";
const TOO_LONG = "Too long to send: shorten it, or say it in parts.";
const HEARING = { off: "", starting: "Waiting for the microphone…", listening: "Listening…" };
const PRIVACY = "Listening. Your browser recognises the speech, and may send what it hears to its maker.";

const SVG = "http://www.w3.org/2000/svg";
const MICROPHONE = "M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3ZM6 12a6 6 0 0 0 12 0M12 18v3";

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} classes
 * @param {string} testid
 * @param {Partial<HTMLElementTagNameMap[K]>} [properties]
 * @returns {HTMLElementTagNameMap[K]}
 */
function make(tag, classes, testid, properties) {
  const made = element(tag, classes);
  made.dataset["testid"] = testid;
  Object.assign(made, properties);
  return made;
}

/**
 * Whether a text is another revision of an earlier one. Translations go on from a beginning that is never taken back:
 * of another sentence that would be nonsense.
 * @param {string} earlier
 * @param {string} text
 */
function goesOn(earlier, text) {
  let same = 0;
  while (same < earlier.length && earlier[same] === text[same]) same += 1;
  return same >= earlier.length / 2;
}

export class Composer {
  element = make("form", "composer", "composer", { ariaLabel: "Say something" });
  #client;
  #object;
  #onLang;
  #fields = element("fieldset", "composer-bar");
  #select = make("select", "composer-lang", "spoken-lang", { ariaLabel: "Language you speak" });
  #text = make("textarea", "composer-text", "text", {
    ariaLabel: "What you say",
    placeholder: INVITATION,
    rows: 1,
    dir: "auto",
    autocomplete: "off",
    enterKeyHint: "send",
  });
  #mic = make("button", "composer-mic", "microphone", {
    type: "button",
    title: "Speak into the microphone",
    ariaLabel: "Speak into the microphone",
    ariaPressed: "false",
  });
  #send = make("button", "primary composer-send", "send", { textContent: "Send" });
  #label = make("span", "label", "try", { textContent: "Try a sentence", id: "composer-try", hidden: true });
  #demo = make("span", "hint composer-demo", "demo-model", {
    textContent: "The demo model knows meeting sentences like these, and little else.",
    hidden: true,
  });
  #note = make("span", "hint composer-note", "composer-note", { role: "status", id: "composer-note" });
  #count = make("span", "hint composer-count", "count");
  #sentences = make("div", "composer-sentences", "sentences", { role: "group", hidden: true });
  #microphone;
  /** @type {Hearing} */
  #hearing = "off";
  /** What is to be said about the last thing its user did. */
  #remark = { words: "", bad: false };
  /** @type {Limits | null} */
  #limits = null;
  /** What is being typed. @type {{id: string, text: string} | undefined} */
  #draft;
  /** Utterances that are being said word by word. @type {Map<string, Playback>} */
  #playing = new Map();
  /** @type {number | undefined} */
  #pausing;

  /**
   * @param {object} options
   * @param {import("../../client/gateway_client.js").GatewayClient} options.client
   * @param {(words: string) => void} options.object A sentence for people: why something was not taken.
   * @param {(lang: string) => void} [options.onLang] Another language is spoken from now on.
   */
  constructor({ client, object, onLang }) {
    this.#client = client;
    this.#object = object;
    this.#onLang = onLang;
    this.#microphone = new Microphone({ client, lang: "en", onState: (...news) => this.#onHearing(...news) });
    this.#build();
    this.element.addEventListener("submit", (event) => this.#onSubmit(event));
    this.#text.addEventListener("keydown", (event) => this.#onKey(event));
    this.#text.addEventListener("input", (event) => this.#onInput(event));
    this.#text.addEventListener("compositionend", () => this.#onDraft());
    this.#select.addEventListener("change", () => {
      remember("speaks", this.lang);
      this.#speak();
    });
    this.#mic.addEventListener("click", () => this.#microphone[this.#microphone.on ? "stop" : "start"]());
    client.listen((event) => this.#hear(event));
  }

  #build() {
    const icon = document.createElementNS(SVG, "svg");
    const path = document.createElementNS(SVG, "path");
    icon.setAttribute("viewBox", "0 0 24 24");
    path.setAttribute("d", MICROPHONE);
    icon.append(path);
    this.#mic.append(icon);
    this.#text.setAttribute("aria-describedby", this.#note.id);
    this.#sentences.setAttribute("aria-labelledby", this.#label.id);
    const line = element("div", "composer-line");
    line.append(this.#label, this.#demo, this.#note, this.#count);
    this.#fields.append(this.#select, this.#text, this.#mic, this.#send);
    this.element.append(this.#fields, line, this.#sentences);
  }

  // ---------------------------------------------------------------- from outside

  /**
   * Languages to speak. The one of last time is chosen again, else one that the browser's user prefers.
   * @param {readonly import("../ui/languages.js").Language[]} languages
   * @param {{demo: boolean}} options `demo`: the model knows little more than the sentences to pick.
   */
  offer(languages, { demo }) {
    const tags = languages.map(({ tag }) => tag);
    const wanted = [this.lang, recall("speaks"), ...preferred(languages), "en", ...tags];
    this.#select.replaceChildren(...languages.map(({ tag, name }) => new Option(name, tag)));
    this.#demo.hidden = !demo;
    this.lang = wanted.find((tag) => tags.includes(tag ?? "")) ?? "";
  }

  /** What its user speaks; empty before languages were offered. */
  get lang() {
    return this.#select.value;
  }

  /** One that was not offered changes nothing. */
  set lang(tag) {
    if (![...this.#select.options].some(({ value }) => value === tag)) return;
    this.#select.value = tag;
    this.#speak();
  }

  /** What the gateway accepts; null while that is not known. */
  get limits() {
    return this.#limits;
  }

  set limits(limits) {
    this.#limits = limits;
    this.#showLength();
  }

  /** Whether anything can be said at all. What stands in the field stays; what is being spoken or played ends. */
  get enabled() {
    return !this.#fields.disabled;
  }

  set enabled(enabled) {
    this.#fields.disabled = !enabled;
    this.#text.placeholder = enabled ? INVITATION : DISABLED;
    for (const chip of this.#sentences.querySelectorAll("button")) chip.disabled = !enabled;
    if (enabled) return;
    this.#microphone.abort();
    for (const playback of this.#playing.values()) playback.stop();
    this.#playing.clear();
    clearTimeout(this.#pausing);
  }

  focus() {
    this.#text.focus();
  }

  /** In the language that is chosen from now on. */
  #speak() {
    const { lang } = this;
    if (lang === this.#text.lang) return;
    this.#text.lang = this.#sentences.lang = this.#microphone.lang = lang;
    this.#showSentences();
    this.#onLang?.(lang);
    // What is being typed was begun in another language.
    this.#letGoUnless("");
    this.#onDraft();
  }

  // ---------------------------------------------------------------- typing

  /** What would be sent. */
  #said() {
    return this.#text.value.trim();
  }

  #isTooLong() {
    return [...this.#said()].length > (this.#limits?.text_chars ?? Infinity);
  }

  #showLength() {
    const most = this.#limits?.text_chars ?? Infinity;
    const { length } = [...this.#said()];
    this.#count.textContent = length > most * 0.8 ? `${length} of ${most}` : "";
    this.#text.ariaInvalid = String(length > most);
    this.#send.disabled = length > most;
    this.#showNote();
    if (CSS.supports("field-sizing", "content")) return;
    this.#text.style.setProperty("height", "auto");
    this.#text.style.setProperty("height", `${this.#text.scrollHeight}px`);
  }

  #showNote() {
    const tooLong = this.#isTooLong();
    const words = tooLong ? TOO_LONG : this.#remark.words || HEARING[this.#hearing];
    // Said anew it would be read anew.
    if (this.#note.textContent !== words) this.#note.textContent = words;
    this.#note.classList.toggle("bad", tooLong || this.#remark.bad);
  }

  /**
   * @param {string} words
   * @param {boolean} [bad]
   */
  #tell(words, bad = false) {
    this.#remark = { words, bad };
    this.#showNote();
  }

  /** @param {Event} event */
  #onInput(event) {
    this.#remark = { words: "", bad: false };
    this.#showLength();
    clearTimeout(this.#pausing);
    // While an input method composes, what stands there is no text yet.
    if (event instanceof InputEvent && event.isComposing) return;
    if (this.#text.value === "" || WORD_ENDS.test(this.#text.value)) this.#onDraft();
    else this.#pausing = setTimeout(() => this.#onDraft(), PAUSE_MS);
  }

  #onDraft() {
    clearTimeout(this.#pausing);
    if (this.#isTooLong() || !this.lang) return;
    const text = this.#said();
    this.#letGoUnless(text);
    if (!text || text === this.#draft?.text) return;
    this.#draft = { id: this.#client.partial({ text, lang: this.lang, id: this.#draft?.id }), text };
  }

  /**
   * What was begun will never be said, unless a text is another revision of it.
   * @param {string} text
   */
  #letGoUnless(text) {
    const draft = this.#draft;
    if (draft === undefined || (text && goesOn(draft.text, text))) return;
    this.#draft = undefined;
    this.#client.cancel(draft.id);
  }

  #clear() {
    clearTimeout(this.#pausing);
    this.#text.value = "";
    this.#showLength();
  }

  /** @param {Event} event */
  #onSubmit(event) {
    event.preventDefault();
    if (this.#isTooLong() || !this.lang) return; // Enter submits even so; what is wrong is said below
    const text = this.#said();
    if (text) {
      this.#letGoUnless(text);
      const id = this.#draft?.id;
      this.#draft = undefined;
      this.#client.final({ text, lang: this.lang, id });
      this.#clear();
    } else {
      this.#tell("Type something first, or pick a sentence.");
    }
    this.focus();
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    // While an input method composes, Enter chooses a candidate and Escape gives it up; in Safari that Enter comes
    // behind the end of the composition, as a key without a name.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.element.requestSubmit();
    } else if (event.key === "Escape" && this.#text.value) {
      event.stopPropagation();
      this.#clear();
      this.#onDraft();
    }
  }

  // ---------------------------------------------------------------- sentences to pick

  #showSentences() {
    const { lang } = this;
    const chips = sentencesIn(lang).map((sentence) => {
      const chip = element("button", "chip", sentence);
      chip.type = "button";
      chip.disabled = !this.enabled;
      chip.addEventListener("click", () => this.#play(sentence, lang));
      return chip;
    });
    this.#sentences.replaceChildren(...chips);
    this.#sentences.dir = direction(lang);
    this.#sentences.scrollLeft = 0;
    this.#sentences.hidden = this.#label.hidden = chips.length === 0;
  }

  /**
   * Say it as somebody speaks.
   * @param {string} sentence
   * @param {string} lang
   */
  #play(sentence, lang) {
    this.#tell("");
    /** @type {string | undefined} */
    let id;
    const playback = new Playback(sentence, lang, {
      heard: (text) => {
        id = this.#client.partial({ text, lang, id });
        this.#playing.set(id, playback);
      },
      over: () => {
        this.#playing.delete(this.#client.final({ text: sentence, lang, id }));
      },
    });
    playback.start();
  }

  // ---------------------------------------------------------------- microphone, and what the client hears

  /**
   * @param {Hearing} hearing
   * @param {string} problem
   */
  #onHearing(hearing, problem) {
    this.#hearing = hearing;
    this.#mic.ariaPressed = String(hearing !== "off");
    const untold = hearing === "listening" && recall("microphone") === null;
    if (untold) remember("microphone", "told");
    this.#tell(untold ? PRIVACY : problem, problem !== "");
  }

  /** @param {import("../../client/events.js").ClientEvent} event */
  #hear(event) {
    if (event.type !== "utterance.refused") return;
    this.#playing.get(event.id)?.stop();
    this.#playing.delete(event.id);
    // Of a draft nobody needs to hear: its text still stands here.
    if (event.id === this.#draft?.id) this.#draft = undefined;
    else if (event.code !== "cancelled") this.#object(event.message);
  }
}
