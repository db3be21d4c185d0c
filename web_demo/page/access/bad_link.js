// Shown instead of a meeting where a link cannot lead to one: what is wrong with it. Must not know how a meeting is opened.

import { cover } from "../ui/cover.js";
import { button, element } from "../ui/dom.js";
import { t } from "../words/words.js";

/**
 * @param {object} options
 * @param {string} options.id What stands in the link for the id of a meeting.
 * @param {number} options.mostChars That an id may have.
 * @param {() => void} options.onOpenOwn
 */
export function badLink({ id, mostChars, onOpenOwn }) {
  const card = element("section", "last-screen");
  card.dataset.testid = "bad-link";
  card.append(
    cover(
      element("h2", "", t("link.title")),
      element("p", "", problem(id.trim(), mostChars)),
      element("p", "hint", t("link.hint")),
      button("secondary", t("link.own"), "open-own", onOpenOwn),
    ),
  );
  return card;
}

/** @param {string} id @param {number} mostChars */
function problem(id, mostChars) {
  if (id === "") return t("link.missing");
  if (id.length > mostChars) return t("link.long", { count: id.length, most: mostChars });
  return t("link.characters", { id });
}
