// What was said in the meeting, and its translations, put together from what the client hears. Knows the messages and
// what each of them may change; must not know the page.

import { evictOldest } from "../../client/evict_oldest.js";

/** @typedef {import("../../client/events.js").ClientEvent} ClientEvent */
/** @typedef {import("../../client/messages.js").Caption} Caption */
/** @typedef {import("../../client/messages.js").Timings} Timings */
/** @typedef {import("../../client/messages.js").TranslationDelta} TranslationDelta */
/** @typedef {import("../../client/messages.js").TranslationFailed} TranslationFailed */
/** @typedef {import("../../client/messages.js").TranslationFinal} TranslationFinal */

/**
 * A translation into one language. While it grows, `committed` stays and `tentative` may change; then it has its `text`,
 * or the `reason` why there is none. `void`: the next delta begins anew, and until then what is there stays to be seen.
 * @typedef {{lang: string, committed: string, tentative: string, void: boolean, state: "growing" | "final" | "failed",
 *   text: string, reason: string, timings: Timings | null, tokens: number, truncated: boolean}} Cell
 *
 * An utterance. `lang` and `text` are empty until a caption came, of revision `rev`; `final`: whether `text` is the last
 * word. `at`: when it was first heard of, or null where it was said before that. `reason`: why nothing more will come of
 * it, or empty. `unsent`: own, final, and not taken by the gateway; its caption makes another entry. `unowed`: languages
 * that were not read when it was said: something may come in them, and need not.
 * @typedef {{key: string, participant: string, utterance: string, speaker: string, lang: string, text: string,
 *   rev: number, final: boolean, own: boolean, at: Date | null, reason: string, unsent: boolean,
 *   cells: Map<string, Cell>, unowed: Set<string>}} Entry
 *
 * `lang`: of the translation that changed.
 * @typedef {{entry: Entry, lang: string, what: "new" | "original" | "translation" | "gone"}} Change
 */

const MOST_ENTRIES = 500;
// Own ones that were given up, until the gateway has said so.
const MOST_GIVEN_UP = 100;
const RESTARTED = "Interrupted: the gateway was restarted.";
const AWAY = "Interrupted: the connection was lost for too long.";

/**
 * Whether all words of an utterance were said: a translation is not final before.
 * @param {Entry} entry
 */
export function isSaid(entry) {
  return entry.final || entry.reason !== "" || [...entry.cells.values()].some((cell) => cell.state !== "growing");
}

/** @param {Entry} entry */
function isSettled(entry) {
  if (entry.unsent) return entry.reason !== "";
  return isSaid(entry) && [...entry.cells.values()].every((cell) => cell.state !== "growing");
}

/**
 * Under which an entry is kept until the gateway has taken it; a participant's id is never empty.
 * @param {string} utterance
 */
function unsentKey(utterance) {
  return `/${utterance}`;
}

/**
 * Who says it, for the reader.
 * @param {Entry} entry
 */
export function speakerOf({ own, speaker }) {
  return own ? "You" : speaker || "Guest";
}

export class Transcript {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  /** @type {Set<(change: Change) => void>} */
  #listeners = new Set();
  /** Ids that this client had: a session that is not recovered gets another one. @type {Set<string>} */
  #own = new Set();
  /** The newest of them. */
  #self = "";
  #epoch = "";
  /** Between `session.started` and the `pong` behind what was missed. */
  #catchingUp = false;
  /** Since the connection was found again: what was not heard of yet. @type {Set<Entry>} */
  #unconfirmed = new Set();
  /** What had been said when another session began: why nothing more may come of it. @type {Map<Entry, string>} */
  #interrupted = new Map();
  /** Own drafts that the gateway was told to give up: what comes of them is late. @type {Map<string, true>} */
  #givenUp = new Map();
  /** Languages. @type {Set<string>} */
  #reads = new Set();
  /** Of those, the ones that the gateway may not have heard of yet. @type {Set<string>} */
  #asked = new Set();
  /** Of those, the ones in which nothing is owed of what was said before the next `pong`. @type {Set<string>} */
  #late = new Set();

