// How long to wait before sending again what the gateway refused for the moment.

const DEFAULT_MS = 1_000;
// Doubling stops here, unless the gateway itself asks for a longer delay.
const MAX_GROWN_MS = 8_000;

/**
 * Exponential back-off with jitter: one to two times the delay, so that clients do not return together or too early.
 * @param {{retry_after_ms?: number | null}} error The gateway's answer.
 * @param {number} [refusals] How many times in a row it was refused.
 */
export function refusalDelayMs(error, refusals = 1) {
  const askedMs = error.retry_after_ms ?? DEFAULT_MS;
  const delayMs = Math.max(askedMs, Math.min(askedMs * 2 ** (refusals - 1), MAX_GROWN_MS));
  return delayMs * (1 + Math.random());
}
