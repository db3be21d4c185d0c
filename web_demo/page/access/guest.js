// Who one is where no token says it: a secret of this browser's. Must not know what it is for.

import { loadPreference, savePreference } from "../ui/preferences.js";

/** The same at every visit, as far as the browser keeps it. */
export function guestSecret() {
  const kept = loadPreference("guest");
  if (kept !== null) return kept;
  const random = crypto.getRandomValues(new Uint8Array(16));
  const secret = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  savePreference("guest", secret);
  return secret;
}
