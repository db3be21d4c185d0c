// The transcript as data: utterances and translations, built from the events of a client, which may come in any order
// and repeatedly. Must not know the page.

import { evictOldest } from "../../client/evict_oldest.js";
import { t } from "../words/words.js";
import { cellOf, isSaid, isSettled, keyOf, unsentKey } from "./entry.js";

/** @import {ClientEvent} from "../../client/events.js" */
/** @import {Caption, SessionStarted, TranslationDelta, TranslationFailed, TranslationFinal, UtteranceReplaced} from "../../client/messages.js" */
/** @import {Cell, Entry} from "./entry.js" */

/** Where a correction stands, where that is known. @typedef {Partial<Pick<Entry, "offset" | "at">>} Place */

/**
 * @typedef {object} Change
 * @property {Entry} entry
 * @property {string} lang Language of the translation that changed.
 * @property {"new" | "original" | "translation" | "gone" | "replaced"} what
 * @property {string} before Of what was `replaced`: the key that the entry had.
 */

// More than an hour of six people, who say 1,000 utterances.
const MAX_ENTRIES = 2_000;
// How many cancelled drafts are remembered until the gateway confirms that they are cancelled.
const MAX_CANCELLED = 100;
// How many corrections are remembered.
const MAX_CORRECTED = 2_000;

export class Transcript {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  /** @type {Set<(change: Change) => void>} */
  #listeners = new Set();
  /** All ids that this client had. A session that is not recovered gets a new one. @type {Set<string>} */
  #own = new Set();
  /** The current one. */
  #self = "";
  #epoch = "";
  /** Whom the gateway takes the user for, in all sessions; empty if that is not known. */
  #person = "";
  /** Position in the log behind which everything is here: it moves back as earlier parts are loaded. */
  #after = 0;
  /** True between `session.started` and the `pong` that comes after everything that was missed. */
  #catchingUp = false;
  /** Unfinished entries of others that were not heard of since the connection came back. @type {Set<Entry>} */
  #unconfirmed = new Set();
  /** Entry that was complete when a new session began → why its missing translations may not come. @type {Map<Entry, string>} */
  #interrupted = new Map();
  /** Own drafts that were cancelled: what still comes for them is late. @type {Map<string, true>} */
  #cancelled = new Map();
  /** Keys of what was corrected or taken back. @type {Map<string, true>} */
  #replaced = new Map();
  /** Keys of corrections. @type {Map<string, Place>} */
  #corrections = new Map();
  /** The languages that are read. @type {Set<string>} */
  #reads = new Set();
  /** Those that the gateway has not confirmed yet. @type {Set<string>} */
  #unconfirmedReads = new Set();
  /** Those of them for which utterances before the next `pong` need no translation. @type {Set<string>} */
  #optionalUntilPong = new Set();
  #nameOf;

  /** @param {(participant: string) => string | undefined} [nameOf] Their name, if it is known: deltas do not tell it. */
  constructor(nameOf = () => "") {
    this.#nameOf = nameOf;
  }

  /** What these say is this user's own, too. @param {Iterable<string>} participants */
  addOwn(participants) {
    for (const participant of participants) this.#own.add(participant);
  }

  /** In the order in which they were first heard of, corrections in the place of what they replace. @returns {ReadonlyMap<string, Entry>} */
  get entries() {
    return this.#entries;
  }

