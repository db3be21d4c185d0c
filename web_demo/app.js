// The page: wires what people do to the client, and what the client hears to the page.

import { GatewayClient } from "./client.js";
import { ReadinessWatch } from "./readiness.js";
import { sentencesIn } from "./sentences.js";
import { UtteranceCard, element } from "./utterance_card.js";

/** @typedef {import("./client.js").ClientEvent} ClientEvent */
/** @typedef {import("./readiness.js").Readiness} Readiness */
/** @typedef {{tag: string, name: string}} Language */

const MOST_CARDS = 100;
const PRESELECTED_TARGETS = 2;

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
function find(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no #${id}.`);
  return found;
}

const statusText = find("status", HTMLParagraphElement);
const reconnect = find("reconnect", HTMLButtonElement);
const loading = find("loading", HTMLElement);
const loadingTitle = find("loading-title", HTMLHeadingElement);
const loadingReason = find("loading-reason", HTMLParagraphElement);
const loadingHint = find("loading-hint", HTMLParagraphElement);
const loadingElapsed = find("loading-elapsed", HTMLSpanElement);
const speak = find("speak", HTMLFormElement);
const sourceLang = find("source-lang", HTMLSelectElement);
const textField = find("text", HTMLTextAreaElement);
const count = find("count", HTMLSpanElement);
const samples = find("samples", HTMLDivElement);
const sentences = find("sentences", HTMLDivElement);
const targets = find("targets", HTMLDivElement);
const send = find("send", HTMLButtonElement);
const transcript = find("transcript", HTMLElement);
const empty = find("empty", HTMLParagraphElement);
const utterances = find("utterances", HTMLOListElement);
const notice = find("notice", HTMLDivElement);
const noticeText = find("notice-text", HTMLParagraphElement);
const noticeDismiss = find("notice-dismiss", HTMLButtonElement);
const announcements = find("announcements", HTMLDivElement);

const streamUrl = new URL("./v1/stream", document.baseURI);
streamUrl.protocol = streamUrl.protocol === "https:" ? "wss:" : "ws:";
const client = new GatewayClient(streamUrl.href);
const watch = new ReadinessWatch("./readyz", onReadiness);

