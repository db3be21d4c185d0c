// The way into the meeting page: waits until the gateway can translate, asks what it knows, and opens the page. Knows
// when that is; must not know what is on the page.

import { Appearance } from "../settings/display_settings.js";
import { find } from "../ui/dom.js";
import { LoadingCard } from "../status/loading_card.js";
import { MeetingPage } from "./meeting_page.js";
import { hideNotice, showNotice } from "../status/alert.js";
import { ReadinessWatch } from "../status/readiness_poller.js";
import { UNREADY, showStatus } from "../status/status_label.js";

/** @typedef {import("./meeting_page.js").Known} Known */

/** @param {{streamUrl: string, query: URLSearchParams}} address */
export function enterMeeting({ streamUrl, query }) {
  const appearance = new Appearance();
  const card = new LoadingCard();
  find("main", HTMLElement).append(card.element);
  /** @type {MeetingPage | undefined} */
  let page;
  let opening = false;

  const watch = new ReadinessWatch("./readyz", (readiness) => {
    if (page !== undefined) return page.onReadiness(readiness);
    card.show(readiness);
    showStatus(...UNREADY[readiness.status]);
    if (readiness.status === "ready" && !opening) void open();
  });

  async function open() {
    opening = true;
    const known = await loadLanguages();
    opening = false;
    // The next look at the readiness, seconds from now, tries again.
    if (known === null) return showNotice("The gateway did not say which languages it knows; trying again.");
    hideNotice();
    page = new MeetingPage({ streamUrl, query, known, appearance, watch, card });
    await page.join();
  }

  // What slept, or was elsewhere, may have lost its connection without a word.
  const look = () => {
    if (document.visibilityState === "hidden") return;
    void watch.check();
    page?.look();
  };
  for (const event of ["online", "pageshow"]) window.addEventListener(event, look);
  document.addEventListener("visibilitychange", look);
  void watch.check();
}

/** @returns {Promise<Known | null>} */
async function loadLanguages() {
  try {
    const response = await fetch("./v1/languages", { signal: AbortSignal.timeout(5_000) });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}
