// The page: wires what people do to the client, and what the client hears to the page.

import { GatewayClient } from "./client.js";
import { element, find } from "./elements.js";
import { Playback } from "./playback.js";
import { ReadinessWatch } from "./readiness.js";
import { SpeakPanel } from "./speak_panel.js";
import { StabilityChoice } from "./stability_choice.js";
import { UtteranceCard } from "./utterance_card.js";

/** @typedef {import("./client_events.js").ClientEvent} ClientEvent */
/** @typedef {import("./client_events.js").UtteranceRefused} UtteranceRefused */
/** @typedef {import("./messages.js").Stability} Stability */
/** @typedef {import("./readiness.js").Readiness} Readiness */
/** @typedef {import("./speak_panel.js").Language} Language */
/** @typedef {import("./speak_panel.js").Said} Said */

const MOST_CARDS = 100;

const statusText = find("status", HTMLParagraphElement);
const reconnect = find("reconnect", HTMLButtonElement);
const loading = find("loading", HTMLElement);
const loadingTitle = find("loading-title", HTMLHeadingElement);
const loadingReason = find("loading-reason", HTMLParagraphElement);
const loadingHint = find("loading-hint", HTMLParagraphElement);
const loadingElapsed = find("loading-elapsed", HTMLSpanElement);
const transcript = find("transcript", HTMLElement);
const empty = find("empty", HTMLParagraphElement);
/** What is being typed stays beside the field: it is to be seen, also above a phone's keyboard. */
const typed = find("draft", HTMLOListElement);
const utterances = find("utterances", HTMLOListElement);
const notice = find("notice", HTMLDivElement);
const noticeText = find("notice-text", HTMLParagraphElement);
const noticeDismiss = find("notice-dismiss", HTMLButtonElement);
const announcements = find("announcements", HTMLDivElement);

const streamUrl = new URL("./v1/stream", document.baseURI);
streamUrl.protocol = streamUrl.protocol === "https:" ? "wss:" : "ws:";
const choice = new StabilityChoice(onStability);
const client = new GatewayClient(streamUrl.href, { stability: choice.mode });
const panel = new SpeakPanel({
  draft: onDraft,
  say: onSay,
  play: onPlay,
  read: (reads) => client.read(reads),
  object: showNotice,
});
const watch = new ReadinessWatch("./readyz", onReadiness);

/** @type {Readiness} */
let readiness = { status: "starting", reason: "" };
let languagesShown = false;
/** When the page began to wait for the engine; null while there is nothing to wait for. @type {number | null} */
let waitingSince = null;
/** @type {Map<string, string>} */
const names = new Map();
/** @type {Map<string, UtteranceCard>} In the order in which they were begun. */
const cards = new Map();
/** The utterance that is being typed. @type {{id: string, text: string} | undefined} */
let draft;
/** @type {Map<string, Playback>} Utterances that are being said word by word. */
const playing = new Map();

// -------------------------------------------------------------------- readiness and connection

/** @param {Readiness} answer */
function onReadiness(answer) {
  const before = readiness.status;
  readiness = answer;
  if (answer.status === "ready") {
    waitingSince = null;
    if (!languagesShown) void loadLanguages();
    else if (before !== "ready") client.connect();
  } else {
    waitingSince ??= performance.now();
  }
  showReadiness();
  showStatus();
}

function showReadiness() {
  const ready = readiness.status === "ready" && languagesShown;
  panel.show(ready);
  transcript.hidden = !ready && cards.size === 0;
  loading.hidden = readiness.status === "ready";
  if (loading.hidden) return;
  loading.dataset.state = readiness.status;
  switch (readiness.status) {
    case "failed":
      loadingTitle.textContent = "The engine has failed";
      loadingHint.textContent = "Nothing can be translated until the gateway is started again; this page will notice.";
      break;
    case "draining":
      loadingTitle.textContent = "The gateway is shutting down";
      loadingHint.textContent = "This page goes on by itself when it is back.";
      break;
    case "unreachable":
      loadingTitle.textContent = "The gateway cannot be reached";
      loadingHint.textContent = "This page goes on by itself when it answers.";
      break;
    default:
      loadingTitle.textContent = "The engine is loading";
      loadingHint.textContent = "The page opens by itself when it is ready.";
  }
  loadingReason.textContent = asSentence(readiness.reason);
  showElapsed();
}

