// The state of the meeting's connection: in words for the header, and as a sentence below the transcript where people
// have to know. Must not know the connection itself.

import { button, element, setIfChanged } from "../ui/dom.js";
import { READINESS_LABELS, showStatus } from "./status_label.js";

/** @typedef {import("../../client/events.js").ConnectionState} ConnectionState */
/** @typedef {import("./readiness_poller.js").Readiness} Readiness */
/** @typedef {import("./status_label.js").Severity} Severity */

/** Severity, label and sentence; the sentence is empty if people need not know. @typedef {[Severity, string, string]} Status */

/** @type {Readonly<Record<ConnectionState, Status>>} */
const STATUSES = {
  open: ["good", "Connected", ""],
  connecting: ["busy", "Connecting…", ""],
  loading: ["busy", "Engine loading", "The engine is loading; what you say is kept until it is ready."],
  reconnecting: ["busy", "Reconnecting…", "The connection is lost. What you say is kept and sent; what you miss comes."],
  closed: ["bad", "Disconnected", "Disconnected."],
};
/** @type {Status} */
const NOT_JOINED = ["busy", "Not joined yet", ""];

/**
 * @param {Readiness} readiness
 * @param {ConnectionState | null} connection Null before one has joined.
 * @returns {Status}
 */
function statusOf({ status, reason }, connection) {
  if (connection === null) return NOT_JOINED;
  if (status !== "failed" && status !== "draining") return STATUSES[connection];
  const [severity, label] = READINESS_LABELS[status];
  return [severity, label, reason || label];
}

export class ConnectionBanner {
  element = element("div", "banner");
  #sentence = element("span", "");

  /** @param {{onRetry: () => void}} options */
  constructor({ onRetry }) {
    this.element.dataset.testid = "banner";
    this.element.role = "status";
    this.element.hidden = true;
    this.element.append(this.#sentence, " ", button("quiet", "Try now", "retry", onRetry));
  }

  /**
   * @param {Readiness} readiness
   * @param {ConnectionState | null} connection Null before one has joined.
   * @returns {{state: Severity, words: string}} What the header shows.
   */
  show(readiness, connection) {
    const [severity, label, sentence] = statusOf(readiness, connection);
    showStatus(severity, label);
    this.element.hidden = sentence === "";
    this.element.dataset.state = severity;
    setIfChanged(this.#sentence, "textContent", sentence);
    return { state: severity, words: label };
  }
}
