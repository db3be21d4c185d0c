// Why others cannot use a page at this address, or only in part, and what the operator can do. Must not know who is asked to join.

import { element } from "../ui/dom.js";
import { t } from "../words/words.js";

const LOOPBACK = /^(localhost|.*\.localhost|127\..*|\[::1\]|0\.0\.0\.0)$/;

/** What is wrong with the address; null if nothing is. @param {{hostname: string, protocol: string}} address */
export function addressProblem({ hostname, protocol }) {
  if (LOOPBACK.test(hostname)) return "loopback";
  return protocol === "https:" ? null : "insecure";
}

/** For the operator; hidden where there is nothing to do. */
export function addressNote() {
  const problem = addressProblem(location);
  const words = { loopback: t("machine.loopback", { host: location.hostname }), insecure: t("machine.insecure") };
  const note = element("p", "hint", problem ? words[problem] : "");
  note.dataset.testid = "address-note";
  note.hidden = problem === null;
  return note;
}
