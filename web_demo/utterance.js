// A final utterance, from when it is said until nothing more comes for it. Knows its languages and how far it got;
// must not know messages.

/** Unlike `crypto.randomUUID`, this works on pages that were not served over TLS. */
function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Utterance {
  id = randomId();
  /** On this connection. */
  sent = false;
  /** By this connection's session: it is the gateway's duty now. */
  accepted = false;
  cancelled = false;
  /** How often it was refused in a row. */
  refusals = 0;
  /** Languages that are final or failed. @type {Set<string>} */
  #settled = new Set();
  /** @type {number | undefined} */
  #retry;

  /**
   * @param {string} text
   * @param {string} lang
   * @param {readonly string[]} reads Languages to translate into.
   */
  constructor(text, lang, reads) {
    this.text = text;
    this.lang = lang;
    this.reads = reads;
  }

  /** Whether it is to be sent as soon as that is possible. */
  get due() {
    return !this.sent && this.#retry === undefined;
  }

  /** Whether every language is final or failed. */
  get settled() {
    return this.accepted && this.#settled.size >= this.reads.length;
  }

  /** @param {string} lang */
  awaits(lang) {
    return this.reads.includes(lang) && !this.#settled.has(lang);
  }

  /** @param {string} lang */
  settle(lang) {
    this.#settled.add(lang);
  }

  /**
   * It was not taken: due again after a while.
   * @param {number} delayMs
   * @param {() => void} whenDue
   */
  postpone(delayMs, whenDue) {
    this.sent = false;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      whenDue();
    }, delayMs);
  }

  /** Wait no longer. */
  hurry() {
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }
}
