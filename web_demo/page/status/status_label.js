// The state of gateway and connection, in one or two words in the page's header.

import { find } from "../ui/dom.js";

/** @typedef {import("./readiness_poller.js").Readiness} Readiness */
/** @typedef {"good" | "busy" | "bad"} Severity */

const label = find("status", HTMLParagraphElement);

/** What the label says while the gateway cannot translate. @type {Readonly<Record<Readiness["status"], ["busy" | "bad", string]>>} */
export const READINESS_LABELS = {
  ready: ["busy", "Connecting…"],
  starting: ["busy", "Engine loading"],
  failed: ["bad", "Engine failed"],
  draining: ["busy", "Shutting down"],
  unreachable: ["bad", "Not reachable"],
};

/**
 * @param {Severity} severity
 * @param {string} text
 */
export function showStatus(severity, text) {
  label.dataset.state = severity;
  if (label.textContent !== text) label.textContent = text;
}
