// Asks the page for a token. Must not know what the gateway does with it.

/** A token, or a function that gets a fresh one. @typedef {string | (() => string | Promise<string>)} TokenSource */

// A source that has not answered by then has failed: no other part would notice.
const TIMEOUT_MS = 30_000;

/** Why there is no token. It never quotes a token. */
export class NoToken extends Error {
  /** Whether asking again is useless. */
  permanent;

  /** @param {unknown} cause */
  constructor(cause) {
    const permanent = cause instanceof Object && "permanent" in cause && cause.permanent === true;
    // Only the message of a deliberate refusal is meant for people. Another one may quote an answer with a token in it.
    super((permanent && cause instanceof Error && cause.message) || "There is no token to join with.");
    this.permanent = permanent;
  }
}

/**
 * @param {TokenSource} source
 * @returns {Promise<string>} Rejected with `NoToken`.
 */
export async function askForToken(source) {
  /** @type {number | undefined} */
  let timer;
  try {
    const late = new Promise((_, reject) => (timer = setTimeout(reject, TIMEOUT_MS)));
    const token = typeof source === "string" ? source : await Promise.race([source(), late]);
    if (typeof token !== "string" || token === "") throw new TypeError("A token is a string.");
    return token;
  } catch (cause) {
    throw new NoToken(cause);
  } finally {
    clearTimeout(timer);
  }
}
