// Something that a session is told and may refuse: what is wanted, what was asked for, and what is in force. Must not
// know messages.

/**
 * @param {unknown} one
 * @param {unknown} other
 */
function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** @template T A value, or a list of values. */
export class Setting {
  /** @type {{value: T} | null} */
  #asked = null;
  /** Nothing before the first session. @type {{value: T} | null} */
  #inForce = null;

  /** @param {T} wanted */
  constructor(wanted) {
    this.wanted = wanted;
  }

  /** Whether the session is to be told. */
  get differs() {
    return this.#inForce === null || !same(this.wanted, this.#inForce.value);
  }

  /** @returns {T} What the session is told. */
  ask() {
    this.#asked = { value: this.wanted };
    return this.wanted;
  }

  /** What was asked for is in force. */
  take() {
    this.#inForce = this.#asked ?? this.#inForce;
    this.#asked = null;
  }

  /** What was asked for may be asked for again. */
  drop() {
    this.#asked = null;
  }

  /** The session is over: whether the next one takes it is not known. */
  end() {
    this.#inForce = null;
  }

  /**
   * What was asked for is not wanted any more.
   * @returns {boolean} Whether there is something else to ask for, or to be content with.
   */
  refuse() {
    const asked = this.#asked;
    this.#asked = null;
    if (asked === null || this.#inForce === null || same(asked.value, this.#inForce.value)) return false;
    if (same(asked.value, this.wanted)) this.wanted = this.#inForce.value;
    return true;
  }
}
