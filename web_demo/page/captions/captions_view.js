// The captions view, an overlay for videos, and the reading view, a room's wall: captions and nothing else. Must not know
// the meeting page.

import { GatewayClient } from "../../client/gateway_client.js";
import { EVERYTHING, refusalOf } from "../access/access.js";
import { InviteRefused } from "../access/invite.js";
import { recordIn } from "../meeting/meeting_address.js";
import { isReached } from "../meeting/offered_languages.js";
import { titleLine } from "../people/meeting_title.js";
import { keepScreenAwake } from "../ui/wake_lock.js";
import { Transcript } from "../transcript/transcript.js";
import { button, element } from "../ui/dom.js";
import { languageName, t } from "../words/words.js";
import { captionLanguages, captionOptions, languageProblems } from "./caption_options.js";
import { OverlayPlate } from "./overlay_plate.js";
import { Wall } from "./wall.js";

/** @typedef {import("../../client/messages.js").Stability} Stability */
/** @typedef {import("../access/access.js").Access} Access */
/** @typedef {import("../access/invite.js").Invite} Invite */

// At a wall screen nobody can click to try again.
const RETRY_MS = 30_000;
// Errors that do not go away. Others do: even a limit may have been reached because of other people.
const PERMANENT_ERROR = /^((unsupported|invalid)_|forbidden$)/;

/** A button that fills the screen; null where a browser cannot. */
function fillScreenButton() {
  const root = document.documentElement;
  if (!document.fullscreenEnabled) return null;
  const fill = button(
    "fill-screen",
    t("captions.full_screen"),
    "full-screen",
    () => void root.requestFullscreen().catch(() => {}),
  );
  document.addEventListener("fullscreenchange", () => (fill.hidden = document.fullscreenElement !== null));
  return fill;
}

/** The wall of a room, whose screen stays awake. @param {HTMLElement} view @param {Wall} wall */
function fillRoom(view, wall) {
  view.classList.add("reading");
  view.role = "main";
  keepScreenAwake();
  const fill = fillScreenButton();
  if (fill !== null) wall.addControl(fill);
  view.append(wall.element);
}

/**
 * What an invite gives, asked for until there is an answer.
 * @param {Invite} invite
 * @param {(sentence: string) => void} say
 * @returns {Promise<Access | null>} Null if it is of no use here.
 */
async function accessOf(invite, say) {
  for (;;) {
    try {
      const access = await invite.access();
      if (access.read) return access;
      say(t("captions.not_reading"));
      return null;
    } catch (error) {
      const isRefused = error instanceof InviteRefused;
      say(isRefused ? error.message : t("captions.waiting"));
      if (isRefused) return null;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/**
 * @param {object} options
 * @param {HTMLElement} options.host The element to show the captions in.
 * @param {string} options.streamUrl
 * @param {URLSearchParams} options.query Query of the page's address.
 * @param {Invite | null} options.invite It names the meeting, too.
 */
export async function startCaptions({ host, streamUrl, query, invite }) {
  const style = element("link", "");
  style.rel = "stylesheet";
  style.href = new URL("./captions.css", import.meta.url).href;
  document.head.append(style);
  const view = element("div", "captions");
  view.dir = "ltr"; // left and right are what the address says, whatever the page's own language is
  const message = element("p", "captions-message");
  message.dir = "auto";
  message.dataset.testid = "captions-message";
  host.replaceChildren(view);
  const say = (/** @type {string} */ sentence) => {
    message.textContent = sentence;
    view.append(message);
  };
  /** All that is wrong, at once. */
  const sayProblems = (/** @type {string[]} */ all) => say([t("captions.bad"), ...all].join("\n"));
  const [options, problems] = captionOptions(query, invite !== null);
  if (problems.length > 0) return sayProblems([...problems, ...(await languageProblems(options))]);
  const access = invite === null ? EVERYTHING : await accessOf(invite, say);
  if (access === null) return;
  const { align, position, size, box, lines } = options;
  const meeting = access.meeting ?? options.meeting;
  Object.assign(view.dataset, { testid: "captions", align, position });
  if (size) view.style.setProperty("--size", `${Number.parseFloat(size)}rem`);
  view.style.setProperty("--box", `${box}%`);
  view.style.setProperty("--lines", lines);
  const reads = captionLanguages(options);
  const transcript = new Transcript((id) => client.participants.get(id)?.name);
  const spokenBy = (/** @type {string} */ id) => client.participants.get(id)?.speaks ?? "";
  /** @type {(OverlayPlate | Wall)[]} */
  let parts;
  if (query.get("view") === "reading") {
    const wall = new Wall(reads, options, transcript.entries, spokenBy);
    fillRoom(view, wall);
    parts = [wall];
  } else {
    view.classList.add("overlay");
    parts = reads.map((lang) => new OverlayPlate(lang, options, transcript.entries, spokenBy));
    view.append(...parts.map((plate) => plate.element));
  }
  view.append(message);

  let frame = 0;
  // What was said before is heard until the first pong.
  let isHistory = true;
  const drawSoon = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      for (const part of parts) part.draw();
    });
  };
  transcript.listen((change) => {
    if (isHistory) return;
    for (const part of parts) if (part instanceof OverlayPlate) part.skipCorrection(change);
    drawSoon();
  });
  const endHistory = () => {
    if (!isHistory) return;
    isHistory = false;
    for (const part of parts) part.skipHistory();
    drawSoon();
  };
  const stability = /** @type {Stability} */ (options.stability);
  const showTitle = (/** @type {{title?: string, held_by?: string}} */ named) => {
    const title = titleLine({ title: named.title ?? "", held_by: named.held_by ?? "" });
    const [code, { host: place, pathname }] = [client.meeting, location];
    const address = invite === null ? `${place}${pathname}?meeting=${code}` : "";
    for (const part of parts) if (part instanceof Wall) part.invite({ title, code, address });
  };
  const client = new GatewayClient(streamUrl, {
    meeting,
    reads,
    stability,
    originals: options.original === "1",
    ...recordIn(query),
    ...(access.token && { token: access.token }),
  });
  /** @type {string[]} The languages into which nothing is translated any longer. */
  let gone = [];
  const sayGone = () => {
    const languages = gone.map((tag) => languageName(tag)).join(t("list.comma"));
    message.textContent = languages && t("captions.gone", { languages });
  };
  client.listen((event) => {
    transcript.onEvent(event);
    if (event.type === "pong") endHistory();
    if (event.type === "session.started" || event.type === "meeting.titled") showTitle(event);
    if (event.type === "session.started" || event.type === "languages.changed") {
      gone = reads.filter((tag) => !isReached(tag, event));
      if (event.type === "languages.changed") sayGone();
    }
    if (event.type !== "state") return;
    view.dataset.state = event.state;
    if (event.state === "open") sayGone();
    if (event.state !== "closed") return;
    const refusal = refusalOf(event, invite !== null);
    message.textContent = refusal ?? (event.reason || t("captions.unreachable"));
    if (event.code === "unsupported_language")
      void languageProblems(options, access.token).then((wrong) => wrong.length > 0 && sayProblems(wrong));
    if (refusal === null && !PERMANENT_ERROR.test(event.code)) setTimeout(() => client.connect(), RETRY_MS);
  });
  window.addEventListener("pagehide", (event) => {
    if (event.persisted) return;
    client.close();
    client.close(); // the second call does not wait for answers
  });
  message.textContent = t("captions.waiting");
  client.connect();
}
