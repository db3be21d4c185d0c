// An entry of the transcript: one utterance with its translations, as plain data.

import { t } from "../words/words.js";

/** @import {Timings} from "../../client/messages.js" */

/**
 * A translation into one language.
 * @typedef {object} Cell
 * @property {string} lang
 * @property {"growing" | "final" | "failed"} state
 * @property {string} committed While it grows: text that stays.
 * @property {string} tentative While it grows: text that may change.
 * @property {boolean} isVoid Whether the next delta replaces the text. Until then the old text stays visible.
 * @property {string} text The final text.
 * @property {string} reason Why it failed.
 * @property {Timings | null} timings
 * @property {number} tokens
 * @property {boolean} truncated
 * @property {boolean} unsure Whether the model is not sure enough of the final text.
 */

/**
 * @typedef {object} Entry
 * @property {string} key
 * @property {string} participant
 * @property {string} utterance
 * @property {string} speaker
 * @property {string} lang Empty before the first caption.
 * @property {string} text Empty before the first caption.
 * @property {number} rev Revision of `text`.
 * @property {boolean} final Whether `text` is complete and will no longer change.
 * @property {boolean} own
 * @property {Date | null} at When it was accepted, or first heard of until then; null if an older gateway does not say when.
 * @property {string} reason Why nothing more will come for it, or empty.
 * @property {boolean} unsent Own and final, but not accepted by the gateway. If nothing was heard of it before, its caption makes a new entry.
 * @property {Map<string, Cell>} cells Translations, by language.
 * @property {number} offset Position of its final caption in the meeting's log; 0 as long as there is none.
 * @property {string} epoch Epoch of that log; empty as long as there is no position.
 * @property {{id: string, text: string} | undefined} [correction] Own correction of it that waits to be sent; without text it takes it back.
 * @property {boolean} isCorrected Whether its speaker has corrected it; time and position are those of what was said first.
 * @property {boolean} isEarlier Whether its place is before what was there when it came.
 * @property {Set<string>} optional Languages that were not read when it was said. A translation may come, or not.
 */

/**
 * Whether the utterance is complete. Its translations are never final before.
 * @param {Entry} entry
 */
export function isSaid(entry) {
  return entry.final || entry.reason !== "" || [...entry.cells.values()].some((cell) => cell.state !== "growing");
}

/**
 * Whether nothing more is expected.
 * @param {Entry} entry
 */
export function isSettled(entry) {
  if (entry.unsent) return entry.reason !== "";
  return isSaid(entry) && [...entry.cells.values()].every((cell) => cell.state !== "growing");
}

/**
 * Whether the translation into a language is still to come, or is coming.
 * @param {Entry} entry
 * @param {string} lang
 */
export function isToCome({ lang: spoken, cells, unsent, reason, optional }, lang) {
  const cell = cells.get(lang);
  if (cell !== undefined) return cell.state === "growing";
  return lang !== spoken && !unsent && !reason && !optional.has(lang);
}

/**
 * The speaker's name for the reader.
 * @param {Entry} entry
 */
export function speakerName({ own, speaker }) {
  return own ? t("name.you") : speaker || t("name.guest");
}

/**
 * @param {string} participant
 * @param {string} utterance
 */
export function keyOf(participant, utterance) {
  return `${participant}/${utterance}`;
}

/**
 * The key of an entry that nothing was heard of from the gateway. A participant's id is never empty.
 * @param {string} utterance
 */
export function unsentKey(utterance) {
  return keyOf("", utterance);
}

/**
 * The entry's translation into a language, made if it is missing.
 * @param {Entry} entry
 * @param {string} lang
 * @returns {Cell}
 */
export function cellOf({ cells, optional }, lang) {
  optional.delete(lang);
  let cell = cells.get(lang);
  if (cell === undefined) {
    cell = {
      ...{ lang, committed: "", tentative: "", isVoid: false, state: "growing", text: "", reason: "" },
      ...{ timings: null, tokens: 0, truncated: false, unsure: false },
    };
    cells.set(lang, cell);
  }
  return cell;
}
