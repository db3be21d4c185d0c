// The transcript on the page: a row for each utterance, a column for each language, the newest at the end. Keeps the
// reading position; must not know the connection.

import { button, element, setIfChanged } from "../ui/dom.js";
import { nativeName, textDirection } from "../ui/languages.js";
import { Voices } from "../ui/voices.js";
import { t } from "../words/words.js";
import { speakerName } from "./entry.js";
import { LanguageSwitch } from "./language_switch.js";
import { AS_SPOKEN, UtteranceRow } from "./utterance_row.js";

/** @typedef {import("./entry.js").Entry} Entry */
/** @typedef {import("./transcript.js").Change} Change */
/** @typedef {import("./transcript.js").Transcript} Transcript */
/** @typedef {import("./utterance_row.js").Shown} Shown */
/** @typedef {"table" | "stacked" | "single"} Layout */

// How many speakers keep their colour and shape.
const MAX_SPEAKERS = 200;
// So near to the end, in px, the view follows new text.
const NEAR_END_PX = 24;
// The minimum width of a cell with a label, in columns.
const STACKED_COLUMNS = 1.15;
// With less room, in columns, one language is shown at a time: side by side, lines would have three or four words.
const MIN_ROOM = 3;

/** @param {Element} part */
function topOf(part) {
  return part.getBoundingClientRect().top;
}

