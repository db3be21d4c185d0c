// The invite in the page's address, and what it gives: tokens, one meeting, and roles in it. Knows the address of tokens;
// must not know who needs one. An invite goes nowhere but into the body of that request.

/** @import {Access} from "./access.js" */

/** @typedef {"speak" | "read" | "transcript" | "admin"} Role */
/** @typedef {{token: string, meeting: string | null, roles: Role[], name: string | null}} Grant The gateway's answer. */

const TIMEOUT_MS = 10_000;
const REFUSED = "This invite is not valid, or not any more. Ask whoever sent you the link for a new one.";

/** The gateway will not give a token for this invite. */
export class InviteRefused extends Error {
  /** For the client: there is no use in asking again. */
  permanent = true;
}

/** @param {string} fragment Of an address. @returns {Invite | null} */
export function inviteIn(fragment) {
  const code = new URLSearchParams(fragment.replace(/^#/, "")).get("invite");
  return code ? new Invite(code) : null;
}

export class Invite {
  #code;
  #guest;

  /** @param {string} code */
  constructor(code) {
    this.#code = code;
    this.#guest = guestOf(code);
  }

  /** What makes an address lead to the same meeting. */
  get fragment() {
    return `invite=${encodeURIComponent(this.#code)}`;
  }

  /** @returns {Promise<Access>} Rejected with `InviteRefused`, or with another error if it is worth another attempt. */
  async access() {
    const { meeting, roles, name } = await this.#exchange();
    const [speak, read, transcript] = [roles.includes("speak"), roles.includes("read"), roles.includes("transcript")];
    return { speak, read, transcript, meeting, name: name ?? "", token: this.token, fragment: this.fragment };
  }

  /** A fresh token. Rejected like `access`. */
  token = async () => (await this.#exchange()).token;

  /** @returns {Promise<Grant>} */
  async #exchange() {
    const response = await fetch("./v1/tokens", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ invite: this.#code, guest: this.#guest }),
      cache: "no-store",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (response.ok) return await response.json();
    const { status } = response;
    const isForNow = status === 408 || status === 429 || status >= 500;
    throw isForNow ? new Error(`Asked for a token, the gateway answers with status ${status}.`) : new InviteRefused(REFUSED);
  }
}

/**
 * The secret by which the gateway knows this tab again, so that it can resume its session.
 * @param {string} invite
 */
function guestOf(invite) {
  const key = `guest ${invite}`;
  const random = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0"));
  const guest = random.join("");
  try {
    const before = sessionStorage.getItem(key);
    if (before !== null) return before;
    sessionStorage.setItem(key, guest);
  } catch {
    // Without storage a reload is another guest.
  }
  return guest;
}
