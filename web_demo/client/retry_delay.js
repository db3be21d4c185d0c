// How long to wait before sending again what the gateway refused for the moment.

/** @import {GatewayError} from "./messages.js" */

const DEFAULT_MS = 1_000;
const MAX_FACTOR = 8;

/**
 * Exponential back-off with jitter: one to two times the delay, so that clients do not return together or too early.
 * @param {GatewayError} error
 * @param {number} [refusals] How many times in a row it was refused.
 */
export function retryDelayMs(error, refusals = 1) {
  const delayMs = (error.retry_after_ms ?? DEFAULT_MS) * Math.min(2 ** (refusals - 1), MAX_FACTOR);
  return delayMs * (1 + Math.random());
}
