// The wire protocol v1 in the browser: one session that survives its connections. Knows which message is due when;
// must not know the page. Everything it has to say goes to the listeners as a `ClientEvent`.
//
//   const client = new GatewayClient("wss://…/v1/stream", { reads: ["ja", "es"] });
//   client.listen((event) => { if (event.type === "translation.final") show(event.lang, event.text); });
//   client.connect();
//   client.final({ text: "Let's move the launch to Friday.", lang: "en" });

import { Connection, jittered } from "./connection.js";
import { Reads, equal } from "./reads.js";
import { Utterance } from "./utterance.js";

/** @typedef {import("./messages.js").Limits} Limits */
/** @typedef {import("./messages.js").SessionStarted} SessionStarted */
/** @typedef {import("./messages.js").SessionUpdated} SessionUpdated */
/** @typedef {import("./messages.js").UtteranceAccepted} UtteranceAccepted */
/** @typedef {import("./messages.js").TranslationFinal} TranslationFinal */
/** @typedef {import("./messages.js").TranslationFailed} TranslationFailed */
/** @typedef {import("./messages.js").GatewayError} GatewayError */
/** @typedef {import("./messages.js").ServerMessage} ServerMessage */

/**
 * What a session starts with. Languages are tags as the gateway lists them.
 * @typedef {object} SessionOptions
 * @property {string[]} [reads] Languages to translate into.
 * @property {string | null} [speaks] The language of utterances that name none.
 * @property {string} [name] Who speaks.
 */

/**
 * - `connecting`: the socket is being opened, or `session.start` is on its way
 * - `loading`: connected, and the engine still loads; `session.start` is sent again until it is taken
 * - `open`: there is a session; after `close`, until the gateway has finished it
 * - `reconnecting`: the connection is gone, a new one will be tried
 * - `closed`: it will not be tried again (until `connect` is called)
 * @typedef {"connecting" | "loading" | "open" | "reconnecting" | "closed"} ConnectionState
 */

/**
 * What a listener hears: the gateway's messages, without those that repeat what it heard before, and
 * - `state`: the connection's state changed; `reason` is a sentence, or empty
 * - `utterance.restarted`: the connection was lost and the utterance is translated anew; forget unfinished text
 * - `utterance.refused`: the gateway will not take the utterance; nothing more will come for it
 * - `utterance.settled`: every language of the utterance is final or failed
 * @typedef {{type: "state", state: ConnectionState, reason: string}} StateChanged
 * @typedef {{type: "utterance.restarted", id: string}} UtteranceRestarted
 * @typedef {{type: "utterance.refused", id: string, code: string, message: string}} UtteranceRefused
 * @typedef {{type: "utterance.settled", id: string}} UtteranceSettled
 * @typedef {ServerMessage | StateChanged | UtteranceRestarted | UtteranceRefused | UtteranceSettled} ClientEvent
 */

const RETRY_MS = 1_000;

/**
 * How long to wait before sending again what was refused.
 * @param {GatewayError} error
 * @param {number} refusals In a row.
 */
function delayMs(error, refusals) {
  return jittered((error.retry_after_ms ?? RETRY_MS) * Math.min(2 ** (refusals - 1), 8));
}

export class GatewayClient {
  #connection;
  #options;
  /** @type {Set<(event: ClientEvent) => void>} */
  #listeners = new Set();
  /** @type {ConnectionState} */
  #state = "closed";
  #reason = "";
  /** @type {Limits | null} */
  #limits = null;
  #reads = new Reads();
  /** What is answered without naming an utterance, in the order of the answers. @type {("ping" | "update")[]} */
  #unanswered = [];
  /** @type {Map<string, Utterance>} Those that are not settled, in the order in which they were said. */
  #utterances = new Map();
  /** The newest error of this connection: what a close that follows is about. @type {GatewayError | null} */
  #lastError = null;
  #draining = false;
  /** @type {number | undefined} */
  #starting;

