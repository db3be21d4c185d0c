// What captions show of an utterance in one language. Must not know where they show it.

import { isSaid } from "../transcript/entry.js";
import { element } from "../ui/dom.js";

/** @import {Stability} from "../../client/messages.js" */
/** @import {Entry} from "../transcript/entry.js" */
/** @import {Turns} from "./turns.js" */

/**
 * @typedef {object} Words
 * @property {string} text On one line.
 * @property {number} settled How many characters of it do not change any more.
 * @property {boolean} isComplete Whether nothing more will come.
 * @property {boolean} isUnsure
 */

/**
 * @param {Entry} entry
 * @param {string} lang
 * @param {Stability} stability
 * @returns {Words}
 */
export function wordsOf({ lang: spoken, text, final, cells }, lang, stability) {
  if (spoken === lang) return words(final || stability !== "final" ? text : "", "", final);
  const cell = cells.get(lang);
  if (cell === undefined) return words("", "", false);
  if (cell.state === "final") return { ...words(cell.text, "", true), isUnsure: cell.unsure };
  // Half a translation that will not be finished goes.
  if (stability === "final" || cell.state === "failed") return words("", "", cell.state === "failed");
  return words(cell.committed, stability === "live" ? cell.tentative : "", false);
}

/** @param {string} settled @param {string} tentative @param {boolean} isComplete @returns {Words} */
function words(settled, tentative, isComplete) {
  const text = onOneLine(settled + tentative);
  return { text, settled: tentative ? onOneLine(settled).length : text.length, isComplete, isUnsure: false };
}

/**
 * Show the turn that it is: words that may change are marked, and a lamp stands behind those that go on.
 * @param {HTMLElement} paragraph
 * @param {Words} words
 * @param {Turns} turns
 */
export function showTurn(paragraph, { text, settled, isComplete, isUnsure }, { shown, start, hasMore }) {
  const stays = Math.max(0, settled - start);
  paragraph.replaceChildren(shown.slice(0, stays));
  if (shown.length > stays) paragraph.append(element("span", "maybe", shown.slice(stays)));
  if (text && !isComplete && !hasMore) paragraph.append(element("i", "lamp"));
  paragraph.classList.toggle("unsure", isUnsure);
}

/** @param {string} text */
export function onOneLine(text) {
  return text.replace(/\s+/g, " ").trim();
}

/** Whether a participant is saying it now, as far as is known. @param {Entry} entry */
export function isSpoken(entry) {
  return !isSaid(entry);
}
