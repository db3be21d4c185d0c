// How long the translations of the last minute took, as the gateway measured them.

/** @import {Timings} from "../../client/messages.js" */
/** @typedef {"first_token_ms" | "total_ms"} Measure */

const WINDOW_MS = 60_000;
const MAX_SAMPLES = 1_000;

/**
 * The nearest-rank percentile.
 * @param {readonly number[]} values
 * @param {number} share From 0 to 1.
 * @returns {number | null} Null without values.
 */
export function percentile(values, share) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

export class Latency {
  /** Oldest first. @type {{timings: Timings, atMs: number}[]} */
  #samples = [];

  /**
   * @param {Timings} timings
   * @param {number} atMs When the translation arrived, by `performance.now()`.
   */
  add(timings, atMs) {
    this.#samples.push({ timings, atMs });
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
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
   * The median and the maximum of each slice of the last minute, oldest first; null for a slice without translations.
   * @param {Measure} measure
   * @param {number} nowMs
   * @param {number} slices
   */
  series(measure, nowMs, slices) {
    // Slices begin at fixed times. If they moved with the time, the line through them would quiver.
    const slice = (/** @type {number} */ ms) => Math.floor((ms * slices) / WINDOW_MS);
    const first = slice(nowMs) - slices + 1;
    /** @type {number[][]} */
    const found = Array.from({ length: slices }, () => []);
    for (const { atMs, timings } of this.#recent(nowMs)) found[slice(atMs) - first]?.push(timings[measure]);
    return found.map((values) => {
      const p50 = percentile(values, 0.5);
      return p50 === null ? null : { p50, max: Math.max(...values) };
    });
  }

  /** @param {number} nowMs */
  #recent(nowMs) {
    return (this.#samples = this.#samples.filter(({ atMs }) => nowMs - atMs <= WINDOW_MS));
  }
}
