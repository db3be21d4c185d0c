// The state of the connection, as listeners hear of it. Must not know what it follows from.

/**
 * - `loading`: connected, but the engine is not ready yet
 * - `open`: there is a session. It stays open after `close` until the gateway has finished it
 * - `reconnecting`: the connection is lost, and the client will try again
 * - `closed`: nothing happens until `connect` is called
 * @typedef {"connecting" | "loading" | "open" | "reconnecting" | "closed"} ConnectionState
 */

/** Why a session that is open is still reported: the gateway has not answered for some seconds. */
export const UNANSWERED = { code: "unanswered", message: "The gateway does not answer." };

// Why the client tries again, where the gateway has not said it. Unreachable: no session began on the connection.
const LOST = { code: "", message: "The connection to the gateway was lost." };
const UNREACHABLE = { code: "unreachable", message: "No gateway can be reached at this address." };

/** @param {ConnectionState} before The state in which the connection was lost. */
export function outage(before) {
  return before === "connecting" ? UNREACHABLE : LOST;
}

/**
 * What the gateway says where it sends no error, such as to a page whose origin it does not allow.
 * @param {string} sentence The reason of a close.
 * @returns {Reason | null}
 */
export function saidAtClose(sentence) {
  return sentence ? { code: "", message: sentence } : null;
}

/** @typedef {{code: string, message: string, field?: string | null, retry_after_ms?: number | null}} Reason */
/** @typedef {{type: "state", state: ConnectionState, reason: string, code: string, field: string}} StateChanged */

export class ConnectionStatus {
  /** @type {ConnectionState} */
  state = "closed";
  #reason = "";
  #isTold = true;
  #emit;

  /** @param {(change: StateChanged) => void} emit */
  constructor(emit) {
    this.#emit = emit;
  }

  /** Be in a state that listeners hear of later, by `enter`. @param {ConnectionState} state */
  assume(state) {
    this.#isTold = this.state === state;
    this.state = state;
  }

  /**
   * @param {ConnectionState} state
   * @param {{code: string, message: string, field?: string | null | undefined} | null} [error] What caused it.
   */
  enter(state, error = null) {
    const reason = error?.message ?? "";
    if (this.#isTold && this.state === state && this.#reason === reason) return;
    this.#isTold = true;
    this.state = state;
    this.#reason = reason;
    this.#emit({ type: "state", state, reason, code: error?.code ?? "", field: error?.field ?? "" });
  }
}
