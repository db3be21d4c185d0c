// What a participant may do in a meeting, and why one may not join. Must not know how that is found out.

import { t } from "../words/words.js";

/** @import {Language} from "../ui/languages.js" */

/**
 * @typedef {object} Access
 * @property {boolean} speak
 * @property {boolean} read
 * @property {boolean} originals Whether one may read what is said in every language.
 * @property {boolean} transcript
 * @property {readonly string[] | null} langs The languages that one may read; null for all.
 * @property {readonly string[] | null} speaks The languages that one may speak; null for all.
 * @property {string | null} meeting The meeting that one is invited to; null if one may choose.
 * @property {string} name The name that others see; empty if one may choose.
 * @property {(() => Promise<string>) | null} token Gets a fresh token; null where none is needed.
 * @property {string | null} fragment What links need so that others may come, too; null if they may not.
 */

/** Where no token is needed. @type {Access} */
export const EVERYTHING = {
  speak: true,
  read: true,
  originals: true,
  transcript: true,
  langs: null,
  speaks: null,
  meeting: null,
  name: "",
  token: null,
  fragment: "",
};

/**
 * Those of the languages that one may choose.
 * @param {readonly Language[]} languages
 * @param {readonly string[] | null} allowed
 */
export function allowedOf(languages, allowed) {
  return languages.filter(({ tag }) => allowed?.includes(tag) ?? true);
}

/**
 * The access where these are all languages: without one to speak there is nothing to say, and likewise to read.
 * @param {Access} access
 * @param {readonly Language[]} languages
 * @returns {Access}
 */
export function accessWith(access, languages) {
  const hasAny = (/** @type {Access["langs"]} */ allowed) => allowedOf(languages, allowed).length > 0;
  return { ...access, speak: access.speak && hasAny(access.speaks), read: access.read && hasAny(access.langs) };
}

/**
 * Why a session is over, in words for people.
 * @param {{code: string, reason: string}} end
 * @param {boolean} isInvited
 * @returns {string | null} Null if access was not the reason.
 */
export function refusalOf({ code, reason }, isInvited) {
  switch (code) {
    case "unauthenticated":
      return t(isInvited ? "access.refused" : "access.not_invited");
    case "token_revoked":
      return t("access.withdrawn");
    case "removed":
      return t("end.removed");
    case "meeting_locked":
      return t("access.locked");
    case "meeting_ended":
      return t("end.ended");
    case "token_unavailable":
      return reason;
    default:
      return null;
  }
}
