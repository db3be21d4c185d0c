// One utterance of this client, from its first partial until the gateway has accepted it. Knows its text and what of it
// was sent; must not know messages.

/**
 * Unlike `crypto.randomUUID`, this also works on pages served without TLS, and where there is no `crypto`: an id has to
 * be unique in its session, not a secret.
 */
function randomId() {
  return Array.from({ length: 24 }, () => Math.floor(Math.random() * 16).toString(16)).join("");
}

/**
 * @typedef {object} Said
 * @property {string} text
 * @property {string | undefined} [lang] The session's `speaks` by default.
 * @property {string | undefined} [id]
 * @property {number | undefined} [start_ms] Where it begins in the speaker's audio.
 * @property {number | undefined} [end_ms] Where it ends there.
 * @property {string | undefined} [traceparent] The span that a final belongs to in a trace of yours (W3C Trace Context).
 * @property {string | undefined} [replaces] An utterance of this client that a final corrects, or takes back if it has no
 *   text; with `~` and a number, one segment of it.
 * @property {string | undefined} [participant] With `replaces`: as whom it was said, if that was an earlier session of the
 *   same person.
 */
/** What else is sent with it. @typedef {Omit<Said, "text" | "lang" | "id">} Times */

export class Utterance {
  text = "";
  lang = "";
  /** @type {Times} */
  times = {};
  /** Revision of the newest partial that was sent, or of the final. */
  rev = 0;
  /** Whether `text` is complete and will no longer change. */
  final = false;
  /** Whether the final was sent on this connection. */
  sent = false;
  /** Whether the gateway was told to cancel it. */
  cancelled = false;
  /** Whether listeners were told that it waits for a session. */
  queued = false;
  /** How many times in a row the gateway refused it. */
  refusals = 0;
  /** Whether the gateway could not read a frame while the final was out. */
  isSuspect = false;
  /** Whether its text changed since the last partial. */
  #revised = false;
  /** Whether a host has muted what was said of it. */
  #isMuted = false;
  /** What the last partial said, if the gateway may have it. */
  #told = "";
  /** Revisions of partials that the gateway has not answered on this connection. @type {number[]} */
  #unanswered = [];
  /** Runs while the next revision has to wait. @type {number | undefined} */
  #timer;

  /** @param {string} [id] */
  constructor(id = randomId()) {
    this.id = id;
  }

  /**
   * @param {string} text
   * @param {string} lang
   * @param {Times} times
   */
  revise(text, lang, times) {
    this.text = text;
    this.lang = lang;
    this.times = times;
    this.#revised = text.trim() !== "" && this.#said !== this.#told;
    this.#isMuted = false;
  }

  /** What was said of it is gone from every screen, and comes back only if it goes on. */
  mute() {
    this.#revised = false;
    this.#isMuted = true;
  }

  get #said() {
    return `${this.lang}\n${this.text}`;
  }

  /**
   * Make it final.
   * @param {string} text
   * @param {string} lang
   * @param {Times} times
   */
  conclude(text, lang, times) {
    this.revise(text, lang, times);
    this.final = true;
    this.rev += 1;
    this.stopWaiting();
  }

  /** Whether the gateway got a partial of it. */
  get begun() {
    return this.rev > (this.final ? 1 : 0);
  }

  /** Whether its newest text can be sent now. */
  get due() {
    return this.#timer === undefined && (this.final ? !this.sent : this.#revised);
  }

  /**
   * Its newest text is sent as a partial. The next one has to wait.
   * @param {number} delayMs
   * @param {() => void} onDue
   */
  sendPartial(delayMs, onDue) {
    this.rev += 1;
    this.#unanswered.push(this.rev);
    this.#revised = false;
    this.#told = this.#said;
    this.#wait(delayMs, onDue);
  }

  /** The gateway showed a revision, which answers all earlier ones, too. @param {number} rev */
  captioned(rev) {
    this.#unanswered = this.#unanswered.filter((sent) => sent > rev);
  }

  /** @returns {boolean} Whether the gateway may have refused a partial. */
  refusePartial() {
    if (this.#unanswered.shift() === undefined) return false;
    this.#told = "";
    return true;
  }

  /**
   * The gateway refused the final for the moment: send it again later.
   * @param {number} delayMs
   * @param {() => void} onDue
   */
  postpone(delayMs, onDue) {
    this.sent = false;
    this.#wait(delayMs, onDue);
  }

  /** The next revision is due now. */
  stopWaiting() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** The connection is lost: the final, or else the newest partial, has to be sent again. */
  onDisconnected() {
    this.stopWaiting();
    this.#unanswered = [];
    this.#told = "";
    this.sent = false;
    if (!this.final) this.#revised = this.text.trim() !== "" && !this.#isMuted;
  }

  /**
   * @param {number} delayMs
   * @param {() => void} onDue
   */
  #wait(delayMs, onDue) {
    this.stopWaiting();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      onDue();
    }, delayMs);
  }
}
