// What a program reads in a loop, and what it is told where it does not listen.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, mock, test } from "node:test";

import { GatewayClient, SessionError } from "../../web_demo/client.js";
import { Lines } from "../../web_demo/client/lines.js";
import { ANOTHER, delta, pass, refused, Session, settle, translated } from "./gateway.js";

const TRANSCRIPTS = JSON.parse(readFileSync(new URL("../client/lines.json", import.meta.url), "utf8"));

afterEach(() => mock.restoreAll());

/** What is written to the console from now on, as errors or as warnings. */
function complaints() {
  const written = { error: mock.method(console, "error", () => {}), warn: mock.method(console, "warn", () => {}) };
  return (kind = "error") => written[kind].mock.calls.map(({ arguments: [said] }) => said);
}

for (const { name, reads, originals = false, steps } of TRANSCRIPTS) {
  test(`lines: ${name}`, () => {
    const names = new Map([
      ["p1", "Ana"],
      ["p2", "Ken"],
    ]);
    const lines = new Lines({ reads, originals }, (participant) => names.get(participant) ?? "");
    for (const [message, expected] of steps) {
      const event = message === "reconnected" ? { type: "session.started" } : message;
      if (/participant\.(joined|updated)/.test(event.type)) names.set(event.participant, event.name);
      const shown = lines.apply(event).map(({ participant, utterance, text, final, failure, gone, ...line }) => {
        assert.equal(text, line.committed + line.tentative);
        return { ...line, ...(final && { final }), ...(failure && { failure }), ...(gone && { gone }) };
      });
      assert.deepEqual(shown, expected);
    }
  });
}

/** A session that nobody listens to, whose lines are read. */
async function reading(kind, options = {}) {
  const session = new Session({ speaks: "en", ...options }, { isHeard: false });
  const lines = session.client[kind]();
  await settle();
  const socket = await session.comes();
  await socket.start();
  return { session, socket, lines };
}

test("a loop connects, gets the newest state of what grows and every final, and ends with the session", async () => {
  const { session, socket, lines } = await reading("lines");
  session.client.final({ id: "a", text: "One." });
  session.client.final({ id: "b", text: "Two." });
  await settle();
  const one = await socket.accept("One.");
  const two = await socket.accept("Two.");
  await socket.say(
    delta(one, "fr", "U"),
    delta(one, "fr", "n"),
    translated(one, "fr", "Un.", 1),
    delta(two, "fr", "D"),
  );
  assert.equal((await lines.next()).value.text, "Un.");
  assert.equal((await lines.next()).value.text, "D");
  await socket.say(translated(two, "fr", "Deux.", 2));
  session.client.close();
  await socket.lose(1000);
  const left = [];
  for await (const line of lines) left.push([line.text, line.final]);
  assert.deepEqual(left, [["Deux.", true]]);
});

test("finals are only what is complete", async () => {
  const { session, socket, lines } = await reading("finals");
  session.client.final({ id: "a", text: "One." });
  await settle();
  const one = await socket.accept("One.");
  await socket.say(delta(one, "fr", "U"), translated(one, "fr", "Un.", 1));
  assert.equal((await lines.next()).value.text, "Un.");
});

test("what is refused is thrown, and the session goes on", async () => {
  const { session, socket, lines } = await reading("finals");
  const said = complaints();
  session.client.final({ id: "a", text: "One." });
  await settle();
  socket.take("utterance.final");
  await socket.say(refused("invalid_value", { utterance: "a", field: "lang" }));
  await assert.rejects(lines.next(), (error) => {
    assert.ok(error instanceof SessionError);
    assert.deepEqual([error.code, error.utterance, error.message], ["invalid_value", "a", "No: invalid_value."]);
    return true;
  });
  assert.deepEqual(await lines.next(), { value: undefined, done: true });
  assert.equal(session.client.state, "open");
  // It is thrown already. The next one is not, as the loop has ended.
  assert.deepEqual(said(), []);
  await socket.say(refused("invalid_value", { field: "reads" }));
  assert.deepEqual(said(), ["translation-gateway: No: invalid_value."]);
});

