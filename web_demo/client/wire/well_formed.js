// What can be sent: text of whole characters, and times of whole milliseconds. Must not know messages.

/**
 * The same with U+FFFD in place of halves of characters, as a text has that was cut by its length: no frame carries them.
 * @template T
 * @param {T} value A text, or what has texts in it.
 * @returns {T}
 */
export function wellFormed(value) {
  return /** @type {T} */ (whole(value));
}

/** @param {unknown} value @returns {unknown} */
function whole(value) {
  if (typeof value === "string") return value.replace(/\p{Surrogate}/gu, "\ufffd");
  if (Array.isArray(value)) return value.map(whole);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [whole(key), whole(each)]));
}

/**
 * Times in an audio, rounded. None, if one of them is not such a time or the end is before the start.
 * @param {{start_ms?: number | null | undefined, end_ms?: number | null | undefined}} given
 * @returns {{start_ms?: number | undefined, end_ms?: number | undefined}}
 */
export function position({ start_ms, end_ms }) {
  const [start, end] = [start_ms ?? undefined, end_ms ?? undefined];
  const isTime = (/** @type {number | undefined} */ time) =>
    time === undefined || (typeof time === "number" && time >= 0 && time <= Number.MAX_SAFE_INTEGER);
  if (!isTime(start) || !isTime(end) || Number(start) > Number(end)) return {};
  return { start_ms: start && Math.round(start), end_ms: end && Math.round(end) };
}
