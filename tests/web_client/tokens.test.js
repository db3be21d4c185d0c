// Tokens of the JavaScript client: asked for at every attempt, refreshed before they end, and never shown.

import assert from "node:assert/strict";
import { test } from "node:test";

import { pass, refused, Session, settle, updated } from "./gateway.js";

/** A session with a source of tokens no two of which are the same. */
class Visit extends Session {
  constructor(options = {}) {
    super({ token: () => this.#give(), ...options });
  }

  asked = 0;
  hangs = false;
  /** What is thrown instead of a token, the first one first. @type {any[]} */
  fails = [];

  async #give() {
    this.asked += 1;
    if (this.hangs) await new Promise(() => {});
    if (this.fails.length > 0) throw this.fails.shift();
    return `secret-${this.asked}`;
  }
}

const EXPIRING = { type: "token.expiring", expires_in_ms: 60_000 };
const REFRESHED = { type: "session.refreshed", expires_in_ms: 600_000 };

for (const [options, tokens] of [
  [{}, ["secret-1", "secret-2"]],
  [{ token: "secret" }, ["secret", "secret"]],
]) {
  test(`every connection has a token, which only the gateway is told: ${tokens[0]}`, async () => {
    const session = new Visit(options);
    session.client.connect();
    for (const token of tokens) {
      const socket = await session.comes();
      assert.equal((await socket.start()).token, token);
      assert.equal(socket.url, "ws://gateway.example/v1/stream");
      await socket.lose();
    }
    assert.ok(!JSON.stringify([session.heard, session.client]).includes("secret"));
  });
}

test("without tokens there is none in a start", async () => {
  const session = new Session();
  session.client.connect();
  const socket = await session.comes();
  assert.ok(!("token" in (await socket.start())));
});

test("a start that is repeated has another token", async () => {
  const session = new Visit();
  session.client.connect();
  const socket = await session.comes();
  assert.equal(socket.take("session.start").token, "secret-1");
  await socket.say(refused("engine_unavailable", { retry_after_ms: 10 }));
  await pass(100);
  assert.equal((await socket.start()).token, "secret-2");
});

for (const [source, token, tokens] of [
  ["async", undefined, ["secret-2", "secret-3"]],
  ["sync", () => "secret", ["secret", "secret"]],
  ["string", "secret", ["secret", "secret"]],
]) {
  test(`a session is refreshed unnoticed, from a source that is ${source}`, async () => {
    const session = new Visit(token && { token });
    const socket = await session.open();
    for (const each of tokens) {
      await socket.say(EXPIRING);
      assert.equal(socket.take("session.refresh").token, each);
      await socket.say(REFRESHED);
    }
    assert.deepEqual([session.states, session.of("error")], [["connecting", "open"], []]);
    assert.ok(!JSON.stringify(session.heard).includes("secret"));
  });
}

test("a refresh that fails is tried again, and the session goes on", async () => {
  const session = new Visit();
  const socket = await session.open();
  session.fails.push(new Error("Down."));
  await socket.say({ ...EXPIRING, expires_in_ms: 600_000 });
  socket.nothingMore();
  session.client.final({ text: "One.", lang: "en" });
  await settle();
  await socket.accept();
  const tokens = [];
  for (const code of ["unauthenticated", "forbidden", null]) {
    await pass(4_000);
    tokens.push(socket.take("session.refresh").token);
    await socket.say(code === null ? REFRESHED : refused(code));
  }
  await pass(60_000);
  socket.nothingMore();
  assert.deepEqual(tokens, ["secret-3", "secret-4", "secret-5"]);
  assert.deepEqual([session.states, session.of("error")], [["connecting", "open"], []]);
});

test("what else is refused during a refresh is told", async () => {
  const session = new Visit();
  const socket = await session.open();
  await socket.say(EXPIRING);
  session.client.read(["de"]);
  await settle();
  socket.take("session.refresh");
  socket.take("session.update");
  await socket.say(refused("forbidden", { field: "reads[0]" }), REFRESHED);
  assert.deepEqual(
    session.of("error").map(({ field }) => field),
    ["reads[0]"],
  );
  assert.deepEqual(session.client.reads, ["fr"]);
});

test("when its time is over the session is resumed, and only the state tells", async () => {
  const session = new Visit();
  const socket = await session.open();
  await socket.say(refused("token_expired"));
  await socket.lose(4401);
  await (await session.comes()).start();
  const states = session.of("state").map(({ state, code }) => [state, code]);
  assert.deepEqual(states.slice(2), [
    ["reconnecting", "token_expired"],
    ["connecting", ""],
    ["open", ""],
  ]);
  assert.deepEqual(session.of("error"), []);
});

for (const [code, status, isStarted] of [
  ["unauthenticated", 4501, false],
  ["token_revoked", 4503, false],
  ["token_revoked", 4503, true],
  ["meeting_ended", 4505, true],
  ["removed", 4503, true],
]) {
  test(`without access it is over: ${code}, ${isStarted ? "in" : "before"} a session`, async () => {
    const session = new Visit();
    session.client.connect();
    const socket = await session.comes();
    if (isStarted) await socket.start();
    await socket.say(refused(code));
    await socket.lose(status);
    await pass(60_000);
    const { state, reason, ...told } = session.of("state").at(-1);
    assert.deepEqual([state, told.code, reason], ["closed", code, `No: ${code}.`]);
    assert.deepEqual([session.asked, session.sockets.length], [1, 1]);
  });
}

for (const code of ["meeting_ended", "removed"]) {
  test(`after ${code} nothing reconnects, also where a proxy eats the close code`, async () => {
    const session = new Visit();
    const socket = await session.open();
    await socket.say(refused(code));
    await socket.lose(1006);
    await pass(60_000);
    assert.deepEqual(session.of("state").at(-1).code, code);
    assert.deepEqual([session.states.at(-1), session.sockets.length, session.of("error")], ["closed", 1, []]);
  });
}

test("no access is not taken for a setting that is refused", async () => {
  const session = new Visit({ name: "Ana" });
  await session.open();
  session.client.rename("Bo");
  await settle();
  const socket = await session.comes();
  socket.take("session.start");
  await socket.say(refused("unauthenticated"));
  await socket.lose(4501);
  assert.deepEqual([session.client.state, session.client.name, session.asked], ["closed", "Bo", 2]);
});

test("a source that fails is a failed attempt, and its words are not told", async () => {
  const session = new Visit();
  // What an answer that cannot be parsed complains about may be the token itself.
  session.fails.push(new SyntaxError('"secret" is not valid JSON'), "gone");
  session.client.connect();
  session.client.connect();
  const socket = await session.comes();
  assert.equal((await socket.start()).token, "secret-3");
  const failed = [
    ["connecting", ""],
    ["reconnecting", "token_unavailable"],
  ];
  assert.deepEqual(
    session.of("state").map(({ state, code }) => [state, code]),
    [...failed, ...failed, ["connecting", ""], ["open", ""]],
  );
  assert.ok(!JSON.stringify(session.heard).includes("secret"));
});

test("a source that does not answer is asked again", async () => {
  const session = new Visit();
  session.hangs = true;
  session.client.connect();
  await pass(29_000);
  assert.deepEqual([session.client.state, session.asked], ["connecting", 1]);
  session.hangs = false;
  const socket = await session.comes();
  assert.equal((await socket.start()).token, "secret-2");
});

test("a source without hope ends it with its reason", async () => {
  const session = new Visit();
  session.fails.push(Object.assign(new Error("The subscription has ended."), { permanent: true }));
  session.client.connect();
  session.client.final({ text: "One.", lang: "en" });
  await pass(60_000);
  const { state, code, reason } = session.of("state").at(-1);
  assert.deepEqual([state, code, reason], ["closed", "token_unavailable", "The subscription has ended."]);
  assert.deepEqual(session.codes("utterance.refused"), ["closed"]);
  assert.deepEqual([session.asked, session.sockets.length], [1, 0]);
});

test("a token that comes after close opens nothing", async () => {
  const session = new Visit();
  session.client.connect();
  session.client.close();
  await session.open();
  assert.deepEqual([session.asked, session.sockets.length], [2, 1]);
});

test("an update is sent with what a start with a token leaves out", async () => {
  const session = new Visit({ context: "Sales." });
  session.client.connect();
  const socket = await session.comes();
  assert.ok(!("context" in (await socket.start())));
  assert.equal(socket.take("session.update").context, "Sales.");
  await socket.say(updated(["fr"], null, "live"));
  socket.nothingMore();
});
