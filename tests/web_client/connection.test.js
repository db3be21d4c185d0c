// Connections of the JavaScript client: lost, silent, replaced, closed. What the conformance kit plays is not here.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ANOTHER, caption, delta, failed, pass, refused, Session, settle, translated } from "./gateway.js";

test("participants are known before listeners hear of them", async () => {
  const [bo, cy] = ["Bo", "Cy"].map((name) => ({ participant: `p-${name}`, name, speaks: "en", reads: ["fr"] }));
  const session = new Session({ name: "Ana" });
  const { client } = session;
  const seen = [];
  client.listen((event) => {
    if (!/^(session.started|participant)/.test(event.type)) return;
    const names = [...client.participants.values()].map(({ name }) => name).join("+");
    seen.push(`${event.type} ${event.name ?? ""}: ${client.participant} ${names}`);
  });
  const socket = await session.open({ participants: [bo] });
  await socket.say({ type: "participant.joined", ...cy });
  await session.again({ ...ANOTHER, participants: [cy] });
  // Bo left while nobody listened, and so did Ana herself, whose session is another one.
  assert.deepEqual(seen, [
    "session.started : p1 Bo",
    "participant.joined Cy: p1 Bo+Cy",
    "session.started : p2 Cy",
    "participant.left Bo: p2 Cy",
    "participant.left Ana: p2 Cy",
  ]);
});

test("a new name takes a new connection of the same session, and loses nothing", async () => {
  const session = new Session({ name: "Ana", speaks: "en" });
  const first = await session.open();
  session.client.final({ text: "One." });
  session.client.rename("Anna");
  session.client.final({ text: "Two." });
  await settle();
  assert.equal(first.closedWith, 4000);
  first.nothingMore();
  const second = await session.comes();
  const start = await second.start();
  assert.deepEqual([start.name, start.resume], ["Anna", { session: "s1", epoch: "e1", offset: 0 }]);
  await second.accept("One.");
  await second.accept("Two.");
  // No update can say that somebody speaks no language any more.
  session.client.speak(null);
  await settle();
  const third = await session.comes();
  assert.equal((await third.start()).speaks, null);
  assert.deepEqual([session.client.name, session.client.participant], ["Anna", "p1"]);
});

test("a name that is refused leaves the one before", async () => {
  const session = new Session({ name: "Ana" });
  await session.open();
  session.client.rename("A".repeat(200));
  await settle();
  const socket = await session.comes();
  socket.take("session.start");
  await socket.say(refused("limit_exceeded", { field: "name" }));
  assert.equal((await socket.start()).name, "Ana");
  assert.deepEqual(session.codes("error"), ["limit_exceeded"]);
  assert.deepEqual([session.client.name, session.client.state], ["Ana", "open"]);
});

test("a line that went dead without a word is found, and the session resumed", async () => {
  const session = new Session();
  const socket = await session.open();
  await pass(20_000);
  assert.equal(socket.pings, 2);
  socket.answersPings = false;
  session.client.final({ text: "Is somebody there?", lang: "en" });
  // Its own message is not answered: the gateway is asked long before the next question would be due.
  await pass(2_000);
  assert.deepEqual([socket.pings, session.client.state], [3, "open"]);
  await pass(2_500);
  const { state, code, reason } = session.of("state").at(-1);
  assert.deepEqual([state, code, reason], ["open", "unanswered", "The gateway does not answer."]);
  await pass(7_500);
  assert.equal(socket.closedWith, 4000);
  const next = await session.comes();
  assert.notEqual((await next.start()).resume, null);
  await next.accept("Is somebody there?");
  assert.deepEqual(session.states, ["connecting", "open", "open", "reconnecting", "connecting", "open"]);
});

test("an answer that is late is told, and takes it back", async () => {
  const session = new Session();
  const socket = await session.open();
  socket.answersPings = false;
  session.client.final({ text: "Is somebody there?", lang: "en" });
  await pass(4_500);
  assert.equal(session.of("state").at(-1).code, "unanswered");
  assert.equal(session.of("utterance.queued").length, 1); // it is not known to have arrived
  await socket.accept();
  const { state, code, reason } = session.of("state").at(-1);
  assert.deepEqual([state, code, reason], ["open", "", ""]);
});

test("connecting to an open connection asks once whether it is one", async () => {
  const session = new Session();
  const socket = await session.open();
  session.client.connect();
  session.client.connect();
  await settle();
  assert.deepEqual([socket.pings, session.sockets.length, session.client.state], [2, 1, "open"]);
});

test("after a replaced session the next one is a session of its own in the same meeting", async () => {
  const session = new Session();
  const socket = await session.open();
  await socket.say(refused("session_replaced"));
  await socket.lose(4510);
  const { state, code, reason } = session.of("state").at(-1);
  assert.deepEqual([state, code, reason], ["closed", "session_replaced", "No: session_replaced."]);
  const next = await session.open();
  assert.equal(next.url, "ws://gateway.example/v1/stream");
  assert.equal(session.of("session.started").at(-1).recovered, null);
  assert.equal(session.client.meeting, "m1");
});

