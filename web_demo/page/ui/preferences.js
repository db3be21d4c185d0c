// The user's choices, kept in the browser's local storage. Must not know what they mean.

/**
 * @param {string} key
 * @returns {string | null} Null if nothing was saved, or the browser allows no storage.
 */
export function loadPreference(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/**
 * @param {string} key
 * @param {string} value
 */
export function savePreference(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Without storage the choice holds until the page is left.
  }
}
