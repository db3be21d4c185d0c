// How long translations take: the last minute's, as the gateway measured them. Knows numbers alone.

/** @import {Timings} from "../../client/messages.js" */
/** @typedef {"first_token_ms" | "total_ms"} Measure */

const WINDOW_MS = 60_000;
const MOST = 1_000;

/**
 * The smallest value that at least this share of them does not exceed.
 * @param {readonly number[]} values
 * @param {number} share
 * @returns {number | null} Null of none.
 */
export function percentile(values, share) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

export class Latency {
  /** @type {{timings: Timings, atMs: number}[]} Oldest first. */
  #samples = [];

  /**
   * @param {Timings} timings
   * @param {number} atMs When the translation arrived, by `performance.now()`.
   */
  note(timings, atMs) {
    this.#samples.push({ timings, atMs });
    if (this.#samples.length > MOST) this.#samples.shift();
  }

  /**
   * @param {Measure} measure
   * @param {number} nowMs
   */
  summary(measure, nowMs) {
    const values = this.#recent(nowMs).map(({ timings }) => timings[measure]);
    return { p50: percentile(values, 0.5), p99: percentile(values, 0.99) };
  }

  /**
   * The median and the longest of every slice of the last minute, oldest first; null where there is none.
   * @param {Measure} measure
   * @param {number} nowMs
   * @param {number} slices
   */
  series(measure, nowMs, slices) {
    // Slices stay where they are while time goes on, or a line through them would quiver.
    const slice = (/** @type {number} */ ms) => Math.floor((ms * slices) / WINDOW_MS);
    const first = slice(nowMs) - slices + 1;
    /** @type {number[][]} */
    const found = Array.from({ length: slices }, () => []);
    for (const { atMs, timings } of this.#recent(nowMs)) found[slice(atMs) - first]?.push(timings[measure]);
    return found.map((values) => {
      const p50 = percentile(values, 0.5);
      return p50 === null ? null : { p50, most: Math.max(...values) };
    });
  }

  /** @param {number} nowMs */
  #recent(nowMs) {
    return (this.#samples = this.#samples.filter(({ atMs }) => nowMs - atMs <= WINDOW_MS));
  }
}
