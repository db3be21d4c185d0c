// A secret of 128 bits that nobody can guess, as it is written. Must not know what it is for.

/** @param {Uint8Array} bytes By default drawn now. */
export function randomSecret(bytes = crypto.getRandomValues(new Uint8Array(16))) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
