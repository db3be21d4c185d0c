// Keeps a WebSocket open to one gateway. Knows when a socket is lost and whether to reconnect; must not know what the
// messages mean.

import { bytesOf, Frames } from "./wire/frames.js";

/** @import {Codec} from "./wire/frames.js" */

/**
 * When to reconnect, in milliseconds. The delay before an attempt is random, below a bound that doubles with each one.
 * @typedef {object} ReconnectPolicy
 * @property {number} [firstMs] The bound before the first attempt; 250 by default.
 * @property {number} [mostMs] The highest bound; 10,000 by default.
 * @property {number} [giveUpMs] How long to try; for ever by default.
 */

const FIRST_MS = 250;
const MOST_MS = 10_000;
// A connection that lasted less does not reset the back-off: a gateway that accepts clients and drops them again must
// not be flooded with new connections.
const STABLE_MS = 15_000;
// After so long without a message the gateway is asked for an answer.
const QUIET_MS = 20_000;
const ANSWER_TIMEOUT_MS = 10_000;
// So long after something was sent and no message came: most of what is sent is answered much earlier.
const UNANSWERED_MS = 2_000;
// When an answer is so late, people are told. The connection has the rest of the time to recover.
const STALLED_MS = 2_500;

// `WebSocket.OPEN`, which an injected class need not have.
const OPEN = 1;
// What this client sends when it comes back: without a code, some platforms send 1000, which ends the session.
const RETURNING = 4000;
const NO_WEBSOCKET =
  "There is no WebSocket here. Use Node 22 or newer, or the package ws: " +
  'import WebSocket from "ws"; new GatewayClient(address, { WebSocket }).';
const STREAM_PATH = "/v1/stream";

/**
 * What is used of a WebSocket.
 * @typedef {object} Socket
 * @property {number} readyState
 * @property {string} [binaryType] Set to `arraybuffer`, where there is a codec.
 * @property {(data: any) => void} send A string or, where there is a codec, a `Uint8Array`.
 * @property {(code?: number) => void} close
 * @property {(type: any, listener: (event: any) => void) => void} addEventListener
 */

/** @typedef {new (url: string, subprotocol: string) => Socket} SocketClass */

/**
 * The address of the stream.
 * @param {string} address That of the gateway or of its stream, `http(s)://` or `ws(s)://`.
 * @throws {TypeError} If it is another one.
 */
export function streamUrl(address) {
  if (!/^(http|ws)s?:\/\/[^/]/i.test(address)) {
    throw new TypeError(`"${address}" is not the address of a gateway, such as https://gateway.example.com.`);
  }
  const url = address.replace(/^http/i, "ws").replace(/\/+$/, "");
  return url.endsWith(STREAM_PATH) ? url : url + STREAM_PATH;
}

/** @param {number} status A WebSocket close code. */
function allowsReconnect(status) {
  return status !== 1000 && !(status >= 4500 && status <= 4999);
}

/**
 * The user of a connection.
 * @typedef {object} Owner
 * @property {() => Promise<void> | null} opening A socket is about to be opened, after what has to be waited for.
 * @property {(reason: any) => void} notReady What had to be waited for failed: must call `fail`.
 * @property {() => void} opened Must send something that the gateway answers.
 * @property {(message: any) => void} received
 * @property {() => void} probe Must send something that the gateway answers.
 * @property {(isStalled: boolean) => void} stalled The gateway's answer is late in a session, or has come after all.
 * @property {(mayReconnect: boolean, reason: string) => void} lost `reason`: a sentence of the side that closed; often empty.
 */

export class Connection {
  #url;
  #owner;
  #socketClass;
  #frames;
  /** @type {ReconnectPolicy} */
  #policy;
  /** When the connection was lost, or could not be opened, by `performance.now()`. @type {number | null} */
  #lostAt = null;
  /** @type {Socket | null} */
  #socket = null;
  /** What has to be waited for before a socket is opened. @type {Promise<void> | null} */
  #preparation = null;
  #leaving = false;
  #attempts = 0;
  /** When a session started on this socket, by `performance.now()`. @type {number | null} */
  #sessionStartedAt = null;
  /** Whether an answer is expected before the timer ends. */
  #awaitsAnswer = false;
  /** Whether the gateway is asked soon, as nothing has come since something was sent. */
  #isHurried = false;
  /** Whether the owner was told that the answer is late. */
  #isStalled = false;
  /** @type {number | undefined} */
  #stallTimer;
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #reconnectTimer;

  /**
   * @param {string} address
   * @param {{WebSocket?: SocketClass, codec?: Codec, reconnect?: ReconnectPolicy | false}} options The class is used instead
   *   of the platform's `WebSocket`.
   * @param {Owner} owner
   */
  constructor(address, { WebSocket, codec, reconnect = {} }, owner) {
    this.#url = streamUrl(address);
    this.#owner = owner;
    this.#socketClass = WebSocket;
    this.#frames = new Frames(codec);
    this.#policy = reconnect || { giveUpMs: 0 };
  }