test("a replay repeats no event, and a second attempt is news", async () => {
  const session = new Session({ reads: ["fr", "de"] });
  const { client } = session;
  let socket = await session.open();
  client.final({ id: "u1", text: "One.", lang: "en" });
  await settle();
  const one = await socket.accept();
  const before = [caption(one, 1), failed(one, "fr", 2), failed(one, "de", 3)];
  await socket.say(...before);
  // Late words of a recogniser, and the same text to be tried once more.
  client.partial({ id: "u1", text: "One. And", lang: "en" });
  client.final({ id: "u1", text: "One.", lang: "en" });
  await settle();
  assert.deepEqual(await socket.accept(), one);
  await socket.say(translated(one, "fr", "Un.", 4), failed(one, "de", 5));
  socket = await session.again();
  // Another translation of the same, at another offset, and what had been shown before.
  await socket.say(...before, translated(one, "fr", "Un.", 4), translated(one, "fr", "Une.", 9));
  await socket.say(delta(one, "fr", "U"), delta(one, "de", "E"));
  await socket.say({ ...caption(one), rev: 0, final: false });
  const events = session.heard.filter(({ type }) => /^(caption|translation)/.test(type));
  assert.deepEqual(
    events.map(({ type, lang, offset }) => [type, lang, offset]),
    [
      ["caption", "en", 1],
      ["translation.failed", "fr", 2],
      ["translation.failed", "de", 3],
      ["translation.final", "fr", 4],
      ["translation.failed", "de", 5],
      ["translation.delta", "de", undefined],
    ],
  );
});

test("while the engine loads the start is repeated, and the state says so", async () => {
  const session = new Session();
  session.client.connect();
  const socket = await session.comes();
  socket.take("session.start");
  await socket.say(refused("engine_unavailable", { retry_after_ms: 10 }));
  await pass(50);
  await socket.start();
  assert.deepEqual(
    session.of("state").map(({ state, reason }) => [state, reason]),
    [
      ["connecting", ""],
      ["loading", "No: engine_unavailable."],
      ["open", ""],
    ],
  );
});

test("a ping that is refused is sent again", async () => {
  const session = new Session();
  session.client.connect();
  const socket = await session.comes();
  socket.answersPings = false;
  await socket.start();
  await socket.say(refused("rate_limited", { retry_after_ms: 10 }));
  await pass(50);
  assert.equal(socket.pings, 2);
  assert.deepEqual(session.of("error"), []);
});

test("a connection lost after close is not opened again", async () => {
  const session = new Session();
  const socket = await session.open();
  session.client.final({ text: "This is translated for ever.", lang: "en" });
  await settle();
  await socket.accept();
  session.client.close();
  const id = session.client.final({ text: "One more thing.", lang: "en" });
  await settle();
  socket.take("session.end");
  await socket.lose();
  await pass(30_000);
  assert.deepEqual(session.states, ["connecting", "open", "closed"]);
  assert.deepEqual(
    session.of("utterance.refused").map((event) => [event.id, event.code]),
    [[id, "closed"]],
  );
  assert.equal(session.sockets.length, 1);
});

test("close sends what was said first, and a later connect begins a new session", async () => {
  const session = new Session();
  const socket = await session.open();
  for (const text of ["Goodbye,", "everyone."]) session.client.final({ text, lang: "en" });
  session.client.close();
  await settle();
  for (const text of ["Goodbye,", "everyone."]) await socket.accept(text);
  socket.take("session.end");
  // It came too fast, and is repeated.
  await socket.say(refused("rate_limited", { retry_after_ms: 10 }));
  await pass(2_000);
  socket.take("session.end");
  await socket.lose(1000);
  assert.deepEqual([session.of("utterance.refused"), session.of("error")], [[], []]);
  assert.equal(session.states.at(-1), "closed");
  const next = await session.open();
  next.nothingMore();
  assert.equal(session.of("session.started").at(-1).recovered, null);
});

test("close without a session refuses what was said", async () => {
  const session = new Session();
  session.client.final({ text: "One.", lang: "en" });
  session.client.close();
  assert.deepEqual(session.codes("utterance.refused"), ["closed"]);
});

test("closing twice waits for nothing", async () => {
  const session = new Session();
  const socket = await session.open();
  session.client.final({ text: "This is not answered.", lang: "en" });
  session.client.close();
  assert.equal(session.client.state, "open");
  session.client.close();
  assert.deepEqual([session.client.state, socket.closedWith], ["closed", 1000]);
});

test("an event is heard before what a listener causes by it", async () => {
  const session = new Session({ reads: ["tlh"] });
  const { client } = session;
  const order = [];
  client.listen((event) => {
    if (event.state !== "closed") return;
    client.read(["fr"]);
    client.connect();
  });
  client.listen((event) => event.type === "state" && order.push(event.state));
  client.connect();
  const socket = await session.comes();
  socket.take("session.start");
  await socket.say(refused("unsupported_language", { field: "reads[0]" }));
  const next = await session.comes();
  assert.deepEqual((await next.start()).reads, ["fr"]);
  assert.deepEqual(order, ["connecting", "closed", "connecting", "open"]);
});
