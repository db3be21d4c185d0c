// Simulated speakers, each in a private meeting, as load for the engine. Must not know elements.

import { GatewayClient } from "../../client/gateway_client.js";
import { t } from "../words/words.js";
import { sampleSentences } from "./sample_sentences.js";
import { SimulatedSpeech } from "./simulated_speech.js";

/** @import {ClientEvent} from "../../client/events.js" */
/** @import {Language} from "../ui/languages.js" */

/** A limit for the browser's sake: a gateway takes more. */
export const MAX_SPEAKERS = 50;
// The time between two that join, from and to. They must not speak in step.
const JOIN_MS = [150, 450];
// The pause after a sentence, from and to.
const PAUSE_MS = [2_000, 6_000];
// A speaker with so many utterances that are not translated yet says nothing new.
const MAX_UNFINISHED = 4;
// For languages without sample sentences.
const NEUTRAL = ["10:30, 14:00, 16:45?", "OK, OK.", "1, 2, 3, 4, 5."];

/** @param {readonly number[]} range */
const randomBetween = ([least = 0, most = 0]) => least + Math.random() * (most - least);

/** @template T @param {readonly T[]} values */
const randomOf = (values) => values[Math.floor(Math.random() * values.length)];

const isPageHidden = () => document.visibilityState === "hidden";

/** A speaker who says a sentence now and then. */
class Speaker {
  #client;
  #lang;
  #unfinished = 0;
  #isSpeaking = false;
  #isLeaving = false;
  /** @type {SimulatedSpeech | undefined} */
  #speech;
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {string} streamUrl
   * @param {{name: string, speaks: string, reads: string[]}} options
   * @param {(event: ClientEvent) => void} onEvent
   * @param {(reason: string) => void} onLost
   */
  constructor(streamUrl, options, onEvent, onLost) {
    this.#lang = options.speaks;
    this.#client = new GatewayClient(streamUrl, options);
    // If it reads only what it speaks, nothing comes after `utterance.accepted`.
    const ends = options.reads.some((tag) => tag !== options.speaks)
      ? /^(translation\.(final|failed)|utterance\.refused)$/
      : /^utterance\.(accepted|refused)$/;
    let lastError = "";
    this.#client.listen((event) => {
      onEvent(event);
      if (event.type === "error") lastError = event.message;
      if (event.type === "session.started" && event.recovered !== true) this.#unfinished = 0;
      if (ends.test(event.type)) this.#unfinished -= 1;
      if (event.type !== "state") return;
      if (event.state === "open" && !this.#isSpeaking) this.#say();
      if (event.state !== "closed" || this.#isLeaving) return;
      this.leave();
      onLost(event.reason || lastError || t("engine.let_go"));
    });
    this.#client.connect();
  }

  /** @param {boolean} [now] Whether not to wait for answers. */
  leave(now = false) {
    this.#isLeaving = true;
    clearTimeout(this.#timer);
    this.#speech?.stop();
    this.#client.close();
    if (now) this.#client.close();
  }

  #say() {
    this.#isSpeaking = true;
    const sentences = sampleSentences(this.#lang);
    const text = randomOf(sentences.length > 0 ? sentences : NEUTRAL) ?? "";
    const lang = this.#lang;
    if (this.#unfinished >= MAX_UNFINISHED || isPageHidden()) return this.#pause();
    this.#unfinished += 1;
    /** @type {string | undefined} */
    let id;
    this.#speech = new SimulatedSpeech(text, lang, {
      onWords: (words) => {
        id = this.#client.partial({ text: words, lang, id });
      },
      onEnd: () => {
        this.#client.final({ text, lang, id });
        this.#pause();
      },
    });
    this.#speech.start();
  }

  #pause() {
    this.#timer = setTimeout(() => this.#say(), randomBetween(PAUSE_MS));
  }
}

export class SimulatedSpeakers {
  /** The gateway's languages. @type {readonly Language[]} */
  languages;
  /** Why no more speakers could join; empty if all could. */
  problem = "";
  #streamUrl;
  #onEvent;
  /** @type {Set<Speaker>} */
  #speakers = new Set();
  #toJoin = 0;
  #named = 0;
  /** @type {number | undefined} */
  #joinTimer;

  /**
   * @param {{streamUrl: string, languages?: readonly Language[],
   *   onEvent: (source: string, event: ClientEvent) => void}} options
   */
  constructor({ streamUrl, languages = [], onEvent }) {
    this.languages = languages;
    this.#streamUrl = streamUrl;
    this.#onEvent = onEvent;
    document.addEventListener("visibilitychange", () => this.#join());
  }

  /** Those who have joined, and those who are about to. */
  get count() {
    return this.#speakers.size + this.#toJoin;
  }

  /** @param {number} more As far as the limit allows. */
  add(more) {
    this.problem = "";
    this.#toJoin = Math.min(this.#toJoin + more, MAX_SPEAKERS - this.#speakers.size);
    this.#join();
  }

  /**
   * They fall silent, and leave when what was accepted is translated.
   * @param {boolean} [now] Whether they leave at once.
   */
  stop(now = false) {
    this.problem = "";
    this.#toJoin = 0;
    for (const speaker of this.#speakers) speaker.leave(now);
    this.#speakers.clear();
  }

  #join() {
    clearTimeout(this.#joinTimer);
    if (this.#toJoin === 0 || isPageHidden()) return;
    const tags = this.languages.map(({ tag }) => tag);
    const known = tags.filter((tag) => sampleSentences(tag).length > 0);
    const speaks = randomOf(known.length > 0 ? known : tags);
    if (speaks === undefined) return this.#stopJoining(t("engine.no_languages"));
    const reads = [randomOf(tags.filter((tag) => tag !== speaks)) ?? speaks];
    this.#toJoin -= 1;
    this.#named += 1;
    const name = t("engine.speaker", { number: this.#named });
    const speaker = new Speaker(
      this.#streamUrl,
      { name, speaks, reads },
      (event) => {
        this.#onEvent(name, event);
        // The tracker has to know what it reads: tell it as an update.
        const update = { reads, speaks, stability: /** @type {const} */ ("live"), originals: false };
        if (event.type === "session.started") this.#onEvent(name, { type: "session.updated", ...update });
      },
      (reason) => {
        this.#speakers.delete(speaker);
        this.#stopJoining(reason);
      },
    );
    this.#speakers.add(speaker);
    this.#joinTimer = setTimeout(() => this.#join(), randomBetween(JOIN_MS));
  }

  /** @param {string} reason */
  #stopJoining(reason) {
    this.#toJoin = 0;
    this.problem = reason;
  }
}
