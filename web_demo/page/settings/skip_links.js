// The first stops of the Tab key, seen only while they have the focus: what is used most is one step behind them. Must not
// know what they lead to.

import { button, element } from "../ui/dom.js";
import { t } from "../words/words.js";

/**
 * Buttons, as the fragment of the page's address is an invite's.
 * @param {object} to What each of them does.
 * @param {() => void} to.onTranscript
 * @param {() => void} to.onLanguages
 */
export function skipLinks({ onTranscript, onLanguages }) {
  const links = element("nav", "skip-links");
  links.ariaLabel = t("skip.links");
  links.append(
    button("primary", t("skip.transcript"), "skip-transcript", onTranscript),
    button("primary", t("skip.languages"), "skip-languages", onLanguages),
  );
  return links;
}
