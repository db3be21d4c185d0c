// The one message at the bottom of the page that people must see. Must not know who shows it.

import { find } from "../ui/dom.js";
import { t } from "../words/words.js";

const alert = find("alert", HTMLDivElement);
const text = find("alert-text", HTMLParagraphElement);
const act = find("alert-action", HTMLButtonElement);
const dismiss = find("alert-dismiss", HTMLButtonElement);
/** What the button besides "Dismiss" does. @type {() => void} */
let onAction = () => {};
/** What had the focus before it was shown. @type {Element | null} */
let focusedBefore = null;
/** The reason for showing it, by which it can be withdrawn. */
let shownReason = "";

/**
 * @param {string} sentence
 * @param {string} [reason]
 * @param {{text: string, onClick: () => void}} [action] What one can do about it, as a button.
 */
export function showAlert(sentence, reason = "", action) {
  if (alert.hidden) focusedBefore = document.activeElement;
  shownReason = reason;
  text.textContent = sentence;
  act.textContent = action?.text ?? "";
  act.hidden = action === undefined;
  onAction = action?.onClick ?? onAction;
  alert.hidden = false;
}

/** Hide the alert if it was shown for this reason. @param {string} reason */
export function withdrawAlert(reason) {
  if (shownReason === reason) hideAlert();
}

export function hideAlert() {
  const hadFocus = alert.contains(document.activeElement);
  alert.hidden = true;
  if (hadFocus && focusedBefore instanceof HTMLElement) focusedBefore.focus();
}

dismiss.textContent = t("page.dismiss");
dismiss.addEventListener("click", hideAlert);
act.addEventListener("click", () => {
  hideAlert();
  onAction();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !alert.hidden && document.querySelector("dialog[open]") === null) hideAlert();
});
