// The wire protocol v1 in the browser: a session in a meeting that survives its connections. Knows which message is due
// when; must not know the page. What it has to say goes to the listeners. docs/browser.md explains it with an example.

import { forgetOldest } from "./evict_oldest.js";
import { Connection, jittered } from "./connection.js";
import { Outgoing } from "./utterance_queue.js";
import { Position } from "./log_position.js";
import { Setting } from "./negotiated_setting.js";

/** @import {ClientEvent, ConnectionState, SessionOptions} from "./events.js" */
/** @import {GatewayError, Limits, Participant, ServerMessage, Stability} from "./messages.js" */
/** @import {SessionStarted, SessionUpdated, UtteranceAccepted} from "./messages.js" */
/** @import {Utterance} from "./utterance.js" */
/** @typedef {{text: string, lang: string, id?: string | undefined}} Said */

const RETRY_MS = 1_000;
// Between the partials of one utterance: more than four a second nobody reads.
const PARTIAL_MS = 250;
// Cancels that may be told once more after a lost connection.
const MOST_CANCELS = 32;
const CANCELLED = { code: "cancelled", message: "The utterance was cancelled." };
const ENDED = { code: "closed", message: "The session has ended." };
const FULL = { code: "queue_full", message: "Too much waits to be sent." };
const TOO_LARGE = { code: "message_too_large", message: "The text or its id is too long to be sent." };
// Errors that answer nothing: a remark on an option that was left out, and news of the engine.
const UNASKED = new Set(["unsupported_option", "engine_restarting"]);

/**
 * How long to wait before sending again what was refused.
 * @param {GatewayError} error
 * @param {number} refusals In a row.
 */
function delayMs(error, refusals) {
  return jittered((error.retry_after_ms ?? RETRY_MS) * Math.min(2 ** (refusals - 1), 8));
}

/** @param {[string, Setting<any>][]} settings */
function asked(settings) {
  return Object.fromEntries(settings.map(([name, setting]) => [name, setting.ask()]));
}

export class GatewayClient {
  /** The others, by their public ids. @type {Map<string, Participant>} */
  participants = new Map();

  #connection;
  /** @type {Set<(event: ClientEvent) => void>} */
  #listeners = new Set();
  /** @type {ConnectionState} */
  #state = "closed";
  #reason = "";
  #meeting;
  #participant = "";
  /** @type {Limits | null} */
  #limits = null;
  #originals;
  /** What a session is told, and may be told anew. */
  #settings;
  #position = new Position();
  #outgoing = new Outgoing();
  /** Accepted utterances that are to be cancelled. @type {Map<string, true>} */
  #cancels = new Map();
  /** What was received last, if it was an error: what a close that follows is about. @type {GatewayError | null} */
  #lastError = null;
  /** A `session.update` is not answered, or was refused and waits. */
  #updating = false;
  #refusals = 0;
  #pinging = false;
  #draining = false;
  /** What is left to be said is said, then the session ends. @type {"no" | "wanted" | "sent"} */
  #ending = "no";
  #flushing = false;
  /** What is being told, and what came of it meanwhile. @type {ClientEvent[]} */
  #news = [];
  /** @type {number | undefined} */
  #starting;
  /** @type {number | undefined} */
  #again;
  /** @type {number | undefined} */
  #asking;

