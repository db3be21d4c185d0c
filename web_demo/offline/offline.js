// Says why the page could not be loaded, and loads it as soon as the gateway answers.

const RETRY_MS = 5_000;

/** @param {string} id */
const find = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

function show() {
  find("offline").hidden = navigator.onLine;
  find("silent").hidden = !navigator.onLine;
}

async function check() {
  show();
  try {
    const answer = await fetch("./healthz", { cache: "no-store", signal: AbortSignal.timeout(RETRY_MS) });
    if (answer.ok) location.reload();
  } catch {
    // Not yet.
  }
}

find("retry").addEventListener("click", () => location.reload());
window.addEventListener("online", () => void check());
window.addEventListener("offline", show);
setInterval(() => void check(), RETRY_MS);
show();
