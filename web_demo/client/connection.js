// WebSockets to one gateway, one after another. Knows when a socket is lost, when to come back and when to stay away;
// must not know what the messages mean.

const SUBPROTOCOL = "translation.v1.json";
const RECONNECT_FIRST_MS = 250;
const RECONNECT_MOST_MS = 10_000;
// A connection that lasted less is part of the trouble before it: who takes everybody and drops them is not stormed.
const STEADY_MS = 15_000;
const QUIET_MS = 20_000;
const ANSWER_MS = 10_000;

/** @param {number} status A WebSocket close code. */
function mayReconnect(status) {
  return status !== 1000 && !(status >= 4500 && status <= 4999);
}

/** Once to twice the delay, so that clients do not come back together, nor too early. @param {number} delayMs */
export function jittered(delayMs) {
  return delayMs * (1 + Math.random());
}

/**
 * Who uses a connection. When it is `opened` and when it is to be probed, something is sent that is answered.
 * @typedef {object} Owner
 * @property {() => void} opening
 * @property {() => void} opened
 * @property {(message: any) => void} received
 * @property {() => void} probe
 * @property {(mayReturn: boolean) => void} lost `mayReturn`: `openLater` makes sense.
 */

export class Connection {
  #url;
  #owner;
  /** @type {WebSocket | null} */
  #socket = null;
  #leaving = false;
  #attempts = 0;
  /** When the gateway proved to be of use on this socket. @type {number | null} */
  #provenAt = null;
  /** Whether an answer is overdue when the timer rings. */
  #asked = false;
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #returning;

  /**
   * @param {string} url
   * @param {Owner} owner
   */
  constructor(url, owner) {
    this.#url = url;
    this.#owner = owner;
  }

  /** Open a socket now; where there is one, find out whether anybody is at its other end. */
  open() {
    if (this.#socket !== null) {
      if (!this.#asked) this.#probe(this.#socket);
      return;
    }
    clearTimeout(this.#returning);
    this.#leaving = false;
    this.#provenAt = null;
    this.#owner.opening();
    const socket = new WebSocket(this.#url, SUBPROTOCOL);
    this.#socket = socket;
    this.#expectAnswer(socket);
    socket.addEventListener("open", () => this.#begin(socket));
    socket.addEventListener("message", (event) => this.#receive(socket, event.data));
    socket.addEventListener("close", (event) => this.#lose(socket, mayReconnect(event.code)));
  }

  /** Open a socket after a while, on average a longer one each time. @param {number} atLeastMs */
  openLater(atLeastMs) {
    const mostMs = Math.min(RECONNECT_FIRST_MS * 2 ** this.#attempts, RECONNECT_MOST_MS);
    this.#attempts += 1;
    this.#returning = setTimeout(() => this.open(), atLeastMs + Math.random() * mostMs);
  }

  /** Another socket in place of the one that there is, whose owner does not hear of its end. */
  replace() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.open();
  }

  /** The gateway is of use. */
  proven() {
    this.#provenAt = performance.now();
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
    this.#expectAnswer(socket);
    this.#owner.opened();
  }

  /** @param {WebSocket} socket */
  #probe(socket) {
    this.#expectAnswer(socket);
    this.#owner.probe();
  }

  /** A connection can be gone without a word. @param {WebSocket} socket */
  #expectAnswer(socket) {
    clearTimeout(this.#timer);
    this.#asked = true;
    this.#timer = setTimeout(() => this.#lose(socket, true), ANSWER_MS);
  }

  /**
   * @param {WebSocket} socket
   * @param {unknown} frame
   */
  #receive(socket, frame) {
    if (socket !== this.#socket || typeof frame !== "string") return;
    clearTimeout(this.#timer);
    this.#asked = false;
    this.#timer = setTimeout(() => this.#probe(socket), QUIET_MS);
    this.#owner.received(JSON.parse(frame));
  }

  /**
   * @param {WebSocket} socket
   * @param {boolean} mayReturn
   */
  #lose(socket, mayReturn) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    clearTimeout(this.#timer);
    if (this.#provenAt !== null && performance.now() - this.#provenAt >= STEADY_MS) this.#attempts = 0;
    const returning = mayReturn && !this.#leaving;
    // With 1000 the session is over; with none it is kept to be gone on with.
    if (returning) socket.close();
    else socket.close(1000);
    this.#owner.lost(returning);
  }
}