  /**
   * @param {string} url Of the stream: `ws://` or `wss://`.
   * @param {SessionOptions} [options]
   */
  constructor(url, options = {}) {
    const { meeting = "", name = "", speaks = null, reads = [], stability = "live", originals = false } = options;
    this.#meeting = meeting;
    this.#originals = originals;
    this.#settings = {
      reads: new Setting(/** @type {readonly string[]} */ ([...reads])),
      stability: new Setting(/** @type {Stability} */ (stability)),
      speaks: new Setting(/** @type {string | null} */ (speaks)),
      name: new Setting(/** @type {string} */ (name)),
    };
    this.#connection = new Connection(url, {
      opening: () => this.#onOpening(),
      opened: () => this.#sendStart(),
      received: (message) => this.#onMessage(message),
      probe: () => this.#probe(),
      lost: (mayReturn) => this.#onLost(mayReturn),
    });
  }

  get state() {
    return this.#state;
  }

  /** Null before the first session started. */
  get limits() {
    return this.#limits;
  }

  /** Empty before the first session started, unless it was given. */
  get meeting() {
    return this.#meeting;
  }

  /** Its own public id; empty before the first session started. */
  get participant() {
    return this.#participant;
  }

  /** How many finals the gateway has not accepted yet. */
  get unsent() {
    return this.#outgoing.waiting.length;
  }

  // What is wanted, and in force as soon as the gateway has taken it.

  get name() {
    return this.#settings.name.wanted;
  }

  get speaks() {
    return this.#settings.speaks.wanted;
  }

  get reads() {
    return this.#settings.reads.wanted;
  }

  get stability() {
    return this.#settings.stability.wanted;
  }

  /**
   * @param {(event: ClientEvent) => void} listener
   * @returns {() => void} Ends it.
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Connect, or try again now. Where there is a connection, find out whether it still is one. */
  connect() {
    this.#connection.open();
  }

  /**
   * End the session: what was said is sent, the gateway finishes what it accepted, and closes. Without a session, or
   * called once more, it waits for nothing.
   */
  close() {
    if (this.#state !== "open" || this.#ending !== "no") return this.#connection.close();
    this.#ending = "wanted";
    this.#connection.leave();
    this.#flush();
  }

  /** Languages to translate into. @param {readonly string[]} reads */
  read(reads) {
    this.#settings.reads.wanted = [...reads];
    this.#flushSoon();
  }

  /** What is shown of an utterance before it is final. @param {Stability} mode */
  setStability(mode) {
    this.#settings.stability.wanted = mode;
    this.#flushSoon();
  }

  /** What the others are told that this one speaks. @param {string | null} lang */
  speak(lang) {
    this.#settings.speaks.wanted = lang;
    this.#flushSoon();
  }

  /** Who this is, for the others. @param {string} name */
  rename(name) {
    this.#settings.name.wanted = name;
    this.#flushSoon();
  }

  /**
   * What is believed to have been said so far. Of several that come fast the newest is sent; one that the gateway
   * refuses is dropped.
   * @param {Said} said `id`: of the utterance that this revises; without one it begins.
   * @returns {string} The utterance's id.
   */
  partial({ text, lang, id }) {
    this.#flushSoon();
    return this.#outgoing.revise(text, lang, id);
  }

  /**
   * Say something. It is sent when what was said before was answered, and again until it is accepted or refused for
   * good.
   * @param {Said} said `id`: of the utterance that was begun with `partial`, or of one to be tried once more.
   * @returns {string} The utterance's id.
   */
  final({ text, lang, id }) {
    if (id !== undefined && this.#outgoing.find(id)?.final) return id;
    const utterance = this.#outgoing.conclude(text, lang, id);
    const full = this.#outgoing.find(utterance.id) === undefined;
    if (!full && this.#ending === "no") {
      this.#flushSoon();
    } else {
      // Not before the id is known that this is about.
      queueMicrotask(() => this.#refuse(utterance, full ? FULL : ENDED));
    }
    return utterance.id;
  }

  /**
   * Stop translating an utterance. What is missing arrives as `translation.failed`. One that is not accepted is given
   * up, and refused; everybody else who has seen it gets `utterance.cancelled`.
   * @param {string} id
   */
  cancel(id) {
    const utterance = this.#outgoing.find(id);
    if (utterance?.sent) {
      if (!utterance.cancelled) this.#sendCancel(id);
      utterance.cancelled = true;
      return;
    }
    if (utterance === undefined || utterance.begun) {
      this.#cancelLater(id);
      if (this.#state === "open") this.#sendCancel(id);
    }
    if (utterance !== undefined) this.#refuse(utterance, CANCELLED);
  }

  /** Unless it is known to have come, the next connection is told. @param {string} id */
  #cancelLater(id) {
    this.#cancels.set(id, true);
    forgetOldest(this.#cancels, MOST_CANCELS);
  }

  /** @param {string} id */
  #sendCancel(id) {
    this.#connection.send({ type: "utterance.cancel", id });
  }

  // ---- sending

  #sendStart() {
    clearTimeout(this.#starting);
    this.#starting = undefined;
    const settings = asked(Object.entries(this.#settings));
    const [meeting, resume] = [this.#meeting || null, this.#position.resume];
    this.#connection.send({ type: "session.start", meeting, ...settings, originals: this.#originals, resume });
  }

  /** Send what is due once whoever calls has said all of it. */
  #flushSoon() {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush() {
    if (this.#state !== "open" || this.#draining || this.#ending === "sent") return this.#tellWaiting();
    if (this.#ending === "no" && this.#updates()) return;
    const oldest = this.#outgoing.oldest;
    if (oldest?.due) this.#sendFinal(oldest);
    if (this.#ending === "no") {
      for (const utterance of this.#outgoing.revised()) this.#sendPartial(utterance);
    } else if (oldest === undefined) {
      this.#ending = "sent";
      this.#connection.send({ type: "session.end" });
    }
  }

  /** Of each final once. */
  #tellWaiting() {
    for (const utterance of this.#outgoing.waiting) {
      if (utterance.sent || utterance.queued) continue;
      utterance.queued = true;
      const { id, lang, text } = utterance;
      this.#emit({ type: "utterance.queued", id, lang, text });
    }
  }

  /** @returns {boolean} Whether the session goes on over another connection, to be told what no update tells. */
  #updates() {
    const { name, ...others } = this.#settings;
    if (name.differs || (others.speaks.differs && this.speaks === null)) {
      this.#disconnected();
      this.#connection.replace();
      return true;
    }
    const changed = Object.entries(others).filter(([, setting]) => setting.differs);
    if (changed.length > 0 && !this.#updating) {
      this.#updating = true;
      this.#connection.send({ type: "session.update", ...asked(changed) });
    }
    return false;
  }

  /** @param {Utterance} utterance */
  #sendPartial(utterance) {
    utterance.sendPartial(PARTIAL_MS, () => this.#flush());
    this.#sendRevision("utterance.partial", utterance);
  }

  /** @param {Utterance} utterance */
  #sendFinal(utterance) {
    utterance.sent = true;
    if (this.#sendRevision("utterance.final", utterance)) return;
    this.#refuse(utterance, TOO_LARGE);
    this.#flush();
  }

  /**
   * @param {"utterance.partial" | "utterance.final"} type
   * @param {Utterance} utterance
   * @returns {boolean} Whether the gateway could say whose it is, should it refuse it.
   */
  #sendRevision(type, { id, rev, text, lang }) {
    const message = { type, id, rev, text, lang };
    const bytes = new TextEncoder().encode(JSON.stringify(message)).length;
    if (this.#limits !== null && (bytes > this.#limits.message_bytes || [...id].length > this.#limits.id_chars)) {
      return false;
    }
    this.#connection.send(message);
    return true;
  }

  #probe() {
    if (this.#state !== "open") {
      // Unless it is on its way.
      if (this.#starting !== undefined) this.#sendStart();
      return;
    }
    this.#ping();
  }

  #ping() {
    this.#pinging = true;
    this.#connection.send({ type: "ping", nonce: "" });
  }

  // ---- receiving

  /** @param {ServerMessage} message */
  #onMessage(message) {
    this.#lastError = message.type === "error" ? message : null;
    if (message.type === "session.started") return this.#onStarted(message);
    if (!this.#position.isNews(message)) return;
    switch (message.type) {
      case "session.updated":
        return this.#onUpdated(message);
      case "session.draining":
        this.#draining = true;
        break;
      case "participant.joined":
      case "participant.updated":
        this.#meet(message);
        break;
      case "participant.left":
        this.participants.delete(message.participant);
        break;
      case "utterance.accepted":
        return this.#onAccepted(message);
      case "caption":
        if (message.participant === this.#participant) this.#outgoing.find(message.utterance)?.captioned(message.rev);
        break;
      case "translation.failed":
      case "utterance.cancelled":
        if (message.participant === this.#participant) this.#cancels.delete(message.utterance);
        break;
      case "error":
        return this.#onError(message);
      case "pong":
        this.#pinging = false;
        break;
    }
    // Also whatever a newer gateway may have to say.
    this.#emit(message);
  }

  /** @param {SessionStarted} message */
  #onStarted(message) {
    this.#position.started(message);
    this.#connection.proven();
    for (const setting of Object.values(this.#settings)) setting.take();
    this.#limits = message.limits;
    this.#meeting = message.meeting;
    const before = [...this.participants.values()];
    if (this.#participant && this.#participant !== message.participant) {
      const { name, speaks, reads } = this;
      before.push({ participant: this.#participant, name, speaks, reads: [...reads] });
    }
    this.#participant = message.participant;
    this.participants.clear();
    for (const other of message.participants) this.#meet(other);
    this.#emit(message);
    for (const gone of before) {
      if (!this.participants.has(gone.participant)) this.#emit({ ...gone, type: "participant.left" });
    }
    this.#enter("open");
    if (message.recovered === true) {
      for (const id of this.#cancels.keys()) this.#sendCancel(id);
    } else {
      this.#cancels.clear();
    }
    this.#ping(); // its answer is behind all that was missed
    this.#flush();
  }

  /** @param {Participant} other */
  #meet({ participant, name, speaks, reads }) {
    this.participants.set(participant, { participant, name, speaks, reads });
  }

  /** @param {SessionUpdated} message */
  #onUpdated(message) {
    for (const setting of Object.values(this.#settings)) setting.take();
    this.#updated();
    this.#emit(message);
    this.#flush();
  }

  #updated() {
    clearTimeout(this.#again);
    this.#updating = false;
    this.#refusals = 0;
  }

  /** @param {UtteranceAccepted} message */
  #onAccepted(message) {
    const utterance = this.#outgoing.find(message.id);
    // One that is accepted already is acknowledged again when it was sent twice, or when the log is replayed.
    if (!utterance?.final) return;
    this.#outgoing.accept(utterance);
    if (utterance.cancelled) this.#cancelLater(message.id);
    this.#emit(message);
    this.#flush();
  }

  /** @param {GatewayError} error */
  #onError(error) {
    if (error.utterance) return this.#onUtteranceRefused(error.utterance, error);
    if (this.#state !== "open") return this.#onStartRefused(error);
    if (UNASKED.has(error.code)) return this.#emit(error);
    const pinged = error.code === "rate_limited" && this.#pinging;
    if (pinged) {
      this.#pinging = false;
      this.#asking = setTimeout(() => this.#ping(), delayMs(error, 1));
    }
    // Of whom it is nobody can tell; asked for twice does no harm.
    if (this.#updating) return this.#onUpdateRefused(error);
    if (error.code === "rate_limited" && this.#ending === "sent") {
      this.#again = setTimeout(() => {
        this.#ending = "wanted";
        this.#flush();
      }, delayMs(error, 1));
    } else if (!pinged) {
      this.#emit(error);
    }
  }

  /** @param {GatewayError} error */
  #onUpdateRefused(error) {
    if (error.retryable) {
      for (const setting of Object.values(this.#settings)) setting.drop();
      this.#refusals += 1;
      clearTimeout(this.#again);
      this.#again = setTimeout(() => {
        this.#updating = false;
        this.#flush();
      }, delayMs(error, this.#refusals));
      return;
    }
    this.#refuseSettings(error);
    this.#updated();
    this.#emit(error);
    this.#flush();
  }

  /**
   * @param {GatewayError} error
   * @returns {boolean} Whether it is of use to ask again.
   */
  #refuseSettings(error) {
    const all = Object.entries(this.#settings);
    const named = all.filter(([name]) => error.field?.startsWith(name));
    const refused = (named.length ? named : all).map(([, setting]) => setting.refuse());
    for (const [, setting] of all) setting.drop();
    return refused.includes(true);
  }

  /**
   * @param {string} id
   * @param {GatewayError} error
   */
  #onUtteranceRefused(id, error) {
    const utterance = this.#outgoing.find(id);
    if (utterance === undefined) {
      // About a cancel. That there was nothing left to cancel is no news to anybody.
      if (this.#cancels.delete(id) && error.retryable) setTimeout(() => this.cancel(id), delayMs(error, 1));
    } else if (utterance.refusePartial()) {
      // Of a partial nobody needs to hear. Should it have been the final behind it, sending that again tells: it does
      // no harm where it was taken.
      if (!utterance.sent || utterance.cancelled) return;
      utterance.sent = false;
      this.#flush();
    } else if (utterance.sent && error.retryable && !utterance.cancelled) {
      utterance.refusals += 1;
      utterance.postpone(delayMs(error, utterance.refusals), () => this.#flush());
    } else if (utterance.sent) {
      this.#refuse(utterance, utterance.cancelled ? CANCELLED : error);
      this.#flush();
    }
  }

  /** @param {GatewayError} error */
  #onStartRefused(error) {
    if (!error.retryable) {
      const useful = this.#refuseSettings(error);
      this.#emit(error);
      return useful ? this.#sendStart() : this.#connection.close();
    }
    // A draining gateway closes right after this; then there is nothing left to retry on.
    if (error.code === "draining") return;
    this.#enter("loading", error);
    this.#starting = setTimeout(() => this.#sendStart(), jittered(error.retry_after_ms ?? RETRY_MS));
  }

  // ---- the connection

  #onOpening() {
    this.#lastError = null;
    this.#enter("connecting");
  }

  /** What was on its way over a connection may not have arrived. */
  #disconnected() {
    clearTimeout(this.#starting);
    clearTimeout(this.#asking);
    this.#updated();
    this.#pinging = this.#draining = false;
    for (const setting of Object.values(this.#settings)) setting.drop();
    for (const utterance of this.#outgoing.all()) {
      utterance.lose();
      if (!utterance.cancelled) continue;
      this.#cancelLater(utterance.id); // it may have been accepted
      this.#refuse(utterance, CANCELLED);
    }
  }

  /** @param {boolean} mayReturn */
  #onLost(mayReturn) {
    const why = this.#lastError;
    this.#disconnected();
    if (mayReturn) {
      this.#connection.openLater(why?.retry_after_ms ?? 0);
      this.#enter("reconnecting", why);
      return this.#flush();
    }
    this.#ending = "no";
    this.#position.end();
    for (const setting of Object.values(this.#settings)) setting.end();
    this.#cancels.clear();
    const ended = { ...ENDED, ...(why && { message: why.message }) };
    for (const utterance of this.#outgoing.all()) this.#refuse(utterance, ended);
    this.#enter("closed", why);
  }

  // ---- what is told

  /**
   * @param {Utterance} utterance
   * @param {{code: string, message: string}} why
   */
  #refuse(utterance, { code, message }) {
    this.#outgoing.forget(utterance);
    this.#emit({ type: "utterance.refused", id: utterance.id, code, message });
  }

  /**
   * @param {ConnectionState} state
   * @param {GatewayError | null} [why]
   */
  #enter(state, why = null) {
    const reason = why?.message ?? "";
    if (this.#state === state && this.#reason === reason) return;
    this.#state = state;
    this.#reason = reason;
    this.#emit({ type: "state", state, reason, code: why?.code ?? "", field: why?.field ?? "" });
  }

  /** What comes of an event while it is told is told behind it, to everybody. @param {ClientEvent} news */
  #emit(news) {
    if (this.#news.push(news) > 1) return;
    for (let event = this.#news[0]; event !== undefined; event = this.#news[0]) {
      for (const listener of [...this.#listeners]) {
        try {
          listener(event);
        } catch (error) {
          // A listener's mistake is not to cost the others what they are owed.
          reportError(error);
        }
      }
      this.#news.shift();
    }
  }
}
