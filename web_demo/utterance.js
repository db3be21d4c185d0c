// An utterance, from its first partial until nothing more comes for it. Knows its text, its languages and how far it
// got; must not know messages.

/** Unlike `crypto.randomUUID`, this works on pages that were not served over TLS. */
function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Utterance {
  text = "";
  lang = "";
  /** Languages to translate into. @type {readonly string[]} */
  reads = [];
  /** Of the newest partial that was sent, or of the final. */
  rev = 0;
  /** Whether `text` is the last word. */
  final = false;
  /** Whether the final was sent on this connection. */
  sent = false;
  /** By this connection's session: it is the gateway's duty now. */
  accepted = false;
  /** Whether unfinished translations of it may have arrived. */
  begun = false;
  cancelled = false;
  /** How often the final was refused in a row. */
  refusals = 0;
  /** Whether there is a partial that was not sent. */
  #fresh = false;
  /** Revisions of partials that may still be answered on this connection. @type {number[]} */
  #unanswered = [];
  /** Languages that are final or failed. @type {Set<string>} */
  #settled = new Set();
  /** @type {number | undefined} */
  #pause;

  /** @param {string} [id] */
  constructor(id = randomId()) {
    this.id = id;
  }

  /**
   * What is believed to have been said so far. Nothing at all is no news.
   * @param {string} text
   * @param {string} lang
   * @param {readonly string[]} reads
   */
  revise(text, lang, reads) {
    this.text = text;
    this.lang = lang;
    this.reads = reads;
    this.#fresh = text.trim() !== "";
  }

  /**
   * The last word on it; no partial is sent from now on.
   * @param {string} text
   * @param {string} lang
   * @param {readonly string[]} reads
   */
  conclude(text, lang, reads) {
    this.revise(text, lang, reads);
    this.final = true;
    this.rev += 1;
    this.hurry();
  }

  /** Whether its newest text is to be sent as soon as that is possible. */
  get due() {
    return this.#pause === undefined && (this.final ? !this.sent : this.#fresh);
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

  // ---------------------------------------------------------------- partials

  /**
   * Its newest text goes out as a partial; the next one not before a pause.
   * @param {number} pauseMs
   * @param {() => void} whenOver
   * @returns {number} The revision.
   */
  sendPartial(pauseMs, whenOver) {
    this.rev += 1;
    this.#unanswered.push(this.rev);
    this.#fresh = false;
    this.begun = true;
    this.#wait(pauseMs, whenOver);
    return this.rev;
  }

  /** The newest partial is not to be sent. */
  drop() {
    this.#fresh = false;
  }

  /**
   * The gateway has shown a revision, and with it answered those before.
   * @param {number} rev
   */
  captioned(rev) {
    this.#unanswered = this.#unanswered.filter((sent) => sent > rev);
  }

  /**
   * The gateway refused something.
   * @returns {boolean} Whether that may have been a partial.
   */
  refusePartial() {
    return this.#unanswered.shift() !== undefined;
  }

  // ---------------------------------------------------------------- the final, and the connection

  accept() {
    this.accepted = this.sent = this.begun = true;
    this.refusals = 0;
    this.hurry();
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

  /** The connection is gone: what the gateway did not accept has to be sent again, of partials the newest. */
  lose() {
    this.hurry();
    this.#unanswered = [];
    if (!this.accepted) this.sent = false;
    if (!this.final) this.#fresh = this.text.trim() !== "";
  }

  /** The session is another one, which knows nothing of what the old one accepted. */
  restart() {
    this.accepted = this.sent = this.begun = false;
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
