// Pings the gateway, again if it refuses a ping. Knows whether one is unanswered; must not know why it was sent.

import { refusalDelayMs } from "./session/refusal_delay.js";

/** @import {GatewayError, ServerMessage} from "./messages.js" */

export class Pinger {
  #send;
  #isUnanswered = false;
  /** @type {number | undefined} */
  #timer;

  /** @param {(message: object) => void} send */
  constructor(send) {
    this.#send = send;
  }

  ping() {
    this.#isUnanswered = true;
    this.#send({ type: "ping", nonce: "" });
  }

  /** @param {ServerMessage} message */
  onMessage({ type }) {
    if (type === "pong") this.#isUnanswered = false;
  }

  /**
   * @param {GatewayError} error
   * @returns {boolean} Whether the gateway may have refused a ping. It is sent again later.
   */
  onError(error) {
    if (error.code !== "rate_limited" || !this.#isUnanswered) return false;
    this.#isUnanswered = false;
    this.#timer = setTimeout(() => this.ping(), refusalDelayMs(error));
    return true;
  }

  onDisconnected() {
    clearTimeout(this.#timer);
    this.#isUnanswered = false;
  }
}
