// Captions alone, for a wall screen or over a video: no controls, nothing of the page around them. Knows the address's
// parameters and the newest captions; must not know the meeting page.

import { GatewayClient } from "../../client/gateway_client.js";
import { element } from "../ui/dom.js";
import { direction } from "../ui/languages.js";
import { Transcript } from "../transcript/transcript.js";

/** @typedef {import("../../client/messages.js").Stability} Stability */
/** @typedef {import("../transcript/transcript.js").Entry} Entry */

/**
 * What the address may ask for: the default, what is allowed, and that in words.
 * @satisfies {Record<string, [string, RegExp, string]>}
 */
const PARAMETERS = {
  meeting: ["", /^[\w.~-]{1,64}$/, "the id of a meeting"],
  lang: ["", /^[a-z]{2,3}(-[a-z\d]+)*(,[a-z]{2,3}(-[a-z\d]+)*)*$/i, "a language, or several, such as ja,en"],
  lines: ["2", /^[1-6]$/, "a number from 1 to 6"],
  size: ["2.25", /^([1-9]\d?(\.\d+)?|0\.[1-9]\d*)(rem)?$/, "a size in rem, such as 2.25"],
  align: ["left", /^(left|center)$/, "left or center"],
  position: ["bottom", /^(bottom|top)$/, "bottom or top"],
  stability: ["stable", /^(stable|live|final)$/, "stable, live or final"],
  names: ["1", /^[01]$/, "1 or 0"],
  original: ["0", /^[01]$/, "0 or 1"],
  box: ["60", /^(\d\d?|100)$/, "a number from 0 to 100"],
  linger: ["0", /^\d{1,4}(\.\d+)?$/, "a number of seconds"],
};

// Nobody stands at a wall screen to try again.
const RETRY_MS = 30_000;
// Errors that come again however often the same is asked for. Limits are also those of what others do.
const FOR_GOOD = /^(unsupported|invalid)_/;

/** @typedef {Record<keyof typeof PARAMETERS, string>} Options */

/**
 * @param {URLSearchParams} query
 * @returns {[Options, string[]]} And what is wrong.
 */
function optionsOf(query) {
  /** @type {string[]} */
  const wrong = [];
  const options = Object.entries(PARAMETERS).map(([name, [fallback, allowed, words]]) => {
    const value = query.get(name) ?? fallback;
    if (!allowed.test(value)) wrong.push(`“${name}” ${value ? "has to be" : "is missing:"} ${words}.`);
    return [name, value];
  });
  return [Object.fromEntries(options), wrong];
}

/**
 * The gateway looks at the region for Chinese alone.
 * @param {string} tag
 */
function known(tag) {
  return /^zh-(tw|hk|hant)/.test(tag) ? "zh-hant" : (tag.split("-")[0] ?? tag);
}

/** The newest captions in one language. */
class Block {
  #lang;
  #options;
  #entries;
  /** What is on the screen. @type {Map<string, HTMLElement>} */
  #lines = new Map();
  /** What has faded. @type {Set<string>} */
  #past = new Set();
  #fading = 0;

