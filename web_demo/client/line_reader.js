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

// How many lines are kept for a loop that may never begin.
const MOST_KEPT = 1_000;

/**
 * What a host's command is answered with when it is refused: nothing that was said is lost.
 * @param {{code: string, field?: string | null}} error
 */
const answersHost = ({ code, field }) => field === "participant" || (code === "forbidden" && !field);

/**
 * What ends the loop.
 * @param {ClientEvent} event
 * @returns {SessionError | "over" | null} Null if the loop goes on.
 */
export function endOf(event) {
  switch (event.type) {
    case "utterance.refused":
      return new SessionError(event.message, event.code, event.id);
    case "error":
      // Without an option that the model does not take, the session goes on as before.
      return event.retryable || event.code === "unsupported_option" || answersHost(event)
        ? null
        : new SessionError(event.message, event.code);
    case "state":
      if (event.state !== "closed") return null;
      return event.reason ? new SessionError(event.reason, event.code) : "over";
    default:
      return null;
  }
}

/** @typedef {(listener: (event: ClientEvent) => void, hears: (event: ClientEvent) => boolean) => () => void} Listen */

/** @implements {AsyncIterableIterator<Line, void>} */
export class LineReader {
  #apply;
  #onRefused;
  #stop;
  #isBegun = false;
  #isWanted = (/** @type {Line} */ _line) => true;
  /** @type {{line: Line}[]} */
  #waiting = [];
  /** Those of them that still grow. @type {Map<string, {line: Line}>} */
  #growing = new Map();
  /** @type {SessionError | "over" | null} */
  #end = null;
  /** Wakes the loop. */
  #wake = () => {};

  /**
   * Until the loop begins, the newest lines are kept, and refusals do not end it.
   * @param {(event: ClientEvent) => Line[]} apply The lines that an event changes.
   * @param {Listen} listen What ends the loop is heard, because the loop throws it; everything else is not.
   * @param {() => void} onRefused Called when a refusal ended the loop: what comes next is for another one.
   */
  constructor(apply, listen, onRefused) {
    this.#apply = apply;
    this.#onRefused = onRefused;
    this.#stop = listen(
      (event) => this.#hear(event),
      (event) => this.#isBegun && endOf(event) !== null,
    );
  }

  /** Whether nothing more will come than what waits. */
  get hasEnded() {
    return this.#end !== null;
  }

  /**
   * The loop begins.
   * @param {(line: Line) => boolean} isWanted
   */
  begin(isWanted) {
    this.#isBegun = true;
    this.#isWanted = isWanted;
    const kept = this.#waiting;
    this.#waiting = [];
    this.#growing.clear();
    for (const { line } of kept) this.#add(line);
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<Line, void>>} Rejected with `SessionError`. */
  async next() {
    for (;;) {
      const line = this.#takeOldest();
      if (line !== undefined) return { value: line, done: false };
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
    const end = this.#isBegun || event.type === "state" ? endOf(event) : null;
    if (end !== null) {
      this.#finish(end);
      if (event.type !== "state") this.#onRefused();
    }
    this.#wake();
  }

  /** @param {Line} line */
  #add(line) {
    if (!this.#isWanted(line)) return;
    let entry = this.#growing.get(line.key);
    if (entry === undefined) {
      entry = { line };
      this.#waiting.push(entry);
    }
    entry.line = line;
    if (line.final || line.gone) this.#growing.delete(line.key);
    else this.#growing.set(line.key, entry);
    if (!this.#isBegun && this.#waiting.length > MOST_KEPT) this.#takeOldest();
  }

  /** It waits no more: what comes for the same line is another entry. */
  #takeOldest() {
    const entry = this.#waiting.shift();
    if (entry === undefined) return undefined;
    const { line } = entry;
    if (this.#growing.get(line.key) === entry) this.#growing.delete(line.key);
    return line;
  }

  /** @param {SessionError | "over"} end */
  #finish(end) {
    this.#stop();
    this.#end = end;
    this.#wake();
  }
}
