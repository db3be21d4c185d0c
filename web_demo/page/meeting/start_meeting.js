// Opens the meeting page once the gateway can translate, and shows why it cannot until then. Must not know what is on
// the page.

import { DisplaySettings } from "../settings/display_settings.js";
import { hideAlert, showAlert } from "../status/alert.js";
import { LoadingCard } from "../status/loading_card.js";
import { ReadinessPoller } from "../status/readiness_poller.js";
import { READINESS_LABELS, showStatus } from "../status/status_label.js";
import { find } from "../ui/dom.js";
import { MeetingPage } from "./meeting_page.js";

/** @typedef {import("./meeting_page.js").GatewayInfo} GatewayInfo */

/** @param {{streamUrl: string, query: URLSearchParams}} address */
export function startMeeting({ streamUrl, query }) {
  const displaySettings = new DisplaySettings();
  const loadingCard = new LoadingCard();
  find("main", HTMLElement).append(loadingCard.element);
  /** @type {MeetingPage | undefined} */
  let page;
  let isOpening = false;

  const readiness = new ReadinessPoller("./readyz", (answer) => {
    if (page !== undefined) return page.onReadiness(answer);
    loadingCard.show(answer);
    showStatus(...READINESS_LABELS[answer.status]);
    if (answer.status === "ready" && !isOpening) void open();
  });

  async function open() {
    isOpening = true;
    const gateway = await fetchGatewayInfo();
    isOpening = false;
    // The next answer about readiness, seconds from now, tries again.
    if (gateway === null) return showAlert("The gateway did not say which languages it knows; trying again.");
    hideAlert();
    page = new MeetingPage({ streamUrl, query, gateway, displaySettings, readiness, loadingCard });
    await page.join();
  }

  // A computer that slept or changed its network may have lost the connection unnoticed.
  const check = () => {
    if (document.visibilityState === "hidden") return;
    void readiness.check();
    page?.checkConnection();
  };
  window.addEventListener("online", check);
  // Not the first time, which is now: only a page that comes back from the browser's cache.
  window.addEventListener("pageshow", (event) => event.persisted && check());
  document.addEventListener("visibilitychange", check);
  void readiness.check();
}

/** @returns {Promise<GatewayInfo | null>} */
async function fetchGatewayInfo() {
  try {
    const response = await fetch("./v1/languages", { signal: AbortSignal.timeout(5_000) });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}