export class TranscriptView {
  element = element("div", "transcript");
  /** Above the first row. */
  start = element("div", "transcript-start");
  /** Shown while the transcript is empty. */
  empty = element("div", "transcript-empty");
  #options;
  #scroller = element("div", "transcript-scroller");
  #top = element("div", "transcript-top");
  #headings = element("div", "headings");
  /** Who said the topmost visible words, if their name has scrolled away. */
  #speaker = element("p", "top-speaker");
  #rows = element("ol", "rows");
  #measure = element("div", "column-measure");
  #jump;
  /** @type {Map<string, UtteranceRow>} */
  #byKey = new Map();
  #voices = new Voices(MAX_SPEAKERS);
  /** @type {Omit<Shown, "columns">} */
  #shown = { reads: [], originals: true, stability: "live" };
  #switch = new LanguageSwitch(() => this.#showRows());
  /** @type {Layout} */
  #layout = "table";
  /** To be drawn in the next frame: row → columns that changed. @type {Map<string, Set<string>>} */
  #due = new Map();
  #frame = 0;
  /** The height of the name at the top, in px, when it was shown last. */
  #speakerHeight = 0;
  /** Whether some of what is to be drawn may not be translated into a language that is read. */
  #hasUntranslated = false;
  /** Rows that say that translations begin after them. @type {Set<UtteranceRow>} */
  #marked = new Set();
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
   * @param {(entry: Entry) => void} options.onCorrect
   * @param {(entry: Entry) => void} options.onTakeBack
   */
  constructor(options) {
    this.#options = options;
    const scroller = this.#scroller;
    Object.assign(scroller, { tabIndex: 0, role: "log", ariaLive: "off", ariaLabel: t("transcript.title") });
    scroller.dataset.testid = "transcript";
    this.#top.ariaHidden = "true"; // every cell has a label with its language, every row its speaker
    this.#speaker.dataset.testid = "top-speaker";
    this.#speaker.hidden = true;
    this.#top.append(this.#headings, this.#speaker);
    scroller.append(this.#measure, this.#top, this.start, this.#rows, this.empty);
    this.#jump = button("transcript-jump", "", "jump", () => {
      this.jump();
      scroller.focus({ preventScroll: true });
    });
    this.element.append(this.#switch.element, scroller, this.#jump);
    scroller.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    // The observer is called after layout and before paint, when measuring costs nothing.
    const sizes = new ResizeObserver(() => {
      this.#layOut();
      this.#holdPosition();
    });
    for (const part of [scroller, this.#rows, this.#measure]) sizes.observe(part);
    const { transcript } = options;
    for (const entry of transcript.entries.values()) this.#onChange({ entry, lang: "", what: "new", before: "" });
    transcript.listen((change) => this.#onChange(change));
    this.show(this.#shown);
    this.#draw();
  }

  /** @param {Omit<Shown, "columns">} shown */
  show({ reads, originals, stability }) {
    this.#shown = { reads: [...reads], originals, stability };
    this.#options.transcript.read(reads);
    this.#headings.replaceChildren(...reads.map((tag) => this.#heading(tag)));
    this.#switch.offer(reads, this.#options.nameOf);
    this.#layOut();
    this.#showRows();
  }

  /** What each row shows: all that is read, or the one language for which there is room. @returns {Shown} */
  get #rowsShown() {
    const { reads } = this.#shown;
    return { ...this.#shown, columns: this.#layout === "single" ? [this.#switch.selected] : reads };
  }

  #showRows() {
    const shown = this.#rowsShown;
    for (const row of this.#byKey.values()) row.show(shown);
  }

  /** Scroll to the newest row. */
  jump() {
    this.#isAtEnd = true;
    this.#holdPosition();
    this.#showJump();
  }

  /** @param {string} tag */
  #heading(tag) {
    const name = this.#options.nameOf(tag);
    const heading = element("div", "heading", name);
    const native = nativeName(tag);
    if (native && native.toLowerCase() !== name.toLowerCase()) {
      const span = element("span", "heading-own", native);
      Object.assign(span, { lang: tag, dir: textDirection(tag) });
      heading.append(" ", span);
    }
    return heading;
  }

  // ---------------------------------------------------------------- drawing, once a frame

  /** @param {Change} change */
  #onChange({ entry: { key, optional }, lang, what, before }) {
    if (what === "replaced") this.#rename(before, key);
    this.#hasUntranslated ||= optional.size > 0 || this.#marked.size > 0;
    // A page in the background draws nothing, maybe for hours: do not collect entries that are gone.
    if (what === "gone" && !this.#byKey.has(key)) return void this.#due.delete(key);
    const columns = this.#due.get(key) ?? new Set();
    this.#due.set(key, columns.add(what === "translation" ? lang : AS_SPOKEN));
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  /** The row stays where it is, and what is to be drawn keeps its order. @param {string} before @param {string} key */
  #rename(before, key) {
    this.#due = new Map([...this.#due].map(([each, columns]) => [each === before ? key : each, columns]));
    const row = this.#byKey.get(before);
    if (row === undefined) return;
    this.#remove(key);
    this.#byKey.delete(before);
    this.#byKey.set(key, row);
    row.element.dataset["key"] = key;
  }

  #draw() {
    this.#frame = 0;
    for (const [key, columns] of this.#due) {
      const entry = this.#options.transcript.entries.get(key);
      const row = this.#byKey.get(key);
      if (row !== undefined && row.entry === entry) {
        row.render(columns);
        if (columns.has(AS_SPOKEN)) row.follow(this.#above(row.element));
        this.#rejoin(row.element.nextElementSibling);
        continue;
      }
      this.#remove(key);
      if (entry !== undefined) this.#add(entry);
    }
    this.#due.clear();
    if (this.#hasUntranslated) this.#markBeginnings();
    const isEmpty = this.#byKey.size === 0;
    if (!isEmpty) this.#keepFocus(this.empty);
    setIfChanged(this.empty, "hidden", !isEmpty);
    setIfChanged(this.#headings, "hidden", isEmpty);
    // Not laid out here: rows of another size are observed once they have one, and measuring now would be a layout more.
    if (!this.#isAtEnd) this.#holdPosition();
    this.#showJump();
  }

  /** @param {Entry} entry */
  #add(entry) {
    const { transcript } = this.#options;
    const mayCorrect = (/** @type {Entry} */ each) => transcript.mayCorrect(each);
    const row = new UtteranceRow(entry, { ...this.#options, mayCorrect, voice: this.#voices.of(entry) });
    row.show(this.#rowsShown);
    this.#byKey.set(entry.key, row);
    this.#rows.insertBefore(row.element, this.#placeOf(entry));
    row.follow(this.#above(row.element));
    this.#rejoin(row.element.nextElementSibling);
    if (!this.#isAtEnd && !entry.own && !entry.isEarlier) this.#unseen += 1;
  }

  /** The row before which a new one belongs. @param {Entry} entry */
  #placeOf({ key, unsent, isEarlier }) {
    if (unsent) return null;
    if (isEarlier) {
      const keys = [...this.#options.transcript.entries.keys()];
      const next = keys.slice(keys.indexOf(key) + 1).find((each) => this.#byKey.has(each));
      if (next !== undefined) return this.#byKey.get(next)?.element ?? null;
    }
    // Unsent utterances stay at the end.
    let place = null;
    for (let last = this.#rows.lastElementChild; last !== null; last = last.previousElementSibling) {
      if (!(last instanceof HTMLElement) || last.dataset["state"] !== "unsent") break;
      place = last;
    }
    return place;
  }

  /** Tell the last row that is not translated into a language: from the next one on, it is. */
  #markBeginnings() {
    this.#hasUntranslated = false;
    const before = this.#marked;
    this.#marked = new Set();
    const langs = new Set(this.#shown.reads);
    for (let row = this.#rows.lastElementChild; row !== null && langs.size > 0; row = row.previousElementSibling) {
      const shown = row instanceof HTMLElement ? this.#byKey.get(row.dataset["key"] ?? "") : undefined;
      const found = new Set([...langs].filter((lang) => shown?.isUntranslated(lang)));
      if (shown === undefined || found.size === 0) continue;
      shown.endUntranslated(found);
      this.#marked.add(shown);
      for (const lang of found) langs.delete(lang);
    }
    for (const row of before) if (!this.#marked.has(row)) row.endUntranslated(new Set());
  }

  /** Another row is above this one now. @param {Element | null | undefined} row */
  #rejoin(row) {
    if (row instanceof HTMLElement) this.#byKey.get(row.dataset["key"] ?? "")?.follow(this.#above(row));
  }

  /** Keep the focus in the transcript when an element goes. @param {Element | undefined} part */
  #keepFocus(part) {
    if (part?.contains(document.activeElement)) this.#scroller.focus({ preventScroll: true });
  }

  /** @param {string} key */
  #remove(key) {
    const gone = this.#byKey.get(key)?.element;
    this.#byKey.delete(key);
    const next = gone?.nextElementSibling;
    this.#keepFocus(gone);
    gone?.remove();
    this.#rejoin(next);
  }

  /** @param {HTMLElement} row */
  #above(row) {
    const above = /** @type {HTMLElement | null} */ (row.previousElementSibling);
    return this.#byKey.get(above?.dataset.key ?? "");
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
    this.#speakerHeight = this.#speaker.offsetHeight || this.#speakerHeight;
    // The name that is shown hides what is behind it: it is that of the first words below.
    const below = top + this.#speakerHeight;
    const next = row?.nextElementSibling ?? undefined;
    this.#showSpeaker(next !== undefined && (row?.getBoundingClientRect().bottom ?? 0) <= below ? next : row, below);
  }

  /** @param {Element | undefined} row @param {number} top Upper edge of what is visible, in px. */
  #showSpeaker(row, top) {
    const shown = row instanceof HTMLElement ? this.#byKey.get(row.dataset.key ?? "") : undefined;
    const isAway = shown !== undefined && shown.nameBottom < top + 1;
    if (isAway) {
      setIfChanged(this.#speaker, "textContent", speakerName(shown.entry));
      this.#speaker.style.setProperty("--voice", shown.element.style.getPropertyValue("--voice"));
    }
    setIfChanged(this.#speaker, "hidden", !isAway);
  }

  /** Keep the visible rows in place when rows above change. Not every browser does this by itself. */
  #holdPosition() {
    if (this.#isAtEnd) {
      this.#scroller.scrollTop = this.#byKey.size > 0 ? this.#scroller.scrollHeight : 0;
      // Firefox tells nobody that it has scrolled back because there is less to scroll.
      if (this.#scroller.scrollTop < this.#scrollTop) this.#onScroll();
    } else if (this.#anchor?.row.isConnected) {
      const moved = topOf(this.#anchor.row) - this.#anchor.top;
      if (Math.abs(moved) >= 1) this.#scroller.scrollTop += moved;
    } else this.#setAnchor();
  }

  #showJump() {
    if (this.#isAtEnd) this.#unseen = 0;
    setIfChanged(this.#jump, "hidden", this.#isAtEnd);
    setIfChanged(
      this.#jump,
      "textContent",
      this.#unseen > 0 ? t("transcript.newest_count", { count: this.#unseen }) : t("transcript.newest"),
    );
  }

  /** Columns side by side if each has its minimum width, which grows with the text size; else stacked cells, or one. */
  #layOut() {
    const columns = this.#shown.reads.length;
    const room = this.#rows.offsetWidth / this.#measure.offsetWidth;
    /** @type {Layout} */
    let layout = columns <= Math.max(1, room) ? "table" : "stacked";
    if (columns > 1 && room < MIN_ROOM) layout = "single";
    // Stacked cells have labels, and need a little more width.
    const max = Math.max(1, Math.floor(room / STACKED_COLUMNS));
    const stacked = Math.ceil(columns / Math.ceil(columns / max));
    const beside = { table: Math.max(1, columns), stacked, single: 1 }[layout];
    setIfChanged(this.element.dataset, "layout", layout);
    setIfChanged(this.#switch.element, "hidden", layout !== "single" || this.#byKey.size === 0);
    this.element.style.setProperty("--columns", String(beside));
    const rowsChange = (layout === "single") !== (this.#layout === "single");
    this.#layout = layout;
    if (!rowsChange) return;
    this.#showRows();
    // WebKit leaves the heads of rows that it had not laid out without a size, when a phone is turned.
    this.#rows.hidden = true;
    void this.#rows.offsetHeight;
    this.#rows.hidden = false;
  }
}
