// The session's position in its meeting's event log, and the publications it has received. Recognises repeated ones;
// must not know connections.

import { evictOldest } from "./evict_oldest.js";

/** @import {ServerMessage, SessionStarted, UtteranceReplaced} from "./messages.js" */

// How many publications are recognised when they are repeated.
const MAX_RECEIVED = 4_096;

export class LogPosition {
  #session = "";
  #epoch = "";
  #offset = 0;
  /** Publication → its newest revision. @type {Map<string, number>} */
  #received = new Map();
  /** Utterance → what it was corrected by; null: it was taken back. @type {Map<string, string | null>} */
  #replaced = new Map();

  /** What `session.start` needs to resume the session; null if there is none. */
  get resume() {
    return this.#session === "" ? null : { session: this.#session, epoch: this.#epoch, offset: this.#offset };
  }

  /** @param {SessionStarted} message */
  started({ session, epoch, offset, recovered }) {
    // A session that was not recovered may start before the old position.
    this.#offset = recovered === true && epoch === this.#epoch ? Math.max(this.#offset, offset) : offset;
    this.#session = session;
    this.#epoch = epoch;
  }

  /** The session has ended. Publications received in it are still recognised. */
  endSession() {
    this.#session = "";
  }

  /**
   * @param {ServerMessage} message
   * @returns {boolean} False if it repeats a publication, is a delta of a translation that is final already, or is of what
   *   was corrected or taken back.
   */
  isNew(message) {
    if ("offset" in message && message.offset !== null) this.#offset = Math.max(this.#offset, message.offset);
    switch (message.type) {
      case "caption":
        return this.#receive(message, "caption", message.final);
      case "translation.delta":
        return this.#receive(message, `final ${message.lang}`, false);
      case "translation.final":
        return this.#receive(message, `final ${message.lang}`, true);
      case "translation.failed":
        // A failed translation may be tried again, and fail again, under the same revision.
        return this.#receive(message, `failed ${message.lang} ${this.#epoch} ${message.offset}`, true);
      default:
        return true;
    }
  }

  /**
   * Note a correction.
   * @param {UtteranceReplaced} message
   * @returns {UtteranceReplaced | null} It, with the utterances that stood until now; null if it tells nothing new.
   */
  replace(message) {
    const { participant, by } = message;
    const standing = message.utterances.map((id) => this.#standing(participant, id, by)).filter((id) => id !== null);
    for (const id of standing) {
      this.#replaced.set(keyOf(participant, id), by);
      evictOldest(this.#replaced, MAX_RECEIVED);
    }
    return standing.length === 0 ? null : { ...message, utterances: [...new Set(standing)] };
  }

  /**
   * What stands where an utterance stood; null: nothing, or `by` has replaced it before.
   * @param {string} participant
   * @param {string | null} id
   * @param {string | null} by
   */
  #standing(participant, id, by) {
    for (let newer; id !== null; id = newer) {
      newer = this.#replaced.get(keyOf(participant, id));
      if (newer === undefined) break;
      if (newer === by) return null;
    }
    return id;
  }

  /**
   * @param {{participant: string, utterance: string, rev: number}} message
   * @param {string} kind What it says about the utterance.
   * @param {boolean} isPublication
   */
  #receive({ participant, utterance, rev }, kind, isPublication) {
    const key = JSON.stringify([participant, utterance, kind]);
    const isNew = rev > (this.#received.get(key) ?? -1);
    if (isNew && isPublication) {
      this.#received.set(key, rev);
      evictOldest(this.#received, MAX_RECEIVED);
    }
    return isNew && !this.#replaced.has(keyOf(participant, utterance));
  }
}

/** @param {string} participant @param {string} utterance */
function keyOf(participant, utterance) {
  return JSON.stringify([participant, utterance]);
}
