// The transcript on the page: a row for each utterance, a column for each language, the newest at the end. Knows where
// the reader is in it; must not know the connection.

import { evictOldest } from "../../client/evict_oldest.js";
import { button, element } from "../ui/dom.js";
import { direction, ownName } from "../ui/languages.js";
import { AS_SPOKEN, UtteranceRow, put } from "./utterance_row.js";

/** @typedef {import("./transcript.js").Change} Change */
/** @typedef {import("./transcript.js").Entry} Entry */
/** @typedef {import("./transcript.js").Transcript} Transcript */
/** @typedef {import("./utterance_row.js").Shown} Shown */

const VOICES = 8;
const MOST_VOICES = 200;
// How far from the end still counts as the end, in px.
const NEAR = 24;
// The least width of a cell with a label, in columns.
const STACKED = 1.15;

/** @param {Element} part */
function topOf(part) {
  return part.getBoundingClientRect().top;
}

/** @param {string} text */
function hash(text) {
  return [...text].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) >>> 0, 7);
}

export class TranscriptView {
  element = element("div", "transcript");
  /** Shown while there is nothing else. */
  empty = element("div", "transcript-empty");
  #options;
  #scroller = element("div", "transcript-scroller");
  #headings = element("div", "headings");
  #rows = element("ol", "rows");
  #measure = element("div", "column-measure");
  #jump;
  /** @type {Map<string, UtteranceRow>} */
  #byKey = new Map();
  /** Speaker → which colour; who spoke last is last. @type {Map<string, number>} */
  #voices = new Map();
  /** @type {Shown} */
  #shown = { columns: [], originals: true, stability: "live" };
  /** To be drawn in the next frame: rows, and of each the columns that changed. @type {Map<string, Set<string>>} */
  #due = new Map();
  #frame = 0;
  #atEnd = true;
  #top = 0;
  /** The topmost row in view, and where it is. @type {{row: Element, top: number} | undefined} */
  #reading;
  #unseen = 0;

