// Asks once before something that cannot be taken back. Must not know what it is.

import { button, element } from "../ui/dom.js";
import { t } from "../words/words.js";

/**
 * @param {object} question
 * @param {string} question.title
 * @param {readonly string[]} question.texts What happens, one paragraph each.
 * @param {string} question.action
 * @returns {Promise<boolean>} Whether it is to be done.
 */
export function confirmed({ title, texts, action }) {
  const dialog = element("dialog", "dialog");
  dialog.ariaLabel = title;
  dialog.dataset.testid = "confirm";
  const body = element("div", "dialog-body");
  const buttons = element("div", "confirm-buttons");
  const close = (/** @type {string} */ answer) => dialog.close(answer);
  buttons.append(
    button("secondary", t("transcript.cancel"), "confirm-cancel", () => close("")),
    button("primary danger", action, "confirm-action", () => close("yes")),
  );
  body.append(element("h2", "dialog-heading", title), ...texts.map((text) => element("p", "", text)), buttons);
  dialog.append(body);
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    dialog.showModal();
  });
}