  /** @returns {ReadonlyMap<string, Entry>} In the order of first sight. */
  get entries() {
    return this.#entries;
  }

  /**
   * @param {(change: Change) => void} listener
   * @returns {() => void} Ends it.
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Languages that are read from now on: of what was said already, nothing is owed in the new ones.
   * @param {readonly string[]} langs
   */
  read(langs) {
    const added = langs.filter((lang) => !this.#reads.has(lang));
    this.#reads = new Set(langs);
    this.#asked = new Set([...this.#asked, ...added].filter((lang) => this.#reads.has(lang)));
    this.#owesNone(added);
  }

  /** @param {ClientEvent} event */
  hear(event) {
    switch (event.type) {
      case "session.started":
        return this.#onStarted(event);
      case "pong":
        return this.#caughtUp();
      case "session.updated": {
        // Of what is left out from now on, unfinished text comes anew should it be asked for again.
        this.#void((lang) => event.stability === "final" || !event.reads.includes(lang));
        const inForce = event.reads.filter((lang) => this.#asked.delete(lang));
        return this.#owesNone(inForce);
      }
      case "utterance.queued":
        return this.#onQueued(event);
      case "caption":
        return this.#onCaption(event);
      case "translation.delta":
        return this.#onDelta(event);
      case "translation.final":
        return this.#onFinal(event);
      case "translation.failed":
        return this.#onFailed(event);
      case "participant.left":
        return this.#onLeft(event.participant);
      case "utterance.cancelled":
        this.#givenUp.delete(`${event.participant}/${event.utterance}`);
        return this.#onCancelled(`${event.participant}/${event.utterance}`);
      case "utterance.refused":
        return this.#onRefused(event.id, event.code, event.message);
    }
  }

  /** @param {import("../../client/messages.js").SessionStarted} started */
  #onStarted({ participant, epoch, recovered }) {
    // Another session, and the one before had not told all.
    if (this.#catchingUp && recovered !== true) this.#caughtUp();
    const entries = [...this.#entries.values()];
    this.#unconfirmed = new Set(entries.filter((entry) => !entry.own && !isSaid(entry)));
    if (recovered === true) {
      for (const lang of this.#asked) this.#late.add(lang);
    } else {
      const reason = epoch === this.#epoch ? AWAY : RESTARTED;
      for (const entry of entries) if (isSaid(entry) && !entry.unsent) this.#interrupted.set(entry, reason);
      this.#late = new Set(this.#reads);
      this.#givenUp.clear();
    }
    this.#asked.clear();
    this.#own.add(participant);
    this.#self = participant;
    this.#epoch = epoch;
    this.#catchingUp = true;
    this.#void(() => true);
  }

  #caughtUp() {
    this.#catchingUp = false;
    // What was being said before the connection was lost, and is not any more, was given up meanwhile.
    for (const entry of this.#unconfirmed) this.#onCancelled(entry.key);
    this.#unconfirmed.clear();
    for (const [entry, reason] of this.#interrupted) this.#interrupt(entry, reason);
    this.#interrupted.clear();
    this.#owesNone([...this.#late]);
    this.#late.clear();
  }

  /**
   * What was owed before another session began, and was not heard of since, will not come.
   * @param {Entry} entry
   * @param {string} reason
   */
  #interrupt(entry, reason) {
    const { lang: spoken, cells, unowed } = entry;
    const owed = entry.reason ? [] : [...this.#reads].filter((lang) => lang !== spoken && !unowed.has(lang));
    for (const lang of new Set([...cells.keys(), ...owed])) {
      const heardOf = cells.get(lang)?.void === false;
      if (!heardOf) this.#fail(entry, cellOf(entry, lang), reason);
    }
  }

  /**
   * Of what was said until now, nothing needs to come in these languages. What had begun before they were left is void.
   * @param {readonly string[]} langs
   */
  #owesNone(langs) {
    if (langs.length === 0) return;
    for (const entry of this.#entries.values()) {
      if (!isSaid(entry)) continue;
      for (const lang of langs) {
        const cell = entry.cells.get(lang);
        if (entry.unowed.has(lang) || (cell !== undefined && !(cell.void && cell.state === "growing"))) continue;
        entry.cells.delete(lang);
        entry.unowed.add(lang);
        this.#tell(entry, "translation", lang);
      }
    }
  }

  /** @param {(lang: string) => boolean} concerns */
  #void(concerns) {
    for (const { cells } of this.#entries.values()) {
      for (const cell of cells.values()) cell.void ||= cell.state === "growing" && concerns(cell.lang);
    }
  }

  /** @param {Caption} caption */
  #onCaption(caption) {
    if (caption.final) this.#published(caption);
    else if (this.#isLate(caption)) return;
    const entry = this.#entryOf(caption);
    if (entry.final || (!caption.final && caption.rev <= entry.rev)) return;
    const { rev, lang, text, final } = caption;
    Object.assign(entry, { rev, lang, text, final });
    this.#tell(entry, "original");
  }

  /** @param {TranslationDelta} delta */
  #onDelta(delta) {
    if (this.#isLate(delta)) return;
    const entry = this.#entryOf(delta);
    const cell = cellOf(entry, delta.lang);
    if (cell.state !== "growing") return;
    cell.committed = (cell.void ? "" : cell.committed) + delta.committed;
    cell.tentative = delta.tentative ?? "";
    cell.void = false;
    this.#tell(entry, "translation", delta.lang);
  }

  /** @param {TranslationFinal} translation */
  #onFinal(translation) {
    this.#published(translation);
    const entry = this.#entryOf(translation);
    const cell = cellOf(entry, translation.lang);
    if (cell.state === "final") return;
    const { text, timings, tokens, truncated } = translation;
    Object.assign(cell, { state: "final", text, timings, tokens, truncated, reason: "", committed: "", tentative: "" });
    this.#tell(entry, "translation", cell.lang);
  }

  /** @param {TranslationFailed} failure */
  #onFailed(failure) {
    this.#published(failure);
    const entry = this.#entryOf(failure);
    this.#fail(entry, cellOf(entry, failure.lang), failure.message);
  }

  /**
   * @param {Entry} entry
   * @param {Cell} cell
   * @param {string} reason
   */
  #fail(entry, cell, reason) {
    if (cell.state !== "growing") return;
    Object.assign(cell, { state: "failed", reason, tentative: "" });
    this.#tell(entry, "translation", cell.lang);
  }

