// Sends utterances until the gateway has accepted or refused them. Knows what is sent when, and what is sent again;
// must not know settings or the state of the connection.

import { evictOldest } from "./evict_oldest.js";
import { refusalDelayMs } from "./session/refusal_delay.js";
import { UtteranceQueue } from "./utterance_queue.js";
import { position, wellFormed } from "./wire/well_formed.js";

/** @import {ClientEvent} from "./events.js" */
/** @import {GatewayError, Limits, ServerMessage} from "./messages.js" */
/** @import {Said, Utterance} from "./utterance.js" */

// The shortest time between two partials of one utterance: no reader takes in more than four a second.
const PARTIAL_MS = 250;
// How many cancels are kept to be repeated after a lost connection.
const MAX_CANCELS = 32;
const CANCELLED = { code: "cancelled", message: "The utterance was cancelled." };
const FULL = { code: "queue_full", message: "Too much waits to be sent." };
const TOO_LARGE = { code: "message_too_large", message: "The text or its id is too long to be sent." };

/**
 * The session that utterances are sent in.
 * @typedef {object} Session
 * @property {() => boolean} isOpen
 * @property {(message: object, mostBytes?: number) => boolean} send False if it is longer, and not sent.
 * @property {(event: ClientEvent) => void} emit
 * @property {() => void} flush Sends everything that is due.
 */

export class UtteranceSender {
  /** What the gateway accepts; null before the first session started. @type {Limits | null} */
  limits = null;
  #session;
  #queue = new UtteranceQueue();
  /** Ids of accepted or begun utterances whose cancel may not have arrived. @type {Map<string, true>} */
  #cancels = new Map();

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** How many finals the gateway has not accepted yet. */
  get unsent() {
    return this.#queue.finals.length;
  }

  // ---- what the user says

  /**
   * @param {Said} said
   * @returns {string} The utterance's id.
   */
  partial(said) {
    return this.#queue.revise(wellFormed(said));
  }

