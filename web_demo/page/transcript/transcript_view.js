// The transcript on the page: a row for each utterance, a column for each language, the newest at the end. Keeps the
// reading position; must not know the connection.

import { evictOldest } from "../../client/evict_oldest.js";
import { button, element, setIfChanged } from "../ui/dom.js";
import { nativeName, textDirection } from "../ui/languages.js";
import { t } from "../words/words.js";
import { AS_SPOKEN, UtteranceRow } from "./utterance_row.js";

/** @typedef {import("./entry.js").Entry} Entry */
/** @typedef {import("./transcript.js").Change} Change */
/** @typedef {import("./transcript.js").Transcript} Transcript */
/** @typedef {import("./utterance_row.js").Shown} Shown */

const COLOURS = 8;
// How many speakers keep their colour.
const MAX_SPEAKERS = 200;
// So near to the end, in px, the view follows new text.
const NEAR_END_PX = 24;
// The minimum width of a cell with a label, in columns.
const STACKED_COLUMNS = 1.15;

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
  /** Shown while the transcript is empty. */
  empty = element("div", "transcript-empty");
  #options;
  #scroller = element("div", "transcript-scroller");
  #headings = element("div", "headings");
  #rows = element("ol", "rows");
  #measure = element("div", "column-measure");
  #jump;
  /** @type {Map<string, UtteranceRow>} */
  #byKey = new Map();
  /** Participant → colour; the one who spoke last is last. @type {Map<string, number>} */
  #colours = new Map();
  /** @type {Shown} */
  #shown = { columns: [], originals: true, stability: "live" };
  /** To be drawn in the next frame: row → columns that changed. @type {Map<string, Set<string>>} */
  #due = new Map();
  #frame = 0;
  #isAtEnd = true;
  #scrollTop = 0;
  /** The topmost visible row and its position. @type {{row: Element, top: number} | undefined} */
  #anchor;
  #unseen = 0;

  /**
   * @param {object} options
   * @param {Transcript} options.transcript
   * @param {(tag: string) => string} options.nameOf A language's name.
   * @param {(entry: Entry) => void} options.onCancel
   */
  constructor(options) {
    this.#options = options;
    const scroller = this.#scroller;
    Object.assign(scroller, { tabIndex: 0, role: "log", ariaLive: "off", ariaLabel: t("transcript.title") });
    scroller.dataset.testid = "transcript";
    this.#headings.ariaHidden = "true"; // every cell has a label with its language
    scroller.append(this.#measure, this.#headings, this.#rows, this.empty);
    this.#jump = button("transcript-jump", "", "jump", () => {
      this.jump();
      scroller.focus({ preventScroll: true });
    });
    this.element.append(scroller, this.#jump);
    scroller.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    // The observer is called after layout and before paint, when measuring costs nothing.
    const sizes = new ResizeObserver(() => {
      this.#layOut();
      this.#holdPosition();
    });
    for (const part of [scroller, this.#rows, this.#measure]) sizes.observe(part);
    const { transcript } = options;
    for (const entry of transcript.entries.values()) this.#onChange({ entry, lang: "", what: "new" });
    transcript.listen((change) => this.#onChange(change));
    this.show(this.#shown);
    this.#draw();
  }

  /** @param {Shown} shown `columns`: languages; `originals`: whether originals have a column of their own. */
  show({ columns, originals, stability }) {
    this.#shown = { columns: [...columns], originals: originals || columns.length === 0, stability };
    this.#options.transcript.read(columns);
    const all = this.#shown.originals ? [AS_SPOKEN, ...columns] : columns;
    this.#headings.replaceChildren(...all.map((tag) => this.#heading(tag)));
    this.element.classList.toggle("with-originals", this.#shown.originals);
    for (const row of this.#byKey.values()) row.show(this.#shown);
    this.#layOut();
  }

  /** Scroll to the newest row. */
  jump() {
    this.#isAtEnd = true;
    this.#holdPosition();
    this.#showJump();
  }

  /** @param {string} tag */
  #heading(tag) {
    const name = tag === AS_SPOKEN ? t("transcript.as_spoken") : this.#options.nameOf(tag);
    const heading = element("div", "heading", name);
    const native = tag && nativeName(tag);
    if (native && native.toLowerCase() !== name.toLowerCase()) {
      const span = element("span", "heading-own", native);
      Object.assign(span, { lang: tag, dir: textDirection(tag) });
      heading.append(" ", span);
    }
    return heading;
  }

  // ---------------------------------------------------------------- drawing, once a frame

  /** @param {Change} change */
  #onChange({ entry: { key }, lang, what }) {
    // A page in the background draws nothing, maybe for hours: do not collect entries that are gone.
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
    const isEmpty = this.#byKey.size === 0;
    if (!isEmpty) this.#keepFocus(this.empty);
    setIfChanged(this.empty, "hidden", !isEmpty);
    setIfChanged(this.#headings, "hidden", isEmpty);
    if (!this.#isAtEnd) this.#holdPosition();
    this.#showJump();
  }

  /** @param {Entry} entry */
  #add(entry) {
    const row = new UtteranceRow(entry, { ...this.#options, colour: this.#colourOf(entry.participant) });
    row.show(this.#shown);
    this.#byKey.set(entry.key, row);
    // Unsent utterances stay at the end.
    const unsent = this.#rows.querySelector(':scope > [data-state="unsent"]');
    this.#rows.insertBefore(row.element, entry.unsent ? null : unsent);
    row.follow(this.#above(row.element));
    if (!this.#isAtEnd && !entry.own) this.#unseen += 1;
  }

  /**
   * A colour that is usually the same in all windows, and never that of another of the latest speakers.
   * @param {string} participant
   */
  #colourOf(participant) {
    let colour = this.#colours.get(participant);
    if (colour === undefined) {
      const taken = new Set([...this.#colours.values()].slice(1 - COLOURS));
      for (colour = hash(participant) % COLOURS; taken.has(colour); ) colour = (colour + 1) % COLOURS;
    }
    this.#colours.delete(participant);
    this.#colours.set(participant, colour);
    evictOldest(this.#colours, MAX_SPEAKERS);
    return colour;
  }

  /** Keep the focus in the transcript when an element goes. @param {Element | undefined} part */
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

  // ---------------------------------------------------------------- reading position

  #onScroll() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const left = scrollHeight - scrollTop - clientHeight;
    // Any step upwards leaves the end: otherwise the next word would scroll back.
    this.#isAtEnd = left < 2 || (scrollTop >= this.#scrollTop && (this.#isAtEnd || left < NEAR_END_PX));
    this.#scrollTop = scrollTop;
    this.#setAnchor();
    this.#showJump();
  }

  #setAnchor() {
    const rows = this.#rows.children;
    const top = topOf(this.#scroller) + this.#headings.offsetHeight;
    let [first, last] = [0, rows.length - 1];
    while (first < last) {
      const middle = (first + last) >> 1;
      if ((rows[middle]?.getBoundingClientRect().bottom ?? 0) > top) last = middle;
      else first = middle + 1;
    }
    const row = rows[first];
    this.#anchor = row && { row, top: topOf(row) };
  }

  /** Keep the visible rows in place when rows above change. Not every browser does this by itself. */
  #holdPosition() {
    if (this.#isAtEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    else if (this.#anchor?.row.isConnected) {
      const moved = topOf(this.#anchor.row) - this.#anchor.top;
      if (Math.abs(moved) >= 1) this.#scroller.scrollTop += moved;
    } else this.#setAnchor();
  }

  #showJump() {
    if (this.#isAtEnd) this.#unseen = 0;
    setIfChanged(this.#jump, "hidden", this.#isAtEnd);
    setIfChanged(this.#jump, "textContent", this.#unseen > 0 ? t("transcript.newest_count", { count: this.#unseen }) : t("transcript.newest"));
  }

  /** Columns side by side if each has its minimum width, which grows with the text size; else stacked cells. */
  #layOut() {
    const columns = Math.max(1, this.#headings.childElementCount);
    const room = this.#rows.offsetWidth / this.#measure.offsetWidth;
    const fits = columns === 1 || columns <= room;
    // Stacked cells have labels, and need a little more width.
    const max = Math.max(1, Math.floor(room / STACKED_COLUMNS));
    const beside = fits ? columns : Math.ceil(columns / Math.ceil(columns / max));
    setIfChanged(this.element.dataset, "layout", fits ? "table" : "stacked");
    this.element.style.setProperty("--columns", String(beside));
  }
}
