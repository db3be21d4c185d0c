// Says why the page could not be loaded, in its user's language, and loads it as soon as the gateway answers.

import { WORDS } from "./offline_words.js";

// How long to wait before the gateway is asked again: twice as long each time, as nobody may be there to see the page.
const RETRY_FIRST_MS = 5_000;
const RETRY_MAX_MS = 60_000;
const TIMEOUT_MS = 5_000;
// Where the page keeps the choice of its language.
const CHOICE = "page-language";

/** @param {string} id */
const find = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @returns {keyof typeof WORDS} The language that was chosen, or the first of the browser's that there is. */
function language() {
  let chosen = null;
  try {
    chosen = localStorage.getItem(CHOICE);
  } catch {
    // The browser allows no storage.
  }
  const tags = [chosen ?? "", ...navigator.languages].map((tag) => tag.toLowerCase().split("-")[0] ?? "");
  return /** @type {keyof typeof WORDS} */ (tags.find((tag) => Object.hasOwn(WORDS, tag)) ?? "en");
}

function speak() {
  const lang = language();
  Object.assign(document.documentElement, { lang, dir: lang === "ar" ? "rtl" : "ltr" });
  for (const [id, words] of Object.entries(WORDS[lang])) find(id).textContent = words;
  document.title = `${document.title}: ${WORDS[lang].title}`;
}

function show() {
  find("offline").hidden = navigator.onLine;
  find("silent").hidden = !navigator.onLine;
}

let waitMs = RETRY_FIRST_MS;
let timer = 0;

async function check() {
  show();
  clearTimeout(timer);
  waitMs = Math.min(2 * waitMs, RETRY_MAX_MS);
  timer = setTimeout(() => void check(), waitMs);
  try {
    const answer = await fetch("./healthz", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (answer.ok) location.reload();
  } catch {
    // Not yet.
  }
}

find("retry").addEventListener("click", () => location.reload());
window.addEventListener("online", () => {
  waitMs = RETRY_FIRST_MS;
  void check();
});
window.addEventListener("offline", show);
timer = setTimeout(() => void check(), waitMs);
speak();
show();
