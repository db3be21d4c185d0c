// A map that is kept small.

/**
 * @param {Map<string, unknown>} map
 * @param {number} most
 */
export function forgetOldest(map, most) {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
}