test("the loop after a refusal goes on where the last one ended", async () => {
  for (const [kind, expected] of [
    ["finals", ["Deux."]],
    ["lines", ["Un", "Deux."]],
  ]) {
    const { session, socket, lines } = await reading("lines");
    for (const id of ["a", "b"]) session.client.final({ id, text: id });
    await settle();
    const [one, two] = [await socket.accept(), await socket.accept()];
    await socket.say(delta(one, "fr", "U"));
    assert.equal((await lines.next()).value.text, "U");
    // All of it comes while the loop is busy.
    await socket.say(refused("invalid_value", { field: "reads" }));
    await socket.say(delta(one, "fr", "n"), translated(two, "fr", "Deux.", 1));
    await assert.rejects(lines.next(), { name: "SessionError" });
    assert.equal((await lines.next()).done, true);
    session.client.close();
    await socket.lose(1000);
    const rest = [];
    for await (const { text } of session.client[kind]()) rest.push(text);
    assert.deepEqual(rest, expected);
  }
});

test("what nobody reads after a refusal is not kept for another session", async () => {
  const { session, socket, lines } = await reading("finals");
  session.client.final({ id: "a", text: "One." });
  await settle();
  const one = await socket.accept();
  await socket.say(refused("invalid_value", { field: "reads" }), translated(one, "fr", "Un.", 1));
  await assert.rejects(lines.next(), { name: "SessionError" });
  session.client.close();
  await socket.lose(1000);
  const next = await session.open(ANOTHER);
  const finals = session.client.finals();
  session.client.close();
  await next.lose(1000);
  assert.equal((await finals.next()).done, true);
});

test("a refused command of a host ends no loop, and is written to the console", async () => {
  const { session, socket, lines } = await reading("lines");
  const said = complaints();
  await socket.say(refused("invalid_value", { field: "participant" }), refused("forbidden"));
  session.client.close();
  await socket.lose(1000);
  assert.equal((await lines.next()).done, true);
  assert.deepEqual(said(), ["translation-gateway: No: invalid_value.", "translation-gateway: No: forbidden."]);
});

test("a command of a host that is refused for the moment is written to the console, once", async () => {
  const { session, socket, lines } = await reading("lines");
  const said = complaints();
  socket.answersPings = false; // the one that `connect` sends may have been refused as well
  session.client.connect();
  session.client.remove("bo");
  await settle();
  await socket.say(refused("rate_limited", { retry_after_ms: 10 }));
  session.client.close();
  await socket.lose(1000);
  assert.equal((await lines.next()).done, true);
  assert.deepEqual(said(), ["translation-gateway: No: rate_limited."]);
});

test("a session that ends for another reason than close ends the loop with it", async () => {
  const { socket, lines } = await reading("lines");
  const end = assert.rejects(lines.next(), { name: "SessionError", code: "meeting_ended" });
  await socket.say(refused("meeting_ended"));
  await end;
});

test("an option that the model does not take ends no loop", async () => {
  const { session, socket, lines } = await reading("lines");
  await socket.say(refused("unsupported_option", { field: "context" }));
  session.client.close();
  await socket.lose(1000);
  assert.equal((await lines.next()).done, true);
});

test("a loop that is left hears nothing more", async () => {
  const { socket, lines } = await reading("lines");
  await lines.return();
  const said = complaints();
  await socket.say(refused("invalid_value"));
  assert.deepEqual(said(), ["translation-gateway: No: invalid_value."]);
  assert.equal((await lines.next()).done, true);
});

test("why there is no session is written to the console where no listener hears it, once", async () => {
  const said = complaints();
  const session = new Session({}, { isHeard: false });
  session.client.lines();
  await settle();
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await session.sockets.at(-1).lose();
    await pass(10_000);
  }
  // The client goes on trying.
  assert.deepEqual(said("warn"), ["translation-gateway: No gateway can be reached at this address."]);
  assert.deepEqual(said(), []);
});