  /**
   * Position in the log of the oldest utterance behind which none is missing; 0 if there is none, or it is from before a
   * restart of the log.
   */
  get oldest() {
    let oldest = 0;
    for (const { offset, epoch } of this.#entries.values()) {
      if (offset > 0 && epoch !== this.#epoch) return 0;
      if (offset > this.#after) return offset;
      if (offset > 0) oldest = this.#after + 1; // only what was corrected later is here
    }
    return oldest;
  }

  /**
   * Add what was said before, each in its place.
   * @param {string} epoch Epoch of the log that it is from: another one knows nothing of this transcript.
   * @param {readonly Entry[]} earlier Oldest first.
   */
  addEarlier(epoch, earlier) {
    if (epoch !== this.#epoch) return;
    for (const { offset } of earlier) this.#after = Math.min(this.#after, offset - 1);
    const unknown = earlier.filter(({ key }) => !this.#replaced.has(key) && !this.#entries.has(key));
    const added = unknown.map((entry) => ({ ...entry, own: this.#own.has(entry.participant) }));
    this.#insert(added);
    for (const entry of added) this.#emit(entry, "new");
  }

  /** Whether the user can correct it or take it back. @param {Entry} entry */
  mayCorrect({ participant, own, final, unsent }) {
    return (participant === this.#self || (own && this.#person !== "")) && final && !unsent;
  }

  /**
   * Add translations that the log has into languages that are read only now.
   * @param {string} epoch Epoch of the log that they are from.
   * @param {readonly Entry[]} logged
   */
  fillIn(epoch, logged) {
    if (epoch !== this.#epoch) return;
    for (const { key, cells } of logged) {
      const entry = this.#entries.get(key);
      for (const [lang, cell] of entry === undefined ? [] : cells) {
        if (entry === undefined || entry.cells.has(lang)) continue;
        entry.optional.delete(lang);
        entry.cells.set(lang, cell);
        this.#emit(entry, "translation", lang);
      }
    }
  }

  /**
   * @param {(change: Change) => void} listener
   * @returns {() => void} Removes the listener.
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Set the languages that are read from now on. Earlier utterances need no translation into new ones.
   * @param {readonly string[]} langs
   */
  read(langs) {
    const added = langs.filter((lang) => !this.#reads.has(lang));
    this.#reads = new Set(langs);
    this.#unconfirmedReads = new Set([...this.#unconfirmedReads, ...added].filter((lang) => this.#reads.has(lang)));
    this.#makeOptional(added);
  }

  /** @param {ClientEvent} event */
  onEvent(event) {
    switch (event.type) {
      case "session.started":
        return this.#onStarted(event);
      case "pong":
        return this.#caughtUp();
      case "session.updated": {
        // If text that is left out from now on is asked for again later, it starts again.
        this.#void((lang) => event.stability === "final" || !event.reads.includes(lang));
        const inForce = event.reads.filter((lang) => this.#unconfirmedReads.delete(lang));
        return this.#makeOptional(inForce);
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
        this.#cancelled.delete(keyOf(event.participant, event.utterance));
        return this.#onCancelled(keyOf(event.participant, event.utterance));
      case "utterance.replaced":
        return this.#onReplaced(event);
      case "utterance.refused":
        return this.#onRefused(event.id, event.code, event.message);
    }
  }

  /** @param {SessionStarted} started */
  #onStarted({ participant, epoch, offset, recovered, person = "" }) {
    // A new session, and the old one had not caught up.
    if (this.#catchingUp && recovered !== true) this.#caughtUp();
    const entries = [...this.#entries.values()];
    this.#unconfirmed = new Set(entries.filter((entry) => !entry.own && !isSaid(entry)));
    if (recovered === true) {
      for (const lang of this.#unconfirmedReads) this.#optionalUntilPong.add(lang);
    } else {
      const reason = t(epoch === this.#epoch ? "transcript.lost" : "transcript.restarted");
      for (const entry of entries) if (isSaid(entry) && !entry.unsent) this.#interrupted.set(entry, reason);
      this.#optionalUntilPong = new Set(this.#reads);
      this.#cancelled.clear();
    }
    this.#unconfirmedReads.clear();
    const isAnother = participant !== this.#self;
    this.#own.add(participant);
    this.#self = participant;
    this.#person = person;
    // What was here of the same log stays, whatever a new session has missed.
    if (epoch !== this.#epoch || (recovered !== true && entries.length === 0)) this.#after = offset;
    this.#epoch = epoch;
    this.#catchingUp = true;
    this.#void(() => true);
    // Whether another participant can correct what was said may have changed.
    for (const entry of isAnother ? entries : []) if (entry.own) this.#emit(entry, "original");
  }

  #caughtUp() {
    this.#catchingUp = false;
    // Unfinished utterances that were not heard of again were cancelled during the lost connection.
    for (const entry of this.#unconfirmed) this.#onCancelled(entry.key);
    this.#unconfirmed.clear();
    for (const [entry, reason] of this.#interrupted) this.#interrupt(entry, reason);
    this.#interrupted.clear();
    this.#makeOptional([...this.#optionalUntilPong]);
    this.#optionalUntilPong.clear();
  }

  /**
   * A new session began: translations that were expected and not heard of since will not come.
   * @param {Entry} entry
   * @param {string} reason
   */
  #interrupt(entry, reason) {
    const { lang: spoken, cells, optional } = entry;
    const expected = entry.reason ? [] : [...this.#reads].filter((lang) => lang !== spoken && !optional.has(lang));
    for (const lang of new Set([...cells.keys(), ...expected])) {
      const heardOf = cells.get(lang)?.isVoid === false;
      if (!heardOf) this.#fail(entry, cellOf(entry, lang), reason);
    }
  }

  /**
   * Utterances until now need no translation into these languages. Void text in them is removed.
   * @param {readonly string[]} langs
   */
  #makeOptional(langs) {
    if (langs.length === 0) return;
    for (const entry of this.#entries.values()) {
      if (!isSaid(entry) || entry.unsent) continue;
      for (const lang of langs) {
        const cell = entry.cells.get(lang);
        if (entry.optional.has(lang) || (cell !== undefined && !(cell.isVoid && cell.state === "growing"))) continue;
        entry.cells.delete(lang);
        entry.optional.add(lang);
        this.#emit(entry, "translation", lang);
      }
    }
  }

  /** Unfinished translations into some languages will start again. @param {(lang: string) => boolean} applies */
  #void(applies) {
    for (const { cells } of this.#entries.values()) {
      for (const cell of cells.values()) cell.isVoid ||= cell.state === "growing" && applies(cell.lang);
    }
  }

  /** @param {Caption} caption */
  #onCaption(caption) {
    if (!caption.final && this.#isLate(caption)) return;
    const entry = this.#entryOf(caption);
    if ((entry.final && !(entry.unsent && caption.final)) || (!caption.final && caption.rev <= entry.rev)) return;
    if (caption.final) this.#accepted(entry);
    const { rev, lang, text, final } = caption;
    Object.assign(entry, { rev, lang, text, final });
    // A correction has the time and the position of what it replaces.
    if (entry.offset === 0) {
      Object.assign(entry, { offset: caption.offset ?? 0, epoch: this.#epoch });
      if (caption.at_ms !== undefined) entry.at = new Date(caption.at_ms);
    }
    this.#emit(entry, "original");
  }

  /** @param {TranslationDelta} delta */
  #onDelta(delta) {
    if (this.#isLate(delta)) return;
    const entry = this.#entryOf(delta);
    const cell = cellOf(entry, delta.lang);
    if (cell.state !== "growing") return;
    cell.committed = (cell.isVoid ? "" : cell.committed) + delta.committed;
    cell.tentative = delta.tentative ?? "";
    cell.isVoid = false;
    this.#emit(entry, "translation", delta.lang);
  }

  /** @param {TranslationFinal} translation */
  #onFinal(translation) {
    const entry = this.#entryOf(translation);
    this.#accepted(entry);
    const cell = cellOf(entry, translation.lang);
    if (cell.state === "final") return;
    const { text, timings, tokens, truncated, unsure = false } = translation;
    // Who does not read what was spoken gets no caption.
    if (translation.at_ms !== undefined) entry.at ??= new Date(translation.at_ms - timings.total_ms);
    Object.assign(cell, {
      state: "final",
      text,
      timings,
      tokens,
      truncated,
      unsure,
      reason: "",
      committed: "",
      tentative: "",
    });
    this.#emit(entry, "translation", cell.lang);
  }

  /** @param {TranslationFailed} failure */
  #onFailed(failure) {
    const entry = this.#entryOf(failure);
    this.#accepted(entry);
    const isUnknown = failure.code === "unsupported_language";
    this.#fail(entry, cellOf(entry, failure.lang), isUnknown ? t("transcript.no_translation") : failure.message);
  }

  /**
   * @param {Entry} entry
   * @param {Cell} cell
   * @param {string} reason
   */
  #fail(entry, cell, reason) {
    if (cell.state !== "growing") return;
    Object.assign(cell, { state: "failed", reason, tentative: "" });
    this.#emit(entry, "translation", cell.lang);
  }

  /**
   * What a participant was saying when they left will not be finished.
   * @param {string} participant
   */
  #onLeft(participant) {
    for (const entry of this.#entries.values()) {
      if (entry.participant === participant && !isSaid(entry)) this.#remove(entry);
    }
  }

  /** @param {string} key Key of an utterance that its speaker cancelled. */
  #onCancelled(key) {
    const entry = this.#entries.get(key);
    if (entry !== undefined && !isSaid(entry)) this.#remove(entry);
  }

  /**
   * The correction stands where what it replaces stood; what was taken back goes.
   * @param {UtteranceReplaced} replaced
   */
  #onReplaced({ participant, utterances, by, place, at_ms }) {
    const keys = utterances.map((id) => keyOf(participant, id));
    for (const key of keys) this.#replaced.set(key, true);
    evictOldest(this.#replaced, MAX_CORRECTED);
    const found = keys.flatMap((key) => this.#entries.get(key) ?? []);
    if (by === null) return found.forEach((entry) => this.#remove(entry));
    const key = keyOf(participant, by);
    this.#corrections.set(key, place && at_ms ? { offset: place, at: new Date(at_ms) } : {});
    evictOldest(this.#corrections, MAX_CORRECTED);
    const [first, ...others] = found;
    if (first === undefined) return;
    const known = this.#entries.get(key);
    for (const entry of known === undefined ? others : [...others, known]) this.#remove(entry);
    const before = first.key;
    const state = { text: "", rev: 0, final: false, reason: "", cells: new Map(), optional: new Set() };
    const correction = first.correction?.id === by ? undefined : first.correction;
    Object.assign(first, { ...state, key, utterance: by, correction, isCorrected: true });
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    for (const entry of entries) this.#entries.set(entry.key, entry);
    this.#emit(first, "replaced", "", before);
  }

  /**
   * Whether a message is about an own draft that was cancelled, which the gateway does not know yet.
   * @param {{participant: string, utterance: string}} message
   */
  #isLate({ participant, utterance }) {
    return this.#cancelled.has(keyOf(participant, utterance));
  }

  /** The gateway has accepted an utterance. @param {Entry} entry */
  #accepted(entry) {
    this.#cancelled.delete(entry.key);
    if (!entry.unsent) return;
    entry.unsent = false;
    this.#emit(entry, "original");
  }

  /** @param {{id: string, lang: string, text: string, replaces?: string}} said */
  #onQueued({ id, lang, text, replaces }) {
    if (replaces !== undefined) return this.#showCorrection(replaces, { id, text });
    const known = this.#ownEntries(id);
    if (known.some((entry) => isSaid(entry) && !(entry.unsent && entry.reason))) return;
    // Its translation continues where it was: the gateway does not begin it again.
    const begun = known.find((entry) => !entry.unsent);
    for (const entry of known) if (entry !== begun) this.#remove(entry);
    const entry = begun ?? this.#begin(unsentKey(id), this.#self, id);
    Object.assign(entry, { lang, text, final: true, own: true, unsent: true, at: entry.at ?? new Date() });
    if (begun === undefined) this.#add(entry);
    else this.#emit(entry, "original");
  }

  /**
   * What is corrected is shown as it is until the gateway has the correction.
   * @param {string} replaces
   * @param {{id: string, text: string} | undefined} correction
   */
  #showCorrection(replaces, correction) {
    for (const entry of this.#ownEntries(replaces.replace(/~1$/, ""))) {
      entry.correction = correction;
      this.#emit(entry, "original");
    }
  }

  /** @param {string} id */
  #ownEntries(id) {
    const keys = [unsentKey(id), ...[...this.#own].map((participant) => keyOf(participant, id))];
    return keys.flatMap((key) => this.#entries.get(key) ?? []);
  }

  /**
   * @param {string} id
   * @param {string} code
   * @param {string} message
   */
  #onRefused(id, code, message) {
    if (code === "cancelled") {
      this.#cancelled.set(keyOf(this.#self, id), true);
      evictOldest(this.#cancelled, MAX_CANCELLED);
    }
    const corrected = [...this.#entries.values()].find(({ correction }) => correction?.id === id);
    if (corrected) this.#showCorrection(corrected.utterance, undefined);
    for (const entry of this.#ownEntries(id)) {
      if (code === "cancelled" && (entry.unsent || !isSaid(entry))) {
        this.#remove(entry);
        continue;
      }
      entry.reason = message;
      for (const cell of entry.cells.values()) this.#fail(entry, cell, "");
      this.#emit(entry, "original");
    }
  }

  /**
   * @param {{participant: string, utterance: string, speaker?: string}} message Deltas have no speaker.
   * @returns {Entry}
   */
  #entryOf({ participant, utterance, speaker = "" }) {
    const key = keyOf(participant, utterance);
    const known = this.#entries.get(key);
    if (known !== undefined) {
      this.#unconfirmed.delete(known);
      known.speaker ||= speaker;
      return known;
    }
    const entry = this.#begin(key, participant, utterance);
    entry.speaker = speaker || entry.speaker;
    const unsent = entry.own ? this.#ownEntries(utterance).find((each) => each.unsent) : undefined;
    if (unsent !== undefined) {
      Object.assign(entry, { lang: unsent.lang, text: unsent.text, final: true, unsent: true });
      this.#remove(unsent);
    }
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
    const speaker = this.#nameOf(participant) ?? "";
    const at = this.#catchingUp ? null : new Date();
    const place = this.#corrections.get(key);
    const isEarlier = place?.offset !== undefined;
    return {
      ...{ key, participant, utterance, speaker, own, at, lang: "", text: "", rev: 0, final: false },
      ...{ reason: "", unsent: false, offset: 0, epoch: isEarlier ? this.#epoch : "", isEarlier },
      ...{ cells: new Map(), optional: new Set(), isCorrected: place !== undefined },
      ...place,
    };
  }

  /** @param {Entry} entry */
  #add(entry) {
    if (entry.isEarlier) this.#insert([entry]);
    else this.#entries.set(entry.key, entry);
    this.#emit(entry, "new");
    if (this.#entries.size > MAX_ENTRIES) this.#removeOldest();
    return entry;
  }

  /** Each before what was said after it. @param {readonly Entry[]} added Oldest first. */
  #insert(added) {
    const others = [...this.#entries.values()];
    const left = [...added];
    this.#entries.clear();
    for (const other of others) {
      while (left[0] !== undefined && isBefore(left[0], other)) this.#put(left.shift());
      this.#put(other);
    }
    left.forEach((entry) => this.#put(entry));
  }

  /** @param {Entry | undefined} entry */
  #put(entry) {
    if (entry !== undefined) this.#entries.set(entry.key, entry);
  }

  #removeOldest() {
    const entries = [...this.#entries.values()].slice(0, -1);
    const oldest = entries.find(isSettled) ?? entries[0];
    if (oldest === undefined) return;
    if (oldest.epoch === this.#epoch) this.#after = Math.max(this.#after, oldest.offset);
    this.#remove(oldest);
  }

  /** @param {Entry} entry */
  #remove(entry) {
    this.#entries.delete(entry.key);
    this.#unconfirmed.delete(entry);
    this.#interrupted.delete(entry);
    this.#emit(entry, "gone");
  }

  /**
   * @param {Entry} entry
   * @param {Change["what"]} what
   */
  #emit(entry, what, lang = "", before = "") {
    for (const listener of [...this.#listeners]) listener({ entry, lang, what, before });
  }
}

/**
 * Whether one that has its place was said before another: by their positions, or by the time where the other has none.
 * @param {Entry} entry
 * @param {Entry} other
 */
function isBefore(entry, other) {
  if (other.offset > 0) return entry.epoch === other.epoch && entry.offset < other.offset;
  return other.at !== null && entry.at !== null && entry.at < other.at;
}
