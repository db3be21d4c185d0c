// The wire protocol v1 in the browser: one session that survives its connections. Knows which message is due when;
// must not know the page. Everything it has to say goes to the listeners as a `ClientEvent`.
//
//   const client = new GatewayClient("wss://…/v1/stream", { reads: ["ja", "es"] });
//   client.listen((event) => { if (event.type === "translation.final") show(event.lang, event.text); });
//   client.connect();
//   const id = client.partial({ text: "Let's move the", lang: "en" });
//   client.final({ id, text: "Let's move the launch to Friday.", lang: "en" });

import { Connection, jittered } from "./connection.js";
import { Setting, equal } from "./setting.js";
import { Utterance } from "./utterance.js";

/** @typedef {import("./client_events.js").ClientEvent} ClientEvent */
/** @typedef {import("./client_events.js").ConnectionState} ConnectionState */
/** @typedef {import("./client_events.js").SessionOptions} SessionOptions */
/** @typedef {import("./messages.js").Caption} Caption */
/** @typedef {import("./messages.js").Limits} Limits */
/** @typedef {import("./messages.js").SessionStarted} SessionStarted */
/** @typedef {import("./messages.js").SessionUpdated} SessionUpdated */
/** @typedef {import("./messages.js").UtteranceAccepted} UtteranceAccepted */
/** @typedef {import("./messages.js").TranslationFinal} TranslationFinal */
/** @typedef {import("./messages.js").TranslationFailed} TranslationFailed */
/** @typedef {import("./messages.js").GatewayError} GatewayError */
/** @typedef {import("./messages.js").ServerMessage} ServerMessage */
/** @typedef {import("./messages.js").Stability} Stability */

