// A bot that posts what is said in a meeting, in one language, to a chat's incoming webhook, which takes
// {"text": "…"} as Slack's and Mattermost's do:
//
//     node examples/chat_bot.mjs http://127.0.0.1:8000 standup ja https://chat.example.com/hooks/…
//
// It runs until it is stopped with Ctrl-C. On a gateway with keys set GATEWAY_TOKEN; its role `read` is enough.

import { GatewayClient } from "translation-gateway-client";

const [address, meeting, lang, webhook] = process.argv.slice(2);
if (!webhook) {
  console.error("usage: chat_bot.mjs ADDRESS MEETING LANGUAGE WEBHOOK");
  process.exit(2);
}
const token = process.env.GATEWAY_TOKEN;
const options = { meeting, name: "Chat", reads: [lang], stability: "final", ...(token && { token }) };
const client = new GatewayClient(address, options);

let posted = Promise.resolve(); // one after the other, so that the chat has the order of the meeting

function post(speaker, text) {
  posted = posted.then(async () => {
    const body = JSON.stringify({ text: `*${speaker || "Somebody"}*: ${text}` });
    const response = await fetch(webhook, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (!response.ok) console.error(`The chat answers with status ${response.status}.`);
  });
  posted = posted.catch((error) => console.error(`The chat cannot be reached: ${error.message}`));
}

client.listen((event) => {
  switch (event.type) {
    case "translation.final":
      return post(event.speaker, event.text);
    case "caption": // whoever speaks the chat's language is not translated
      if (event.final && event.lang === lang) post(event.speaker, event.text);
      return;
    case "state":
      if (event.reason) console.error(event.reason);
      if (event.state === "closed") process.exitCode = event.code ? 1 : 0;
  }
});
client.connect();
process.on("SIGINT", () => client.close());
