// Where the user speaks: by typing, with the microphone, or with a sample sentence. Must not know who reads it.

import { sampleSentences } from "../samples/sample_sentences.js";
import { SimulatedSpeech } from "../samples/simulated_speech.js";
import { button, element, setIfChanged } from "../ui/dom.js";
import { checkbox } from "../ui/form_controls.js";
import { preferredLanguages, textDirection } from "../ui/languages.js";
import { loadPreference, savePreference } from "../ui/preferences.js";
import { pageLanguage, t } from "../words/words.js";
import { loadDraft, saveDraft } from "./draft.js";
import { Microphone } from "./microphone.js";
import { otherLanguage } from "./other_language.js";

/** @typedef {import("../../client/messages.js").Limits} Limits */
/** @typedef {import("../../client/messages.js").Caption} Caption */
/** @typedef {import("../../client/messages.js").UtteranceReplaced} UtteranceReplaced */
/** @typedef {import("./microphone.js").Hearing} Hearing */

// After such a pause in the middle of a word the draft is shown to the others, if they see it at all.
const PAUSE_MS = 250;
// Apostrophes and hyphens can be inside a word.
const WORD_END = /(?:\s|(?!['’-])\p{P})$/u;

/** Stands for the language of each utterance, which the gateway detects. */
const DETECT = "auto";
/** The language of an utterance that says too little about it. */
const UNDETERMINED = "und";

const NO_REMARK = { text: "", isBad: false, instead: "", stays: false };
const NOTHING = { id: "", text: "", accepted: 0 };

const HEARING = {
  off: "",
  starting: t("composer.waiting"),
  listening: t("composer.listening"),
  retrying: t("mic.network"),
};

const SVG = "http://www.w3.org/2000/svg";
const MICROPHONE = "M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3ZM6 12a6 6 0 0 0 12 0M12 18v3";
// Shown while it is off.
const CROSSED_OUT = "M4 4 20 20";

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
 * Whether a text is a revision of an earlier one, and not another sentence. A translation continues from text that it
 * never takes back, so another sentence needs an utterance of its own.
 * @param {string} earlier
 * @param {string} text
 */
function isRevision(earlier, text) {
  let same = 0;
  while (same < earlier.length && earlier[same] === text[same]) same += 1;
  return same >= earlier.length / 2;
}

/**
 * The name of what a row shows: it may be one segment of an utterance.
 * @param {string} utterance
 */
export function segmentOf(utterance) {
  return /~\d+$/.test(utterance) ? utterance : `${utterance}~1`;
}

export class Composer {
  element = make("form", "composer", "composer", { ariaLabel: t("empty.speak") });
  #client;
  #onProblem;
  #onLang;
  #detect;
  #fields = element("fieldset", "composer-bar");
  #select = make("select", "composer-lang", "spoken-lang", { ariaLabel: t("composer.language") });
  #text = make("textarea", "composer-text", "text", {
    ariaLabel: t("composer.text"),
    placeholder: t("composer.placeholder"),
    rows: 1,
    dir: "auto",
    autocomplete: "off",
    enterKeyHint: "send",
  });
  #mic = make("button", "composer-mic", "microphone", {
    type: "button",
    title: t("composer.microphone"),
    ariaLabel: t("composer.microphone"),
    ariaPressed: "false",
  });
  #send = make("button", "primary composer-send", "send", { textContent: t("composer.send") });
  #sentencesLabel = make("span", "label", "try", { textContent: t("composer.try"), id: "composer-try", hidden: true });
  #demoHint = make("span", "hint composer-demo", "demo-model", {
    textContent: t("composer.demo"),
    hidden: true,
  });
  /** Says that what was said is being corrected, and ends that. */
  #correcting = make("p", "hint composer-correcting", "correcting", { role: "status", hidden: true });
  #note = make("span", "hint composer-note", "composer-note", { role: "status", id: "composer-note" });
  /** Speaks another language, where what is said looks like one. */
  #switch = make("button", "quiet composer-switch", "switch-language", { type: "button", hidden: true });
  #count = make("span", "hint composer-count", "count");
  /** Whether the others see what is typed before it is sent. */
  #sharing = checkbox("hint composer-sharing", "share-typing", t("composer.share"), (isOn) => {
    savePreference("share-typing", isOn ? "yes" : "no");
    this.#cancelDraftUnless("");
    this.#onDraft();
  });
  #hasSentences = true;
  #isEnabled = true;
  #isMuted = false;
  #sentences = make("div", "composer-sentences", "sentences", { role: "group", hidden: true });
  #microphone;
  /** @type {Hearing} */
  #hearing = "off";
  /** On what the user did last; on what was sent it stays while the next is typed. `instead`: the language that it offers. */
  #remark = NO_REMARK;
  /** What is offered. @type {readonly import("../ui/languages.js").Language[]} */
  #languages = [];
  /** What was selected last. */
  #spoken = "";
  /** What is spoken where nothing tells it: what was chosen last, or what the browser prefers; else empty. */
  #usual = "";
  /** @type {Limits | null} */
  #limits = null;
  /** What was heard of an utterance that is not final yet, and how many characters of it the gateway has accepted. */
  #unfinished = NOTHING;
  /** What is typed, as the others see it. @type {{id: string, text: string} | undefined} */
  #draft;
  /**
   * What is being corrected, and what was in the field and spoken before.
   * @type {{replaces: string, participant: string, said: string, saidIn: string, text: string, lang: string} | undefined}
   */
  #correction;
  /** Corrections that were sent and not answered, by utterance. @type {Map<string, {text: string, lang: string}>} */
  #corrections = new Map();
  /** Sample sentences that are being said, by utterance. @type {Map<string, SimulatedSpeech>} */
  #speeches = new Map();
  /** @type {number | undefined} */
  #pauseTimer;

  /**
   * @param {object} options
   * @param {import("../../client/gateway_client.js").GatewayClient} options.client
   * @param {(problem: string) => void} options.onProblem A sentence for people: why something was refused.
   * @param {(lang: string | null) => void} [options.onLang] The user mostly speaks another language; null: not known.
   * @param {import("./other_language.js").Detect | null} [options.detect] For what was sent, where the browser has no detector.
   */
  constructor({ client, onProblem, onLang, detect = null }) {
    this.#client = client;
    this.#onProblem = onProblem;
    this.#onLang = onLang;
    this.#detect = detect;
    this.#microphone = new Microphone({
      client,
      lang: "en",
      onState: (...change) => this.#onHearing(...change),
      onOpen: (open) => {
        const accepted = open?.id === this.#unfinished.id ? this.#unfinished.accepted : 0;
        this.#unfinished = { id: "", text: "", ...open, accepted };
        this.#keepDraft();
      },
    });
    this.#build();
    this.element.addEventListener("submit", (event) => this.#onSubmit(event));
    this.#text.addEventListener("keydown", (event) => this.#onKey(event));
    this.#text.addEventListener("input", (event) => this.#onInput(event));
    this.#text.addEventListener("compositionend", () => this.#onDraft());
    this.#select.addEventListener("change", () => {
      if (this.#correction) return; // it was said in another language than it seemed
      savePreference("speaks", this.lang);
      this.#speak();
    });
    this.#switch.addEventListener("click", () => {
      this.lang = this.#remark.instead;
      savePreference("speaks", this.lang);
      this.focus();
    });
    this.#mic.addEventListener("click", () => this.#microphone[this.#microphone.isOn ? "stop" : "start"]());
    client.listen((event) => this.#onEvent(event));
    this.#text.value = loadDraft(client.meeting);
  }

  #build() {
    const icon = document.createElementNS(SVG, "svg");
    icon.setAttribute("viewBox", "0 0 24 24");
    for (const shape of [MICROPHONE, CROSSED_OUT]) {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", shape);
      icon.append(path);
    }
    this.#mic.append(icon);
    this.#text.setAttribute("aria-describedby", this.#note.id);
    this.#sentences.setAttribute("aria-labelledby", this.#sentencesLabel.id);
    const line = element("div", "composer-line");
    this.#sharing.input.checked = loadPreference("share-typing") === "yes";
    line.append(this.#sentencesLabel, this.#demoHint, this.#note, this.#switch, this.#sharing.label, this.#count);
    this.#fields.append(this.#select, this.#text, this.#mic, this.#send);
    this.element.append(this.#correcting, this.#fields, line, this.#sentences);
  }

  // ---------------------------------------------------------------- for the page

  /**
   * Set the languages to speak. Selects the user's last choice, or one that the browser prefers.
   * @param {readonly import("../ui/languages.js").Language[]} languages
   * @param {object} options
   * @param {boolean} options.demo Whether it is the bundled model.
   * @param {boolean} [options.sentences] Whether sample sentences are offered.
   */
  offer(languages, { demo, sentences = true }) {
    const tags = languages.map(({ tag }) => tag);
    const detect = tags.length > 1 ? [DETECT] : [];
    const preferred = [this.#usual, ...preferredLanguages(languages), pageLanguage()];
    const wanted = [this.lang, loadPreference("speaks"), ...preferred, "en", ...tags];
    this.#languages = languages;
    this.#usual = preferred.find((tag) => tags.includes(tag)) ?? "";
    this.#select.replaceChildren(
      ...languages.map(({ tag, name }) => new Option(name, tag)),
      ...detect.map((tag) => new Option(t("composer.detect"), tag)),
    );
    this.#demoHint.hidden = !(demo && sentences);
    this.#hasSentences = sentences;
    this.lang = wanted.find((tag) => [...tags, ...detect].includes(tag ?? "")) ?? "";
  }

  /** The language that the user speaks, or `auto`; empty before languages were offered. */
  get lang() {
    return this.#select.value;
  }

  /** The language that the user mostly speaks; null if that is not known. */
  get usual() {
    return this.#usual || null;
  }

  /** A language that was not offered changes nothing. */
  set lang(tag) {
    if (![...this.#select.options].some(({ value }) => value === tag)) return;
    this.#select.value = tag;
    this.#speak();
  }

  /** What the gateway accepts; null before it is known. */
  get limits() {
    return this.#limits;
  }

  set limits(limits) {
    this.#limits = limits;
    this.#showLength();
  }

  /** Whether anything can be said. Disabling stops the microphone and sample sentences, and keeps what was typed. */
  get enabled() {
    return !this.#fields.disabled;
  }

  set enabled(enabled) {
    this.#isEnabled = enabled;
    this.#showEnabled();
  }

  /** Whether a host has muted the user. */
  set #muted(/** @type {boolean} */ isMuted) {
    if (isMuted === this.#isMuted) return;
    this.#isMuted = isMuted;
    this.#draft = undefined; // the gateway has taken back what the others saw of it
    this.#showEnabled();
    this.#setRemark(isMuted ? "" : t("composer.unmuted"));
  }

  #showEnabled() {
    const enabled = this.#isEnabled && !this.#isMuted;
    this.#fields.disabled = !enabled;
    this.#text.placeholder = t(enabled ? "composer.placeholder" : this.#isEnabled ? "people.muted" : "status.closed");
    for (const chip of this.#sentences.querySelectorAll("button")) chip.disabled = !enabled;
    if (enabled) return;
    this.#microphone.abort();
    this.#unfinished = NOTHING; // where it was kept it stays, as a page that is left comes by here, too
    for (const speech of this.#speeches.values()) speech.stop();
    this.#speeches.clear();
    clearTimeout(this.#pauseTimer);
  }

  focus() {
    this.#text.focus();
  }

  /**
   * Let the user correct what they have said; what they were typing comes back after that.
   * @param {{participant: string, utterance: string, text: string, lang: string}} said `participant`: as whom.
   */
  correct({ participant, utterance, text, lang }) {
    this.#endCorrection();
    clearTimeout(this.#pauseTimer);
    this.#cancelDraftUnless("");
    const before = { text: this.#text.value, lang: this.lang };
    this.#write(text, lang);
    this.#correction = { replaces: segmentOf(utterance), participant, said: text, saidIn: this.lang, ...before };
    this.#correcting.replaceChildren(
      t("composer.correcting"),
      " ",
      button("quiet", t("composer.keep"), "keep", () => {
        this.#endCorrection();
        this.focus();
      }),
    );
    this.#correcting.hidden = false;
    this.focus();
  }

  #endCorrection() {
    const before = this.#correction;
    if (before === undefined) return;
    this.#correction = undefined;
    this.#correcting.hidden = true;
    this.#write(before.text, before.lang);
  }

  /**
   * A correction was refused: what was typed is an ordinary text now, before what is being typed.
   * @param {{text: string, lang: string}} refused
   */
  #putBack({ text, lang }) {
    const join = (/** @type {string} */ typed) => (typed ? `${text}\n${typed}` : text);
    if (this.#correction) {
      this.#correction.text = join(this.#correction.text);
      return this.#keepDraft();
    }
    // A detected language is detected again; what else is typed stays in its language.
    if (!this.#typed && this.lang !== DETECT) this.lang = lang;
    this.#text.value = join(this.#text.value);
    this.#keepDraft();
    this.#showLength();
  }

  /**
   * Put a text into the field, in a language that is not spoken from now on.
   * @param {string} text
   * @param {string} lang One that is not offered changes nothing.
   */
  #write(text, lang) {
    if ([...this.#select.options].some(({ value }) => value === lang)) this.#select.value = lang;
    this.#text.lang = this.lang === DETECT ? "" : this.lang;
    this.#text.value = text;
    this.#remark = NO_REMARK;
    this.#showLength();
  }

  /** Speak the selected language from now on. */
  #speak() {
    const { lang } = this;
    if (lang === this.#spoken) return;
    this.#spoken = lang;
    if (lang !== DETECT) this.#usual = lang;
    // A recogniser has to be told one.
    this.#microphone.lang = this.#usual || (this.#languages[0]?.tag ?? "en");
    this.#text.lang = lang === DETECT ? "" : lang;
    this.#sentences.lang = this.#microphone.lang;
    this.#showSentences();
    this.#onLang?.(this.usual);
    this.#setRemark("");
    // The draft was begun in another language.
    this.#cancelDraftUnless("");
    this.#onDraft();
  }

  // ---------------------------------------------------------------- typing

  get #typed() {
    return this.#text.value.trim();
  }

  #isTooLong() {
    return [...this.#typed].length > (this.#limits?.text_chars ?? Infinity);
  }

  #showLength() {
    const most = this.#limits?.text_chars ?? Infinity;
    const { length } = [...this.#typed];
    this.#count.textContent = length > most * 0.8 ? t("composer.length", { length, most }) : "";
    this.#text.ariaInvalid = String(length > most);
    this.#send.disabled = length > most;
    this.#showNote();
    if (CSS.supports("field-sizing", "content")) return;
    this.#text.style.setProperty("height", "auto");
    this.#text.style.setProperty("height", `${this.#text.scrollHeight}px`);
  }

  #showNote() {
    const isTooLong = this.#isTooLong();
    const text = this.#isMuted
      ? t("composer.muted")
      : isTooLong
        ? t("composer.too_long")
        : this.#remark.text || this.#heard;
    // Setting the same text again would make a screen reader read it again.
    setIfChanged(this.#note, "textContent", text);
    const isUnheard = this.#hearing === "retrying" && !this.#remark.text;
    this.#note.classList.toggle("bad", this.#isMuted || isTooLong || this.#remark.isBad || isUnheard);
    const { instead } = this.#remark;
    const isOffered = !isTooLong && !this.#isMuted && [...this.#select.options].some(({ value }) => value === instead);
    setIfChanged(this.#switch, "hidden", !isOffered);
    const language = this.#nameOf(instead);
    this.#switch.textContent = instead === DETECT ? t("composer.detect") : t("composer.speak", { language });
  }

  /** What the microphone does. */
  get #heard() {
    if (this.#hearing !== "listening" || this.lang !== DETECT) return HEARING[this.#hearing];
    return t("composer.listening_for", { language: this.#nameOf(this.#microphone.lang) });
  }

  /** @param {string} tag */
  #nameOf(tag) {
    return this.#languages.find((offered) => offered.tag === tag)?.name ?? tag;
  }

  /**
   * Say so if a text does not look like the language that was chosen.
   * @param {string} text
   * @param {boolean} isSent
   */
  async #compare(text, isSent) {
    const { lang } = this;
    if (lang === DETECT) return;
    const detect = isSent && this.#client.state === "open" ? this.#detect : null;
    const other = await otherLanguage(text, lang, this.#languages, detect);
    if (other === null || lang !== this.lang || this.#remark.text) return;
    const names = { chosen: this.#nameOf(lang), language: other === "other" ? "" : other.name };
    const remark = t(other === "other" ? "composer.not_chosen" : "composer.looks_like", names);
    this.#setRemark(remark, true, other === "other" ? DETECT : other.tag, isSent);
  }

  /**
   * @param {string} text
   * @param {boolean} [isBad]
   * @param {string} [instead] A language to speak instead.
   * @param {boolean} [stays]
   */
  #setRemark(text, isBad = false, instead = "", stays = false) {
    this.#remark = { text, isBad, instead, stays };
    this.#showNote();
  }

  /** @param {Event} event */
  #onInput(event) {
    this.#keepDraft();
    if (!this.#remark.stays) this.#remark = NO_REMARK;
    this.#showLength();
    clearTimeout(this.#pauseTimer);
    // While an input method composes, the text is not meant yet.
    if (event instanceof InputEvent && event.isComposing) return;
    if (this.#text.value === "" || WORD_END.test(this.#text.value)) this.#onDraft();
    else this.#pauseTimer = setTimeout(() => this.#onDraft(), PAUSE_MS);
  }

  /** For when the page is loaded again: what was typed, then what was heard, and not sent. */
  #keepDraft() {
    const typed = this.#correction?.text ?? this.#text.value;
    const heard = this.#unfinished.text.slice(this.#unfinished.accepted).trim();
    saveDraft(this.#client.meeting, [typed, heard].filter(Boolean).join("\n"));
  }

  #onDraft() {
    clearTimeout(this.#pauseTimer);
    if (this.#correction || this.#isTooLong() || !this.lang) return;
    const text = this.#typed;
    this.#cancelDraftUnless(text);
    if (!text) return;
    void this.#compare(text, false);
    if (!this.#sharing.input.checked || text === this.#draft?.text) return;
    this.#draft = { id: this.#client.partial({ text, lang: this.lang, id: this.#draft?.id }), text };
  }

  /**
   * Cancel the draft, unless a text is a revision of it.
   * @param {string} text
   */
  #cancelDraftUnless(text) {
    const draft = this.#draft;
    if (draft === undefined || (text && isRevision(draft.text, text))) return;
    this.#draft = undefined;
    this.#client.cancel(draft.id);
  }

  #clear() {
    clearTimeout(this.#pauseTimer);
    this.#text.value = "";
    this.#keepDraft();
    this.#showLength();
  }

  /** @param {Event} event */
  #onSubmit(event) {
    event.preventDefault();
    if (this.#isTooLong() || !this.lang) return; // Enter submits anyway; the note says what is wrong
    const text = this.#typed;
    if (text && this.#correction) {
      const { lang } = this;
      const { replaces, participant, said, saidIn } = this.#correction;
      if (text !== said || lang !== saidIn) {
        this.#corrections.set(this.#client.final({ text, lang, replaces, participant }), { text, lang });
      }
      this.#endCorrection();
    } else if (text) {
      this.#cancelDraftUnless(text);
      const id = this.#draft?.id;
      this.#draft = undefined;
      this.#client.final({ text, lang: this.lang, id });
      this.#clear();
      this.#setRemark("");
      void this.#compare(text, true);
    } else {
      this.#setRemark(t(this.#sentences.hidden ? "composer.first" : "composer.first_or_pick"));
    }
    this.focus();
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    // While an input method composes, Enter accepts a candidate and Escape dismisses it. In Safari that Enter comes
    // after the composition has ended, with key code 229.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.element.requestSubmit();
    } else if (event.key === "Escape" && this.#correction) {
      event.stopPropagation();
      this.#endCorrection();
    } else if (event.key === "Escape" && this.#text.value) {
      event.stopPropagation();
      this.#clear();
      this.#onDraft();
    }
  }

  // ---------------------------------------------------------------- sample sentences

  #showSentences() {
    const { lang } = this.#sentences;
    const chips = (this.#hasSentences ? sampleSentences(lang) : []).map((sentence) => {
      const chip = element("button", "chip", sentence);
      chip.type = "button";
      chip.disabled = !this.enabled;
      chip.addEventListener("click", () => this.#saySample(sentence, lang));
      return chip;
    });
    this.#sentences.replaceChildren(...chips);
    this.#sentences.dir = textDirection(lang);
    this.#sentences.scrollLeft = 0;
    this.#sentences.hidden = this.#sentencesLabel.hidden = chips.length === 0;
  }

  /**
   * Say a sample sentence word by word.
   * @param {string} sentence
   * @param {string} lang
   */
  #saySample(sentence, lang) {
    this.#setRemark("");
    // No reader would see it grow: it is among what waits to be sent at once.
    if (this.#client.state !== "open") return void this.#client.final({ text: sentence, lang });
    /** @type {string | undefined} */
    let id;
    const speech = new SimulatedSpeech(sentence, lang, {
      onWords: (text) => {
        id = this.#client.partial({ text, lang, id });
        this.#speeches.set(id, speech);
      },
      onEnd: () => {
        this.#speeches.delete(this.#client.final({ text: sentence, lang, id }));
      },
    });
    speech.start();
  }

  // ---------------------------------------------------------------- microphone, and events of the client

  /**
   * @param {Hearing} hearing
   * @param {string} problem
   */
  #onHearing(hearing, problem) {
    const isOff = hearing === "off";
    const wasOn = this.#hearing !== "off";
    this.#hearing = hearing;
    this.#mic.ariaPressed = String(!isOff);
    this.#mic.dataset["hearing"] = hearing;
    const isFirstUse = hearing === "listening" && loadPreference("microphone") === null;
    if (isFirstUse) savePreference("microphone", "told");
    const text = problem || (isFirstUse ? t("composer.privacy") : isOff && wasOn ? t("composer.off") : "");
    this.#setRemark(text, problem !== "");
  }

  /** A part of what is being said was accepted, and is not said again. @param {Caption} caption */
  #onSegment({ participant, utterance, text }) {
    const { id, text: said, accepted } = this.#unfinished;
    if (participant !== this.#client.participant || utterance.replace(/~\d+$/, "") !== id) return;
    const at = said.indexOf(text, accepted);
    if (at >= 0) this.#unfinished.accepted = at + text.length;
    this.#keepDraft();
  }

  /** What was taken back is not corrected: that would be one more line. @param {UtteranceReplaced} replaced */
  #onReplaced({ participant, utterances, by }) {
    if (by !== null || participant !== this.#correction?.participant) return;
    if (utterances.map(segmentOf).includes(this.#correction.replaces)) this.#endCorrection();
  }

  /** @param {import("../../client/events.js").ClientEvent} event */
  #onEvent(event) {
    if (event.type === "session.started" || event.type === "session.muted") this.#muted = event.muted === true;
    if (event.type === "utterance.accepted" && event.lang !== undefined) this.#onDetected(event.lang);
    if (event.type === "utterance.replaced") this.#onReplaced(event);
    if (event.type === "caption" && event.final) this.#onSegment(event);
    if (event.type === "utterance.accepted") this.#corrections.delete(event.id);
    if (event.type !== "utterance.refused") return;
    const correction = this.#corrections.get(event.id);
    if (correction && this.#corrections.delete(event.id)) this.#putBack(correction);
    this.#speeches.get(event.id)?.stop();
    this.#speeches.delete(event.id);
    // A refused draft needs no message: its text is still in the field.
    if (event.id === this.#draft?.id) this.#draft = undefined;
    else if (event.code === "muted") this.#onProblem(t("composer.muted"));
    else if (event.code === "unknown_utterance") this.#onProblem(t("composer.gone"));
    else if (event.code !== "cancelled") this.#onProblem(event.message);
  }

  /** The gateway has detected the language of something that was said. @param {string} lang */
  #onDetected(lang) {
    const isKnown = lang !== UNDETERMINED;
    this.#setRemark(
      t(isKnown ? "composer.detected" : "composer.undetected", { language: this.#nameOf(lang) }),
      !isKnown,
    );
  }
}
