// Sends `session.start`, again if the gateway refuses it for the moment, each time with a fresh token if there is a
// source of tokens. Must not know what else the message says.

import { askForToken } from "./token_source.js";

/** @import {NoToken, TokenSource} from "./token_source.js" */

export class SessionStarter {
  #source;
  #send;
  #onNoToken;
  /** For the next start. @type {string | null} */
  #token = null;
  /** Another one for each connection: what is got for an earlier one comes too late. */
  #connection = {};
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {TokenSource | undefined} source
   * @param {(credentials: {token?: string}) => void} send
   * @param {(reason: NoToken) => void} onNoToken The start cannot be sent.
   */
  constructor(source, send, onNoToken) {
    this.#source = source;
    this.#send = send;
    this.#onNoToken = onNoToken;
  }

  /** Whether a start that was refused is to be sent again. */
  get isWaiting() {
    return this.#timer !== undefined;
  }

  /**
   * Get what the next start needs, before there is a connection: a gateway does not wait long for a start.
   * @returns {Promise<void> | null} Rejected with `NoToken`; null if nothing is needed.
   */
  prepare() {
    if (this.#source === undefined) return null;
    const connection = this.#connection;
    return askForToken(this.#source).then((token) => {
      if (connection === this.#connection) this.#token = token;
    });
  }

  send() {
    this.#stopWaiting();
    const token = this.#token;
    this.#token = null;
    if (token !== null) return this.#send({ token });
    // The token of a start that was refused for the moment may be over by now.
    const prepared = this.prepare();
    if (prepared === null) return this.#send({});
    const connection = this.#connection;
    prepared.then(
      () => connection === this.#connection && this.send(),
      (reason) => connection === this.#connection && this.#onNoToken(reason),
    );
  }

  /** @param {number} delayMs */
  sendLater(delayMs) {
    this.#timer = setTimeout(() => this.send(), delayMs);
  }

  onDisconnected() {
    this.#stopWaiting();
    this.#token = null;
    this.#connection = {};
  }

  #stopWaiting() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
