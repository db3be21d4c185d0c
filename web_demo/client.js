// The wire protocol v1 in the browser: one session that survives its connections. Knows messages, order and
// reconnecting; must not know the page. Everything it has to say goes to the listeners as a `ClientEvent`.
//
//   const client = new GatewayClient("wss://…/v1/stream", { reads: ["ja", "es"] });
//   client.listen((event) => { if (event.type === "translation.final") show(event.lang, event.text); });
//   client.connect();
//   client.final({ text: "Let's move the launch to Friday.", lang: "en" });

/**
 * What a session starts with.
 * @typedef {object} SessionOptions
 * @property {string[]} [reads] Languages to translate into.
 * @property {string | null} [speaks] The language of utterances that name none.
 * @property {string} [name] Who speaks.
 */

/**
 * @typedef {object} Limits
 * @property {number} message_bytes
 * @property {number} text_chars Unicode code points.
 * @property {number} utterances_in_flight
 * @property {number} languages
 */

/** @typedef {{queue_ms: number, first_token_ms: number, total_ms: number}} Timings */

/**
 * Gateway → client, as far as this client reads them.
 * @typedef {{type: "session.started", session: string, meeting: string, epoch: string, offset: number,
 *   recovered: boolean | null, languages: string[], options: string[], limits: Limits}} SessionStarted
 * @typedef {{type: "session.updated", reads: string[], speaks: string | null}} SessionUpdated
 * @typedef {{type: "session.draining", deadline_ms: number}} SessionDraining
 * @typedef {{type: "utterance.accepted", id: string, rev: number, offset: number}} UtteranceAccepted
 * @typedef {{type: "caption", utterance: string, speaker: string, lang: string, rev: number, text: string,
 *   final: boolean}} Caption
 * @typedef {{type: "translation.delta", utterance: string, lang: string, rev: number, committed: string,
 *   tentative?: string}} TranslationDelta
 * @typedef {{type: "translation.final", utterance: string, speaker: string, lang: string, rev: number, text: string,
 *   offset: number, timings: Timings, tokens: number, truncated?: boolean}} TranslationFinal
 * @typedef {{type: "translation.failed", utterance: string, lang: string, code: string,
 *   message: string}} TranslationFailed
 * @typedef {{type: "error", code: string, message: string, retryable?: boolean, retry_after_ms?: number | null,
 *   utterance?: string | null, field?: string | null}} GatewayError
 * @typedef {{type: "pong", nonce: string}} Pong
 * @typedef {SessionStarted | SessionUpdated | SessionDraining | UtteranceAccepted | Caption | TranslationDelta |
 *   TranslationFinal | TranslationFailed | GatewayError | Pong} ServerMessage
 */

/**
 * - `connecting`: the socket is being opened, or `session.start` is on its way
 * - `loading`: connected, and the engine still loads; `session.start` is sent again until it is taken
 * - `open`: finals are taken
 * - `reconnecting`: the connection is gone, a new one will be tried
 * - `closed`: it will not be tried again (until `connect` is called)
 * @typedef {"connecting" | "loading" | "open" | "reconnecting" | "closed"} ConnectionState
 */

/**
 * What a listener hears: the gateway's messages, without those that repeat what it heard before, and
 * - `state`: the connection's state changed; `reason` is a sentence, or empty
 * - `utterance.restarted`: the connection was lost and the utterance is translated anew; forget unfinished text
 * - `utterance.refused`: the gateway will not take the utterance; nothing more will come for it
 * - `utterance.settled`: every language of the utterance is final or failed
 * @typedef {{type: "state", state: ConnectionState, reason: string}} StateChanged
 * @typedef {{type: "utterance.restarted", id: string}} UtteranceRestarted
 * @typedef {{type: "utterance.refused", id: string, code: string, message: string}} UtteranceRefused
 * @typedef {{type: "utterance.settled", id: string}} UtteranceSettled
 * @typedef {ServerMessage | StateChanged | UtteranceRestarted | UtteranceRefused | UtteranceSettled} ClientEvent
 */

/**
 * A final utterance from `final` until it is settled.
 * @typedef {object} Pending
 * @property {string} id
 * @property {string} text
 * @property {string} lang
 * @property {string[]} reads Languages that were asked for.
 * @property {Set<string>} settled Languages that are final or failed.
 * @property {boolean} sent On this connection.
 * @property {boolean} accepted By this connection's session: it is the gateway's duty now.
 * @property {boolean} cancelled
 * @property {number} refusals In a row.
 * @property {number | undefined} retry Timer.
 */

