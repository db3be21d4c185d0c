// Asks the gateway whether its engine can translate, over and over. Knows `/readyz`; must not know the page.

/**
 * @typedef {object} Readiness
 * @property {"ready" | "starting" | "failed" | "draining" | "unreachable"} status
 * @property {string} reason One sentence for people; empty when ready.
 */

// While somebody waits, soon at first and then less often: a browser notes every 503 on its console. Now and then
// afterwards, to notice an engine that died.
const WAITING_MS = 1_000;
const WAITING_MOST_MS = 3_000;
const READY_MS = 10_000;
const ANSWER_MS = 5_000;

/**
 * @param {string} url
 * @returns {Promise<Readiness>}
 */
async function ask(url) {
  let response;
  try {
    response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
  } catch {
    return { status: "unreachable", reason: "The gateway does not answer." };
  }
  if (response.ok) return { status: "ready", reason: "" };
  /** @type {{status?: unknown, reason?: unknown} | null} */
  let body = null;
  try {
    body = await response.json();
  } catch {
    // A proxy's own error page: it says that no gateway is behind it.
  }
  const reason = typeof body?.reason === "string" ? body.reason : "";
  switch (body?.status) {
    case "starting":
    case "failed":
    case "draining":
      return { status: body.status, reason };
    case "stopped":
      return { status: "draining", reason };
    default:
      return { status: "unreachable", reason: reason || `The gateway's address answers with status ${response.status}.` };
  }
}

/** Calls back with every answer, the first one at once. */
export class ReadinessWatch {
  #url;
  #report;
  /** @type {number | undefined} */
  #timer;
  #asking = false;
  #waitMs = WAITING_MS;

  /**
   * @param {string} url
   * @param {(readiness: Readiness) => void} report
   */
  constructor(url, report) {
    this.#url = url;
    this.#report = report;
  }

  /** Ask now, and from then on regularly. */
  async check() {
    if (this.#asking) return;
    this.#asking = true;
    clearTimeout(this.#timer);
    const readiness = await ask(this.#url);
    this.#asking = false;
    this.#timer = setTimeout(() => void this.check(), this.#pauseMs(readiness.status === "ready"));
    this.#report(readiness);
  }

  /** @param {boolean} ready */
  #pauseMs(ready) {
    const pauseMs = ready ? READY_MS : this.#waitMs;
    this.#waitMs = ready ? WAITING_MS : Math.min(this.#waitMs + WAITING_MS, WAITING_MOST_MS);
    return pauseMs;
  }
}
