// The invite in the page's address, and what it gives: tokens, one meeting, and roles in it. Knows the address of tokens;
// must not know who needs one. An invite goes nowhere but into the body of that request.

import { randomSecret } from "./random_secret.js";
import { t } from "../words/words.js";

/** @import {Access} from "./access.js" */

/** @typedef {"speak" | "read" | "transcript" | "admin" | "host"} Role */

/**
 * The gateway's answer.
 * @typedef {object} Grant
 * @property {string} token
 * @property {string | null} meeting
 * @property {Role[]} roles
 * @property {string | null} name
 * @property {string[] | null} langs
 * @property {string[] | null} speaks
 * @property {boolean} once Whether the invite is for one guest, and used up by now.
 */

const TIMEOUT_MS = 10_000;

/** The gateway will not give a token for this invite. */
export class InviteRefused extends Error {
  /** For the client: asking again is useless. */
  permanent = true;
}

/** @param {string} fragment Fragment of an address. @returns {Invite | null} */
export function inviteIn(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const code = given.get("invite");
  return code ? new Invite(code, given.get("guests") ?? "") : null;
}

export class Invite {
  #code;
  #guests;
  #guest;

  /**
   * @param {string} code
   * @param {string} [guests] The invite for others, where they are to get another one, such as a host's guests.
   */
  constructor(code, guests = "") {
    this.#code = code;
    this.#guests = guests;
    this.#guest = guestOf(code);
  }

  /** What makes an address lead to the same meeting. */
  get fragment() {
    return `invite=${encodeURIComponent(this.#code)}${this.#guests && `&guests=${encodeURIComponent(this.#guests)}`}`;
  }

  /** @returns {Promise<Access>} Rejected with `InviteRefused`, or with another error if it is worth another attempt. */
  async access() {
    const { meeting, roles, name, langs, speaks, once } = await this.#exchange();
    const [speak, read] = [roles.includes("speak"), roles.includes("read")];
    // Both are in every language: the gateway gives neither to those who may read only some.
    const [originals, transcript] = [read && langs === null, roles.includes("transcript") && langs === null];
    // A host's own link would make hosts of all who get it.
    const own = once || roles.includes("host") ? null : this.fragment;
    const fragment = this.#guests ? `invite=${encodeURIComponent(this.#guests)}` : own;
    return {
      speak,
      read,
      originals,
      transcript,
      langs,
      speaks,
      meeting,
      name: name ?? "",
      token: this.token,
      fragment,
    };
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
    throw isForNow ? new Error(t("access.token_status", { status })) : new InviteRefused(t("access.invalid"));
  }
}

/**
 * The secret by which the gateway knows this tab again, so that it can resume its session.
 * @param {string} invite
 */
function guestOf(invite) {
  const key = `guest ${invite}`;
  const guest = randomSecret();
  try {
    const before = sessionStorage.getItem(key);
    if (before !== null) return before;
    sessionStorage.setItem(key, guest);
  } catch {
    // Without storage a reload is another guest.
  }
  return guest;
}
