// WebSockets to one gateway, one after another. Knows when a socket is lost, when to come back and when to stay away;
// must not know what the messages mean.

const SUBPROTOCOL = "translation.v1.json";
const RECONNECT_FIRST_MS = 500;
const RECONNECT_MOST_MS = 15_000;
const QUIET_MS = 20_000;

/** @param {number} status A WebSocket close code. */
function mayReconnect(status) {
  return status !== 1000 && !(status >= 4500 && status <= 4999);
}

/**
 * A random delay of once to twice what was asked for, so that clients do not come back together, nor too early.
 * @param {number} delayMs
 */
export function jittered(delayMs) {
  return delayMs * (1 + Math.random());
}

/**
 * Who uses a connection.
 * - `opening`: a socket is being opened
 * - `opened`: it is open
 * - `received`: a message arrived
 * - `probe`: time to send something that is answered; a socket that stays silent for as long again is given up
 * - `lost`: the socket is gone; `mayReturn` where `openLater` makes sense
 * @typedef {object} Owner
 * @property {() => void} opening
 * @property {() => void} opened
 * @property {(message: any) => void} received
 * @property {() => void} probe
 * @property {(mayReturn: boolean) => void} lost
 */

export class Connection {
  #url;
  #owner;
  /** @type {WebSocket | null} */
  #socket = null;
  #leaving = false;
  #attempts = 0;
  #heard = false;
  /** @type {number | undefined} */
  #returning;
  /** @type {number | undefined} */
  #probing;

  /**
   * @param {string} url `ws://` or `wss://`.
   * @param {Owner} owner
   */
  constructor(url, owner) {
    this.#url = url;
    this.#owner = owner;
  }

  /** Whether no socket will follow this one. */
  get leaving() {
    return this.#leaving;
  }

  /** Open a socket now, unless there is one. */
  open() {
    if (this.#socket !== null) return;
    clearTimeout(this.#returning);
    this.#leaving = false;
    this.#owner.opening();
    const socket = new WebSocket(this.#url, SUBPROTOCOL);
    this.#socket = socket;
    socket.addEventListener("open", () => this.#begin(socket));
    socket.addEventListener("message", (event) => this.#receive(socket, event.data));
    socket.addEventListener("close", (event) => this.#lose(socket, mayReconnect(event.code)));
  }

  /**
   * Open a socket after a while, a longer one each time, until `proven`.
   * @param {number} atLeastMs
   */
  openLater(atLeastMs) {
    const backOffMs = Math.min(RECONNECT_FIRST_MS * 2 ** this.#attempts, RECONNECT_MOST_MS);
    this.#attempts += 1;
    this.#returning = setTimeout(() => this.open(), jittered(Math.max(backOffMs, atLeastMs)));
  }

  /** The gateway is of use: should it be lost, come back soon. */
  proven() {
    this.#attempts = 0;
  }

  /** @param {object} message */
  send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** Keep the socket for as long as the gateway does; however it ends, none follows. */
  leave() {
    this.#leaving = true;
  }

  /** No socket from now on. */
  close() {
    clearTimeout(this.#returning);
    this.#leaving = true;
    if (this.#socket !== null) this.#lose(this.#socket, false);
    else this.#owner.lost(false);
  }

  /** @param {WebSocket} socket */
  #begin(socket) {
    if (socket !== this.#socket) return;
    this.#heard = true;
    this.#probing = setInterval(() => this.#probe(socket), QUIET_MS);
    this.#owner.opened();
  }

  /** @param {WebSocket} socket */
  #probe(socket) {
    // A connection can be gone without a word.
    if (!this.#heard) return this.#lose(socket, true);
    this.#heard = false;
    this.#owner.probe();
  }

  /**
   * @param {WebSocket} socket
   * @param {unknown} frame
   */
  #receive(socket, frame) {
    if (socket !== this.#socket || typeof frame !== "string") return;
    this.#heard = true;
    this.#owner.received(JSON.parse(frame));
  }

  /**
   * @param {WebSocket} socket
   * @param {boolean} mayReturn
   */
  #lose(socket, mayReturn) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    clearInterval(this.#probing);
    socket.close();
    this.#owner.lost(mayReturn && !this.#leaving);
  }
}
