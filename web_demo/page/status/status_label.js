// How things stand, in a word, at the top of the page. Knows its words; must not know who looks after what.

import { find } from "../ui/dom.js";

/** @typedef {import("./readiness_poller.js").Readiness} Readiness */

const statusText = find("status", HTMLParagraphElement);

/** What is happening while nobody can take part. @type {Readonly<Record<Readiness["status"], ["busy" | "bad", string]>>} */
export const UNREADY = {
  ready: ["busy", "Connecting…"],
  starting: ["busy", "Engine loading"],
  failed: ["bad", "Engine failed"],
  draining: ["busy", "Shutting down"],
  unreachable: ["bad", "Not reachable"],
};

/**
 * @param {"good" | "busy" | "bad"} state
 * @param {string} words
 */
export function showStatus(state, words) {
  statusText.dataset.state = state;
  if (statusText.textContent !== words) statusText.textContent = words;
}
