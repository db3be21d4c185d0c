// Plays a script into a real meeting: its speakers join the meeting, talk and leave. Must not know the page.

import { GatewayClient } from "../../client/gateway_client.js";
import { t } from "../words/words.js";
import { SAMPLE_MEETING } from "./sample_meeting_script.js";

/** @typedef {import("./sample_meeting_script.js").Script} Script */
/** @typedef {{at: number, speaker: number, utterance: number, text: string, final: boolean}} Step */

/**
 * @typedef {object} Options
 * @property {string} streamUrl
 * @property {() => string} meeting The id of the meeting to join.
 * @property {(isPlaying: boolean) => void} onChange
 * @property {() => void} [onComplete] All speakers are connected. They talk next, unless it is stopped.
 * @property {(problem: string) => void} onProblem A sentence for people: why it does not play.
 * @property {Script} [script]
 * @property {number} [pauseMs] Before it starts again.
 */

const PAUSE_MS = 5_000;
// A partial that is later than this is left out: the next one is due.
const STALE_MS = 600;
// A final that is later than this delays all that follow it, so that a page that slept does not say everything at once.
const LATE_MS = 2_000;

/**
 * The script as a list of steps, with their times in ms after its beginning.
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

export class SampleMeetingPlayer {
  #options;
  #script;
  /** Speaker → client. @type {Map<number, GatewayClient>} */
  #clients = new Map();
  /** @type {Step[]} */
  #steps = [];
  #next = 0;
  /** The public ids that its speakers have or had. @type {Set<string>} */
  #participants = new Set();
  /** When this round began, by `performance.now()`. */
  #began = 0;
  /** Since when it waits for a speaker's connection; null while they talk. @type {number | null} */
  #heldAt = null;
  /** Utterance of this round → its id. @type {Map<number, string>} */
  #ids = new Map();
  /** @type {number | undefined} */
  #timer;

  /** @param {Options} options */
  constructor(options) {
    this.#options = options;
    this.#script = options.script ?? SAMPLE_MEETING;
  }

  get isPlaying() {
    return this.#clients.size > 0;
  }

  /** Whether one of the meeting's participants is a speaker of it, or was. @param {string} participant */
  has(participant) {
    return this.#participants.has(participant);
  }

  /** Whether all of its speakers are known by their public ids. */
  get isComplete() {
    return [...this.#clients.values()].every(({ state }) => state === "open");
  }

  /** @param {readonly string[]} languages The gateway's. Speakers of other languages are left out. */
  start(languages) {
    if (this.isPlaying) return;
    const { streamUrl, onChange, onProblem } = this.#options;
    const meeting = this.#options.meeting();
    for (const [speaker, { name, lang }] of this.#script.speakers.entries()) {
      if (!languages.includes(lang)) continue;
      this.#clients.set(speaker, new GatewayClient(streamUrl, { meeting, name, speaks: lang, reads: [] }));
    }
    if (!this.isPlaying) return onProblem(t("sample.no_language"));
    this.#steps = steps(this.#script, (speaker) => this.#clients.has(speaker));
    this.#next = 0;
    this.#ids.clear();
    this.#began = this.#heldAt = performance.now();
    onChange(true);
    for (const client of this.#clients.values()) {
      client.listen((event) => {
        if (event.type === "session.started") this.#participants.add(event.participant);
        if (event.type === "state" && this.#owns(client)) this.#onConnection(event.state, event.reason);
      });
      client.connect();
    }
  }

  /**
   * The speakers leave. What was accepted is still translated.
   * @param {boolean} [now] Whether not to wait for answers.
   */
  stop(now = false) {
    if (!this.isPlaying) return;
    clearTimeout(this.#timer);
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    for (const client of clients) {
      client.close();
      if (now) client.close();
    }
    this.#options.onChange(false);
  }

  /** @param {GatewayClient} client */
  #owns(client) {
    return [...this.#clients.values()].includes(client);
  }

  /**
   * The speakers talk while all of them are connected.
   * @param {string} state
   * @param {string} reason
   */
  #onConnection(state, reason) {
    if (state === "closed") {
      this.stop();
      this.#options.onProblem(t("sample.stopped", { reason }).trim());
      return;
    }
    const now = performance.now();
    if (!this.isComplete) {
      this.#heldAt ??= now;
      clearTimeout(this.#timer);
    } else if (this.#heldAt !== null) {
      this.#began += now - this.#heldAt;
      this.#heldAt = null;
      this.#options.onComplete?.();
      if (this.isPlaying) this.#talk();
    }
  }

  /** Say everything that is due. */
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