/** @param {string} words */
function asSentence(words) {
  if (!words) return "";
  const capital = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?…。]$/.test(capital) ? capital : `${capital}.`;
}

function showElapsed() {
  if (waitingSince === null) return;
  const waitedS = Math.floor((performance.now() - waitingSince) / 1000);
  loadingElapsed.textContent = `${waitedS} s`;
}

function showStatus() {
  const [state, words] = describeStatus();
  statusText.dataset.state = state;
  if (statusText.textContent !== words) statusText.textContent = words;
  reconnect.hidden = client.state !== "closed" || !languagesShown || readiness.status !== "ready";
}

/** @returns {["good" | "busy" | "bad", string]} */
function describeStatus() {
  switch (readiness.status) {
    case "starting":
      return ["busy", readiness.reason ? "Engine loading" : "Connecting…"];
    case "failed":
      return ["bad", "Engine failed"];
    case "draining":
      return ["busy", "Shutting down"];
    case "unreachable":
      return ["bad", "Not reachable"];
  }
  switch (client.state) {
    case "open":
      return ["good", "Connected"];
    case "loading":
      return ["busy", "Engine loading"];
    case "reconnecting":
      return ["busy", "Reconnecting…"];
    case "closed":
      return languagesShown ? ["bad", "Disconnected"] : ["busy", "Connecting…"];
    case "connecting":
      return ["busy", "Connecting…"];
  }
}

