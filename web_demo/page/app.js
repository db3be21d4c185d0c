// The first script of the page: starts the view that the address asks for. Must not know the views.

const query = new URLSearchParams(location.search);
const streamUrl = new URL("./v1/stream", document.baseURI);
streamUrl.protocol = streamUrl.protocol === "https:" ? "wss:" : "ws:";

if (query.get("view") === "captions") {
  document.documentElement.dataset.view = "captions";
  const { startCaptions } = await import("./captions/captions_view.js");
  startCaptions({ host: document.body, streamUrl: streamUrl.href, query });
} else {
  document.documentElement.dataset.view = "meeting";
  const { startMeeting } = await import("./meeting/start_meeting.js");
  startMeeting({ streamUrl: streamUrl.href, query });
}

export {};
