// What somebody may do in a meeting, and why somebody may not join. Must not know how that is found out.

/**
 * @typedef {object} Access
 * @property {boolean} speak
 * @property {boolean} read
 * @property {boolean} transcript
 * @property {string | null} meeting The meeting that one is invited to; null if one may choose.
 * @property {string} name The name that others see; empty if one may choose.
 * @property {(() => Promise<string>) | null} token Gets a fresh token; null where none is needed.
 * @property {string} fragment What links need so that others may come, too.
 */

/** Where nobody needs a token. @type {Access} */
export const EVERYTHING = {
  speak: true,
  read: true,
  transcript: true,
  meeting: null,
  name: "",
  token: null,
  fragment: "",
};

export const NOT_INVITED =
  "This gateway lets in only those who are invited, and this address has no invite. Ask whoever holds the meeting for a " +
  "link, and open it.";
const REFUSED = "The gateway does not let you in any more. Ask whoever sent you the link for a new one.";
const WITHDRAWN = "Your access to this meeting was withdrawn. Ask whoever holds the meeting if you should still be in it.";

/**
 * Why a session is over, in words for people.
 * @param {{code: string, reason: string}} end
 * @param {boolean} isInvited
 * @returns {string | null} Null if it was not for want of access.
 */
export function refusalOf({ code, reason }, isInvited) {
  switch (code) {
    case "unauthenticated":
      return isInvited ? REFUSED : NOT_INVITED;
    case "token_revoked":
      return WITHDRAWN;
    case "token_unavailable":
      return reason;
    default:
      return null;
  }
}
