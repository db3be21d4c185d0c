// The state of the meeting's connection, one at a time: in words for the header, and as a sentence below the transcript
// where people have to know. Must not know the connection itself.

import { button, element, setIfChanged } from "../ui/dom.js";
import { t } from "../words/words.js";
import { READINESS_LABELS, showStatus } from "./status_label.js";

/** @typedef {import("../../client/events.js").ClientEvent} ClientEvent */
/** @typedef {import("../../client/events.js").ConnectionState} ConnectionState */
/** @typedef {import("./readiness_poller.js").Readiness} Readiness */
/** @typedef {import("./status_label.js").Severity} Severity */

/**
 * Severity, label and sentence, and the sentence for readers, who say nothing that is kept, where it is another one. A
 * sentence is empty if people need not know.
 * @typedef {[severity: Severity, label: string, sentence: string, forReaders?: string]} Status
 */

/** @type {Readonly<Record<ConnectionState, Status>>} */
const STATUSES = {
  open: ["good", t("status.connected"), ""],
  connecting: ["busy", t("status.connecting"), ""],
  loading: ["busy", t("status.loading"), t("status.loading.long"), t("status.loading.read")],
  reconnecting: ["busy", t("status.reconnecting"), t("status.reconnecting.long"), t("status.reconnecting.read")],
  closed: ["bad", t("status.closed"), t("status.closed.long")],
};
/** @type {Status} */
const NOT_JOINED = ["busy", t("status.not_joined"), ""];
/** @type {Status} */
const OFFLINE = ["bad", t("status.offline"), t("status.offline.long"), t("status.offline.read")];
/** @type {Status} */
const UNANSWERED = ["bad", t("status.no_answer"), t("status.no_answer.long"), t("status.no_answer.read")];
/** @type {Status} */
const RESTARTING = ["busy", t("status.restarting"), t("status.restarting.long")];
/** @type {Status} */
const BLOCKED = ["bad", t("status.blocked"), t("status.blocked.long")];
/** How the meeting ended for this page. @type {Readonly<Record<"left" | "ended" | "removed", Status>>} */
const OVER = {
  left: ["over", t("status.left"), ""],
  ended: ["over", t("status.ended"), ""],
  removed: ["over", t("status.removed"), ""],
};
// How many attempts to connect have to fail, each while the gateway answers other requests, before something on the way
// is blamed: after one, the gateway may just have come back.
const BLOCKED_ATTEMPTS = 2;
// Events of the client itself, which say nothing of the gateway.
const OWN_EVENTS = /^(state|utterance\.(queued|refused))$/;

export class ConnectionBanner {
  element = element("div", "banner");
  #sentence = element("bdi", ""); // maybe the gateway's own words, in English
  #onWords;
  /** @type {Readiness} */
  #readiness = { status: "ready", reason: "" };
  /** Null before one has joined. @type {ConnectionState | null} */
  #connection = null;
  /** Whether there has been a session, which the client tries to resume. */
  #hadSession = false;
  #isUnanswered = false;
  #isRestarting = false;
  #isOffline = false;
  #isReader = false;
  /** @type {keyof typeof OVER | null} */
  #over = null;
  /** Attempts to connect that failed, after each of which the gateway has answered about its readiness. */
  #blockedAttempts = 0;
  /** Whether an attempt has failed since the gateway was asked about its readiness. */
  #hasFailed = false;

  /**
   * @param {object} options
   * @param {() => void} options.onRetry
   * @param {(words: {state: Severity, words: string}) => void} options.onWords What the header shows.
   */
  constructor({ onRetry, onWords }) {
    this.#onWords = onWords;
    this.element.dataset.testid = "banner";
    this.element.role = "status";
    this.element.hidden = true;
    this.element.append(this.#sentence, " ", button("quiet", t("status.retry"), "retry", onRetry));
  }

  /** @param {Readiness} readiness */
  set readiness(readiness) {
    this.#readiness = readiness;
    if (readiness.status === "unreachable") this.#blockedAttempts = 0;
    else if (this.#hasFailed) this.#blockedAttempts += 1;
    this.#hasFailed = false;
    this.#show();
  }

  /** Whether the browser says that the device is offline. It does not hold for a gateway that still answers. */
  set isOffline(/** @type {boolean} */ isOffline) {
    this.#isOffline = isOffline;
    this.#show();
  }

  /** Whether its user says nothing here. */
  set isReader(/** @type {boolean} */ isReader) {
    this.#isReader = isReader;
    this.#show();
  }

  /** How the meeting ended for this page; null as long as it goes on. Holds while there is no session. */
  set over(/** @type {keyof typeof OVER | null} */ over) {
    this.#over = over;
    this.#show();
  }

  /** @param {ClientEvent} event */
  onEvent(event) {
    const isNews = event.type === "state" || event.type === "session.draining" || this.#isOffline;
    if (!OWN_EVENTS.test(event.type)) this.#isOffline = false;
    if (event.type === "session.draining") this.#isRestarting = true;
    if (event.type === "state") {
      const { state, code } = event;
      // The news of a restart holds until there is a session again.
      if (state === "closed" || (state === "open" && this.#connection !== "open")) this.#isRestarting = false;
      this.#connection = state;
      this.#hadSession = state === "open" || (this.#hadSession && state !== "closed");
      this.#hasFailed = state === "reconnecting" && code === "unreachable";
      if (state === "open" || state === "loading" || state === "closed") this.#blockedAttempts = 0;
      this.#isUnanswered = state === "open" && code === "unanswered";
    }
    if (isNews) this.#show();
  }

  /** @returns {Status} */
  get #status() {
    const { status, reason } = this.#readiness;
    if (this.#over !== null && (this.#connection === null || this.#connection === "closed")) return OVER[this.#over];
    if (this.#connection === null) return NOT_JOINED;
    if (this.#connection === "closed") return STATUSES.closed;
    if (this.#isOffline) return OFFLINE;
    if (this.#isRestarting) return RESTARTING;
    if (status === "failed" || status === "draining") {
      const [severity, label] = READINESS_LABELS[status];
      return [severity, label, reason || label];
    }
    if (this.#isUnanswered) return UNANSWERED;
    if (this.#blockedAttempts >= BLOCKED_ATTEMPTS) return BLOCKED;
    // To people each attempt is a part of the same wait.
    if (this.#connection === "connecting" && this.#hadSession) return STATUSES.reconnecting;
    return STATUSES[this.#connection];
  }

  #show() {
    const [severity, label, forSpeakers, forReaders = forSpeakers] = this.#status;
    const sentence = this.#isReader ? forReaders : forSpeakers;
    showStatus(severity, label);
    this.element.hidden = sentence === "";
    this.element.dataset.state = severity;
    setIfChanged(this.#sentence, "textContent", sentence);
    this.#onWords({ state: severity, words: label });
  }
}
