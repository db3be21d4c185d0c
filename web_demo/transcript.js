// What was said in the meeting, and its translations, put together from what the client hears. Knows the messages and
// what each of them may change; must not know the page.

/** @typedef {import("./client/events.js").ClientEvent} ClientEvent */
/** @typedef {import("./client/messages.js").Caption} Caption */
/** @typedef {import("./client/messages.js").Timings} Timings */
/** @typedef {import("./client/messages.js").TranslationDelta} TranslationDelta */
/** @typedef {import("./client/messages.js").TranslationFailed} TranslationFailed */
/** @typedef {import("./client/messages.js").TranslationFinal} TranslationFinal */

/**
 * A translation into one language. While it grows, `committed` stays and `tentative` may change; then it has its `text`,
 * or the `reason` why there is none. `void`: the next delta begins anew, and until then what is there stays to be seen.
 * @typedef {{lang: string, committed: string, tentative: string, void: boolean, state: "growing" | "final" | "failed",
 *   text: string, reason: string, timings: Timings | null, tokens: number, truncated: boolean}} Cell
 *
 * An utterance. `lang` and `text` are empty until a caption came, of revision `rev`; `final`: whether `text` is the last
 * word. `at`: when it was first heard of. `reason`: why nothing more will come of it, or empty.
 * @typedef {{key: string, participant: string, utterance: string, speaker: string, lang: string, text: string,
 *   rev: number, final: boolean, own: boolean, at: Date, reason: string, cells: Map<string, Cell>}} Entry
 *
 * `lang`: of the translation that changed.
 * @typedef {{entry: Entry, lang: string, what: "new" | "original" | "translation" | "gone"}} Change
 */

const MOST_ENTRIES = 500;

/**
 * Whether all words of an utterance were said: a translation is not final before.
 * @param {Entry} entry
 */
export function isSaid(entry) {
  return entry.final || entry.reason !== "" || [...entry.cells.values()].some((cell) => cell.state !== "growing");
}

/** @param {Entry} entry */
function isSettled(entry) {
  return isSaid(entry) && [...entry.cells.values()].every((cell) => cell.state !== "growing");
}

export class Transcript {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  /** @type {Set<(change: Change) => void>} */
  #listeners = new Set();
  /** Ids that this client had: a session that is not recovered gets another one. @type {Set<string>} */
  #own = new Set();
  /** Since the connection was found again: what was not heard of yet. @type {Set<Entry>} */
  #unconfirmed = new Set();

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

  /** @param {ClientEvent} event */
  hear(event) {
    switch (event.type) {
      case "session.started":
        this.#own.add(event.participant);
        this.#unconfirmed = new Set([...this.#entries.values()].filter((entry) => !entry.own && !isSaid(entry)));
        return this.#void(() => true);
      case "pong":
        return this.#caughtUp();
      case "session.updated":
        // Of what is left out from now on, unfinished text comes anew should it be asked for again.
        return this.#void((lang) => event.stability === "final" || !event.reads.includes(lang));
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
        return this.#onCancelled(`${event.participant}/${event.utterance}`);
      case "utterance.refused":
        return this.#onRefused(event.id, event.code, event.message);
    }
  }

  /** What was being said before the connection was lost, and is not any more, was given up meanwhile. */
  #caughtUp() {
    for (const entry of this.#unconfirmed) this.#onCancelled(entry.key);
    this.#unconfirmed.clear();
  }

  /** @param {(lang: string) => boolean} concerns */
  #void(concerns) {
    for (const { cells } of this.#entries.values()) {
      for (const cell of cells.values()) cell.void ||= cell.state === "growing" && concerns(cell.lang);
    }
  }

  /** @param {Caption} caption */
  #onCaption(caption) {
    const entry = this.#entryOf(caption);
    if (entry.final || (!caption.final && caption.rev <= entry.rev)) return;
    const { rev, lang, text, final } = caption;
    Object.assign(entry, { rev, lang, text, final });
    this.#tell(entry, "original");
  }

  /** @param {TranslationDelta} delta */
  #onDelta(delta) {
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
    const entry = this.#entryOf(translation);
    const cell = cellOf(entry, translation.lang);
    if (cell.state === "final") return;
    const { text, timings, tokens, truncated } = translation;
    Object.assign(cell, { state: "final", text, timings, tokens, truncated, reason: "", committed: "", tentative: "" });
    this.#tell(entry, "translation", cell.lang);
  }

  /** @param {TranslationFailed} failure */
  #onFailed(failure) {
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
   * @param {string} id
   * @param {string} code
   * @param {string} message
   */
  #onRefused(id, code, message) {
    for (const participant of this.#own) {
      const entry = this.#entries.get(`${participant}/${id}`);
      if (entry === undefined) continue;
      // Begun, and given up.
      if (code === "cancelled" && !isSaid(entry)) {
        this.#drop(entry);
        continue;
      }
      entry.reason = message;
      for (const cell of entry.cells.values()) this.#fail(entry, cell, message);
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
    const own = this.#own.has(participant);
    /** @type {Entry} */
    const entry = {
      ...{ key, participant, utterance, speaker, own, at: new Date(), cells: new Map() },
      ...{ lang: "", text: "", rev: 0, final: false, reason: "" },
    };
    this.#entries.set(key, entry);
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
function cellOf({ cells }, lang) {
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