/** @type {Readiness} */
let readiness = { status: "starting", reason: "" };
let languagesShown = false;
/** When the page began to wait for the engine; null while there is nothing to wait for. @type {number | null} */
let waitingSince = null;
/** @type {Map<string, string>} */
const names = new Map();
/** @type {Map<string, UtteranceCard>} In the order in which they were said. */
const cards = new Map();

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
  const opens = ready && speak.hidden;
  speak.hidden = !ready;
  transcript.hidden = !ready && cards.size === 0;
  loading.hidden = readiness.status === "ready";
  // Ready to type, where that does not raise an on-screen keyboard and nobody is busy elsewhere.
  if (opens && matchMedia("(hover: hover)").matches && document.activeElement === document.body) {
    textField.focus({ preventScroll: true });
  }
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
  /** @type {Language[]} */
  let languages;
  try {
    const response = await fetch("./v1/languages", { signal: AbortSignal.timeout(5_000) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    languages = (await response.json()).languages;
  } catch {
    // The next look at the readiness, seconds from now, tries again.
    showNotice("The gateway did not say which languages it knows; trying again.");
    return;
  }
  if (languagesShown) return;
  languagesShown = true;
  showLanguages(languages);
  showReadiness();
  client.connect();
}

// -------------------------------------------------------------------- languages and sentences

/** @param {readonly Language[]} languages */
function showLanguages(languages) {
  const preferred = navigator.language.split("-")[0] ?? "";
  for (const { tag, name } of languages) {
    names.set(tag, name);
    const option = element("option", "", name);
    option.value = tag;
    sourceLang.append(option);
    targets.append(targetChip(tag, name));
  }
  const spoken = names.has(preferred) ? preferred : names.has("en") ? "en" : languages[0]?.tag;
  if (spoken !== undefined) sourceLang.value = spoken;
  for (const box of targetBoxes().filter((box) => box.value !== spoken).slice(0, PRESELECTED_TARGETS)) {
    box.checked = true;
  }
  showSource();
}

/**
 * @param {string} tag
 * @param {string} name
 */
function targetChip(tag, name) {
  const box = element("input", "");
  box.type = "checkbox";
  box.value = tag;
  box.dataset.testid = `target-${tag}`;
  const chip = element("label", "chip");
  chip.append(box, element("span", "", name));
  const own = ownName(tag);
  if (own && own.toLowerCase() !== name.toLowerCase()) {
    const aside = element("span", "own-name", own);
    aside.lang = tag;
    chip.append(aside);
  }
  return chip;
}

/**
 * What a language is called by those who speak it.
 * @param {string} tag
 */
function ownName(tag) {
  try {
    return new Intl.DisplayNames([tag], { type: "language", fallback: "none" }).of(tag) ?? "";
  } catch {
    return "";
  }
}

function targetBoxes() {
  return [...targets.querySelectorAll("input")];
}

function chosenTargets() {
  return targetBoxes()
    .filter((box) => box.checked && !box.disabled)
    .map((box) => box.value);
}

/** The spoken language changed: other sentences, and it is no target of itself. */
function showSource() {
  const lang = sourceLang.value;
  textField.lang = lang;
  sentences.replaceChildren(
    ...sentencesIn(lang).map((sentence) => {
      const chip = element("button", "chip", sentence);
      chip.type = "button";
      chip.lang = lang;
      chip.addEventListener("click", () => pick(sentence));
      return chip;
    }),
  );
  sentences.scrollLeft = 0;
  samples.hidden = sentences.childElementCount === 0;
  showTargets();
  if (chosenTargets().length === 0) {
    const first = targetBoxes().find((box) => !box.disabled);
    if (first !== undefined) first.checked = true;
    showTargets();
  }
}

function showTargets() {
  const boxes = targetBoxes();
  const chosen = boxes.filter((box) => box.checked && box.value !== sourceLang.value).length;
  const full = chosen >= (client.limits?.languages ?? Infinity);
  for (const box of boxes) box.disabled = box.value === sourceLang.value || (full && !box.checked);
  client.read(chosenTargets());
}

/** @param {string} sentence */
function pick(sentence) {
  textField.value = sentence;
  showCount();
  send.focus();
}

function showCount() {
  const most = client.limits?.text_chars ?? Infinity;
  const length = [...textField.value].length;
  const near = length > most * 0.8;
  count.textContent = near ? `${length} of ${most} characters` : "";
  count.classList.toggle("over", length > most);
}

// -------------------------------------------------------------------- saying something

/** @param {Event} event */
function onSend(event) {
  event.preventDefault();
  const text = textField.value.trim();
  if (!text) {
    showNotice("There is nothing to translate yet: type a sentence, or pick one.");
    textField.focus();
    return;
  }
  const reads = chosenTargets();
  if (reads.length === 0) {
    showNotice("Choose at least one language to translate into.");
    targetBoxes().find((box) => !box.disabled)?.focus();
    return;
  }
  hideNotice();
  const lang = sourceLang.value;
  const card = new UtteranceCard({
    text,
    lang,
    targets: reads,
    name: (tag) => names.get(tag) ?? tag,
    onCancel: () => client.cancel(id),
  });
  if (client.state !== "open") card.wait("Waiting for the connection …");
  empty.hidden = true;
  utterances.prepend(card.element);
  card.reserveRoom();
  textField.value = "";
  showCount();
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  card.element.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
  const id = client.final({ text, lang });
  cards.set(id, card);
  dropOldCards();
}

function dropOldCards() {
  for (const [id, card] of cards) {
    if (cards.size <= MOST_CARDS) return;
    if (card.element.dataset.state !== "settled") continue;
    card.element.remove();
    cards.delete(id);
  }
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  // While an input method composes, Enter chooses a candidate.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  speak.requestSubmit();
}

// -------------------------------------------------------------------- what the client hears

/** @param {ClientEvent} event */
function onEvent(event) {
  switch (event.type) {
    case "state":
      showStatus();
      if (event.state === "reconnecting" || event.state === "loading") void watch.check();
      if (event.state === "closed" && event.reason) showNotice(event.reason);
      if (event.state === "open") showTargets();
      break;
    case "session.draining":
      showNotice("The gateway is restarting. It finishes what was said; this page reconnects by itself.");
      break;
    case "utterance.accepted":
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
      cards.get(event.id)?.settle(event.message);
      if (event.code !== "cancelled") showNotice(event.message);
      break;
    case "utterance.settled":
      cards.get(event.id)?.settle();
      break;
    case "error":
      showNotice(event.message);
      break;
  }
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
  if (hadFocus) textField.focus();
}

// -------------------------------------------------------------------- begin

client.listen(onEvent);
speak.addEventListener("submit", onSend);
textField.addEventListener("keydown", onKey);
textField.addEventListener("input", showCount);
sourceLang.addEventListener("change", showSource);
targets.addEventListener("change", showTargets);
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
