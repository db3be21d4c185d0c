// One setting of a session, which the gateway may refuse: the wanted, the requested and the confirmed value. Must not
// know messages.

/**
 * @param {unknown} one
 * @param {unknown} other
 */
function isEqual(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** @template T A value, or a list of values. */
export class NegotiatedSetting {
  /** Sent to the gateway and not answered yet. @type {{value: T} | null} */
  #requested = null;
  /** In force; null before the first session. @type {{value: T} | null} */
  #confirmed = null;

  /** @param {T} wanted */
  constructor(wanted) {
    this.wanted = wanted;
  }

  /** Whether the wanted value still has to be requested. */
  get isChanged() {
    return this.#confirmed === null || !isEqual(this.wanted, this.#confirmed.value);
  }

  /**
   * @param {T} [value] Another one than the wanted one, to begin with.
   * @returns {T} The value to send.
   */
  request(value = this.wanted) {
    this.#requested = { value };
    return value;
  }

  /** The gateway took the requested value. */
  confirm() {
    this.#confirmed = this.#requested ?? this.#confirmed;
    this.#requested = null;
  }

  /** The request was not answered; it may be sent again. */
  withdraw() {
    this.#requested = null;
  }

  /** The session has ended. The next one may refuse the value. */
  endSession() {
    this.#confirmed = null;
  }

  /**
   * The gateway refused the requested value: go back to the confirmed one, unless another value is wanted by now.
   * @returns {boolean} Whether there is a different value to continue with.
   */
  refuse() {
    const requested = this.#requested;
    this.#requested = null;
    if (requested === null || this.#confirmed === null) return false;
    if (isEqual(requested.value, this.#confirmed.value)) return false;
    if (isEqual(requested.value, this.wanted)) this.wanted = this.#confirmed.value;
    return true;
  }
}
