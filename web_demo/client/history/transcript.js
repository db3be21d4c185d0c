// Reads what was said in a meeting from the gateway's log, over HTTP. Must not know sessions.

import { streamUrl } from "../connection.js";
import { askForToken } from "../session/token_source.js";

/** @import {TokenSource} from "../session/token_source.js" */

/**
 * A text in one language. `status`: it was said in this language (`original`), or `translated`; `failed`: `code` says
 * why; `missing`: no participant read this language then, or it is not finished. `unsure`: a reader should be warned.
 * @typedef {{status: "original" | "translated" | "failed" | "missing", text: string | null, code: string | null,
 *   unsure?: boolean}} Rendering
 * `replaces`, of a correction: the ids of what it stands in place of, with their time and position.
 * @typedef {{participant: string, utterance: string, speaker: string, lang: string, rev: number, text: string,
 *   at_ms: number, start_ms: number | null, end_ms: number | null,
 *   translations: {[lang: string]: Rendering}, offset: number, replaces?: string[]}} TranscriptUtterance
 * @typedef {{meeting: string, epoch: string, from_offset: number, to_offset: number,
 *   title?: string, held_by?: string, complete: boolean, languages: string[], utterances: TranscriptUtterance[]}} Transcript
 */

/** The gateway's answer to a request that it did not grant. */
export class TranscriptError extends Error {
  /** The gateway's error code, such as `unknown_meeting`; empty if another server answered. */
  code;
  /** The HTTP status. */
  status;

  /**
   * @param {number} status
   * @param {{code?: unknown, detail?: unknown}} problem
   */
  constructor(status, { code, detail }) {
    super(typeof detail === "string" ? detail : `The server answers with status ${status}.`);
    this.status = status;
    this.code = typeof code === "string" ? code : "";
  }
}

/**
 * @param {string} address That of the gateway or of its stream: `http(s)://` or `ws(s)://`.
 * @param {string} meeting
 * @param {object} [options]
 * @param {readonly string[]} [options.languages] Languages to get translations in; every one by default.
 * @param {number} [options.last] Only the newest so many utterances, at most 200.
 * @param {number} [options.before] With `last`: of those before this `offset`.
 * @param {{readonly aborted: boolean}} [options.signal] An `AbortSignal` that ends the wait.
 * @param {TokenSource} [options.token] One with the role `transcript`, for a gateway that wants tokens.
 * @returns {Promise<Transcript>} Rejected with `TranscriptError`, or with what `fetch` or the source of tokens fails with.
 */
export async function fetchTranscript(address, meeting, { languages = [], last, before, signal, token } = {}) {
  const wanted = Object.entries({ lang: languages.join() || undefined, last, before });
  const query = wanted.flatMap(([name, value]) => (value === undefined ? [] : `${name}=${encodeURIComponent(value)}`));
  const response = await ask("GET", address, meeting, `.json${query.length > 0 ? `?${query.join("&")}` : ""}`, {
    signal,
    token,
  });
  return response.json();
}

/**
 * Let the gateway forget what was said in a meeting, now and before; also where nothing is kept of it. The clients in the
 * meeting are reconnected, and it continues with an empty log.
 * @param {string} address As for `fetchTranscript`.
 * @param {string} meeting
 * @param {object} [options]
 * @param {{readonly aborted: boolean}} [options.signal] An `AbortSignal` that ends the wait.
 * @param {TokenSource} [options.token] An API key, or a token with the role `admin` for this meeting.
 * @returns {Promise<void>} Rejected as that of `fetchTranscript`.
 */
export async function eraseTranscript(address, meeting, options = {}) {
  await ask("DELETE", address, meeting, "", options);
}

/**
 * @param {string} method
 * @param {string} address
 * @param {string} meeting
 * @param {string} rest What follows in the address.
 * @param {{signal?: {readonly aborted: boolean} | undefined, token?: TokenSource | undefined}} options
 */
async function ask(method, address, meeting, rest, { signal, token }) {
  const path = `meetings/${encodeURIComponent(meeting)}/transcript${rest}`;
  const url = streamUrl(address)
    .replace(/^ws/i, "http")
    .replace(/stream$/, path);
  const headers = token === undefined ? {} : { Authorization: `Bearer ${await askForToken(token)}` };
  const waiting = signal && { signal: /** @type {AbortSignal} */ (signal) };
  const response = await fetch(url, { method, headers, cache: "no-store", ...waiting });
  if (response.ok) return response;
  throw new TranscriptError(response.status, await response.json().catch(() => ({})));
}