  /**
   * A final without text cancels an utterance that was begun, or takes back what it replaces.
   * @param {Said} final
   * @param {{code: string, message: string} | null} refusal Why nothing more can be said; null while it can.
   * @returns {string} The utterance's id.
   */
  final(final, refusal) {
    const said = wellFormed(final);
    if (said.id !== undefined && this.#queue.find(said.id)?.final) return said.id;
    const isEmpty = said.text.trim() === "" && said.replaces === undefined;
    // One that was accepted stays what it is.
    if (isEmpty && said.id !== undefined && this.#queue.isAccepted(said.id)) return said.id;
    const utterance = this.#queue.conclude(said);
    const reason = isEmpty ? CANCELLED : this.#queue.find(utterance.id) === undefined ? FULL : refusal;
    if (reason === null) return utterance.id;
    this.#queue.remove(utterance);
    this.#withdraw(utterance);
    // The caller must get the id before it hears of the refusal.
    queueMicrotask(() => this.#refuse(utterance, reason));
    return utterance.id;
  }

  /** @param {string} name */
  cancel(name) {
    const id = wellFormed(name);
    const utterance = this.#queue.find(id);
    if (utterance?.sent) {
      if (!utterance.cancelled) this.#sendCancel(id);
      utterance.cancelled = true;
      return;
    }
    if (utterance === undefined || utterance.begun) this.#sendOrKeepCancel(id);
    if (utterance !== undefined) this.#refuse(utterance, CANCELLED);
  }

  /** The final is given up: what the gateway shows of the utterance goes. @param {Utterance} utterance */
  #withdraw({ id, begun }) {
    if (begun && !this.#queue.isAccepted(id)) this.#sendOrKeepCancel(id);
  }

  /** @param {string} id */
  #sendOrKeepCancel(id) {
    this.#rememberCancel(id);
    if (this.#session.isOpen()) this.#sendCancel(id);
  }

  // ---- sending

  /**
   * Send the oldest final if it is due. The next one waits until this one is answered, so that none overtakes another.
   * @returns {boolean} Whether there was one that the gateway had not accepted.
   */
  sendFinal() {
    const { oldest } = this.#queue;
    if (oldest === undefined) return false;
    if (oldest.due) {
      oldest.sent = true;
      if (!this.#sendRevision("utterance.final", oldest)) {
        this.#withdraw(oldest);
        this.#refuse(oldest, TOO_LARGE);
        this.#session.flush();
      }
    }
    return true;
  }

  sendPartials() {
    for (const utterance of this.#queue.revised()) {
      utterance.sendPartial(PARTIAL_MS, () => this.#session.flush());
      this.#sendRevision("utterance.partial", utterance);
    }
  }

  /**
   * Report, once for each final, that it waits for a session.
   * @param {boolean} [isStalled] Whether those that were sent are not answered either.
   */
  reportWaiting(isStalled = false) {
    for (const utterance of this.#queue.finals) {
      if ((utterance.sent && !isStalled) || utterance.queued) continue;
      utterance.queued = true;
      const { id, lang, text, times } = utterance;
      const { replaces } = times;
      this.#session.emit({ type: "utterance.queued", id, lang, text, ...(replaces !== undefined && { replaces }) });
    }
  }

  /**
   * @param {"utterance.partial" | "utterance.final"} type
   * @param {Utterance} utterance
   * @returns {boolean} False if it is too large: the gateway's refusal could not name the utterance.
   */
  #sendRevision(type, { id, rev, text, lang, times: { traceparent, replaces, participant, ...times } }) {
    if (this.limits !== null && [...id].length > this.limits.id_chars) return false;
    const ofFinal = type === "utterance.final" ? { traceparent, replaces, participant } : {};
    const message = { type, id, rev, text, lang: lang || null, ...position(times), ...ofFinal };
    return this.#session.send(message, this.limits?.message_bytes);
  }

  /** @param {string} id */
  #sendCancel(id) {
    this.#session.send({ type: "utterance.cancel", id });
  }

  /** Repeat the cancel in the next connection, unless it is known to have arrived. @param {string} id */
  #rememberCancel(id) {
    this.#cancels.set(id, true);
    evictOldest(this.#cancels, MAX_CANCELS);
  }

  // ---- what the gateway answers

  /**
   * @param {string} id
   * @returns {boolean} Whether this is new. A final is acknowledged again when it was sent twice or the log is replayed.
   */
  onAccepted(id) {
    const utterance = this.#queue.find(id);
    if (!utterance?.final) return false;
    this.#queue.accept(utterance);
    if (utterance.cancelled) this.#rememberCancel(id);
    return true;
  }

  /** News of an utterance of this client. @param {ServerMessage} message */
  onOwn(message) {
    if (!("utterance" in message) || !message.utterance) return;
    // A later segment of an utterance is `…~2`, `…~3` ….
    const id = message.utterance.replace(/~\d+$/, "");
    // The gateway showed a revision.
    if (message.type === "caption") this.#queue.find(id)?.captioned(message.rev);
    // A cancel has arrived, or there is nothing left to cancel.
    if (message.type === "translation.failed" || message.type === "utterance.cancelled") this.#cancels.delete(id);
  }

  /**
   * @param {string} id
   * @param {GatewayError} error
   */
  onRefused(id, error) {
    const utterance = this.#queue.find(id);
    if (utterance === undefined) {
      // The gateway refused a cancel. If nothing is left to cancel, the caller need not know.
      if (this.#cancels.delete(id) && error.retryable) setTimeout(() => this.cancel(id), refusalDelayMs(error));
    } else if (utterance.refusePartial()) {
      // A refused partial is dropped silently. The error may have been about the final that followed it. So the final
      // is sent again: if the gateway took it the first time, it only acknowledges it again.
      if (!utterance.sent || utterance.cancelled) return;
      utterance.sent = false;
      this.#session.flush();
    } else if (utterance.sent && error.retryable && !utterance.cancelled) {
      utterance.refusals += 1;
      utterance.postpone(refusalDelayMs(error, utterance.refusals), () => this.#session.flush());
    } else if (utterance.sent) {
      this.#refuse(utterance, utterance.cancelled ? CANCELLED : error);
      this.#session.flush();
    }
  }

  /**
   * The gateway could not read a frame, and so not name it. The final that is out may be meant: it is sent again, and
   * given up if that cannot be read either.
   * @param {GatewayError} error
   * @returns {boolean} Whether there is one.
   */
  onUnreadable(error) {
    const { oldest } = this.#queue;
    if (!oldest?.sent) return false;
    if (oldest.isSuspect) {
      this.#withdraw(oldest);
      this.#refuse(oldest, error);
    }
    oldest.isSuspect = true;
    oldest.sent = false;
    this.#session.flush();
    return true;
  }

  // ---- the session

  /** @param {boolean} recovered Whether the session was resumed: then the gateway still knows what is to be cancelled. */
  onSessionStarted(recovered) {
    if (recovered) {
      for (const id of this.#cancels.keys()) this.#sendCancel(id);
    } else {
      this.#cancels.clear();
    }
  }

  /** A host has muted the user: what is not finished is gone from every screen. */
  onMuted() {
    this.#queue.muteOpen();
  }

  /** What was sent over the lost connection may not have arrived. */
  onDisconnected() {
    for (const utterance of this.#queue.all()) {
      utterance.onDisconnected();
      if (!utterance.cancelled) continue;
      this.#rememberCancel(utterance.id); // it may have been accepted
      this.#refuse(utterance, CANCELLED);
    }
  }

  /** @param {{code: string, message: string}} reason Told for every utterance that was not accepted. */
  onSessionEnded(reason) {
    this.#cancels.clear();
    for (const utterance of this.#queue.all()) this.#refuse(utterance, reason);
  }

  /**
   * @param {Utterance} utterance
   * @param {{code: string, message: string}} reason
   */
  #refuse(utterance, { code, message }) {
    this.#queue.remove(utterance);
    this.#session.emit({ type: "utterance.refused", id: utterance.id, code, message });
  }
}
