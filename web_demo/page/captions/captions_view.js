// The captions view, for video overlays and wall screens, and the reading view, for a room's screen: captions and nothing
// else. Must not know the meeting page.

import { GatewayClient } from "../../client/gateway_client.js";
import { EVERYTHING, refusalOf } from "../access/access.js";
import { InviteRefused } from "../access/invite.js";
import { recordIn } from "../meeting/meeting_address.js";
import { isReached } from "../meeting/offered_languages.js";
import { keepScreenAwake } from "../meeting/wake_lock.js";
import { Transcript } from "../transcript/transcript.js";
import { button, element } from "../ui/dom.js";
import { englishName, textDirection } from "../ui/languages.js";
import { languageName, t } from "../words/words.js";
import { captionLanguages, captionOptions } from "./caption_options.js";

/** @typedef {import("../../client/messages.js").Stability} Stability */
/** @typedef {import("../access/access.js").Access} Access */
/** @typedef {import("../access/invite.js").Invite} Invite */
/** @typedef {import("../transcript/entry.js").Entry} Entry */
/** @typedef {import("./caption_options.js").CaptionOptions} CaptionOptions */

// At a wall screen nobody can click to try again.
const RETRY_MS = 30_000;
// Errors that do not go away. Others do: even a limit may have been reached because of other people.
const PERMANENT_ERROR = /^((unsupported|invalid)_|forbidden$)/;

/** The newest captions in one language. */
class CaptionsBlock {
  #lang;
  #options;
  #entries;
  /** The captions on the screen, by their entries' keys. @type {Map<string, HTMLElement>} */
  #lines = new Map();
  /** Keys of entries whose captions have faded. @type {Set<string>} */
  #faded = new Set();
  #fadeTimer = 0;

  /**
   * @param {string} lang
   * @param {CaptionOptions} options
   * @param {ReadonlyMap<string, Entry>} entries
   */
  constructor(lang, options, entries) {
    this.#lang = lang;
    this.#options = options;
    this.#entries = entries;
    this.element = element("div", "captions-block");
    this.element.dataset.testid = `captions-${lang}`;
  }

  draw() {
    /** @type {[string, HTMLElement][]} */
    const lines = [];
    let isFinal = true;
    for (const entry of [...this.#entries.values()].reverse()) {
      if (lines.length === Number(this.#options.lines)) break;
      const [text, isComplete] = this.#textOf(entry);
      if (text === "" || this.#faded.has(entry.key)) continue;
      isFinal &&= isComplete;
      const line = this.#lines.get(entry.key) ?? element("div", "caption");
      this.#write(line, entry, text);
      lines.unshift([entry.key, line]);
    }
    if (lines.length === 0 && this.element.classList.contains("faded")) return; // let it fade
    this.#lines = new Map(lines);
    this.element.classList.remove("faded");
    this.element.replaceChildren(...this.#lines.values());
    clearTimeout(this.#fadeTimer);
    const linger = Number(this.#options.linger);
    if (isFinal && linger > 0) this.#fadeTimer = setTimeout(() => this.#fade(), linger * 1000);
  }

  #fade() {
    const keys = [...this.#entries.keys()];
    this.#faded = new Set(keys.filter((key) => this.#faded.has(key) || this.#lines.has(key)));
    this.element.classList.add("faded");
  }

  /**
   * @param {Entry} entry
   * @returns {[string, boolean]} The text to show, and whether it is final.
   */
  #textOf({ lang, text, final, cells }) {
    const { stability } = this.#options;
    if (lang === this.#lang) return [final || stability !== "final" ? text : "", final];
    const cell = cells.get(this.#lang);
    if (cell === undefined || cell.state === "final") return [cell?.text ?? "", true];
    // Half a translation that will not be finished goes.
    if (stability === "final" || cell.state === "failed") return ["", true];
    return [cell.committed + (stability === "live" ? cell.tentative : ""), false];
  }

  /**
   * @param {HTMLElement} line
   * @param {Entry} entry
   * @param {string} text
   */
  #write(line, { speaker, lang, text: spoken, cells }, text) {
    const isUnsure = lang !== this.#lang && cells.get(this.#lang)?.unsure;
    const parts = [captionText(text, this.#lang, isUnsure ? "unsure" : "", this.#options.names === "1" ? speaker : "")];
    if (this.#options.original === "1" && spoken && lang !== this.#lang)
      parts.unshift(captionText(spoken, lang, "original"));
    const isSame =
      parts.length === line.children.length && parts.every((part, i) => line.children[i]?.isEqualNode(part));
    if (!isSame) line.replaceChildren(...parts);
  }
}

/** Large type on a screen of its own, which stays awake. @param {HTMLElement} view */
function fillScreen(view) {
  view.classList.add("reading");
  view.role = "main";
  keepScreenAwake();
  const root = document.documentElement;
  if (!document.fullscreenEnabled) return;
  const fill = button(
    "fill-screen",
    t("captions.full_screen"),
    "full-screen",
    () => void root.requestFullscreen().catch(() => {}),
  );
  document.addEventListener("fullscreenchange", () => (fill.hidden = document.fullscreenElement !== null));
  view.append(fill);
}

/** A text in a frame that shows its end if it is too long. */
function captionText(text = "", lang = "", className = "", speaker = "") {
  const paragraph = element("p", "");
  paragraph.lang = lang;
  paragraph.dir = textDirection(lang);
  if (speaker) paragraph.append(element("bdi", "caption-name", speaker), ": ");
  paragraph.append(text);
  const frame = element("div", `caption-words ${className}`);
  frame.append(paragraph);
  return frame;
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
  const access = invite === null ? EVERYTHING : await accessOf(invite, say);
  if (access === null) return;
  if (access.meeting !== null) query.set("meeting", access.meeting);
  const [options, problems] = captionOptions(query);
  if (problems.length > 0) {
    message.textContent = [t("captions.bad"), ...problems].join("\n");
    return view.append(message);
  }
  const { meeting, align, position, size, box } = options;
  Object.assign(view.dataset, { testid: "captions", align, position });
  view.style.setProperty("--size", `${Number.parseFloat(size)}rem`);
  view.style.setProperty("--box", `${box}%`);
  const reads = captionLanguages(options);
  const transcript = new Transcript((id) => client.participants.get(id)?.name);
  const blocks = reads.map((lang) => new CaptionsBlock(lang, options, transcript.entries));
  view.append(...blocks.map((block) => block.element), message);
  if (query.get("view") === "reading") fillScreen(view);

  let frame = 0;
  transcript.listen(() => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      for (const block of blocks) block.draw();
    });
  });
  const stability = /** @type {Stability} */ (options.stability);
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
    const languages = gone.map((tag) => languageName(tag, englishName(tag) || tag)).join(t("list.comma"));
    message.textContent = languages && t("captions.gone", { languages });
  };
  client.listen((event) => {
    transcript.onEvent(event);
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
