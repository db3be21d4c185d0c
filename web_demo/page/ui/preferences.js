// What this browser remembers of its user's choices. Knows the browser's storage; must not know what is kept there.

/**
 * @param {string} key
 * @returns {string | null} Null where nothing is remembered, or nothing may be.
 */
export function recall(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // a browser may be told to keep nothing
  }
}

/**
 * @param {string} key
 * @param {string} value
 */
export function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Then it holds until the page is left.
  }
}
