// Keeps a map within a size limit.

/**
 * Remove the entries that were added first until the map is within its limit.
 * @param {Map<string, unknown>} map
 * @param {number} limit
 */
export function evictOldest(map, limit) {
  for (const key of map.keys()) {
    if (map.size <= limit) return;
    map.delete(key);
  }
}
