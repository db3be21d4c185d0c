// Settings of the JavaScript client: what is asked for, and what becomes of it when the gateway refuses it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ANOTHER, pass, refused, Session, settle, updated } from "./gateway.js";

test("changes of one moment are one update, and others wait for its answer", async () => {
  const session = new Session({ name: "Ana", speaks: "en", stability: "stable", originals: true });
  const { client } = session;
  client.connect();
  const socket = await session.comes();
  const { name, speaks, reads, stability, originals } = await socket.start();
  assert.deepEqual([name, speaks, reads, stability, originals], ["Ana", "en", ["fr"], "stable", true]);
  client.setStability("live");
  client.setStability("final");
  client.read(["de"]);
  client.final({ text: "One." });
  await settle();
  assert.deepEqual(socket.take("session.update"), { type: "session.update", reads: ["de"], stability: "final" });
  await socket.accept("One."); // what is said does not wait: the gateway takes one after the other
  client.setStability("live");
  client.speak("fr");
  client.read(["ja"]);
  queueMicrotask(() => client.read(["de"]));
  client.setStability("stable");
  await settle();
  socket.nothingMore();
  await socket.say(updated(["de"], "en", "final"));
  assert.deepEqual(socket.take("session.update"), { type: "session.update", stability: "stable", speaks: "fr" });
  await socket.say(updated(["de"], "fr", "stable"));
  client.read(["de"]);
  client.setStability("stable");
  await settle();
  socket.nothingMore();
});

test("a change that is refused for a while is asked for again", async () => {
  const session = new Session();
  const socket = await session.open();
  session.client.setStability("final");
  await settle();
  const update = socket.take("session.update");
  await socket.say(refused("rate_limited", { retry_after_ms: 10 }));
  await pass(100);
  assert.deepEqual(socket.take("session.update"), update);
  await socket.say(updated(["fr"], null, "final"));
  assert.deepEqual(session.of("error"), []);
});

test("what a host's command is refused for is no answer to a change", async () => {
  for (const error of [refused("invalid_value", { field: "participant" }), refused("forbidden")]) {
    const session = new Session({ reads: ["de"] });
    const { client } = session;
    const socket = await session.open();
    client.remove("gone");
    client.read(["fr"]);
    await settle();
    socket.take("participant.remove");
    socket.take("session.update");
    await socket.say(error);
    socket.nothingMore();
    await socket.say(updated(["fr"], null, "live"));
    assert.deepEqual([client.reads, session.codes("error")], [["fr"], [error.code]]);
    client.read(["de"]);
    await settle();
    socket.take("session.update");
    // This one names a setting.
    await socket.say(refused("forbidden", { field: "reads[0]" }));
    assert.deepEqual(client.reads, ["fr"]);
  }
});

test("a change that is refused for good leaves what is in force, and the other changes", async () => {
  const session = new Session();
  const { client } = session;
  const socket = await session.open();
  let inForce;
  client.listen(({ type }) => type === "error" && (inForce = client.reads));
  client.read(["de", "fr", "es"]);
  client.setStability("stable");
  await settle();
  socket.take("session.update");
  await socket.say(refused("limit_exceeded", { field: "reads" }));
  assert.deepEqual(socket.take("session.update"), { type: "session.update", stability: "stable" });
  await socket.say(updated(["fr"], null, "stable"));
  assert.deepEqual([inForce, client.reads, client.stability], [["fr"], ["fr"], "stable"]);
  // What was wanted meanwhile is not what was refused.
  client.read(["de", "fr", "es"]);
  await settle();
  client.read(["de"]);
  await settle();
  socket.take("session.update");
  await socket.say(refused("limit_exceeded", { field: "reads" }));
  assert.deepEqual(socket.take("session.update").reads, ["de"]);
});

test("a change made without a connection may be refused, too", async () => {
  const session = new Session();
  let socket = await session.open();
  await socket.lose();
  session.client.read(["t!h"]);
  session.client.setStability("final");
  socket = await session.comes();
  const { reads, stability } = socket.take("session.start");
  assert.deepEqual([reads, stability], [["t!h"], "final"]);
  await socket.say(refused("unsupported_language", { field: "reads[0]" }));
  const start = await socket.start();
  assert.deepEqual([start.reads, start.stability], [["fr"], "final"]);
  socket.nothingMore();
  assert.deepEqual(
    session.of("error").map(({ field }) => field),
    ["reads[0]"],
  );
});

test("a start that is refused can be corrected field by field", async () => {
  const session = new Session({ name: "A name that is long", speaks: "tlh", reads: ["de", "fr"] });
  const { client } = session;
  const corrections = [
    ["limit_exceeded", "name", () => client.rename("Ana")],
    ["unsupported_language", "speaks", () => client.speak(null)],
    ["limit_exceeded", "reads", () => client.read(["fr"])],
  ];
  client.final({ text: "One.", lang: "en" });
  for (const [code, field, correct] of corrections) {
    client.connect();
    const socket = await session.comes();
    socket.take("session.start");
    await socket.say(refused(code, { field }));
    const { state, ...told } = session.of("state").at(-1);
    assert.deepEqual([state, told.code, told.field, socket.closedWith], ["closed", code, field, 1000]);
    correct();
  }
  assert.deepEqual(session.codes("utterance.refused"), ["closed"]);
  const socket = await session.open();
  socket.nothingMore();
  assert.deepEqual([client.name, client.speaks, client.reads], ["Ana", null, ["fr"]]);
});

test("what an earlier session had is not asked of a later one", async () => {
  const session = new Session();
  const { client } = session;
  const unknown = refused("unsupported_language", { field: "reads[0]" });
  const starts = [];
  let socket = await session.open();
  await socket.lose();
  // It comes back with another model.
  for (const reads of [["de"], ["en"]]) {
    socket = await session.comes();
    const start = socket.take("session.start");
    starts.push([start.reads, start.resume === null]);
    await socket.say(unknown);
    assert.equal(client.state, "closed");
    assert.deepEqual(client.reads, start.reads);
    client.read(reads);
    client.connect();
  }
  socket = await session.comes();
  const start = await socket.start(ANOTHER);
  starts.push([start.reads, start.resume === null]);
  assert.deepEqual(starts, [
    [["fr"], false],
    [["de"], true],
    [["en"], true],
  ]);
});

test("a host says so at every start, and what it does goes out while there is a session", async () => {
  const session = new Session({ host: "secret", guest: "own", title: "Weekly" });
  const { client } = session;
  client.endMeeting(); // there is none yet
  const socket = await session.open();
  client.remove("p2");
  client.lock(true);
  client.mute("p2", true);
  client.entitle("Daily");
  client.endMeeting();
  assert.deepEqual(socket.take("participant.remove"), { type: "participant.remove", participant: "p2" });
  assert.deepEqual(socket.take("meeting.lock"), { type: "meeting.lock", locked: true });
  assert.deepEqual(socket.take("participant.mute"), { type: "participant.mute", participant: "p2", muted: true });
  assert.deepEqual(socket.take("meeting.title"), { type: "meeting.title", title: "Daily" });
  assert.deepEqual(socket.take("meeting.end"), { type: "meeting.end" });
  await socket.say({ type: "meeting.locked", locked: true });
  assert.deepEqual(session.of("meeting.locked"), [{ type: "meeting.locked", locked: true }]);
  await socket.lose(1006);
  await pass(20_000);
  const next = await session.comes();
  const { host, guest, title } = await next.start();
  assert.deepEqual([host, guest, title], ["secret", "own", "Weekly"]);
});