  /**
   * @param {string} url Of the stream: `ws://` or `wss://`.
   * @param {SessionOptions} [options]
   */
  constructor(url, options = {}) {
    this.#options = { ...options, reads: [...(options.reads ?? [])] };
    this.#connection = new Connection(url, {
      opening: () => this.#onOpening(),
      opened: () => this.#sendStart(),
      received: (message) => this.#onMessage(message),
      probe: () => this.#ping(),
      lost: (mayReturn) => this.#onLost(mayReturn),
    });
  }

  get state() {
    return this.#state;
  }

  /** What the gateway accepts; null before the first session started. */
  get limits() {
    return this.#limits;
  }

  /**
   * @param {(event: ClientEvent) => void} listener
   * @returns {() => void} Ends it.
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Connect, or stop waiting and try again now. Does nothing until the connection that there is has ended. */
  connect() {
    this.#connection.open();
  }

  /**
   * End the session: the gateway finishes what it accepted and closes. What it did not accept is forgotten; should
   * the connection be lost meanwhile, what is not finished is refused.
   */
  close() {
    for (const utterance of this.#utterances.values()) {
      if (!utterance.accepted) this.#forget(utterance);
    }
    if (this.#state !== "open") this.#connection.close();
    else if (!this.#connection.leaving) {
      this.#connection.leave();
      this.#connection.send({ type: "session.end" });
    }
  }

  /**
   * Languages to translate into, from the next utterance on.
   * @param {readonly string[]} reads
   */
  read(reads) {
    this.#options.reads = [...reads];
  }

  /**
   * Say something. It is sent as soon as there is a session that reads its languages, and again until a gateway has
   * accepted it.
   * @param {{text: string, lang: string}} said
   * @returns {string} The utterance's id.
   */
  final({ text, lang }) {
    const utterance = new Utterance(text, lang, this.#options.reads.filter((tag) => tag !== lang));
    this.#utterances.set(utterance.id, utterance);
    this.#flush();
    return utterance.id;
  }

  /**
   * Stop translating an utterance. What is missing arrives as `translation.failed`, or at once as
   * `utterance.refused` when the gateway was never told of it.
   * @param {string} id
   */
  cancel(id) {
    const utterance = this.#utterances.get(id);
    if (utterance === undefined || utterance.cancelled) return;
    utterance.cancelled = true;
    if (utterance.sent && this.#state === "open") this.#connection.send({ type: "utterance.cancel", id });
    else this.#refuseCancelled(utterance);
  }

  // ---------------------------------------------------------------- sending

  #sendStart() {
    this.#reads.ask(this.#options.reads);
    this.#connection.send({ type: "session.start", ...this.#options });
  }

  /** Send what is due, as far as the session reads its languages; the rest waits for `session.updated`. */
  #flush() {
    if (this.#state !== "open" || this.#draining || this.#connection.leaving) return;
    for (const utterance of this.#utterances.values()) {
      if (!utterance.due) continue;
      if (!this.#reads.areInForce(utterance.reads)) return this.#sendUpdate(utterance.reads);
      this.#sendFinal(utterance);
    }
  }

  /** @param {readonly string[]} reads */
  #sendUpdate(reads) {
    if (!this.#reads.mayAsk) return;
    this.#reads.ask(reads);
    this.#unanswered.push("update");
    this.#connection.send({ type: "session.update", reads });
  }

  /** @param {Utterance} utterance */
  #sendFinal(utterance) {
    const { id, text, lang } = utterance;
    const message = { type: "utterance.final", id, rev: 1, text, lang };
    const bytes = new TextEncoder().encode(JSON.stringify(message)).length;
    utterance.sent = true;
    if (this.#limits !== null && bytes > this.#limits.message_bytes) {
      // Not before `final` has returned the id that this is about.
      queueMicrotask(() => this.#refuse(utterance, "message_too_large", "The text is too long to be sent."));
      return;
    }
    this.#connection.send(message);
  }

  #ping() {
    this.#unanswered.push("ping");
    this.#connection.send({ type: "ping", nonce: "" });
  }

  // ---------------------------------------------------------------- receiving

  /** @param {ServerMessage} message */
  #onMessage(message) {
    switch (message.type) {
      case "session.started":
        return this.#onStarted(message);
      case "session.updated":
        return this.#onUpdated(message);
      case "session.draining":
        this.#draining = true;
        return this.#emit(message);
      case "utterance.accepted":
        return this.#onAccepted(message);
      case "translation.delta":
        if (this.#utterances.get(message.utterance)?.awaits(message.lang)) this.#emit(message);
        return;
      case "translation.final":
      case "translation.failed":
        return this.#onTranslated(message);
      case "error":
        return this.#onError(message);
      case "pong":
        this.#answered("ping");
        return this.#emit(message);
      default:
        // Captions, and whatever a newer gateway may have to say.
        return this.#emit(message);
    }
  }

  /** @param {SessionStarted} message */
  #onStarted(message) {
    this.#limits = message.limits;
    this.#reads.take();
    this.#connection.proven();
    this.#emit(message);
    for (const utterance of this.#utterances.values()) {
      // A session that is not the old one recovered knows nothing of what the old one accepted.
      if (utterance.accepted && message.recovered !== true) {
        utterance.accepted = utterance.sent = false;
        this.#emit({ type: "utterance.restarted", id: utterance.id });
      }
    }
    this.#enter("open");
    this.#flush();
  }

  /** @param {SessionUpdated} message */
  #onUpdated(message) {
    this.#answered("update");
    this.#reads.take();
    this.#emit(message);
    this.#flush();
  }

  /** @param {UtteranceAccepted} message */
  #onAccepted(message) {
    const utterance = this.#utterances.get(message.id);
    if (utterance === undefined) return;
    utterance.accepted = true;
    utterance.refusals = 0;
    this.#emit(message);
    this.#settleIfDone(utterance);
  }

  /** @param {TranslationFinal | TranslationFailed} message */
  #onTranslated(message) {
    const utterance = this.#utterances.get(message.utterance);
    if (!utterance?.awaits(message.lang)) return;
    utterance.settle(message.lang);
    this.#emit(message);
    this.#settleIfDone(utterance);
  }

  /** @param {GatewayError} error */
  #onError(error) {
    this.#lastError = error;
    const utterance = error.utterance ? this.#utterances.get(error.utterance) : undefined;
    if (utterance !== undefined) return this.#onRefused(utterance, error);
    if (this.#state === "connecting" || this.#state === "loading") return this.#onStartRefused(error);
    // A cancel that crossed the last translation on its way is no news to anybody.
    if (error.code === "unknown_utterance") return;
    // An option left out is a remark on what was taken: it answers nothing.
    const answers = !error.utterance && error.code !== "unsupported_option";
    if (answers && this.#unanswered.shift() === "update") this.#onUpdateRefused(error);
    else this.#emit(error);
  }

  /** @param {GatewayError} error */
  #onUpdateRefused(error) {
    const reads = this.#reads.refuse();
    if (error.retryable) return this.#reads.postpone(delayMs(error, this.#reads.refusals), () => this.#flush());
    for (const utterance of this.#utterances.values()) {
      if (utterance.due && equal(utterance.reads, reads)) this.#refuse(utterance, error.code, error.message);
    }
    this.#flush();
  }

  /**
   * @param {Utterance} utterance
   * @param {GatewayError} error
   */
  #onRefused(utterance, error) {
    if (utterance.accepted) {
      // About a cancel, then: the utterance itself was taken.
      utterance.cancelled = false;
      if (error.code !== "unknown_utterance") this.#emit(error);
    } else if (utterance.cancelled) {
      this.#refuseCancelled(utterance);
    } else if (error.retryable) {
      utterance.refusals += 1;
      utterance.postpone(delayMs(error, utterance.refusals), () => this.#flush());
    } else {
      this.#refuse(utterance, error.code, error.message);
    }
  }

  /** @param {GatewayError} error */
  #onStartRefused(error) {
    if (!error.retryable) {
      this.#emit(error);
      this.#connection.close();
      return;
    }
    // A draining gateway closes right after this; then there is nothing left to retry on.
    if (error.code === "draining") return;
    this.#enter("loading", error.message);
    clearTimeout(this.#starting);
    this.#starting = setTimeout(() => this.#sendStart(), jittered(error.retry_after_ms ?? RETRY_MS));
  }

  // ---------------------------------------------------------------- the connection

  #onOpening() {
    this.#lastError = null;
    this.#draining = false;
    this.#enter("connecting");
  }

  /** @param {boolean} mayReturn */
  #onLost(mayReturn) {
    clearTimeout(this.#starting);
    this.#reads.forget();
    this.#unanswered = [];
    const words = this.#lastError?.message ?? "";
    for (const utterance of this.#utterances.values()) {
      utterance.hurry();
      if (utterance.cancelled) this.#refuseCancelled(utterance);
      else if (!mayReturn) this.#refuse(utterance, "closed", words || "The session has ended.");
      else if (!utterance.accepted) utterance.sent = false;
    }
    if (mayReturn) this.#connection.openLater(this.#lastError?.retry_after_ms ?? 0);
    this.#enter(mayReturn ? "reconnecting" : "closed", words);
  }

  // ---------------------------------------------------------------- what is known

  /** @param {"ping" | "update"} what Answers come in order: what was sent before it is answered too. */
  #answered(what) {
    this.#unanswered.splice(0, this.#unanswered.indexOf(what) + 1);
  }

  /** @param {Utterance} utterance */
  #settleIfDone(utterance) {
    if (!utterance.settled) return;
    this.#forget(utterance);
    this.#emit({ type: "utterance.settled", id: utterance.id });
  }

  /** @param {Utterance} utterance */
  #refuseCancelled(utterance) {
    this.#refuse(utterance, "cancelled", "The utterance was cancelled.");
  }

  /**
   * @param {Utterance} utterance
   * @param {string} code
   * @param {string} message
   */
  #refuse(utterance, code, message) {
    if (!this.#utterances.has(utterance.id)) return;
    this.#forget(utterance);
    this.#emit({ type: "utterance.refused", id: utterance.id, code, message });
  }

  /** @param {Utterance} utterance */
  #forget(utterance) {
    utterance.hurry();
    this.#utterances.delete(utterance.id);
  }

  /**
   * @param {ConnectionState} state
   * @param {string} [reason]
   */
  #enter(state, reason = "") {
    if (this.#state === state && this.#reason === reason) return;
    this.#state = state;
    this.#reason = reason;
    this.#emit({ type: "state", state, reason });
  }

  /** @param {ClientEvent} event */
  #emit(event) {
    for (const listener of this.#listeners) listener(event);
  }
}
