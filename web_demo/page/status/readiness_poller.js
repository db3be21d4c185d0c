// Asks the gateway at intervals whether its engine can translate. Knows `/readyz`; must not know the page.

import { t } from "../words/words.js";

/**
 * One of several engines.
 * @typedef {object} EngineStatus
 * @property {string} name
 * @property {string} status
 * @property {string} reason One sentence for people; empty when ready.
 * @property {number} running
 * @property {number} waiting Inside the engine.
 * @property {number} seats
 */

/**
 * @typedef {object} Readiness
 * @property {"ready" | "starting" | "failed" | "draining" | "unreachable"} status
 * @property {string} reason One sentence for people; empty when ready.
 * @property {boolean} [needsToken] Whether the gateway requires a token to join.
 * @property {EngineStatus[]} [engines] Empty where there is only one.
 * @property {number} [waiting] Translations that wait for their turn.
 */

// The interval while the engine is not ready. It grows, because an engine may load for minutes.
const WAITING_MIN_MS = 1_000;
const WAITING_MAX_MS = 3_000;
// The interval afterwards, to notice an engine that dies.
const READY_MS = 10_000;
const TIMEOUT_MS = 5_000;

/**
 * @param {string} url
 * @param {Promise<Response>} [asked]
 * @returns {Promise<Readiness>}
 */
async function ask(url, asked) {
  let response;
  try {
    response = await (asked ?? fetch(url, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) }));
  } catch {
    return { status: "unreachable", reason: t("gateway.no_answer") };
  }
  /** @type {{status?: unknown, reason?: unknown, auth?: unknown, engines?: EngineStatus[], waiting?: number} | null} */
  let body = null;
  try {
    body = await response.json();
  } catch {
    // A proxy's error page instead of the gateway's answer.
  }
  const told = { needsToken: body?.auth === "token", engines: body?.engines ?? [], waiting: body?.waiting ?? 0 };
  const reason = typeof body?.reason === "string" ? body.reason : "";
  switch (body?.status) {
    case "ready":
    case "restarting": // translations are taken, and wait
      return { status: "ready", reason: "", ...told };
    case "starting":
    case "failed":
    case "draining":
      return { status: body.status, reason, ...told };
    case "stopped":
      return { status: "draining", reason, ...told };
    default:
      return { status: "unreachable", reason: reason || t("gateway.address_status", { status: response.status }) };
  }
}

export class ReadinessPoller {
  #url;
  #onAnswer;
  /** @type {number | undefined} */
  #timer;
  #isAsking = false;
  #waitMs = WAITING_MIN_MS;

  /**
   * @param {string} url
   * @param {(readiness: Readiness) => void} onAnswer Called with every answer.
   */
  constructor(url, onAnswer) {
    this.#url = url;
    this.#onAnswer = onAnswer;
  }

  /** Ask now, and from then on at intervals. @param {Promise<Response>} [asked] An answer that was asked for already. */
  async check(asked) {
    if (this.#isAsking) return;
    this.#isAsking = true;
    clearTimeout(this.#timer);
    const readiness = await ask(this.#url, asked);
    this.#isAsking = false;
    this.#timer = setTimeout(() => void this.check(), this.#nextIntervalMs(readiness.status === "ready"));
    this.#onAnswer(readiness);
  }

  /** @param {boolean} ready */
  #nextIntervalMs(ready) {
    const intervalMs = ready ? READY_MS : this.#waitMs;
    this.#waitMs = ready ? WAITING_MIN_MS : Math.min(this.#waitMs + WAITING_MIN_MS, WAITING_MAX_MS);
    return intervalMs;
  }
}
