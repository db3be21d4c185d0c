// The meeting that this page is about: its id in the page's address, and whether one has joined it in this tab. Knows
// the address and the tab's storage; must not know the gateway.

// What the gateway takes for an id.
const ID = /^(?=.*[A-Za-z0-9_~-])[A-Za-z0-9._~-]{1,64}$/;
const JOINED = "joined";

/**
 * @param {URLSearchParams} query
 * @returns {string | null} The meeting that a link leads to; null where there is none, or none that could be.
 */
export function invitedTo(query) {
  const id = query.get("meeting");
  return id !== null && ID.test(id) ? id : null;
}

/** An id that nobody guesses, and that can be read out: 60 bits. */
export function newMeeting() {
  const letters = "abcdefghijkmnpqrstuvwxyz23456789";
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const id = Array.from(bytes, (byte) => letters[byte % letters.length]).join("");
  return id.replace(/.{4}(?=.)/g, "$&-");
}

/**
 * @param {string} id
 * @returns {string} As what one joined the meeting in this tab, "speak" or "listen"; empty where one did not.
 */
export function partIn(id) {
  try {
    const [joined, part = ""] = (sessionStorage.getItem(JOINED) ?? "").split(" ");
    return joined === id ? part : "";
  } catch {
    return "";
  }
}

/**
 * From now on the page's address leads back here.
 * @param {string} id
 * @param {string} part As what one takes part.
 */
export function settleIn(id, part) {
  const address = new URL(location.href);
  address.searchParams.set("meeting", id);
  history.replaceState(null, "", address);
  try {
    sessionStorage.setItem(JOINED, `${id} ${part}`);
  } catch {
    // Then one is asked again after a reload.
  }
}
