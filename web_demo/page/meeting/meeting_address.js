// The id of the meeting in the page's address, and what this tab remembers of it: the role in which it has joined, and
// whether it has opened the meeting. Must not know the gateway.

import { randomSecret } from "../access/random_secret.js";

// What the gateway accepts as an id, but for its length.
const ID = /^(?=.*[A-Za-z0-9_~-])[A-Za-z0-9._~-]+$/;
export const ID_CHARS = 64;
const STORAGE_KEY = "joined";
const OPENED = "opened";
const RECORD = "record";
/** What the address of a meeting that is not recorded has besides. */
export const NOT_RECORDED = { [RECORD]: "no" };

/** @typedef {"speak" | "listen"} Role */

/**
 * @param {URLSearchParams} query
 * @returns {string | null} The meeting that a link leads to; null if there is none, or its id is not valid.
 */
export function meetingIdIn(query) {
  const id = query.get("meeting");
  return id !== null && ID.test(id) && id.length <= ID_CHARS ? id : null;
}

/**
 * @param {URLSearchParams} query
 * @returns {string | null} What stands in a link for the id of a meeting, and cannot be one.
 */
export function badMeetingIdIn(query) {
  return meetingIdIn(query) === null ? query.get("meeting") : null;
}

/**
 * @param {URLSearchParams} query
 * @returns {{record?: false}} What a session says of a meeting that must not be recorded.
 */
export function recordIn(query) {
  return query.get(RECORD) === NOT_RECORDED[RECORD] ? { record: false } : {};
}

/**
 * @param {URLSearchParams} query
 * @param {number} nameChars The longest title that the gateway takes: for a longer one it would let nobody in.
 * @returns {{title?: string}} What the meeting of a link is called, if its link opens it.
 */
export function titleIn(query, nameChars) {
  const title = [...(query.get("title")?.trim() ?? "")].slice(0, nameChars).join("");
  return title ? { title } : {};
}

/**
 * The id of a new meeting, of 60 bits that can be read out, and the secret that it was made of: whoever has that is the
 * meeting's host (docs/protocol.md, Hosts). Empty where the browser makes no digests, as without TLS: there is no host.
 * @returns {Promise<{id: string, hostKey: string}>}
 */
export async function newMeeting() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  const hostKey = randomSecret(random);
  if (!crypto.subtle) return { id: idOf(random), hostKey: "" };
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(hostKey));
  return { id: idOf(new Uint8Array(digest)), hostKey };
}

/** @param {Uint8Array} bytes */
function idOf(bytes) {
  const letters = "abcdefghijkmnpqrstuvwxyz23456789";
  const id = Array.from(bytes.slice(0, 12), (byte) => letters[byte % letters.length]).join("");
  return id.replace(/.{4}(?=.)/g, "$&-");
}

/**
 * @param {string} id
 * @returns {Role | null} The role in which this tab has joined the meeting; null if it has not.
 */
export function joinedRole(id) {
  const [role] = remembered(id);
  return role === "speak" || role === "listen" ? role : null;
}

/** Whether this tab has opened the meeting. @param {string} id */
export function hasOpened(id) {
  return remembered(id)[1] === OPENED;
}

/** The secret of the meeting's host, if this tab has opened the meeting; empty otherwise. @param {string} id */
export function hostKeyOf(id) {
  return (hasOpened(id) && remembered(id)[2]) || "";
}

/** @param {string} id @returns {string[]} */
function remembered(id) {
  try {
    const [joined, ...rest] = (sessionStorage.getItem(STORAGE_KEY) ?? "").split(" ");
    return joined === id ? rest : [];
  } catch {
    return [];
  }
}

/**
 * Put the meeting into the page's address, and remember the role, so that a reload leads back to it.
 * @param {string} id
 * @param {Role} role
 * @param {boolean} [opened] Whether this tab has opened the meeting. Once remembered it stays so.
 * @param {string} [hostKey] The secret of the meeting's host. Once remembered it stays so.
 */
export function saveJoined(id, role, opened = hasOpened(id), hostKey = hostKeyOf(id)) {
  const address = new URL(location.href);
  address.searchParams.set("meeting", id);
  history.replaceState(null, "", address);
  try {
    sessionStorage.setItem(STORAGE_KEY, [id, role, ...(opened ? [OPENED, hostKey] : [])].join(" "));
  } catch {
    // Without storage one is asked again after a reload.
  }
}