  /**
   * @param {object} options
   * @param {Transcript} options.transcript
   * @param {(tag: string) => string} options.nameOf What a language is called.
   * @param {(entry: Entry) => void} options.onCancel
   */
  constructor(options) {
    this.#options = options;
    const scroller = this.#scroller;
    Object.assign(scroller, { tabIndex: 0, role: "log", ariaLive: "off", ariaLabel: "Transcript" });
    scroller.dataset.testid = "transcript";
    this.#headings.ariaHidden = "true"; // every cell says its language itself
    scroller.append(this.#measure, this.#headings, this.#rows, this.empty);
    this.#jump = button("transcript-jump", "", "jump", () => {
      this.jump();
      scroller.focus({ preventScroll: true });
    });
    this.element.append(scroller, this.#jump);
    scroller.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    // After the layout of a frame and before it is painted: measuring costs nothing there.
    const sizes = new ResizeObserver(() => {
      this.#layOut();
      this.#hold();
    });
    for (const part of [scroller, this.#rows, this.#measure]) sizes.observe(part);
    const { transcript } = options;
    for (const entry of transcript.entries.values()) this.#onChange({ entry, lang: "", what: "new" });
    transcript.listen((change) => this.#onChange(change));
    this.show(this.#shown);
    this.#draw();
  }

  /** @param {Shown} shown `columns`: languages; `originals`: whether what was said has a column of its own. */
  show({ columns, originals, stability }) {
    this.#shown = { columns: [...columns], originals: originals || columns.length === 0, stability };
    this.#options.transcript.read(columns);
    const all = this.#shown.originals ? [AS_SPOKEN, ...columns] : columns;
    this.#headings.replaceChildren(...all.map((tag) => this.#heading(tag)));
    this.element.classList.toggle("with-originals", this.#shown.originals);
    for (const row of this.#byKey.values()) row.show(this.#shown);
    this.#layOut();
  }

  /** To the newest. */
  jump() {
    this.#atEnd = true;
    this.#hold();
    this.#showJump();
  }

  /** @param {string} tag */
  #heading(tag) {
    const name = tag === AS_SPOKEN ? "As spoken" : this.#options.nameOf(tag);
    const heading = element("div", "heading", name);
    const own = tag && ownName(tag);
    if (own && own.toLowerCase() !== name.toLowerCase()) {
      const native = element("span", "heading-own", own);
      Object.assign(native, { lang: tag, dir: direction(tag) });
      heading.append(" ", native);
    }
    return heading;
  }

  // ---------------------------------------------------------------- drawing, once a frame

  /** @param {Change} change */
  #onChange({ entry: { key }, lang, what }) {
    // A page in the background draws nothing, for hours maybe.
    if (what === "gone" && !this.#byKey.has(key)) return void this.#due.delete(key);
    const columns = this.#due.get(key) ?? new Set();
    this.#due.set(key, columns.add(what === "translation" ? lang : AS_SPOKEN));
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = 0;
    for (const [key, columns] of this.#due) {
      const entry = this.#options.transcript.entries.get(key);
      const row = this.#byKey.get(key);
      if (row !== undefined && row.entry === entry) {
        row.render(columns);
        continue;
      }
      this.#remove(key);
      if (entry !== undefined) this.#add(entry);
    }
    this.#due.clear();
    const some = this.#byKey.size > 0;
    if (some) this.#keepFocus(this.empty);
    put(this.empty, "hidden", some);
    put(this.#headings, "hidden", this.#byKey.size === 0);
    if (!this.#atEnd) this.#hold();
    this.#showJump();
  }

  /** @param {Entry} entry */
  #add(entry) {
    const row = new UtteranceRow(entry, { ...this.#options, voice: this.#voiceOf(entry.participant) });
    row.show(this.#shown);
    this.#byKey.set(entry.key, row);
    // What waits to be sent stays behind all that was.
    const waiting = this.#rows.querySelector(':scope > [data-state="unsent"]');
    this.#rows.insertBefore(row.element, entry.unsent ? null : waiting);
    row.follow(this.#above(row.element));
    if (!this.#atEnd && !entry.own) this.#unseen += 1;
  }

  /**
   * Nearly always the same in every window, and never that of another of the last ones who spoke.
   * @param {string} participant
   */
  #voiceOf(participant) {
    let voice = this.#voices.get(participant);
    if (voice === undefined) {
      const taken = new Set([...this.#voices.values()].slice(1 - VOICES));
      for (voice = hash(participant) % VOICES; taken.has(voice); ) voice = (voice + 1) % VOICES;
    }
    this.#voices.delete(participant);
    this.#voices.set(participant, voice);
    evictOldest(this.#voices, MOST_VOICES);
    return voice;
  }

  /** @param {Element | undefined} part That goes. */
  #keepFocus(part) {
    if (part?.contains(document.activeElement)) this.#scroller.focus({ preventScroll: true });
  }

  /** @param {string} key */
  #remove(key) {
    const gone = this.#byKey.get(key)?.element;
    this.#byKey.delete(key);
    const next = /** @type {HTMLElement | null | undefined} */ (gone?.nextElementSibling);
    this.#keepFocus(gone);
    gone?.remove();
    if (next) this.#byKey.get(next.dataset.key ?? "")?.follow(this.#above(next));
  }

  /** @param {HTMLElement} row */
  #above(row) {
    const above = /** @type {HTMLElement | null} */ (row.previousElementSibling);
    return this.#options.transcript.entries.get(above?.dataset.key ?? "");
  }

  // ---------------------------------------------------------------- where the reader is

  #onScroll() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const left = scrollHeight - scrollTop - clientHeight;
    // The first step upwards counts, however small: the next word would undo it.
    this.#atEnd = left < 2 || (scrollTop >= this.#top && (this.#atEnd || left < NEAR));
    this.#top = scrollTop;
    this.#read();
    this.#showJump();
  }

  #read() {
    const rows = this.#rows.children;
    const top = topOf(this.#scroller) + this.#headings.offsetHeight;
    let [first, last] = [0, rows.length - 1];
    while (first < last) {
      const middle = (first + last) >> 1;
      if ((rows[middle]?.getBoundingClientRect().bottom ?? 0) > top) last = middle;
      else first = middle + 1;
    }
    const row = rows[first];
    this.#reading = row && { row, top: topOf(row) };
  }

  /** What is being read stays where it is, whatever grows or leaves above: not every browser sees to that. */
  #hold() {
    if (this.#atEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    else if (this.#reading?.row.isConnected) {
      const moved = topOf(this.#reading.row) - this.#reading.top;
      if (Math.abs(moved) >= 1) this.#scroller.scrollTop += moved;
    } else this.#read();
  }

  #showJump() {
    if (this.#atEnd) this.#unseen = 0;
    put(this.#jump, "hidden", this.#atEnd);
    put(this.#jump, "textContent", this.#unseen > 0 ? `Newest ↓ (${this.#unseen} new)` : "Newest ↓");
  }

  /** Side by side as long as each column has its least width, which grows with the text; else in rows alike. */
  #layOut() {
    const columns = Math.max(1, this.#headings.childElementCount);
    const room = this.#rows.offsetWidth / this.#measure.offsetWidth;
    const fits = columns === 1 || columns <= room;
    // With a label of its own each, a little wider.
    const most = Math.max(1, Math.floor(room / STACKED));
    const beside = fits ? columns : Math.ceil(columns / Math.ceil(columns / most));
    put(this.element.dataset, "layout", fits ? "table" : "stacked");
    this.element.style.setProperty("--columns", String(beside));
  }
}
