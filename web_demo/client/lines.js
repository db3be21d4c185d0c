// What is on a reader's screen: each utterance as one line, which grows until it is final. Knows how events become
// lines; must not know how these are shown. The Python client has the same in gateway/client/lines.py;
// tests/client/lines.json is played in both.

import { evictOldest } from "./evict_oldest.js";

/** @import {ClientEvent} from "./events.js" */
/** @import {UtteranceReplaced} from "./messages.js" */

// Utterances whose lines are remembered, so that a correction finds them.
const MAX_SHOWN = 4_096;

/**
 * An utterance in a language that is read, as it is to be shown now.
 * @typedef {object} Line
 * @property {string} key The same for every state of one line, and for no other line. A correction is another state of
 *   the line.
 * @property {string} participant Public id of the speaker in the meeting.
 * @property {string} utterance
 * @property {string} speaker The speaker's name; may be empty.
 * @property {string} lang
 * @property {string} text What is to be shown: `committed` and `tentative`.
 * @property {string} committed Text that stays.
 * @property {string} tentative Text after it that may still change.
 * @property {boolean} final Whether it is complete.
 * @property {string | null} failure Why there is no translation, in one sentence.
 * @property {boolean} gone Whether it will never be final, because the speaker gave it up or left, or was taken back: remove
 *   the line.
 */

/** @typedef {{participant: string, utterance: string, lang: string}} Shown */

/** What the lines need to know of the client. @typedef {{reads: readonly string[], originals: boolean}} Reader */

export class Lines {
  /** Those that are not final. @type {Map<string, Line>} */
  #growing = new Map();
  /**
   * Utterance → its lines by language, each in its newest state; a correction has those of what it replaces.
   * @type {Map<string, Map<string, Line>>}
   */
  #shown = new Map();
  #reader;
  #nameOf;

  /**
   * @param {Reader} reader What is read when the lines begin.
   * @param {(participant: string) => string} nameOf
   */
  constructor(reader, nameOf) {
    this.#reader = reader;
    this.#nameOf = nameOf;
  }

  /**
   * The lines that an event changes, in their new state.
   * @param {ClientEvent} event
   * @returns {Line[]}
   */
  apply(event) {
    switch (event.type) {
      case "caption": {
        if (!this.#isRead(event.lang)) return [];
        const [committed, tentative] = event.final ? [event.text, ""] : ["", event.text];
        return this.#show(event, { speaker: event.speaker, committed, tentative, final: event.final });
      }
      case "translation.delta": {
        const before = this.#growing.get(this.#keyOf(event))?.committed ?? "";
        return this.#show(event, { committed: before + event.committed, tentative: event.tentative });
      }
      case "translation.final":
        return this.#show(event, { speaker: event.speaker, committed: event.text, final: true });
      case "translation.failed":
        return this.#show(event, { speaker: event.speaker, committed: "", final: true, failure: event.message });
      case "utterance.cancelled":
        return this.#remove((line) => line.participant === event.participant && line.utterance === event.utterance);
      case "utterance.replaced":
        return this.#replace(event);
      case "participant.left":
        return this.#remove((line) => line.participant === event.participant);
      case "session.updated":
        this.#reader = event;
        return this.#remove((line) => event.stability === "final" || !this.#isRead(line.lang));
      case "session.started": // what is still being said comes again
        return this.#remove(() => true);
      default:
        return [];
    }
  }

  /** @param {string} lang */
  #isRead(lang) {
    return this.#reader.originals || this.#reader.reads.includes(lang);
  }

  /**
   * @param {Shown} event
   * @param {Partial<Line>} change
   */
  #show(event, change) {
    const { participant, utterance, lang } = event;
    const key = this.#keyOf(event);
    const speaker = this.#nameOf(participant);
    const before = this.#growing.get(key) ?? { key, participant, utterance, speaker, lang, committed: "" };
    const after = { ...before, tentative: "", final: false, failure: null, gone: false, ...change };
    const line = { ...after, text: after.committed + after.tentative };
    if (line.final) this.#growing.delete(key);
    else this.#growing.set(key, line);
    this.#linesOf(participant, utterance).set(lang, line);
    return [line];
  }

  /** @param {Shown} event */
  #keyOf({ participant, utterance, lang }) {
    const before = this.#shown.get(`${participant}/${utterance}`)?.get(lang);
    return before?.key ?? `${participant}/${utterance}/${lang}`;
  }

  /** @param {string} participant @param {string} utterance */
  #linesOf(participant, utterance) {
    const key = `${participant}/${utterance}`;
    const lines = this.#shown.get(key) ?? new Map();
    this.#shown.set(key, lines);
    evictOldest(this.#shown, MAX_SHOWN);
    return lines;
  }

  /**
   * The first line of each language is to show the correction; until it comes, the line is empty.
   * @param {UtteranceReplaced} event
   */
  #replace({ participant, utterances, by }) {
    /** @type {Line[]} */
    const changed = [];
    /** @type {Map<string, Line>} */
    const kept = new Map();
    for (const id of utterances) {
      const lines = this.#shown.get(`${participant}/${id}`) ?? new Map();
      this.#shown.delete(`${participant}/${id}`);
      for (const [lang, before] of lines) {
        this.#growing.delete(before.key);
        const gone = by === null || kept.has(lang);
        const empty = { text: "", committed: "", tentative: "", final: false, failure: null, gone };
        const line = { ...before, ...empty, utterance: gone ? before.utterance : by };
        changed.push(line);
        if (gone) continue;
        kept.set(lang, line);
        this.#growing.set(line.key, line);
      }
    }
    for (const [lang, line] of kept) this.#linesOf(participant, line.utterance).set(lang, line);
    return changed;
  }

  /** @param {(line: Line) => boolean} applies */
  #remove(applies) {
    const removed = [...this.#growing.values()].filter(applies);
    for (const { key, participant, utterance, lang } of removed) {
      this.#growing.delete(key);
      this.#shown.get(`${participant}/${utterance}`)?.delete(lang);
    }
    return removed.map((line) => ({ ...line, text: "", committed: "", tentative: "", gone: true }));
  }
}