test("so is why it has to wait", async () => {
  const said = complaints();
  const session = new Session({}, { isHeard: false });
  session.client.finals();
  await settle();
  const socket = await session.comes();
  for (let start = 0; start < 2; start += 1) {
    socket.take("session.start");
    await socket.say(refused("engine_unavailable", { retry_after_ms: 100 }));
    await pass(300);
  }
  assert.deepEqual(said("warn"), ["translation-gateway: No: engine_unavailable."]);
  assert.deepEqual(said(), []);
  await socket.say(refused("forbidden"));
  assert.deepEqual(said(), ["translation-gateway: No: forbidden."]);
});

test("a listener of a type gets only its events, until its signal is aborted", async () => {
  const session = new Session({ speaks: "en" }, { isHeard: false });
  const heard = [];
  const controller = new AbortController();
  const stop = session.client.on("utterance.accepted", ({ id }) => heard.push(`first ${id}`));
  session.client.on("utterance.accepted", ({ id }) => heard.push(id), { signal: controller.signal });
  const socket = await session.open();
  const say = async (id) => {
    session.client.final({ id, text: "One." });
    await settle();
    await socket.accept();
  };
  await say("a");
  stop();
  await say("b");
  controller.abort();
  await say("c");
  session.client.on("utterance.accepted", ({ id }) => heard.push(id), { signal: controller.signal });
  await say("d");
  assert.deepEqual(heard, ["first a", "a", "b"]);
});

test("a refusal that a listener hears is not written to the console", async () => {
  const said = complaints();
  const session = new Session({}, { isHeard: false });
  const heard = [];
  session.client.on("error", ({ code }) => heard.push(code));
  const socket = await session.open();
  await socket.say(refused("invalid_value"));
  assert.deepEqual([heard, said()], [["invalid_value"], []]);
});

test("a signal ends the session, and there is none after it", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const { session, socket, lines } = await reading("lines", { signal });
  // As a component that listens, and is gone.
  const heard = [];
  session.client.on("state", ({ state }) => heard.push(state), { signal });
  controller.abort();
  assert.deepEqual(heard, []);
  assert.deepEqual([session.client.state, socket.closedWith], ["closed", 1000]);
  assert.equal((await lines.next()).done, true);
  session.client.connect();
  assert.equal((await session.client.lines().next()).done, true);
  assert.equal(session.sockets.length, 1);
});

test("without reconnecting the session ends with its connection", async () => {
  const session = new Session({ reconnect: false });
  const socket = await session.open();
  await socket.lose();
  assert.deepEqual(session.of("state").at(-1).reason, "The connection to the gateway was lost.");
  assert.equal(session.client.state, "closed");
});

test("after giveUpMs the client gives up; a session gives it the whole time again", async () => {
  const session = new Session({ reconnect: { firstMs: 100, mostMs: 100, giveUpMs: 5_000 } });
  const socket = await session.open();
  await pass(4_000);
  await socket.lose();
  const next = await session.comes();
  await next.start();
  await next.lose();
  for (let ms = 0; ms < 5_000; ms += 200) {
    await pass(200);
    if (session.sockets.at(-1).readyState === 0) await session.sockets.at(-1).lose();
    if (ms < 4_000) assert.equal(session.client.state !== "closed", true);
  }
  assert.equal(session.client.state, "closed");
});

test("a platform without a WebSocket is told what to do", () => {
  const before = Object.getOwnPropertyDescriptor(globalThis, "WebSocket");
  delete globalThis.WebSocket;
  try {
    const client = new GatewayClient("http://gateway.example");
    assert.throws(
      () => client.connect(),
      /^TypeError: There is no WebSocket here\. Use Node 22 or newer, or the package ws/,
    );
    assert.equal(client.state, "closed");
  } finally {
    Object.defineProperty(globalThis, "WebSocket", before);
  }
});
