// The first script of the page: starts the view that the address asks for. Must not know the views.

import { loadWords } from "./words/words.js";
import { inviteIn } from "./access/invite.js";

const query = new URLSearchParams(location.search);
const streamUrl = new URL("./v1/stream", document.baseURI);
streamUrl.protocol = streamUrl.protocol === "https:" ? "wss:" : "ws:";

await loadWords();
const invite = inviteIn(location.hash);
// A new link in the old tab: a browser loads nothing if only the fragment is another.
window.addEventListener("hashchange", () => {
  if (inviteIn(location.hash)?.fragment !== invite?.fragment) location.reload();
});

const view = query.get("view");
if (view === "captions" || view === "reading") {
  document.documentElement.dataset.view = "captions";
  const { startCaptions } = await import("./captions/captions_view.js");
  await startCaptions({ host: document.body, streamUrl: streamUrl.href, query, invite });
} else {
  document.documentElement.dataset.view = "meeting";
  const { startMeeting } = await import("./meeting/start_meeting.js");
  startMeeting({ streamUrl: streamUrl.href, query, invite });
}