  /**
   * What somebody was saying when they left will not be finished.
   * @param {string} participant
   */
  #onLeft(participant) {
    for (const entry of this.#entries.values()) {
      if (entry.participant === participant && !isSaid(entry)) this.#drop(entry);
    }
  }

  /** @param {string} key Of what was begun and given up. */
  #onCancelled(key) {
    const entry = this.#entries.get(key);
    if (entry !== undefined && !isSaid(entry)) this.#drop(entry);
  }

  /**
   * Whether it is about an own draft that is over for this client, and not for the gateway yet.
   * @param {{participant: string, utterance: string}} message
   */
  #isLate({ participant, utterance }) {
    if (!this.#own.has(participant)) return false;
    return this.#entries.has(unsentKey(utterance)) || this.#givenUp.has(`${participant}/${utterance}`);
  }

  /**
   * The gateway has taken it, in the end.
   * @param {{participant: string, utterance: string}} message
   */
  #published({ participant, utterance }) {
    if (!this.#own.has(participant)) return;
    this.#givenUp.delete(`${participant}/${utterance}`);
    const unsent = this.#entries.get(unsentKey(utterance));
    if (unsent !== undefined) this.#drop(unsent);
  }

  /** @param {{id: string, lang: string, text: string}} said */
  #onQueued({ id, lang, text }) {
    const begun = this.#ownEntries(id);
    if (begun.some((entry) => !entry.unsent && isSaid(entry))) return;
    for (const entry of begun) this.#drop(entry);
    const entry = this.#begin(unsentKey(id), this.#self, id);
    Object.assign(entry, { lang, text, final: true, own: true, unsent: true, at: new Date() });
    this.#add(entry);
  }

  /** @param {string} id */
  #ownEntries(id) {
    const keys = [unsentKey(id), ...[...this.#own].map((participant) => `${participant}/${id}`)];
    return keys.flatMap((key) => this.#entries.get(key) ?? []);
  }

  /**
   * @param {string} id
   * @param {string} code
   * @param {string} message
   */
  #onRefused(id, code, message) {
    if (code === "cancelled") {
      this.#givenUp.set(`${this.#self}/${id}`, true);
      evictOldest(this.#givenUp, MOST_GIVEN_UP);
    }
    for (const entry of this.#ownEntries(id)) {
      if (code === "cancelled" && (entry.unsent || !isSaid(entry))) {
        this.#drop(entry);
        continue;
      }
      entry.reason = message;
      for (const cell of entry.cells.values()) this.#fail(entry, cell, "");
      this.#tell(entry, "original");
    }
  }

  /**
   * @param {{participant: string, utterance: string, speaker?: string}} message Deltas do not tell the speaker.
   * @returns {Entry}
   */
  #entryOf({ participant, utterance, speaker = "" }) {
    const key = `${participant}/${utterance}`;
    const known = this.#entries.get(key);
    if (known !== undefined) {
      this.#unconfirmed.delete(known);
      known.speaker ||= speaker;
      return known;
    }
    const entry = this.#begin(key, participant, utterance);
    entry.speaker = speaker;
    return this.#add(entry);
  }

  /**
   * @param {string} key
   * @param {string} participant
   * @param {string} utterance
   * @returns {Entry}
   */
  #begin(key, participant, utterance) {
    const own = this.#own.has(participant);
    const at = this.#catchingUp ? null : new Date();
    return {
      ...{ key, participant, utterance, speaker: "", own, at, lang: "", text: "", rev: 0, final: false },
      ...{ reason: "", unsent: false, cells: new Map(), unowed: new Set() },
    };
  }

  /** @param {Entry} entry */
  #add(entry) {
    this.#entries.set(entry.key, entry);
    this.#tell(entry, "new");
    if (this.#entries.size > MOST_ENTRIES) this.#dropOldest();
    return entry;
  }

  #dropOldest() {
    const entries = [...this.#entries.values()].slice(0, -1);
    const oldest = entries.find(isSettled) ?? entries[0];
    if (oldest !== undefined) this.#drop(oldest);
  }

  /** @param {Entry} entry */
  #drop(entry) {
    this.#entries.delete(entry.key);
    this.#unconfirmed.delete(entry);
    this.#interrupted.delete(entry);
    this.#tell(entry, "gone");
  }

  /**
   * @param {Entry} entry
   * @param {Change["what"]} what
   */
  #tell(entry, what, lang = "") {
    for (const listener of [...this.#listeners]) listener({ entry, lang, what });
  }
}

/**
 * @param {Entry} entry
 * @param {string} lang
 * @returns {Cell}
 */
function cellOf({ cells, unowed }, lang) {
  unowed.delete(lang);
  let cell = cells.get(lang);
  if (cell === undefined) {
    cell = {
      ...{ lang, committed: "", tentative: "", void: false, state: "growing", text: "", reason: "" },
      ...{ timings: null, tokens: 0, truncated: false },
    };
    cells.set(lang, cell);
  }
  return cell;
}
