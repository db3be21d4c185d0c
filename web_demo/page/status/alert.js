// The one message at the bottom of the page that people must see. Must not know who shows it.

import { find } from "../ui/dom.js";

const alert = find("alert", HTMLDivElement);
const text = find("alert-text", HTMLParagraphElement);
const dismiss = find("alert-dismiss", HTMLButtonElement);
/** What had the focus before it was shown. @type {Element | null} */
let focusedBefore = null;
/** The reason for showing it, by which it can be withdrawn. */
let shownReason = "";

/**
 * @param {string} sentence
 * @param {string} [reason]
 */
export function showAlert(sentence, reason = "") {
  if (alert.hidden) focusedBefore = document.activeElement;
  shownReason = reason;
  text.textContent = sentence;
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

dismiss.addEventListener("click", hideAlert);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !alert.hidden && document.querySelector("dialog[open]") === null) hideAlert();
});
