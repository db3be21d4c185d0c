// A bot that posts what is said in a meeting, in one language, to a chat's incoming webhook, which takes
// {"text": "…"} as Slack's and Mattermost's do:
//
//     npm install ./translation-gateway-client-1.0.0.tgz
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
process.on("SIGINT", () => client.close());

async function post(speaker, text) {
  try {
    const body = JSON.stringify({ text: `*${speaker || "Somebody"}*: ${text}` });
    const response = await fetch(webhook, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (!response.ok) console.error(`The chat answers with status ${response.status}.`);
  } catch (error) {
    console.error(`The chat cannot be reached: ${error.message}`);
  }
}

try {
  // One after the other, so that the chat has the order of the meeting.
  for await (const { speaker, text, failure } of client.finals()) if (!failure) await post(speaker, text);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