const RETRY_MS = 1_000;
// Between the partials of one utterance: more than four a second nobody reads.
const PARTIAL_MS = 250;
// Errors that name no utterance and answer nothing: a remark on an option that was left out, and news of the engine.
const UNASKED = new Set(["unsupported_option", "engine_restarting"]);

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
  #reads = new Setting(/** @type {readonly string[]} */ ([]), equal);
  #stability = new Setting(/** @type {Stability} */ ("live"));
  /** What is answered without naming an utterance, in their order. @type {("ping" | "reads" | "stability")[]} */
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
    /** @type {SessionOptions & {reads: readonly string[], stability: Stability}} */
    this.#options = { ...options, reads: [...(options.reads ?? [])], stability: options.stability ?? "live" };
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
   * What is to be shown of an utterance before it is final, from now on.
   * @param {Stability} mode
   */
  setStability(mode) {
    this.#options.stability = mode;
    this.#flush();
  }

  /**
   * What is believed to have been said so far. Of several that come fast, or while there is no connection, the newest
   * alone is sent; one that the gateway refuses is dropped without a word. An empty text is not sent.
   * @param {{text: string, lang: string, id?: string | undefined}} said `id`: of the utterance that this revises;
   *   without one it begins.
   * @returns {string} The utterance's id.
   */
  partial({ text, lang, id }) {
    const utterance = this.#known(id);
    if (!utterance.final) {
      utterance.revise(text, lang, this.#readsOf(lang));
      this.#flush();
    }
    return utterance.id;
  }

  /**
   * Say something. It is sent as soon as there is a session that reads its languages, and again until a gateway has
   * accepted it.
   * @param {{text: string, lang: string, id?: string | undefined}} said `id`: of the utterance that was begun with
   *   `partial`.
   * @returns {string} The utterance's id.
   */
  final({ text, lang, id }) {
    const utterance = this.#known(id);
    if (!utterance.final) {
      utterance.conclude(text, lang, this.#readsOf(lang));
      this.#flush();
    }
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
    this.#stability.ask(this.#options.stability);
    this.#connection.send({ type: "session.start", ...this.#options });
  }

  /** Send what is due, as far as the session reads its languages; the rest waits for `session.updated`. */
  #flush() {
    if (this.#state !== "open" || this.#draining || this.#connection.leaving) return;
    this.#updateStability(this.#options.stability);
    for (const utterance of this.#utterances.values()) {
      if (!utterance.due) continue;
      if (!this.#reads.isInForce(utterance.reads)) return this.#updateReads(utterance.reads);
      if (utterance.final) this.#sendFinal(utterance);
      else this.#sendPartial(utterance);
    }
  }

  /** @param {Stability} stability */
  #updateStability(stability) {
    if (this.#stability.isInForce(stability) || !this.#stability.mayAsk) return;
    this.#stability.ask(stability);
    this.#unanswered.push("stability");
    this.#connection.send({ type: "session.update", stability });
  }

  /** @param {readonly string[]} reads */
  #updateReads(reads) {
    if (!this.#reads.mayAsk) return;
    this.#reads.ask(reads);
    this.#unanswered.push("reads");
    this.#connection.send({ type: "session.update", reads });
  }

  /** @param {Utterance} utterance */
  #sendPartial(utterance) {
    const rev = utterance.sendPartial(PARTIAL_MS, () => this.#flush());
    this.#sendRevision("utterance.partial", utterance, rev);
  }

  /** @param {Utterance} utterance */
  #sendFinal(utterance) {
    utterance.sent = true;
    if (this.#sendRevision("utterance.final", utterance, utterance.rev)) return;
    // Not before `final` has returned the id that this is about.
    queueMicrotask(() => this.#refuse(utterance, "message_too_large", "The text is too long to be sent."));
  }

  /**
   * @param {"utterance.partial" | "utterance.final"} type
   * @param {Utterance} utterance
   * @param {number} rev
   * @returns {boolean} Whether the gateway takes messages of this size.
   */
  #sendRevision(type, { id, text, lang }, rev) {
    const message = { type, id, rev, text, lang };
    const bytes = new TextEncoder().encode(JSON.stringify(message)).length;
    if (this.#limits !== null && bytes > this.#limits.message_bytes) return false;
    this.#connection.send(message);
    return true;
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
      case "caption":
        this.#utterances.get(message.utterance)?.captioned(message.rev);
        return this.#emit(message);
      case "translation.delta":
        if (this.#utterances.get(message.utterance)?.awaits(message.lang)) this.#emit(message);
        return;
      case "translation.final":
      case "translation.failed":
        return this.#onTranslated(message);
      case "error":
        return this.#onError(message);
      case "pong":
        this.#unanswered.splice(0, this.#unanswered.indexOf("ping") + 1);
        return this.#emit(message);
      default:
        // Whatever a newer gateway may have to say.
        return this.#emit(message);
    }
  }

  /** @param {SessionStarted} message */
  #onStarted(message) {
    this.#limits = message.limits;
    this.#reads.take();
    this.#stability.take();
    this.#connection.proven();
    this.#emit(message);
    for (const utterance of this.#utterances.values()) {
      if (!utterance.begun) continue;
      // A session that is not the old one recovered knows nothing of what the old one accepted.
      if (message.recovered !== true) utterance.restart();
      this.#emit({ type: "utterance.restarted", id: utterance.id });
    }
    this.#enter("open");
    this.#flush();
  }

  /** @param {SessionUpdated} message */
  #onUpdated(message) {
    // Answers come in order: what was sent before the update is answered, too.
    const update = this.#unanswered.findIndex((what) => what !== "ping");
    const [what] = this.#unanswered.splice(0, update + 1).slice(-1);
    if (what === "reads") this.#reads.take();
    if (what === "stability") this.#stability.take();
    this.#emit(message);
    this.#flush();
  }

  /** @param {UtteranceAccepted} message */
  #onAccepted(message) {
    const utterance = this.#utterances.get(message.id);
    if (utterance === undefined || utterance.accepted) return;
    utterance.accept();
    this.#emit(message);
    this.#settleIfDone(utterance);
  }

  /** @param {TranslationFinal | TranslationFailed} message */
  #onTranslated(message) {
    const utterance = this.#utterances.get(message.utterance);
    if (!utterance?.final || !utterance.awaits(message.lang)) return;
    utterance.settle(message.lang);
    this.#emit(message);
    this.#settleIfDone(utterance);
  }

  /** @param {GatewayError} error */
  #onError(error) {
    this.#lastError = error;
    const utterance = error.utterance ? this.#utterances.get(error.utterance) : undefined;
    if (utterance !== undefined) return this.#onRefused(utterance, error);
    // About one that is done with, such as a cancel that crossed the last translation on its way: no news to anybody.
    if (error.utterance) return;
    if (this.#state === "connecting" || this.#state === "loading") return this.#onStartRefused(error);
    switch (UNASKED.has(error.code) ? undefined : this.#unanswered.shift()) {
      case "reads":
        return this.#onReadsRefused(error);
      case "stability":
        return this.#onStabilityRefused(error);
      default:
        return this.#emit(error);
    }
  }

  /** @param {GatewayError} error */
  #onReadsRefused(error) {
    const reads = this.#reads.refuse();
    if (error.retryable) return this.#reads.postpone(delayMs(error, this.#reads.refusals), () => this.#flush());
    for (const utterance of this.#utterances.values()) {
      if (!utterance.due || !equal(utterance.reads, reads)) continue;
      if (utterance.final) this.#refuse(utterance, error.code, error.message);
      else utterance.drop();
    }
    this.#flush();
  }

  /** @param {GatewayError} error */
  #onStabilityRefused(error) {
    this.#stability.refuse();
    if (error.retryable) {
      return this.#stability.postpone(delayMs(error, this.#stability.refusals), () => this.#flush());
    }
    this.#options.stability = this.#stability.inForce;
    this.#emit(error);
  }

  /**
   * @param {Utterance} utterance
   * @param {GatewayError} error
   */
  #onRefused(utterance, error) {
    if (utterance.refusePartial()) {
      // Of a partial nobody needs to hear. Should it have been the final behind it, sending that again tells: it does
      // no harm where it was taken.
      if (!utterance.final || utterance.accepted || utterance.cancelled) return;
      utterance.sent = false;
      this.#flush();
    } else if (!utterance.final) {
      return;
    } else if (utterance.accepted) {
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
    this.#stability.forget();
    this.#unanswered = [];
    const words = this.#lastError?.message ?? "";
    for (const utterance of this.#utterances.values()) {
      utterance.lose();
      if (utterance.cancelled) this.#refuseCancelled(utterance);
      else if (!mayReturn) this.#refuse(utterance, "closed", words || "The session has ended.");
    }
    if (mayReturn) this.#connection.openLater(this.#lastError?.retry_after_ms ?? 0);
    this.#enter(mayReturn ? "reconnecting" : "closed", words);
  }

  // ---------------------------------------------------------------- what is known

  /** @param {string | undefined} id Of an utterance; one that is not known begins. */
  #known(id) {
    const utterance = (id === undefined ? undefined : this.#utterances.get(id)) ?? new Utterance(id);
    this.#utterances.set(utterance.id, utterance);
    return utterance;
  }

  /** @param {string} lang What is said in it is not translated into it. */
  #readsOf(lang) {
    return this.#options.reads.filter((tag) => tag !== lang);
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
