// The state of gateway and connection, in one or two words in the page's header.

import { find } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @typedef {import("./readiness_poller.js").Readiness} Readiness */
/** `over`: nothing is live, and nothing is wrong. @typedef {"good" | "busy" | "bad" | "over"} Severity */

const label = find("status", HTMLParagraphElement);
label.textContent = t("status.connecting");

/** What the label says while the gateway cannot translate. @type {Readonly<Record<Readiness["status"], ["busy" | "bad", string]>>} */
export const READINESS_LABELS = {
  ready: ["busy", t("status.connecting")],
  starting: ["busy", t("status.loading")],
  failed: ["bad", t("status.failed")],
  draining: ["busy", t("status.draining")],
  unreachable: ["bad", t("status.unreachable")],
};

/**
 * @param {Severity} severity
 * @param {string} text
 */
export function showStatus(severity, text) {
  label.dataset.state = severity;
  if (label.textContent !== text) label.textContent = text;
}