  /** Open a socket now. If there is one, check that it is alive. */
  open() {
    if (this.#socket !== null) {
      if (!this.#awaitsAnswer) this.#probe(this.#socket);
      return;
    }
    if (this.#preparation !== null) return;
    if (this.#socketClass === undefined && typeof WebSocket === "undefined") throw new TypeError(NO_WEBSOCKET);
    clearTimeout(this.#reconnectTimer);
    this.#leaving = false;
    this.#sessionStartedAt = null;
    const preparation = this.#owner.opening();
    if (preparation === null) return this.#openSocket();
    this.#preparation = preparation;
    preparation.then(
      () => preparation === this.#preparation && this.#openSocket(),
      (reason) => preparation === this.#preparation && this.#owner.notReady(reason),
    );
  }

  #openSocket() {
    this.#preparation = null;
    /** @type {Socket} */
    const socket = new (this.#socketClass ?? WebSocket)(this.#url, this.#frames.subprotocol);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    this.#expectAnswer(socket);
    socket.addEventListener("open", () => this.#begin(socket));
    socket.addEventListener("message", (event) => this.#receive(socket, event.data));
    socket.addEventListener("close", (event) => this.#lose(socket, allowsReconnect(event.code), event.reason));
  }

  /**
   * Open a socket after a random delay that grows with each attempt.
   * @param {number} atLeastMs
   * @returns {boolean} False if it is time to give up.
   */
  openLater(atLeastMs) {
    const { firstMs = FIRST_MS, mostMs = MOST_MS, giveUpMs = Infinity } = this.#policy;
    const now = performance.now();
    this.#lostAt ??= now;
    if (now - this.#lostAt >= giveUpMs) return false;
    const maxMs = Math.min(firstMs * 2 ** this.#attempts, mostMs);
    this.#attempts += 1;
    this.#reconnectTimer = setTimeout(() => this.open(), atLeastMs + Math.random() * maxMs);
    return true;
  }

  /** The address of the stream. */
  get url() {
    return this.#url;
  }

  /** Whether its server can be asked over HTTP: not with a class of the caller's, which may know a proxy. */
  get isPlain() {
    return this.#socketClass === undefined && typeof fetch === "function";
  }

  /** Replace the socket by a new one. The owner is not told that the old one is lost. */
  replace() {
    const socket = this.#socket;
    this.#socket = null;
    this.#isStalled = false;
    this.#stopTimers();
    socket?.close(RETURNING);
    this.open();
  }

  /** The gateway started a session. */
  sessionStarted() {
    this.#sessionStartedAt = performance.now();
    this.#lostAt = null;
  }

  /**
   * @param {object} message
   * @param {number} [mostBytes]
   * @returns {boolean} False if it has more, and is not sent.
   */
  send(message, mostBytes = Infinity) {
    const socket = this.#socket;
    if (socket?.readyState !== OPEN) return true;
    const frame = this.#frames.encode(message);
    if (mostBytes < Infinity && bytesOf(frame) > mostBytes) return false;
    socket.send(frame);
    // Who leaves waits for as long as the gateway has something to finish.
    if (this.#awaitsAnswer || this.#isHurried || this.#leaving) return true;
    this.#isHurried = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#probe(socket), UNANSWERED_MS);
    return true;
  }

  /** Wait for the gateway to close the socket, and do not reconnect. */
  leave() {
    this.#leaving = true;
  }

  /** Close the socket, and do not reconnect. */
  close() {
    this.#leaving = true;
    this.#lostAt = null;
    this.fail(false);
  }

  /** Give up the socket, or the attempt to open one. @param {boolean} mayReconnect */
  fail(mayReconnect) {
    this.#preparation = null;
    if (!mayReconnect) clearTimeout(this.#reconnectTimer);
    if (this.#socket !== null) this.#lose(this.#socket, mayReconnect);
    else this.#owner.lost(mayReconnect, "");
  }

  /** @param {Socket} socket */
  #begin(socket) {
    if (socket !== this.#socket) return;
    this.#expectAnswer(socket);
    this.#owner.opened();
  }

  /** @param {Socket} socket */
  #probe(socket) {
    this.#expectAnswer(socket);
    this.#owner.probe();
  }

  /** A connection can be lost without a close event. @param {Socket} socket */
  #expectAnswer(socket) {
    this.#stopTimers();
    this.#awaitsAnswer = true;
    this.#timer = setTimeout(() => this.#lose(socket, true), ANSWER_TIMEOUT_MS);
    if (this.#sessionStartedAt !== null) this.#stallTimer = setTimeout(() => this.#stall(true), STALLED_MS);
  }

  /** @param {boolean} isStalled */
  #stall(isStalled) {
    if (this.#isStalled === isStalled) return;
    this.#isStalled = isStalled;
    this.#owner.stalled(isStalled);
  }

  #stopTimers() {
    clearTimeout(this.#timer);
    clearTimeout(this.#stallTimer);
    this.#isHurried = false;
  }

  /**
   * @param {Socket} socket
   * @param {unknown} frame
   */
  #receive(socket, frame) {
    const message = socket === this.#socket ? this.#frames.decode(frame) : undefined;
    if (message === undefined) return;
    this.#stopTimers();
    this.#awaitsAnswer = false;
    this.#timer = setTimeout(() => this.#probe(socket), QUIET_MS);
    this.#stall(false);
    this.#owner.received(message);
  }

  /**
   * @param {Socket} socket
   * @param {boolean} mayReconnect
   * @param {string} [reason]
   */
  #lose(socket, mayReconnect, reason = "") {
    if (socket !== this.#socket) return;
    this.#socket = null;
    this.#isStalled = false;
    this.#stopTimers();
    if (this.#sessionStartedAt !== null && performance.now() - this.#sessionStartedAt >= STABLE_MS) this.#attempts = 0;
    const reconnects = mayReconnect && !this.#leaving;
    // Code 1000 ends the session. With any other one the gateway keeps it, to be resumed.
    socket.close(reconnects ? RETURNING : 1000);
    this.#owner.lost(reconnects, reason);
  }
}
