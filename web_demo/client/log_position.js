// Where a session is in its meeting's log, and which publications were received. Knows epochs, offsets and what makes
// a publication the same; must not know connections.

import { forgetOldest } from "./evict_oldest.js";

/** @import {ServerMessage, SessionStarted} from "./messages.js" */

// Publications that are recognised when they come again.
const REMEMBERED = 4_096;

export class Position {
  #session = "";
  #epoch = "";
  #offset = 0;
  /** Publication → revision. @type {Map<string, number>} */
  #received = new Map();

  /** What a session is resumed with; null where there is none. */
  get resume() {
    return this.#session === "" ? null : { session: this.#session, epoch: this.#epoch, offset: this.#offset };
  }

  /** @param {SessionStarted} message */
  started({ session, epoch, offset, recovered }) {
    // A new start may lie before the old position: what follows it is to be received from there.
    this.#offset = recovered === true && epoch === this.#epoch ? Math.max(this.#offset, offset) : offset;
    this.#session = session;
    this.#epoch = epoch;
  }

  /** The session is over. What was received stays known. */
  end() {
    this.#session = "";
  }

  /**
   * @param {ServerMessage} message
   * @returns {boolean} Whether it is no publication that was received before, nor what became of one.
   */
  isNews(message) {
    if ("offset" in message && message.offset !== null) this.#offset = Math.max(this.#offset, message.offset);
    switch (message.type) {
      case "caption":
        return this.#note(message, "caption", message.final);
      case "translation.delta":
        return this.#note(message, `final ${message.lang}`, false);
      case "translation.final":
        return this.#note(message, `final ${message.lang}`, true);
      case "translation.failed":
        // What failed may be tried again, and fail again, under the same revision.
        return this.#note(message, `failed ${message.lang} ${this.#epoch} ${message.offset}`, true);
      default:
        return true;
    }
  }

  /**
   * @param {{participant: string, utterance: string, rev: number}} message
   * @param {string} what
   * @param {boolean} isPublication
   */
  #note({ participant, utterance, rev }, what, isPublication) {
    const key = JSON.stringify([participant, utterance, what]);
    const isNews = rev > (this.#received.get(key) ?? -1);
    if (isNews && isPublication) {
      this.#received.set(key, rev);
      forgetOldest(this.#received, REMEMBERED);
    }
    return isNews;
  }
}
