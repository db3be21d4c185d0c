// Lines for a loop, `for await`: what comes while the loop is busy waits, of what grows only its newest state. Must not
// know how lines follow from events.

/** @import {ClientEvent} from "./events.js" */
/** @import {Line} from "./lines.js" */

/** What the gateway refused for good, or why the session is over. */
export class SessionError extends Error {
  /** The error's code; empty if there is none, as for a lost connection. */
  code;
  /** The id of the utterance that was refused; empty if it was something else. */
  utterance;

  /**
   * @param {string} message
   * @param {string} code
   * @param {string} [utterance]
   */
  constructor(message, code, utterance = "") {
    super(message);
    this.name = "SessionError";
    this.code = code;
    this.utterance = utterance;
  }
}

/**
 * What ends the loop.
 * @param {ClientEvent} event
 * @returns {SessionError | "over" | null} Null if the loop goes on.
 */
function endOf(event) {
  switch (event.type) {
    case "utterance.refused":
      return new SessionError(event.message, event.code, event.id);
    case "error":
      // Without an option that the model does not take, the session goes on as before.
      return event.retryable || event.code === "unsupported_option"
        ? null
        : new SessionError(event.message, event.code);
    case "state":
      if (event.state !== "closed") return null;
      return event.reason ? new SessionError(event.reason, event.code) : "over";
    default:
      return null;
  }
}

/** @implements {AsyncIterableIterator<Line, void>} */
export class LineReader {
  #apply;
  #stop;
  /** @type {{line: Line}[]} */
  #waiting = [];
  /** Those of them that still grow. @type {Map<string, {line: Line}>} */
  #growing = new Map();
  /** @type {SessionError | "over" | null} */
  #end = null;
  /** Wakes the loop. */
  #wake = () => {};

  /**
   * @param {(event: ClientEvent) => Line[]} apply The lines that an event changes.
   * @param {(listener: (event: ClientEvent) => void) => () => void} listen
   */
  constructor(apply, listen) {
    this.#apply = apply;
    this.#stop = listen((event) => this.#hear(event));
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<Line, void>>} Rejected with `SessionError`. */
  async next() {
    for (;;) {
      const first = this.#waiting.shift();
      if (first !== undefined) {
        if (this.#growing.get(first.line.key) === first) this.#growing.delete(first.line.key);
        return { value: first.line, done: false };
      }
      const end = this.#end;
      if (end !== null) {
        this.#end = "over";
        if (end !== "over") throw end;
        return { value: undefined, done: true };
      }
      await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    }
  }

  /** The loop was left. @returns {Promise<IteratorResult<Line, void>>} */
  async return() {
    this.#waiting = [];
    this.#finish("over");
    return { value: undefined, done: true };
  }

  /** @param {ClientEvent} event */
  #hear(event) {
    for (const line of this.#apply(event)) this.#add(line);
    const end = endOf(event);
    if (end !== null) this.#finish(end);
    this.#wake();
  }

  /** @param {Line} line */
  #add(line) {
    const before = this.#growing.get(line.key);
    if (before !== undefined) before.line = line;
    const entry = before ?? { line };
    if (before === undefined) this.#waiting.push(entry);
    if (line.final || line.gone) this.#growing.delete(line.key);
    else this.#growing.set(line.key, entry);
  }

  /** @param {SessionError | "over"} end */
  #finish(end) {
    this.#stop();
    this.#end = end;
    this.#wake();
  }
}
