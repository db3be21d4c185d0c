// A room's wall: up to three languages side by side, a row for each utterance, the newest at the bottom, whole rows only.
// More languages take turns. Must not know the connection.

import { element } from "../ui/dom.js";
import { nativeName, textDirection } from "../ui/languages.js";
import { Voices } from "../ui/voices.js";
import { t } from "../words/words.js";
import { takesOver } from "./turns.js";
import { WallRow } from "./wall_row.js";

/** @import {Entry} from "../transcript/entry.js" */
/** @import {CaptionOptions} from "./caption_options.js" */

const MOST_COLUMNS = 3;
// How long a page of languages is shown, in ms, and how long at most where no sentence ends.
const PAGE_MS = 12_000;
const LONGEST_PAGE_MS = 24_000;
// More rows than any screen has room for.
const MOST_ROWS = 16;
const UPRIGHT = matchMedia("(orientation: portrait)");

export class Wall {
  element = element("div", "wall");
  #options;
  #entries;
  #spokenBy;
  #heads = element("div", "wall-heads");
  #book = element("div", "wall-book");
  #others = element("p", "wall-others");
  #foot = element("div", "wall-foot");
  #invitation = element("p", "wall-invitation");
  #voices = new Voices();
  #pages;
  #page = 0;
  #pageSince = 0;
  /** @type {Map<string, WallRow>} */
  #rows = new Map();
  /** Key of the newest entry that is shown; null where all that there is will be. @type {string | null} */
  #newest = "";
  /** When the utterances that are held back had their first words, in ms. @type {Map<string, number>} */
  #heldSince = new Map();
  #timer = 0;

