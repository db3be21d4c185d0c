// An utterance, from its first partial until the gateway has accepted it. Knows its text and how far it got; must not
// know messages.

/** Unlike `crypto.randomUUID`, this works on pages that were not served over TLS. */
function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Utterance {
  text = "";
  lang = "";
  /** Of the newest partial that was sent, or of the final. */
  rev = 0;
  /** Whether `text` is the last word. */
  final = false;
  /** Whether the final was sent on this connection. */
  sent = false;
  /** Whether the gateway was told to stop. */
  cancelled = false;
  /** Whether it was told that it waits for a session. */
  queued = false;
  refusals = 0;
  /** Whether there is a partial that was not sent. */
  #fresh = false;
  /** Revisions of partials that may still be answered on this connection. @type {number[]} */
  #unanswered = [];
  /** @type {number | undefined} */
  #pause;

  /** @param {string} [id] */
  constructor(id = randomId()) {
    this.id = id;
  }

  /**
   * @param {string} text
   * @param {string} lang
   */
  revise(text, lang) {
    this.text = text;
    this.lang = lang;
    this.#fresh = text.trim() !== "";
  }

  /**
   * The last word on it.
   * @param {string} text
   * @param {string} lang
   */
  conclude(text, lang) {
    this.revise(text, lang);
    this.final = true;
    this.rev += 1;
    this.hurry();
  }

  /** Whether the gateway was told of it before the last word. */
  get begun() {
    return this.rev > (this.final ? 1 : 0);
  }

  /** Whether its newest text is to be sent. */
  get due() {
    return this.#pause === undefined && (this.final ? !this.sent : this.#fresh);
  }

  /**
   * Its newest text goes out as a partial; the next one not before a pause.
   * @param {number} pauseMs
   * @param {() => void} whenOver
   */
  sendPartial(pauseMs, whenOver) {
    this.rev += 1;
    this.#unanswered.push(this.rev);
    this.#fresh = false;
    this.#wait(pauseMs, whenOver);
  }

  /** The gateway has shown a revision, and with it answered those before. @param {number} rev */
  captioned(rev) {
    this.#unanswered = this.#unanswered.filter((sent) => sent > rev);
  }

  /** @returns {boolean} Whether what the gateway refused may have been a partial. */
  refusePartial() {
    return this.#unanswered.shift() !== undefined;
  }

  /**
   * The final was not taken: due again after a while.
   * @param {number} delayMs
   * @param {() => void} whenDue
   */
  postpone(delayMs, whenDue) {
    this.sent = false;
    this.#wait(delayMs, whenDue);
  }

  /** Wait no longer. */
  hurry() {
    clearTimeout(this.#pause);
    this.#pause = undefined;
  }

  /** The connection is gone: what was not accepted has to be sent again, of partials the newest. */
  lose() {
    this.hurry();
    this.#unanswered = [];
    this.sent = false;
    if (!this.final) this.#fresh = this.text.trim() !== "";
  }

  /**
   * @param {number} delayMs
   * @param {() => void} whenOver
   */
  #wait(delayMs, whenOver) {
    this.hurry();
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      whenOver();
    }, delayMs);
  }
}
