// The languages that a session reads: those in force, and those asked for that are not answered yet. Knows that a
// request can be refused; must not know messages.

/**
 * @param {readonly string[]} some
 * @param {readonly string[]} others
 */
export function equal(some, others) {
  return some.length === others.length && some.every((value, index) => value === others[index]);
}

export class Reads {
  /** @type {readonly string[]} */
  #inForce = [];
  /** @type {readonly string[] | null} */
  #asked = null;
  #refusals = 0;
  /** @type {number | undefined} */
  #retry;

  /** @param {readonly string[]} reads */
  areInForce(reads) {
    return equal(reads, this.#inForce);
  }

  /** Whether nothing is asked for, and nothing refused is to be waited for. */
  get mayAsk() {
    return this.#asked === null && this.#retry === undefined;
  }

  /** How often in a row they were refused. */
  get refusals() {
    return this.#refusals;
  }

  /** @param {readonly string[]} reads */
  ask(reads) {
    this.#asked = reads;
  }

  /** What was asked for is in force. */
  take() {
    this.#inForce = this.#asked ?? this.#inForce;
    this.#asked = null;
    this.#refusals = 0;
  }

  /**
   * What was in force stays so.
   * @returns {readonly string[]} What was asked for.
   */
  refuse() {
    const asked = this.#asked ?? [];
    this.#asked = null;
    this.#refusals += 1;
    return asked;
  }

  /**
   * Nothing may be asked for a while.
   * @param {number} delayMs
   * @param {() => void} whenOver
   */
  postpone(delayMs, whenOver) {
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      whenOver();
    }, delayMs);
  }

  /** The session is gone, and with it what was asked of it. */
  forget() {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#asked = null;
    this.#refusals = 0;
  }
}