async function loadLanguages() {
  /** @type {{languages: Language[], family: string}} */
  let known;
  try {
    const response = await fetch("./v1/languages", { signal: AbortSignal.timeout(5_000) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    known = await response.json();
  } catch {
    // The next look at the readiness, seconds from now, tries again.
    showNotice("The gateway did not say which languages it knows; trying again.");
    return;
  }
  if (languagesShown) return;
  languagesShown = true;
  for (const { tag, name } of known.languages) names.set(tag, name);
  panel.offer(known.languages, known.family === "bundled");
  showReadiness();
  client.connect();
}

// -------------------------------------------------------------------- saying something

/** @param {Said | null} said What stands in the field. */
function onDraft(said) {
  if (said === null || (draft !== undefined && !goesOn(draft.text, said.text))) giveUpDraft();
  if (said === null) return;
  const { text, lang } = said;
  const id = client.partial({ text, lang, id: draft?.id });
  draft = { id, text };
  show(id, said, "typed");
}

/**
 * Whether a text is another revision of an earlier one. Translations go on from a beginning that is never taken back:
 * of another sentence that would be nonsense.
 * @param {string} earlier
 * @param {string} text
 */
function goesOn(earlier, text) {
  let same = 0;
  while (same < earlier.length && earlier[same] === text[same]) same += 1;
  return same >= earlier.length / 2;
}

/** It will never be said. A partial cannot be taken back: the gateway lets go of it by itself. */
function giveUpDraft() {
  if (draft !== undefined) client.cancel(draft.id);
}

/** @param {Said} said */
function onSay(said) {
  hideNotice();
  const { text, lang } = said;
  if (draft !== undefined && !goesOn(draft.text, text)) giveUpDraft();
  const id = client.final({ text, lang, id: draft?.id });
  draft = undefined;
  show(id, said, "said");
  scrollTo(id, "nearest");
}

/** @param {Said} said */
function onPlay({ text, lang }) {
  hideNotice();
  giveUpDraft();
  const id = client.partial({ text: "", lang });
  // Other languages may be chosen meanwhile.
  const reads = () => panel.targets.filter((tag) => tag !== lang);
  const playback = new Playback(text, lang, {
    heard: (words) => {
      client.partial({ text: words, lang, id });
      show(id, { text: words, lang, reads: reads() }, "spoken");
    },
    over: () => {
      playing.delete(id);
      client.final({ text, lang, id });
      show(id, { text, lang, reads: reads() }, "said");
    },
  });
  playing.set(id, playback);
  playback.start();
  scrollTo(id, "center"); // it will grow
}

/**
 * @param {string} id
 * @param {Said} said
 * @param {"typed" | "spoken" | "said"} how
 */
function show(id, said, how) {
  const card = cards.get(id) ?? newCard(id);
  const list = how === "typed" ? typed : utterances;
  if (card.element.parentElement !== list) list.prepend(card.element);
  empty.hidden = utterances.childElementCount > 0;
  card.say(said, how);
  if (client.state !== "open") card.wait("Waiting for the connection …");
}

/** @param {string} id */
function newCard(id) {
  const card = new UtteranceCard({
    stability: choice.mode,
    name: (tag) => names.get(tag) ?? tag,
    onCancel: () => client.cancel(id),
  });
  cards.set(id, card);
  dropOldCards();
  return card;
}

/**
 * @param {string} id
 * @param {ScrollLogicalPosition} block
 */
function scrollTo(id, block) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  cards.get(id)?.element.scrollIntoView({ block, behavior: calm ? "auto" : "smooth" });
}

/** @param {Stability} mode */
function onStability(mode) {
  client.setStability(mode);
  for (const card of cards.values()) card.show(mode);
}

function dropOldCards() {
  for (const [id, card] of cards) {
    if (cards.size <= MOST_CARDS) return;
    if (card.element.dataset.state !== "settled") continue;
    card.element.remove();
    cards.delete(id);
  }
}

// -------------------------------------------------------------------- what the client hears

/** @param {ClientEvent} event */
function onEvent(event) {
  switch (event.type) {
    case "state":
      showStatus();
      if (event.state === "reconnecting" || event.state === "loading") void watch.check();
      if (event.state === "closed" && event.reason) showNotice(event.reason);
      if (event.state === "open") panel.limits = client.limits;
      break;
    case "session.draining":
      showNotice("The gateway is restarting. It finishes what was said; this page reconnects by itself.");
      break;
    case "session.updated":
      // To such a reader the gateway has shown nothing: should the choice change again, it begins anew.
      if (event.stability === "final") for (const card of cards.values()) card.forgetUnfinished();
      break;
    case "utterance.restarted":
      cards.get(event.id)?.wait("Reconnected; translating again …");
      break;
    case "translation.delta":
      cards.get(event.utterance)?.grow(event.lang, event.committed, event.tentative ?? "");
      break;
    case "translation.final":
      cards.get(event.utterance)?.finish(event);
      announce(event.lang, event.text);
      break;
    case "translation.failed":
      cards.get(event.utterance)?.fail(event.lang, event.message);
      if (event.code === "engine_unavailable") void watch.check();
      break;
    case "utterance.refused":
      onRefused(event);
      break;
    case "utterance.settled":
      cards.get(event.id)?.settle();
      break;
    case "error":
      showNotice(event.message);
      break;
  }
}

/** @param {UtteranceRefused} event */
function onRefused({ id, code, message }) {
  if (id === draft?.id) {
    // It was given up, or the session has ended, which is told in its own place.
    draft = undefined;
    cards.get(id)?.element.remove();
    cards.delete(id);
    return;
  }
  playing.get(id)?.stop();
  playing.delete(id);
  cards.get(id)?.settle(message);
  if (code !== "cancelled") showNotice(message);
}

/**
 * For those who listen to the page: whole translations, none of their growing.
 * @param {string} lang
 * @param {string} text
 */
function announce(lang, text) {
  const said = element("p", "", text);
  said.lang = lang;
  announcements.append(element("p", "", `${names.get(lang) ?? lang}:`), said);
  while (announcements.childElementCount > 20) announcements.firstElementChild?.remove();
}

/** @param {string} words */
function showNotice(words) {
  noticeText.textContent = words;
  notice.hidden = false;
}

function hideNotice() {
  const hadFocus = notice.contains(document.activeElement);
  notice.hidden = true;
  if (hadFocus) panel.focus();
}

// -------------------------------------------------------------------- begin

client.listen(onEvent);
noticeDismiss.addEventListener("click", hideNotice);
reconnect.addEventListener("click", () => client.connect());
window.addEventListener("online", () => void watch.check());
let width = window.innerWidth;
window.addEventListener("resize", () => {
  // A phone's keyboard changes the height alone.
  if (window.innerWidth === width) return;
  width = window.innerWidth;
  for (const card of cards.values()) card.releaseRoom();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !notice.hidden) hideNotice();
});
setInterval(showElapsed, 1_000);
void watch.check();
