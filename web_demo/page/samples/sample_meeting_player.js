// Plays a scripted meeting into one that is real: its speakers join it, talk and leave. Knows the script and time;
// must not know the page.

import { GatewayClient } from "../../client/gateway_client.js";
import { SAMPLE_MEETING } from "./sample_meeting_script.js";

/**
 * What is said, as recognisers hear it.
 * - a revision: ms after the one before, characters that go, text that is appended; the last one is final
 * - an utterance: who says it, ms from the end of the one before to its beginning (negative: into it), its revisions
 * @typedef {[number, number, string]} Revision
 * @typedef {{speakers: {name: string, lang: string}[], utterances: [number, number, Revision[]][]}} Script
 */

/** @typedef {{at: number, speaker: number, utterance: number, text: string, final: boolean}} Step */

/**
 * @typedef {object} Options
 * @property {string} streamUrl
 * @property {() => string} meeting The id of the meeting they are to join.
 * @property {(playing: boolean) => void} onState
 * @property {(words: string) => void} object A sentence for people: why it does not go on.
 * @property {Script} [script]
 * @property {number} [pauseMs] Between its rounds.
 */

const PAUSE_MS = 5_000;
// So late, a partial is no news: the next one is due. So late, a final puts off whatever follows it: a page that
// slept does not say everything at once.
const STALE_MS = 600;
const LATE_MS = 2_000;

/**
 * The script as a list of what is due when, in ms after its beginning.
 * @param {Script} script
 * @param {(speaker: number) => boolean} takesPart
 * @returns {Step[]}
 */
function steps({ utterances }, takesPart) {
  /** @type {Step[]} */
  const due = [];
  let at = 0;
  for (const [utterance, [speaker, gapMs, revisions]] of utterances.entries()) {
    if (!takesPart(speaker)) continue;
    at = Math.max(at + gapMs, 0);
    let text = "";
    for (const [index, [afterMs, dropped, appended]] of revisions.entries()) {
      at += afterMs;
      text = text.slice(0, text.length - dropped) + appended;
      due.push({ at, speaker, utterance, text, final: index === revisions.length - 1 });
    }
  }
  return due.sort((one, other) => one.at - other.at);
}

export class SamplePlayer {
  #options;
  #script;
  /** Speaker → client. @type {Map<number, GatewayClient>} */
  #clients = new Map();
  /** @type {Step[]} */
  #steps = [];
  #next = 0;
  /** When this round began. */
  #began = 0;
  /** Since when they wait for somebody's connection; null while they talk. @type {number | null} */
  #heldAt = null;
  /** Of this round: utterance → its id. @type {Map<number, string>} */
  #ids = new Map();
  /** @type {number | undefined} */
  #timer;

  /** @param {Options} options */
  constructor(options) {
    this.#options = options;
    this.#script = options.script ?? SAMPLE_MEETING;
  }

  get playing() {
    return this.#clients.size > 0;
  }

  /** @param {readonly string[]} languages Tags that the gateway knows; who speaks another one is left out. */
  start(languages) {
    if (this.playing) return;
    const { streamUrl, object, onState } = this.#options;
    const meeting = this.#options.meeting();
    for (const [speaker, { name, lang }] of this.#script.speakers.entries()) {
      if (!languages.includes(lang)) continue;
      this.#clients.set(speaker, new GatewayClient(streamUrl, { meeting, name, speaks: lang, reads: [] }));
    }
    if (!this.playing) return object("This gateway knows none of the languages of the sample meeting.");
    this.#steps = steps(this.#script, (speaker) => this.#clients.has(speaker));
    this.#next = 0;
    this.#ids.clear();
    this.#began = this.#heldAt = performance.now();
    onState(true);
    for (const client of this.#clients.values()) {
      client.listen((event) => {
        if (event.type === "state" && this.#owns(client)) this.#onConnection(event.state, event.reason);
      });
      client.connect();
    }
  }

  /**
   * They leave. What was accepted is still translated.
   * @param {boolean} [now] Whether there is no time to wait for answers.
   */
  stop(now = false) {
    if (!this.playing) return;
    clearTimeout(this.#timer);
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    for (const client of clients) {
      client.close();
      if (now) client.close();
    }
    this.#options.onState(false);
  }

  /** @param {GatewayClient} client */
  #owns(client) {
    return [...this.#clients.values()].includes(client);
  }

  /**
   * They talk while everybody is there.
   * @param {string} state
   * @param {string} reason
   */
  #onConnection(state, reason) {
    if (state === "closed") {
      this.stop();
      this.#options.object(`The sample meeting has stopped. ${reason}`.trim());
      return;
    }
    const now = performance.now();
    if (![...this.#clients.values()].every((client) => client.state === "open")) {
      this.#heldAt ??= now;
      clearTimeout(this.#timer);
    } else if (this.#heldAt !== null) {
      this.#began += now - this.#heldAt;
      this.#heldAt = null;
      this.#talk();
    }
  }

  /** Say what is due. */
  #talk() {
    const now = performance.now();
    for (;;) {
      const step = this.#steps[this.#next] ?? this.#newRound();
      const lateMs = now - this.#began - step.at;
      if (lateMs < 0) {
        this.#timer = setTimeout(() => this.#talk(), -lateMs);
        return;
      }
      this.#next += 1;
      if (step.final || lateMs < STALE_MS) this.#say(step);
      if (step.final && lateMs > LATE_MS) this.#began += lateMs;
    }
  }

  #newRound() {
    const length = this.#steps.at(-1)?.at ?? 0;
    this.#began += length + (this.#options.pauseMs ?? PAUSE_MS);
    this.#next = 0;
    this.#ids.clear();
    return /** @type {Step} */ (this.#steps[0]);
  }

  /** @param {Step} step */
  #say({ speaker, utterance, text, final }) {
    const client = this.#clients.get(speaker);
    const lang = this.#script.speakers[speaker]?.lang;
    if (client === undefined || lang === undefined) return;
    const said = { text, lang, id: this.#ids.get(utterance) };
    this.#ids.set(utterance, final ? client.final(said) : client.partial(said));
  }
}
