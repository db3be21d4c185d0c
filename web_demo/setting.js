// Something that a session is told and may refuse: the value in force, and the one asked for that is not answered yet.
// Must not know messages.

/**
 * @param {readonly string[]} some
 * @param {readonly string[]} others
 */
export function equal(some, others) {
  return some.length === others.length && some.every((value, index) => value === others[index]);
}

/** @template T */
export class Setting {
  #inForce;
  #same;
  /** @type {{value: T} | null} */
  #asked = null;
  #refusals = 0;
  /** @type {number | undefined} */
  #retry;

  /**
   * @param {T} initial
   * @param {(one: T, other: T) => boolean} [same]
   */
  constructor(initial, same = Object.is) {
    this.#inForce = initial;
    this.#same = same;
  }

  get inForce() {
    return this.#inForce;
  }

  /** @param {T} value */
  isInForce(value) {
    return this.#same(value, this.#inForce);
  }

  /** Whether nothing is asked for, and nothing refused is to be waited for. */
  get mayAsk() {
    return this.#asked === null && this.#retry === undefined;
  }

  /** How often in a row it was refused. */
  get refusals() {
    return this.#refusals;
  }

  /** @param {T} value */
  ask(value) {
    this.#asked = { value };
  }

  /** What was asked for is in force. */
  take() {
    if (this.#asked !== null) this.#inForce = this.#asked.value;
    this.#asked = null;
    this.#refusals = 0;
  }

  /**
   * What was in force stays so.
   * @returns {T} What was asked for.
   */
  refuse() {
    const asked = this.#asked === null ? this.#inForce : this.#asked.value;
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
