// Opens the meeting page once the gateway can translate, and shows why it cannot until then. Must not know what is on
// the page.

import { accessWith, EVERYTHING } from "../access/access.js";
import { badLink } from "../access/bad_link.js";
import { InviteRefused } from "../access/invite.js";
import { DisplaySettings } from "../settings/display_settings.js";
import { hideAlert, showAlert } from "../status/alert.js";
import { LoadingCard } from "../status/loading_card.js";
import { ReadinessPoller } from "../status/readiness_poller.js";
import { READINESS_LABELS, showStatus } from "../status/status_label.js";
import { find } from "../ui/dom.js";
import { languageName, t } from "../words/words.js";
import { badMeetingIdIn, ID_CHARS, newMeeting } from "./meeting_address.js";
import { MeetingPage } from "./meeting_page.js";
import { keepOfflineShell } from "./offline_shell.js";

/** @typedef {import("../access/invite.js").Invite} Invite */
/** @typedef {import("./meeting_page.js").GatewayInfo} GatewayInfo */

/**
 * @param {object} options
 * @param {string} options.streamUrl
 * @param {URLSearchParams} options.query
 * @param {Invite | null} options.invite
 * @param {{url: string, readyz: Promise<Response>, languages: Promise<Response | null>}} options.asked Answers of the gateway that were
 *     asked for already; null if there was none.
 */
export function startMeeting({ streamUrl, query, invite, asked }) {
  const displaySettings = new DisplaySettings();
  const loadingCard = new LoadingCard();
  find("main", HTMLElement).append(loadingCard.element);
  /** @type {MeetingPage | undefined} */
  let page;
  let isOpening = false;
  /** @type {Promise<Response | null> | undefined} */
  let languages = asked.languages;
  let isRefused = false;
  /** @type {import("../status/readiness_poller.js").Readiness | undefined} */
  let newest;

  const readiness = new ReadinessPoller(asked.url, (answer) => {
    newest = answer;
    if (page !== undefined) return page.onReadiness(answer);
    if (answer.needsToken && invite === null) refuse(t("access.not_invited"));
    if (isRefused) return;
    loadingCard.show(answer);
    showStatus(...READINESS_LABELS[answer.status]);
    if (answer.status === "ready" && !isOpening) void open();
  });

  async function open() {
    isOpening = true;
    const [gateway, allowed] = await Promise.all([fetchGatewayInfo(languages), fetchAccess()]);
    languages = undefined;
    isOpening = false;
    // The next answer about readiness, seconds from now, tries again.
    if (isRefused) return;
    if (gateway === null) return showAlert(t("page.no_languages"));
    if (allowed === null) return showAlert(t("page.no_invite_answer"));
    hideAlert();
    const access = accessWith(allowed, gateway.languages);
    const badId = badMeetingIdIn(query);
    if (badId !== null && access.meeting === null) await explain(badId);
    const own = await newMeeting();
    page = new MeetingPage({ streamUrl, query, access, gateway, displaySettings, readiness, loadingCard, own });
    if (newest !== undefined) page.onReadiness(newest);
    void keepOfflineShell();
    await page.join();
  }

  /** Say what is wrong with a link; nothing is opened until its user asks for a meeting of their own. @param {string} id */
  async function explain(id) {
    isRefused = true;
    loadingCard.element.hidden = true;
    showStatus("over", t("status.not_joined"));
    await new Promise((resolve) => {
      const card = badLink({ id, mostChars: ID_CHARS, onOpenOwn: () => resolve(card.remove()) });
      find("main", HTMLElement).append(card);
    });
    query.delete("meeting");
    isRefused = false;
  }

  /** What one may do here; null if that is not known, or it is nothing. */
  async function fetchAccess() {
    if (invite === null) return EVERYTHING;
    try {
      return await invite.access();
    } catch (error) {
      if (error instanceof InviteRefused) refuse(error.message);
      return null;
    }
  }

  /** @param {string} sentence */
  function refuse(sentence) {
    if (isRefused) return;
    isRefused = true;
    loadingCard.element.hidden = true;
    showStatus("bad", t("status.no_access"));
    showAlert(sentence);
  }

  // A computer that slept or changed its network may have lost the connection unnoticed.
  const check = () => {
    if (document.visibilityState === "hidden") return;
    void readiness.check();
    page?.checkConnection();
  };
  for (const event of /** @type {const} */ (["online", "offline"])) {
    window.addEventListener(event, () => {
      page?.onNetwork(event === "online");
      void readiness.check();
    });
  }
  // Not the first time, which is now: only a page that comes back from the browser's cache.
  window.addEventListener("pageshow", (event) => event.persisted && check());
  document.addEventListener("visibilitychange", check);
  void readiness.check(asked.readyz);
}

/**
 * @param {Promise<Response | null>} [asked]
 * @returns {Promise<GatewayInfo | null>}
 */
async function fetchGatewayInfo(asked) {
  try {
    const response = (await asked) ?? (await fetch("./v1/languages", { signal: AbortSignal.timeout(5_000) }));
    if (!response.ok) return null;
    /** @type {GatewayInfo} */
    const info = await response.json();
    return { ...info, languages: info.languages.map(({ tag, name }) => ({ tag, name: languageName(tag, name) })) };
  } catch {
    return null;
  }
}