  /**
   * @param {string} lang
   * @param {Options} options
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
    let finished = true;
    for (const entry of [...this.#entries.values()].reverse()) {
      if (lines.length === Number(this.#options.lines)) break;
      const [text, whole] = this.#textOf(entry);
      if (text === "" || this.#past.has(entry.key)) continue;
      finished &&= whole;
      const line = this.#lines.get(entry.key) ?? element("div", "caption");
      this.#write(line, entry, text);
      lines.unshift([entry.key, line]);
    }
    if (lines.length === 0 && this.element.classList.contains("faded")) return; // what has faded fades on
    this.#lines = new Map(lines);
    this.element.classList.remove("faded");
    this.element.replaceChildren(...this.#lines.values());
    clearTimeout(this.#fading);
    const linger = Number(this.#options.linger);
    if (finished && linger > 0) this.#fading = setTimeout(() => this.#fade(), linger * 1000);
  }

  #fade() {
    const keys = [...this.#entries.keys()];
    this.#past = new Set(keys.filter((key) => this.#past.has(key) || this.#lines.has(key)));
    this.element.classList.add("faded");
  }

  /**
   * @param {Entry} entry
   * @returns {[string, boolean]} What is to be seen of it, and whether that is the last word.
   */
  #textOf({ lang, text, final, cells }) {
    const { stability } = this.#options;
    if (lang === this.#lang) return [final || stability !== "final" ? text : "", final];
    const cell = cells.get(this.#lang);
    if (cell === undefined || cell.state === "final") return [cell?.text ?? "", true];
    if (stability === "final") return ["", true];
    return [cell.committed + (stability === "live" ? cell.tentative : ""), cell.state === "failed"];
  }

  /**
   * @param {HTMLElement} line
   * @param {Entry} entry
   * @param {string} text
   */
  #write(line, { speaker, lang, text: spoken }, text) {
    const shown = [words(text, this.#lang, "", this.#options.names === "1" ? speaker : "")];
    if (this.#options.original === "1" && spoken && lang !== this.#lang) shown.unshift(words(spoken, lang, "original"));
    const same = shown.length === line.children.length && shown.every((part, i) => line.children[i]?.isEqualNode(part));
    if (!same) line.replaceChildren(...shown);
  }
}

/** Of a long text the end is seen. */
function words(text = "", lang = "", kind = "", speaker = "") {
  const all = element("p", "");
  all.lang = lang;
  all.dir = direction(lang);
  if (speaker) all.append(element("bdi", "caption-name", speaker), ": ");
  all.append(text);
  const seen = element("div", `caption-words ${kind}`);
  seen.append(all);
  return seen;
}

/**
 * @param {object} options
 * @param {HTMLElement} options.host Filled.
 * @param {string} options.streamUrl
 * @param {URLSearchParams} options.query What the page was asked for.
 */
export function startCaptions({ host, streamUrl, query }) {
  const style = element("link", "");
  style.rel = "stylesheet";
  style.href = new URL("./captions.css", import.meta.url).href;
  document.head.append(style);
  const view = element("div", "captions");
  const message = element("p", "captions-message");
  message.dataset.testid = "captions-message";
  host.replaceChildren(view);
  const [options, wrong] = optionsOf(query);
  if (wrong.length > 0) {
    message.textContent = ["These captions cannot be shown.", ...wrong].join("\n");
    return view.append(message);
  }
  const { meeting, align, position, size, box } = options;
  Object.assign(view.dataset, { testid: "captions", align, position });
  view.style.setProperty("--size", `${Number.parseFloat(size)}rem`);
  view.style.setProperty("--box", `${box}%`);
  const reads = [...new Set(options.lang.toLowerCase().split(",").map(known))];
  const transcript = new Transcript();
  const blocks = reads.map((lang) => new Block(lang, options, transcript.entries));
  view.append(...blocks.map((block) => block.element), message);

  let frame = 0;
  transcript.listen(() => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      for (const block of blocks) block.draw();
    });
  });
  const stability = /** @type {Stability} */ (options.stability);
  const client = new GatewayClient(streamUrl, { meeting, reads, stability, originals: options.original === "1" });
  client.listen((event) => {
    transcript.hear(event);
    if (event.type !== "state") return;
    view.dataset.state = event.state;
    if (event.state === "open") message.textContent = "";
    if (event.state !== "closed") return;
    message.textContent = event.reason || "The meeting cannot be reached.";
    if (!FOR_GOOD.test(event.code)) setTimeout(() => client.connect(), RETRY_MS);
  });
  window.addEventListener("pagehide", (event) => {
    if (event.persisted) return;
    client.close();
    client.close(); // there is no time to wait for answers
  });
  message.textContent = "Waiting for the meeting …";
  client.connect();
}