  /**
   * @param {readonly string[]} langs
   * @param {CaptionOptions} options
   * @param {ReadonlyMap<string, Entry>} entries
   * @param {(participant: string) => string} spokenBy The language that a participant speaks; empty if it is not known.
   */
  constructor(langs, options, entries, spokenBy) {
    this.#options = options;
    this.#entries = entries;
    this.#spokenBy = spokenBy;
    this.#pages = pagesOf(langs);
    this.#book.role = "log";
    this.#book.ariaLive = "off";
    this.#book.ariaLabel = t("transcript.title");
    this.#book.tabIndex = 0;
    this.#foot.append(this.#invitation, this.#others);
    this.element.append(this.#heads, this.#book, this.#foot);
    this.#showPage(0, Date.now());
    new ResizeObserver(() => this.draw()).observe(this.#book);
  }

  /** What was said before is there at once. */
  skipHistory() {
    this.#newest = null;
  }

  /**
   * Say at the foot what is read here, and how to read it elsewhere.
   * @param {object} meeting
   * @param {string} meeting.title In one line; empty: it has none.
   * @param {string} meeting.code Its id.
   * @param {string} meeting.address Empty where the link is a secret.
   */
  invite({ title, code, address }) {
    const join = element("span", "", address && t("captions.join", { address: "\n" }));
    const [before = "", after = ""] = join.textContent.split("\n");
    const link = element("bdi", "wall-address", address);
    link.dir = "ltr";
    if (address) join.replaceChildren(before, link, after);
    const parts = [element("bdi", "wall-title", title), element("bdi", "", code), join];
    this.#invitation.replaceChildren(...parts.filter((part) => part.textContent !== ""));
  }

  /** At the foot, where it hides no words. @param {HTMLElement} control */
  addControl(control) {
    this.#foot.append(control);
  }

  draw(now = Date.now()) {
    if (this.#mayTurn(now)) this.#showPage((this.#page + 1) % this.#pages.length, now);
    const entries = [...this.#entries.values()].filter((entry) => this.#hasWords(entry));
    // Colours are given in the order in which participants first spoke, shown or not.
    for (const { participant } of entries) this.#voices.of({ participant });
    this.#reveal(entries, now);
    this.#schedule(now);
  }

  /** @returns {readonly string[]} The languages that are shown now. */
  get #langs() {
    return this.#pages[this.#page] ?? [];
  }

  /** @param {Entry} entry */
  #hasWords(entry) {
    return this.#langs.some((lang) => WallRow.wordsOf(entry, lang, this.#options).text !== "");
  }

  // ---------------------------------------------------------------- languages

  /** @param {number} page @param {number} now */
  #showPage(page, now) {
    this.#page = page;
    this.#pageSince = now;
    this.#rows.clear();
    this.element.style.setProperty("--columns", String(this.#langs.length));
    this.#heads.replaceChildren(...this.#langs.map((lang) => ownName("wall-head", lang)));
    const others = this.#pages.filter((_, at) => at !== page).flat();
    this.#others.replaceChildren(...others.map((lang) => ownName("", lang)));
  }

  /** Whether the next page of languages is due, and no sentence is cut by it. @param {number} now */
  #mayTurn(now) {
    const shownMs = now - this.#pageSince;
    if (this.#pages.length < 2 || shownMs < PAGE_MS) return false;
    const newest = [...this.#rows.values()].at(-1);
    return (
      shownMs >= LONGEST_PAGE_MS || newest === undefined || (this.#heldSince.size === 0 && newest.isAtSentenceEnd(now))
    );
  }

  // ---------------------------------------------------------------- rows

  /**
   * A new row waits until what it would push out of the screen has been read, or until it has waited too long.
   * @param {Entry[]} entries
   * @param {number} now
   */
  #reveal(entries, now) {
    let count = entries.findLastIndex(({ key }) => key === this.#newest) + 1;
    const isGone = count === 0 && this.#newest !== "";
    if (isGone) count = entries.length;
    this.#place(entries.slice(0, count), now);
    const late = entries.findLastIndex((entry, i) => i >= count && this.#isLate(entry, entries, now)) + 1;
    while (count < entries.length) {
      const unread = [...this.#rows.values()].filter((row) => !row.element.hidden && !row.isRead(now));
      const isLongRead = [...this.#rows.values()].at(-1)?.isInTurns(now) === true;
      const isDue = count < late;
      if (isLongRead && !isDue) break;
      this.#place(entries.slice(0, count + 1), now);
      if (!isDue && unread.some((row) => row.element.hidden || !row.element.isConnected)) {
        this.#place(entries.slice(0, count), now);
        break;
      }
      count += 1;
    }
    this.#newest = entries[count - 1]?.key ?? "";
    const held = entries.slice(count).map(({ key }) => key);
    this.#heldSince = new Map(held.map((key) => [key, this.#heldSince.get(key) ?? now]));
  }

  /** Whether words of it are shown, and more will come. @param {Entry} entry */
  #isGrowing(entry) {
    return this.#langs.some((lang) => {
      const { text, isComplete } = WallRow.wordsOf(entry, lang, this.#options);
      return text !== "" && !isComplete;
    });
  }

  /** Whether an utterance has waited for too long. @param {Entry} entry @param {Entry[]} entries @param {number} now */
  #isLate({ key, participant }, entries, now) {
    const speaking = entries.filter((entry) => this.#isGrowing(entry));
    const shown = this.#newest === null ? undefined : this.#entries.get(this.#newest);
    // A long text comes in several utterances, which do not overtake each other.
    if (participant === shown?.participant && !speaking.some((entry) => entry.key === key)) return false;
    const isSpeaking = speaking.length > 0;
    return takesOver(now - (this.#heldSince.get(key) ?? now), isSpeaking);
  }

  /** The newest at the bottom, and above it those that there is room for as a whole. @param {Entry[]} entries @param {number} now */
  #place(entries, now) {
    const newest = entries.slice(-MOST_ROWS);
    const rows = newest.map(({ key, participant }) => {
      const made = () => new WallRow(this.#langs, this.#options, this.#voices.of({ participant }));
      return /** @type {[string, WallRow]} */ ([key, this.#rows.get(key) ?? made()]);
    });
    this.#rows = new Map(rows);
    const elements = rows.map(([, row]) => row.element);
    if (this.#book.children.length !== elements.length || elements.some((row, i) => this.#book.children[i] !== row))
      this.#book.replaceChildren(...elements);
    rows.forEach(([, row], i) => {
      const entry = /** @type {Entry} */ (newest[i]);
      row.element.hidden = false;
      row.write(entry, entry.lang || this.#spokenBy(entry.participant), () => this.#roomFor(row), now);
    });
    this.#hideUncompleted(
      newest,
      rows.map(([, row]) => row),
    );
  }

  /** The height for a row's words in one language, in px. @param {WallRow} row */
  #roomFor(row) {
    const { paddingTop, paddingBottom } = getComputedStyle(this.#book);
    const height = this.#book.clientHeight - Number.parseFloat(paddingTop) - Number.parseFloat(paddingBottom);
    // Upright, the columns stand one below the other.
    return (height - row.headHeight) / (UPRIGHT.matches ? this.#langs.length : 1);
  }

  /** @param {Entry[]} entries @param {WallRow[]} rows */
  #hideUncompleted(entries, rows) {
    const top = this.#book.getBoundingClientRect().top;
    rows.forEach((row, i) => row.follow(i > 0 && entries[i]?.participant === entries[i - 1]?.participant));
    for (const [i, row] of rows.entries()) {
      row.follow(false);
      const isLast = i === rows.length - 1;
      if (isLast || row.element.getBoundingClientRect().top >= top) return;
      row.element.hidden = true;
    }
  }

  /** @param {number} now */
  #schedule(now) {
    clearTimeout(this.#timer);
    const turns = [...this.#rows.values()].flatMap((row) => row.nextTurnAt(now) ?? []);
    const page = this.#pages.length > 1 ? [Math.max(this.#pageSince + PAGE_MS, now + 500)] : [];
    const held = this.#heldSince.size > 0 ? [now + 500] : [];
    const next = Math.min(...turns, ...page, ...held);
    if (next < Infinity) this.#timer = setTimeout(() => this.draw(), Math.max(0, next - now));
  }
}

/** Pages of at most three languages, of about the same size. @param {readonly string[]} langs */
function pagesOf(langs) {
  const count = Math.ceil(langs.length / MOST_COLUMNS);
  const size = Math.ceil(langs.length / count);
  return Array.from({ length: count }, (_, page) => langs.slice(page * size, (page + 1) * size));
}

/** A language by its own name. @param {string} className @param {string} lang */
function ownName(className, lang) {
  const name = nativeName(lang) || lang;
  const made = element("span", className, name.charAt(0).toLocaleUpperCase(lang) + name.slice(1));
  Object.assign(made, { lang, dir: textDirection(lang) });
  made.dataset["testid"] = `${className ? "head" : "later"}-${lang}`;
  return made;
}
