// A gateway that the tests play by hand, and a clock that moves when they say so.

import assert from "node:assert/strict";
import { beforeEach, mock } from "node:test";

import { GatewayClient } from "../../web_demo/client/gateway_client.js";

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
});
performance.now = () => Date.now();

const STEP_MS = 50;
const LIMITS = { message_bytes: 65_536, id_chars: 64 };
const STARTED = {
  type: "session.started",
  session: "s1",
  participant: "p1",
  meeting: "m1",
  epoch: "e1",
  offset: 0,
  recovered: null,
  languages: ["en", "fr", "de"],
  participants: [],
  options: [],
  limits: LIMITS,
};

/** Another session, in which the gateway has forgotten the first one. */
export const ANOTHER = { session: "s2", participant: "p2", epoch: "e2", recovered: false };

/** Everything that is due now is done. */
export const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Time passes. @param {number} ms */
export async function pass(ms) {
  await settle();
  for (let left = ms; left > 0; left -= STEP_MS) {
    mock.timers.tick(Math.min(left, STEP_MS));
    await settle();
  }
}

/** One connection, from the gateway's side. Pings are answered in passing, unless `answersPings` is false. */
class Socket {
  readyState = 0;
  /** The code with which the client closed. @type {number | undefined} */
  closedWith;
  answersPings = true;
  pings = 0;
  /** @type {any[]} */
  #unread = [];
  /** @type {Record<string, (event: any) => void>} */
  #listeners = {};

  constructor(url) {
    this.url = url;
  }

  addEventListener(type, listener) {
    this.#listeners[type] = listener;
  }

  send(frame) {
    const message = JSON.parse(frame);
    if (message.type !== "ping") return this.#unread.push(message);
    this.pings += 1;
    if (this.answersPings) queueMicrotask(() => this.#hand({ type: "pong", nonce: "" }));
  }

  close(code) {
    this.closedWith ??= code;
    this.readyState = 3;
  }

  /** The connection is there. */
  async open() {
    this.readyState = 1;
    this.#listeners.open({});
    await settle();
  }

  /** The next message of the client, if there is one. */
  next() {
    return this.#unread.shift();
  }

  /** The next message of the client, which must be of this type. */
  take(type) {
    const message = this.next();
    assert.equal(message?.type, type);
    return message;
  }

  /** Take a final and accept it. */
  async accept(text, offset = null) {
    const final = this.take("utterance.final");
    if (text !== undefined) assert.equal(final.text, text);
    await this.say({ type: "utterance.accepted", id: final.id, rev: final.rev, offset });
    return final;
  }

  /** The client has sent nothing else. */
  nothingMore() {
    assert.deepEqual(this.#unread, []);
  }

  async say(...messages) {
    for (const message of messages) this.#hand(message);
    await settle();
  }

  /** Answer a start. */
  async start(fields = {}) {
    const start = this.take("session.start");
    const recovered = start.resume === null ? {} : { recovered: true, offset: start.resume.offset };
    await this.say({ ...STARTED, ...recovered, ...fields });
    return start;
  }

  /** The connection ends: by the gateway, or without a code by the network. */
  async lose(code = 1006, reason = "") {
    this.readyState = 3;
    this.#listeners.close({ code, reason });
    await settle();
  }

  #hand(message) {
    if (this.readyState === 1) this.#listeners.message({ data: JSON.stringify(message) });
  }
}

/** A client, and the gateway's side of its connections. */
export class Session {
  /** @type {Socket[]} */
  sockets = [];
  /** @type {any[]} */
  heard = [];

  /** @param {{isHeard?: boolean}} [program] Whether it listens to all events. */
  constructor(options = {}, { isHeard = true } = {}) {
    const { sockets } = this;
    class WebSocket extends Socket {
      constructor(url) {
        super(url);
        sockets.push(this);
      }
    }
    this.client = new GatewayClient("http://gateway.example", { reads: ["fr"], WebSocket, ...options });
    if (isHeard) this.client.listen((event) => this.heard.push(event));
  }

  /** The newest connection, once the client opens it; time passes until it does. */
  async comes() {
    const before = this.sockets.filter((socket) => socket.readyState > 0).length;
    for (let ms = 0; ms < 30_000 && this.sockets.length === before; ms += STEP_MS) await pass(STEP_MS);
    const socket = this.sockets[before];
    assert.notEqual(socket, undefined, "the client does not connect");
    await socket.open();
    return socket;
  }

  /** Connect and start. @returns {Promise<Socket>} */
  async open(fields = {}) {
    this.client.connect();
    await settle();
    const socket = await this.comes();
    await socket.start(fields);
    return socket;
  }

  /** Break the connection in use, and resume the session on the next one. */
  async again(fields = {}) {
    await this.sockets.at(-1).lose();
    const socket = await this.comes();
    await socket.start(fields);
    return socket;
  }

  of(type) {
    return this.heard.filter((event) => event.type === type);
  }

  /** Codes of the events of a type. */
  codes(type) {
    return this.of(type).map(({ code }) => code);
  }

  get states() {
    return this.of("state").map(({ state }) => state);
  }
}

export const refused = (code, { utterance = null, retry_after_ms = null, field = null } = {}) => ({
  type: "error",
  code,
  message: `No: ${code}.`,
  retryable: retry_after_ms !== null,
  retry_after_ms,
  utterance,
  field,
});

export const updated = (reads, speaks, stability) => ({
  type: "session.updated",
  reads,
  speaks,
  stability,
  originals: false,
});

export const caption = ({ id, rev, text, type }, offset = null) => ({
  type: "caption",
  participant: "p1",
  utterance: id,
  speaker: "",
  lang: "en",
  rev,
  text,
  final: type === "utterance.final",
  offset,
});

export const translated = ({ id, rev }, lang, text, offset) => ({
  type: "translation.final",
  participant: "p1",
  utterance: id,
  speaker: "",
  lang,
  rev,
  text,
  offset,
});

export const failed = ({ id, rev }, lang, offset, code = "engine_failed") => ({
  type: "translation.failed",
  participant: "p1",
  utterance: id,
  speaker: "",
  lang,
  rev,
  code,
  message: "No.",
  offset,
});

export const delta = ({ id, rev }, lang, committed) => ({
  type: "translation.delta",
  participant: "p1",
  utterance: id,
  lang,
  rev,
  committed,
  tentative: "",
});
