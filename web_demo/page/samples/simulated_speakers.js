// Simulated speakers, each in a private meeting of its own: the load of many people who talk at once. Knows clients
// and sentences; must not know elements.

import { GatewayClient } from "../../client/gateway_client.js";
import { Playback } from "./simulated_speech.js";
import { sentencesIn } from "./sample_sentences.js";

/** @import {ClientEvent} from "../../client/events.js" */
/** @import {Language} from "../ui/languages.js" */

/** A gateway takes more; a browser that plays all of them need not. */
export const MOST_SPEAKERS = 50;
// One after another, so that they do not speak in step.
const JOIN_MS = [150, 450];
const PAUSE_MS = [2_000, 6_000];
// Whoever has so much unfinished waits, as people would.
const MOST_UNFINISHED = 4;
// For languages of which no sentence is known.
const NEUTRAL = ["10:30, 14:00, 16:45?", "OK, OK.", "1, 2, 3, 4, 5."];

/** @param {readonly number[]} range */
const between = ([least = 0, most = 0]) => least + Math.random() * (most - least);

/** @template T @param {readonly T[]} choice */
const oneOf = (choice) => choice[Math.floor(Math.random() * choice.length)];

const hidden = () => document.visibilityState === "hidden";

/** Somebody who says a sentence now and then. */
class Speaker {
  #client;
  #lang;
  #unfinished = 0;
  #speaking = false;
  #leaving = false;
  /** @type {Playback | undefined} */
  #playback;
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {string} streamUrl
   * @param {{name: string, speaks: string, reads: string[]}} options
   * @param {(event: ClientEvent) => void} hear
   * @param {(words: string) => void} lost
   */
  constructor(streamUrl, options, hear, lost) {
    this.#lang = options.speaks;
    this.#client = new GatewayClient(streamUrl, options);
    // Of what nobody reads in another language nothing comes after it is accepted.
    const ends = options.reads.some((tag) => tag !== options.speaks)
      ? /^(translation\.(final|failed)|utterance\.refused)$/
      : /^utterance\.(accepted|refused)$/;
    let words = "";
    this.#client.listen((event) => {
      hear(event);
      if (event.type === "error") words = event.message;
      if (event.type === "session.started" && event.recovered !== true) this.#unfinished = 0;
      if (ends.test(event.type)) this.#unfinished -= 1;
      if (event.type !== "state") return;
      if (event.state === "open" && !this.#speaking) this.#say();
      if (event.state !== "closed" || this.#leaving) return;
      this.leave();
      lost(event.reason || words || "The gateway let a simulated speaker go.");
    });
    this.#client.connect();
  }

  /** @param {boolean} [now] Whether there is no time to wait for answers. */
  leave(now = false) {
    this.#leaving = true;
    clearTimeout(this.#timer);
    this.#playback?.stop();
    this.#client.close();
    if (now) this.#client.close();
  }

  #say() {
    this.#speaking = true;
    const known = sentencesIn(this.#lang);
    const text = oneOf(known.length > 0 ? known : NEUTRAL) ?? "";
    const lang = this.#lang;
    if (this.#unfinished >= MOST_UNFINISHED || hidden()) return this.#pause();
    this.#unfinished += 1;
    /** @type {string | undefined} */
    let id;
    this.#playback = new Playback(text, lang, {
      heard: (words) => {
        id = this.#client.partial({ text: words, lang, id });
      },
      over: () => {
        this.#client.final({ text, lang, id });
        this.#pause();
      },
    });
    this.#playback.start();
  }

  #pause() {
    this.#timer = setTimeout(() => this.#say(), between(PAUSE_MS));
  }
}

export class LoadSpeakers {
  /** Those that are offered; may be set later. @type {readonly Language[]} */
  languages;
  /** Why nobody more can join; empty where that is not known. */
  problem = "";
  #streamUrl;
  #hear;
  /** @type {Set<Speaker>} */
  #speakers = new Set();
  #toJoin = 0;
  #named = 0;
  /** @type {number | undefined} */
  #joining;

  /**
   * @param {{streamUrl: string, languages?: readonly Language[],
   *   hear: (source: string, event: ClientEvent) => void}} options
   */
  constructor({ streamUrl, languages = [], hear }) {
    this.languages = languages;
    this.#streamUrl = streamUrl;
    this.#hear = hear;
    document.addEventListener("visibilitychange", () => this.#join());
  }

  /** Those who are there, and those who are about to come. */
  get count() {
    return this.#speakers.size + this.#toJoin;
  }

  /** @param {number} more As far as there is room for them. */
  add(more) {
    this.problem = "";
    this.#toJoin = Math.min(this.#toJoin + more, MOST_SPEAKERS - this.#speakers.size);
    this.#join();
  }

  /**
   * They say nothing more, and leave when what was accepted is translated.
   * @param {boolean} [now] Whether there is no time for that.
   */
  stop(now = false) {
    this.problem = "";
    this.#toJoin = 0;
    for (const speaker of this.#speakers) speaker.leave(now);
    this.#speakers.clear();
  }

  #join() {
    clearTimeout(this.#joining);
    if (this.#toJoin === 0 || hidden()) return;
    const tags = this.languages.map(({ tag }) => tag);
    const known = tags.filter((tag) => sentencesIn(tag).length > 0);
    const speaks = oneOf(known.length > 0 ? known : tags);
    if (speaks === undefined) return this.#stopJoining("The gateway offers no languages.");
    const reads = [oneOf(tags.filter((tag) => tag !== speaks)) ?? speaks];
    this.#toJoin -= 1;
    this.#named += 1;
    const name = `Speaker ${this.#named}`;
    const speaker = new Speaker(
      this.#streamUrl,
      { name, speaks, reads },
      (event) => {
        this.#hear(name, event);
        // What it reads is told, as if it had been asked for in mid-session.
        const asked = { reads, speaks, stability: /** @type {const} */ ("live"), originals: false };
        if (event.type === "session.started") this.#hear(name, { type: "session.updated", ...asked });
      },
      (words) => {
        this.#speakers.delete(speaker);
        this.#stopJoining(words);
      },
    );
    this.#speakers.add(speaker);
    this.#joining = setTimeout(() => this.#join(), between(JOIN_MS));
  }

  /** @param {string} words Why. */
  #stopJoining(words) {
    this.#toJoin = 0;
    this.problem = words;
  }
}
