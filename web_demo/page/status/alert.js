// Something that people have to be told. Knows the page's one notice; must not know who tells.

import { find } from "../ui/dom.js";

const notice = find("notice", HTMLDivElement);
const words = find("notice-text", HTMLParagraphElement);
const dismiss = find("notice-dismiss", HTMLButtonElement);
/** Who had the focus before. @type {Element | null} */
let before = null;

/** What it is about, for who takes it away again. */
let about = "";

/**
 * @param {string} sentence
 * @param {string} [subject]
 */
export function showNotice(sentence, subject = "") {
  if (notice.hidden) before = document.activeElement;
  about = subject;
  words.textContent = sentence;
  notice.hidden = false;
}

/** @param {string} subject Whatever was said about it holds no longer. */
export function withdrawNotice(subject) {
  if (about === subject) hideNotice();
}

export function hideNotice() {
  const hadFocus = notice.contains(document.activeElement);
  notice.hidden = true;
  if (hadFocus && before instanceof HTMLElement) before.focus();
}

dismiss.addEventListener("click", hideNotice);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !notice.hidden && document.querySelector("dialog[open]") === null) hideNotice();
});