const SUBPROTOCOL = "translation.v1.json";
const RETRY_MS = 1_000;
const RECONNECT_FIRST_MS = 500;
const RECONNECT_MOST_MS = 15_000;
const PING_MS = 20_000;

/** @param {number} status A WebSocket close code. */
function mayReconnect(status) {
  return status !== 1000 && !(status >= 4500 && status <= 4999);
}

/**
 * A random delay around half to one and a half of what was asked for, so that clients do not come back together.
 * @param {number} delayMs
 */
function jittered(delayMs) {
  return delayMs * (0.5 + Math.random());
}

/** Unlike `crypto.randomUUID`, this works on pages that were not served over TLS. */
function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {readonly string[]} some
 * @param {readonly string[]} others
 */
function equal(some, others) {
  return some.length === others.length && some.every((value, index) => value === others[index]);
}

export class GatewayClient {
  #url;
  #options;
  /** @type {Set<(event: ClientEvent) => void>} */
  #listeners = new Set();
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {ConnectionState} */
  #state = "closed";
  #reason = "";
  /** @type {Limits | null} */
  #limits = null;
  /** Languages asked for last, and those that the gateway said are in force. @type {string[]} */
  #requested = [];
  /** @type {string[]} */
  #inForce = [];
  /** @type {Map<string, Pending>} In the order in which they were said. */
  #pending = new Map();
  /** The newest error of this connection: what a close that follows is about. @type {GatewayError | null} */
  #lastError = null;
  #attempts = 0;
  #draining = false;
  #heard = false;
  /** @type {number | undefined} */
  #reconnecting;
  /** @type {number | undefined} */
  #starting;
  /** @type {number | undefined} */
  #pinging;

  /**
   * @param {string} url Of the stream: `ws://` or `wss://`.
   * @param {SessionOptions} [options]
   */
  constructor(url, options = {}) {
    this.#url = url;
    this.#options = { ...options, reads: [...(options.reads ?? [])] };
  }

  get state() {
    return this.#state;
  }

  /** What the gateway accepts; null before the first session started. */
  get limits() {
    return this.#limits;
  }

