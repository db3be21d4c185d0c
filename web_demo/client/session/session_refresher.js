// Answers `token.expiring` with a new token, so that the session continues. Knows when to try again; must not know what
// happens if there is none: the gateway ends the session, and the next one starts with a new token.

import { askForToken, NoToken } from "./token_source.js";

/** @import {TokenSource} from "./token_source.js" */

// The time before the next attempt, from; to twice as much, so that clients do not come together.
const RETRY_MS = 2_000;
// After so long without an answer the new token is taken for refused.
const ANSWER_TIMEOUT_MS = 10_000;
// What `session.update` may be refused for.
const SETTING = /^(reads|speaks|stability|originals|glossary|context|formality)/;

export class SessionRefresher {
  #source;
  #send;
  /** When the session ends, by `performance.now()`. */
  #endsAt = 0;
  /** The refresh in progress; null if there is none. @type {object | null} */
  #current = null;
  #isUnanswered = false;
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {TokenSource | undefined} source
   * @param {(message: object) => void} send
   */
  constructor(source, send) {
    this.#source = source;
    this.#send = send;
  }

  /** @param {{type: string, expires_in_ms?: number | null}} message */
  onMessage({ type, expires_in_ms }) {
    if (type === "token.expiring") this.#onExpiring(expires_in_ms ?? 0);
    else if (type === "session.refreshed") this.stop();
  }

  /** @param {number} expiresInMs */
  #onExpiring(expiresInMs) {
    this.#endsAt = performance.now() + expiresInMs;
    if (this.#current !== null) return;
    this.#current = {};
    void this.#refresh();
  }

  /**
   * @param {{code: string, field?: string | null}} error
   * @returns {boolean} Whether the gateway refused the new token. Another one is sent later.
   */
  onError({ code, field }) {
    const isRefusal = code === "unauthenticated" || (code === "forbidden" && !SETTING.test(field ?? ""));
    if (!this.#isUnanswered || !isRefusal) return false;
    this.#tryLater();
    return true;
  }

  /** The session was refreshed, or its connection is lost. */
  stop() {
    clearTimeout(this.#timer);
    this.#current = null;
    this.#isUnanswered = false;
  }

  async #refresh() {
    const [source, refresh] = [this.#source, this.#current];
    if (source === undefined) return;
    try {
      const token = await askForToken(source);
      if (refresh !== this.#current) return;
      this.#isUnanswered = true;
      this.#timer = setTimeout(() => this.#tryLater(), ANSWER_TIMEOUT_MS);
      this.#send({ type: "session.refresh", token });
    } catch (reason) {
      if (refresh === this.#current && !(reason instanceof NoToken && reason.permanent)) this.#tryLater();
    }
  }

  #tryLater() {
    clearTimeout(this.#timer);
    this.#isUnanswered = false;
    const delayMs = RETRY_MS * (1 + Math.random());
    if (performance.now() + delayMs > this.#endsAt) this.#current = null;
    else this.#timer = setTimeout(() => void this.#refresh(), delayMs);
  }
}
