// The first script of the page: starts the view that index.html has taken from the address. Must not know the views.

import { loadWords } from "./words/words.js";
import { inviteIn } from "./access/invite.js";

const query = new URLSearchParams(location.search);
const streamUrl = new URL("./v1/stream", document.baseURI);
streamUrl.protocol = streamUrl.protocol === "https:" ? "wss:" : "ws:";

// The meeting page asks this first, and its scripts are still on their way.
const asked = document.documentElement.dataset["view"] === "meeting" ? askEarly() : null;
await loadWords();
const invite = inviteIn(location.hash);
// A new link in the old tab: a browser loads nothing if only the fragment is another.
window.addEventListener("hashchange", () => {
  if (inviteIn(location.hash)?.fragment !== invite?.fragment) location.reload();
});

if (asked === null) {
  const { startCaptions } = await import("./captions/captions_view.js");
  await startCaptions({ host: document.body, streamUrl: streamUrl.href, query, invite });
} else {
  const { startMeeting } = await import("./meeting/start_meeting.js");
  startMeeting({ streamUrl: streamUrl.href, query, invite, asked });
}

function askEarly() {
  // Answers 200 whatever it says: browsers log every 503 to the console.
  const url = "./readyz?status=200";
  const readyz = ask(url);
  return { url, readyz, languages: askForLanguages(readyz).catch(() => null) };
}

/** Null also where the engine is not ready: then it would be refused. @param {Promise<Response>} readyz */
async function askForLanguages(readyz) {
  const { status } = await (await readyz).clone().json();
  return status === "ready" || status === "restarting" ? await ask("./v1/languages") : null;
}

/** The answer with its body, which is read before the request's time is over. @param {string} url */
async function ask(url) {
  const response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(5_000) });
  return new Response(await response.text(), response);
}
