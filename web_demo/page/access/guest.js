// Who one is where no token says it: a secret of this browser's. Must not know what it is for.

import { randomSecret } from "./random_secret.js";
import { loadPreference, savePreference } from "../ui/preferences.js";

/** The same at every visit, as far as the browser keeps it. */
export function guestSecret() {
  const kept = loadPreference("guest");
  if (kept !== null) return kept;
  const secret = randomSecret();
  savePreference("guest", secret);
  return secret;
}