  /**
   * @param {(event: ClientEvent) => void} listener
   * @returns {() => void} Ends it.
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Connect, or stop waiting and try again now. Does nothing while a connection is open or being opened. */
  connect() {
    if (this.#socket !== null) return;
    clearTimeout(this.#reconnecting);
    this.#lastError = null;
    this.#draining = false;
    this.#enter("connecting");
    const socket = new WebSocket(this.#url, SUBPROTOCOL);
    this.#socket = socket;
    socket.addEventListener("open", () => this.#start());
    socket.addEventListener("message", (event) => this.#receive(socket, event.data));
    socket.addEventListener("close", (event) => this.#lose(socket, event.code));
  }

  /** End the session: the gateway finishes what it accepted and closes. What it did not accept is forgotten. */
  close() {
    clearTimeout(this.#reconnecting);
    for (const pending of this.#pending.values()) {
      if (!pending.accepted) this.#forget(pending);
    }
    if (this.#state === "open") this.#send({ type: "session.end" });
    else if (this.#socket !== null) this.#lose(this.#socket, 1000);
    else this.#enter("closed");
  }

  /**
   * Languages to translate into, from the next utterance on.
   * @param {readonly string[]} reads
   */
  read(reads) {
    this.#options.reads = [...reads];
  }

  /**
   * Say something. It is sent as soon as there is a session, and again until a gateway has accepted it.
   * @param {{text: string, lang: string}} utterance `lang`: a tag as the gateway lists it.
   * @returns {string} The utterance's id.
   */
  final({ text, lang }) {
    const id = randomId();
    this.#pending.set(id, {
      id,
      text,
      lang,
      reads: this.#options.reads.filter((tag) => tag !== lang),
      settled: new Set(),
      sent: false,
      accepted: false,
      cancelled: false,
      refusals: 0,
      retry: undefined,
    });
    this.#flush();
    return id;
  }

  /**
   * Stop translating an utterance. What is missing arrives as `translation.failed`, or at once as
   * `utterance.refused` when the gateway was never told of it.
   * @param {string} id
   */
  cancel(id) {
    const pending = this.#pending.get(id);
    if (pending === undefined || pending.cancelled) return;
    pending.cancelled = true;
    if (pending.sent && this.#state === "open") this.#send({ type: "utterance.cancel", id });
    else this.#refuse(pending, "cancelled", "The utterance was cancelled.");
  }

  // ---------------------------------------------------------------- sending

  #start() {
    this.#heard = true;
    this.#pinging = setInterval(() => this.#ping(), PING_MS);
    this.#sendStart();
  }

  #sendStart() {
    this.#requested = this.#options.reads;
    this.#send({ type: "session.start", ...this.#options });
  }

  #flush() {
    if (this.#state !== "open" || this.#draining) return;
    for (const pending of this.#pending.values()) {
      if (!pending.sent && pending.retry === undefined) this.#sendFinal(pending);
    }
  }

  /** @param {Pending} pending */
  #sendFinal(pending) {
    if (!equal(pending.reads, this.#requested)) {
      this.#requested = pending.reads;
      this.#send({ type: "session.update", reads: pending.reads });
    }
    const message = { type: "utterance.final", id: pending.id, rev: 1, text: pending.text, lang: pending.lang };
    const bytes = new TextEncoder().encode(JSON.stringify(message)).length;
    pending.sent = true;
    if (this.#limits !== null && bytes > this.#limits.message_bytes) {
      // Not before `final` has returned the id that this is about.
      queueMicrotask(() => this.#refuse(pending, "message_too_large", "The text is too long to be sent."));
      return;
    }
    this.#send(message);
  }

  /** A connection can be gone without a word: what does not answer a ping within one period is given up. */
  #ping() {
    if (!this.#heard && this.#socket !== null) {
      this.#lose(this.#socket, 1006);
      return;
    }
    this.#heard = false;
    this.#send({ type: "ping", nonce: "" });
  }

  /** @param {object} message */
  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  // ---------------------------------------------------------------- receiving

  /**
   * @param {WebSocket} socket
   * @param {unknown} frame
   */
  #receive(socket, frame) {
    if (socket !== this.#socket || typeof frame !== "string") return;
    this.#heard = true;
    /** @type {ServerMessage} */
    const message = JSON.parse(frame);
    switch (message.type) {
      case "session.started":
        return this.#onStarted(message);
      case "session.updated":
        this.#inForce = message.reads;
        return this.#emit(message);
      case "session.draining":
        this.#draining = true;
        return this.#emit(message);
      case "utterance.accepted":
        return this.#onAccepted(message);
      case "translation.delta":
        if (this.#awaits(message.utterance, message.lang)) this.#emit(message);
        return;
      case "translation.final":
      case "translation.failed":
        return this.#onTranslated(message);
      case "error":
        return this.#onError(message);
      default:
        // Captions and pongs, and whatever a newer gateway may have to say.
        return this.#emit(message);
    }
  }

  /** @param {SessionStarted} message */
  #onStarted(message) {
    this.#limits = message.limits;
    this.#inForce = this.#requested;
    this.#attempts = 0;
    this.#emit(message);
    for (const pending of this.#pending.values()) {
      // A session that is not the old one recovered knows nothing of what the old one accepted.
      if (pending.accepted && message.recovered !== true) {
        pending.accepted = pending.sent = false;
        this.#emit({ type: "utterance.restarted", id: pending.id });
      }
    }
    this.#enter("open");
    this.#flush();
  }

  /** @param {UtteranceAccepted} message */
  #onAccepted(message) {
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    pending.accepted = true;
    pending.refusals = 0;
    this.#emit(message);
    for (const lang of pending.reads) {
      // Only after a refused `session.update`: never leave a language waiting for what will not come.
      if (!this.#inForce.includes(lang) && !pending.settled.has(lang)) {
        const words = "This language was not being translated when the utterance was taken.";
        this.#onTranslated({
          type: "translation.failed",
          utterance: pending.id,
          lang,
          code: "not_read",
          message: words,
        });
      }
    }
    this.#settleIfDone(pending);
  }

  /** @param {TranslationFinal | TranslationFailed} message */
  #onTranslated(message) {
    const pending = this.#pending.get(message.utterance);
    if (pending === undefined || !this.#awaits(message.utterance, message.lang)) return;
    pending.settled.add(message.lang);
    this.#emit(message);
    this.#settleIfDone(pending);
  }

  /** @param {GatewayError} error */
  #onError(error) {
    this.#lastError = error;
    const pending = error.utterance ? this.#pending.get(error.utterance) : undefined;
    if (pending !== undefined) {
      this.#onRefusal(pending, error);
    } else if (this.#state === "connecting" || this.#state === "loading") {
      this.#onStartRefused(error);
    } else if (error.code !== "unknown_utterance") {
      // A cancel that crossed the last translation on its way is no news to anybody.
      this.#emit(error);
    }
  }

  /**
   * @param {Pending} pending
   * @param {GatewayError} error
   */
  #onRefusal(pending, error) {
    if (pending.accepted) {
      // About a cancel, then: the utterance itself was taken.
      pending.cancelled = false;
      if (error.code !== "unknown_utterance") this.#emit(error);
      return;
    }
    if (pending.cancelled) {
      this.#refuse(pending, "cancelled", "The utterance was cancelled.");
      return;
    }
    if (!error.retryable) {
      this.#refuse(pending, error.code, error.message);
      return;
    }
    pending.sent = false;
    pending.refusals += 1;
    const delayMs = (error.retry_after_ms ?? RETRY_MS) * Math.min(2 ** (pending.refusals - 1), 8);
    pending.retry = setTimeout(() => {
      pending.retry = undefined;
      this.#flush();
    }, jittered(delayMs));
  }

  /** @param {GatewayError} error */
  #onStartRefused(error) {
    if (!error.retryable) {
      this.#emit(error);
      if (this.#socket !== null) this.#lose(this.#socket, 4504);
      return;
    }
    // A draining gateway closes right after this; then there is nothing left to retry on.
    if (error.code === "draining") return;
    this.#enter("loading", error.message);
    clearTimeout(this.#starting);
    this.#starting = setTimeout(() => this.#sendStart(), jittered(error.retry_after_ms ?? RETRY_MS));
  }

  // ---------------------------------------------------------------- losing the connection

  /**
   * @param {WebSocket} socket
   * @param {number} status A WebSocket close code.
   */
  #lose(socket, status) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    clearInterval(this.#pinging);
    clearTimeout(this.#starting);
    socket.close();
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.retry);
      pending.retry = undefined;
      if (pending.cancelled) this.#refuse(pending, "cancelled", "The utterance was cancelled.");
      else if (!pending.accepted) pending.sent = false;
    }
    if (!mayReconnect(status)) {
      const words = this.#lastError?.message ?? "";
      for (const pending of this.#pending.values()) {
        this.#refuse(pending, "closed", words || "The session has ended.");
      }
      this.#enter("closed", words);
      return;
    }
    const backOffMs = Math.min(RECONNECT_FIRST_MS * 2 ** this.#attempts, RECONNECT_MOST_MS);
    this.#attempts += 1;
    this.#reconnecting = setTimeout(
      () => this.connect(),
      jittered(Math.max(backOffMs, this.#lastError?.retry_after_ms ?? 0)),
    );
    this.#enter("reconnecting", this.#lastError?.message ?? "");
  }

  // ---------------------------------------------------------------- what is known

  /**
   * @param {string} id
   * @param {string} lang
   */
  #awaits(id, lang) {
    const pending = this.#pending.get(id);
    return pending !== undefined && pending.reads.includes(lang) && !pending.settled.has(lang);
  }

  /** @param {Pending} pending */
  #settleIfDone(pending) {
    if (!pending.accepted || pending.settled.size < pending.reads.length) return;
    this.#forget(pending);
    this.#emit({ type: "utterance.settled", id: pending.id });
  }

  /**
   * @param {Pending} pending
   * @param {string} code
   * @param {string} message
   */
  #refuse(pending, code, message) {
    if (!this.#pending.has(pending.id)) return;
    this.#forget(pending);
    this.#emit({ type: "utterance.refused", id: pending.id, code, message });
  }

  /** @param {Pending} pending */
  #forget(pending) {
    clearTimeout(pending.retry);
    this.#pending.delete(pending.id);
  }

  /**
   * @param {ConnectionState} state
   * @param {string} [reason]
   */
  #enter(state, reason = "") {
    if (this.#state === state && this.#reason === reason) return;
    this.#state = state;
    this.#reason = reason;
    this.#emit({ type: "state", state, reason });
  }

  /** @param {ClientEvent} event */
  #emit(event) {
    for (const listener of this.#listeners) listener(event);
  }
}
