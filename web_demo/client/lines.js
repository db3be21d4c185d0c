// What is on a reader's screen: each utterance as one line, which grows until it is final. Knows how events become
// lines; must not know how these are shown. The Python client has the same in gateway/client/lines.py;
// tests/client/lines.json is played in both.

/** @import {ClientEvent} from "./events.js" */

/**
 * An utterance in a language that is read, as it is to be shown now.
 * @typedef {object} Line
 * @property {string} key The same for every state of one line, and for no other line.
 * @property {string} participant Public id of the speaker in the meeting.
 * @property {string} utterance
 * @property {string} speaker The speaker's name; may be empty.
 * @property {string} lang
 * @property {string} text What is to be shown: `committed` and `tentative`.
 * @property {string} committed Text that stays.
 * @property {string} tentative Text after it that may still change.
 * @property {boolean} final Whether it is complete.
 * @property {string | null} failure Why there is no translation, in one sentence.
 * @property {boolean} gone Whether it will never be final, because the speaker gave it up or left: remove the line.
 */

/** @typedef {{participant: string, utterance: string, lang: string}} Shown */

/** What the lines need to know of the client. @typedef {{reads: readonly string[], originals: boolean}} Reader */

export class Lines {
  /** Those that are not final. @type {Map<string, Line>} */
  #growing = new Map();
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
        const before = this.#growing.get(keyOf(event))?.committed ?? "";
        return this.#show(event, { committed: before + event.committed, tentative: event.tentative });
      }
      case "translation.final":
        return this.#show(event, { speaker: event.speaker, committed: event.text, final: true });
      case "translation.failed":
        return this.#show(event, { speaker: event.speaker, committed: "", final: true, failure: event.message });
      case "utterance.cancelled":
        return this.#remove((line) => line.participant === event.participant && line.utterance === event.utterance);
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
    const key = keyOf(event);
    const speaker = this.#nameOf(participant);
    const before = this.#growing.get(key) ?? { key, participant, utterance, speaker, lang, committed: "" };
    const after = { ...before, tentative: "", final: false, failure: null, gone: false, ...change };
    const line = { ...after, text: after.committed + after.tentative };
    if (line.final) this.#growing.delete(key);
    else this.#growing.set(key, line);
    return [line];
  }

  /** @param {(line: Line) => boolean} applies */
  #remove(applies) {
    const removed = [...this.#growing.values()].filter(applies);
    for (const { key } of removed) this.#growing.delete(key);
    return removed.map((line) => ({ ...line, text: "", committed: "", tentative: "", gone: true }));
  }
}

/** @param {Shown} event */
function keyOf({ participant, utterance, lang }) {
  return `${participant}/${utterance}/${lang}`;
}
