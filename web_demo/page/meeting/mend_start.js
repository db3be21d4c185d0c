// What to change when the gateway refuses the settings that a session starts with: they were saved on another day, or
// this guest may not have them. Must not know the page.

import { t } from "../words/words.js";

/** @import {GatewayClient} from "../../client/gateway_client.js" */

/**
 * @param {{code: string, field: string}} refusal
 * @param {object} page
 * @param {GatewayClient} page.client
 * @param {number} page.nameChars The longest name that the gateway accepts.
 * @param {(reads: readonly string[]) => void} page.onRead
 * @param {(problem: string) => void} page.onProblem
 * @returns {boolean} Whether something was changed, and the client tries again.
 */
export function mendStart({ code, field }, { client, nameChars, onRead, onProblem }) {
  const { reads, name, speaks } = client;
  if (field.startsWith("reads") && reads.length > 0) {
    // The gateway knows other languages than the one that the page was loaded from.
    if (code === "unsupported_language") location.reload();
    const one = /^reads\[(\d+)\]$/.exec(field);
    // A limit leaves the first one; of what is forbidden the others may be allowed.
    if (code === "forbidden" && one) onRead(reads.filter((_, index) => index !== Number(one[1])));
    else onRead(reads.slice(0, reads.length > 1 ? 1 : 0));
    onProblem(t("page.fewer"));
  } else if (field === "name" && name !== "") {
    client.rename([...name].slice(0, nameChars).join(""));
  } else if (code === "forbidden" && field === "speaks" && speaks !== null) {
    client.speak(null);
  } else {
    return false;
  }
  queueMicrotask(() => client.connect());
  return true;
}
