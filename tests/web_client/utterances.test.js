// What is said with the JavaScript client: finals, partials, cancels. What the conformance kit plays is not here.

import assert from "node:assert/strict";
import { test } from "node:test";

import { caption, delta, failed, pass, refused, Session, settle, translated, updated } from "./gateway.js";

/** Say finals in English. */
async function say(session, ...texts) {
  const ids = texts.map((text) => session.client.final({ text, lang: "en" }));
  await settle();
  return ids;
}

// ---- corrections

test("a correction and what takes something back are sent, and queued, with what they replace", async () => {
  const session = new Session();
  session.client.final({ text: "", lang: "en", id: "b", replaces: "u1", participant: "before" });
  await settle();
  assert.deepEqual(session.of("utterance.queued"), [
    { type: "utterance.queued", id: "b", lang: "en", text: "", replaces: "u1" },
  ]);
  const socket = await session.open();
  const { id, text, replaces, participant } = socket.take("utterance.final");
  assert.deepEqual([id, text, replaces, participant], ["b", "", "u1", "before"]);
  assert.deepEqual(session.of("utterance.refused"), []);
});

// ---- finals

test("a final that is refused for a while is sent again, and none overtakes it", async () => {
  const session = new Session();
  await say(session, "One.", "Two.", "Three.");
  const socket = await session.open();
  for (const code of ["too_many_in_flight", "overloaded", "rate_limited"]) {
    const { id, text } = socket.take("utterance.final");
    assert.equal(text, "One.");
    await socket.say(refused(code, { utterance: id, retry_after_ms: 10 }));
    socket.nothingMore();
    await pass(100);
  }
  await socket.accept("One.");
  const { id } = socket.take("utterance.final");
  await socket.say(refused("limit_exceeded", { utterance: id }));
  await socket.accept("Three.");
  assert.deepEqual(session.codes("utterance.refused"), ["limit_exceeded"]);
  assert.deepEqual(session.of("error"), []);
});

test("what the gateway could not name in its refusal is not sent", async () => {
  const session = new Session();
  const socket = await session.open({ limits: { message_bytes: 1024, id_chars: 64 } });
  session.client.final({ text: "long ".repeat(210), lang: "en" });
  session.client.final({ text: "Odd.", lang: "en", id: "x".repeat(65) });
  await say(session, "Fine.");
  await socket.accept("Fine.");
  assert.deepEqual(session.codes("utterance.refused"), ["message_too_large", "message_too_large"]);
});

test("what waits is bounded, and what was taken stays", async () => {
  const session = new Session();
  for (let n = 0; n < 1000; n += 1) session.client.final({ text: `Number ${n}.`, lang: "en" });
  const last = session.client.final({ text: "One more.", lang: "en" });
  assert.deepEqual(session.heard, []); // not before the caller has the id that it is about
  await settle();
  assert.deepEqual(
    session.of("utterance.refused").map(({ id, code }) => [id, code]),
    [[last, "queue_full"]],
  );
});

test("a final without a session is queued until it is said or refused", async () => {
  const session = new Session();
  let socket = await session.open();
  await say(session, "One.");
  await socket.accept();
  assert.deepEqual([session.of("utterance.queued").length, session.client.unsent], [0, 0]);
  await socket.lose();
  const before = session.heard.length;
  const ids = ["Two.", "Three."].map((text) => session.client.final({ text, lang: "en" }));
  session.client.cancel(session.client.final({ text: "Never mind.", lang: "en" }));
  assert.deepEqual(
    session.heard.slice(before).map(({ type }) => type),
    ["utterance.refused"],
  );
  await settle();
  assert.deepEqual(
    session.of("utterance.queued").map(({ id, lang, text }) => [id, lang, text]),
    [
      [ids[0], "en", "Two."],
      [ids[1], "en", "Three."],
    ],
  );
  session.client.cancel(ids[0]);
  assert.equal(session.client.unsent, 1);
  socket = await session.comes();
  await socket.start();
  assert.equal((await socket.accept("Three.")).id, ids[1]);
  socket.nothingMore();
  assert.equal(session.client.unsent, 0);
  assert.equal(session.of("utterance.queued").length, 2);
});

test("a final that may have been lost waits, and says so once", async () => {
  const session = new Session();
  await session.open();
  await say(session, "One.");
  await session.again();
  const socket = await session.again();
  await socket.accept();
  const kinds = session.heard.map(({ type }) => type).filter((type) => type.startsWith("utterance"));
  assert.deepEqual(kinds, ["utterance.queued", "utterance.accepted"]);
});

test("a final said while the gateway is draining is queued", async () => {
  const session = new Session();
  const socket = await session.open();
  await socket.say({ type: "session.draining", deadline_ms: 1_000 });
  await say(session, "Too late?");
  socket.nothingMore();
  assert.deepEqual(
    session.of("utterance.queued").map(({ text }) => text),
    ["Too late?"],
  );
  await socket.say(refused("draining", { retry_after_ms: 10 }));
  await socket.lose(1012);
  assert.equal(session.of("state").at(-1).code, "draining");
});

// ---- cancels

test("what was never sent is refused at once when it is cancelled", async () => {
  const session = new Session();
  session.client.cancel(session.client.final({ text: "No.", lang: "en" }));
  assert.deepEqual(session.codes("utterance.refused"), ["cancelled"]);
  (await session.open()).nothingMore();
});

test("of what was sent the gateway says what becomes of it", async () => {
  const session = new Session();
  const socket = await session.open();
  const [one] = await say(session, "One.");
  const final = await socket.accept();
  session.client.cancel(one);
  socket.take("utterance.cancel");
  await socket.say(failed(final, "fr", 2, "cancelled"));
  // Sent in the same breath, and not accepted yet.
  const [two] = await say(session, "Two.");
  session.client.cancel(two);
  session.client.cancel(two);
  await socket.accept("Two.");
  assert.equal(socket.take("utterance.cancel").id, two);
  socket.nothingMore();
  assert.deepEqual([session.of("error"), session.of("utterance.refused")], [[], []]);
});

test("what is given up while offline is told when the session is resumed, and not said", async () => {
  const session = new Session();
  let socket = await session.open();
  const id = session.client.partial({ text: "We should", lang: "en" });
  await settle();
  await socket.say(caption(socket.take("utterance.partial")));
  await socket.lose();
  session.client.cancel(id);
  assert.deepEqual(session.codes("utterance.refused"), ["cancelled"]);
  socket = await session.comes();
  await socket.start();
  assert.equal(socket.take("utterance.cancel").id, id);
  socket.nothingMore();
  // Once it has arrived, it is not told again.
  await socket.say({ type: "utterance.cancelled", participant: "p1", utterance: id });
  (await session.again()).nothingMore();
});

test("a cancel that was lost on its way is told again", async () => {
  const session = new Session();
  let socket = await session.open();
  const [one] = await say(session, "One.");
  await socket.accept();
  session.client.cancel(one);
  const [two] = await say(session, "Two.");
  session.client.cancel(two);
  assert.equal(socket.take("utterance.cancel").id, one);
  socket.take("utterance.final");
  assert.equal(socket.take("utterance.cancel").id, two);
  socket = await session.again();
  // Whether it was accepted is not known: it is not said again.
  assert.deepEqual(session.codes("utterance.refused"), ["cancelled"]);
  const cancels = [socket.take("utterance.cancel"), socket.take("utterance.cancel")];
  assert.deepEqual(
    cancels.map(({ id }) => id),
    [one, two],
  );
  await socket.say(refused("unknown_utterance", { utterance: two }));
  await socket.say(refused("rate_limited", { utterance: one, retry_after_ms: 10 }));
  await pass(100);
  assert.equal(socket.take("utterance.cancel").id, one);
  await socket.say(refused("unknown_utterance", { utterance: one }));
  await say(session, "Three.");
  await socket.accept("Three.");
  assert.deepEqual(session.of("error"), []);
});

// ---- partials

test("of partials that come fast the newest is sent, and none behind the final", async () => {
  const session = new Session({ speaks: "en" });
  const socket = await session.open();
  const { client } = session;
  const id = client.partial({ text: "Go" });
  client.partial({ id, text: "Good" });
  await settle();
  for (const text of ["Good mor", "Good morning"]) client.partial({ id, text });
  await pass(250);
  client.partial({ id, text: "Good morning every" });
  assert.equal(client.final({ id, text: "Good morning, everyone." }), id);
  client.partial({ id, text: "Good morning every bo" });
  await pass(1_000);
  const revisions = ["partial", "partial", "final"].map((kind) => socket.take(`utterance.${kind}`));
  assert.deepEqual(
    revisions.map(({ rev, text }) => [rev, text]),
    [
      [1, "Good"],
      [2, "Good morning"],
      [3, "Good morning, everyone."],
    ],
  );
  socket.nothingMore();
});

test("an empty partial withdraws what was not sent yet", async () => {
  const session = new Session({ speaks: "en" });
  const { client } = session;
  const id = client.partial({ text: "Never mind" });
  client.partial({ id, text: " " });
  const another = client.partial({ text: "Good morn" });
  client.final({ id: another, text: "Good morning." });
  const socket = await session.open();
  assert.equal((await socket.accept("Good morning.")).rev, 1);
  client.final({ id, text: "Good evening." });
  await settle();
  assert.equal((await socket.accept("Good evening.")).rev, 1);
  socket.nothingMore();
});

test("after a lost connection the newest partial is sent, and its translation begins again", async () => {
  const session = new Session({ speaks: "en" });
  const { client } = session;
  let socket = await session.open();
  const id = client.partial({ text: "Good" });
  await settle();
  const revisions = [];
  const shown = async () => {
    const partial = socket.take("utterance.partial");
    revisions.push([partial.rev, partial.text]);
    await socket.say(caption(partial), delta(partial, "fr", "Bon"));
  };
  await shown();
  // Said while the connection breaks off, and while there is none.
  const stop = client.listen(({ state }) => {
    if (state === "reconnecting") client.partial({ id, text: "Good morning" });
  });
  await socket.lose();
  stop();
  client.partial({ id, text: "Good morning all" });
  socket = await session.comes();
  await socket.start();
  await shown();
  socket = await session.again();
  await shown();
  client.final({ id, text: "Good morning, all." });
  await settle();
  const final = await socket.accept();
  await socket.say(translated(final, "fr", "Bonjour à tous.", 3));
  assert.deepEqual(revisions, [
    [1, "Good"],
    [2, "Good morning all"],
    [3, "Good morning all"],
  ]);
  assert.equal(final.rev, 4);
  const told = session.heard.map(({ type }) => type).filter((type) => /^(session|translation)/.test(type));
  const once = ["session.started", "translation.delta"];
  assert.deepEqual(told, [...once, ...once, ...once, "translation.final"]);
});

test("what a host has muted does not come back with the connection, unless it goes on", async () => {
  const session = new Session();
  let socket = await session.open();
  const say = (/** @type {string} */ text) => session.client.partial({ text, lang: "en", id: "u1" });
  say("I would");
  await settle();
  socket.take("utterance.partial");
  say("I would like");
  await socket.say({ type: "session.muted", muted: true });
  await pass(1_000);
  await socket.say({ type: "session.muted", muted: false });
  socket.nothingMore();
  socket = await session.again();
  socket.nothingMore();
  say("I would like to add");
  await settle();
  assert.equal(socket.take("utterance.partial").text, "I would like to add");
  await socket.lose();
  socket = await session.comes();
  await socket.start({ muted: true });
  socket.nothingMore();
});

test("a partial that is refused is dropped, and the final behind it is not", async () => {
  const session = new Session({ speaks: "en" });
  const { client } = session;
  const socket = await session.open();
  let id = client.partial({ text: "Good" });
  await settle();
  await socket.say(refused("rate_limited", { utterance: socket.take("utterance.partial").id, retry_after_ms: 10 }));
  client.partial({ id, text: "Good morning" });
  await pass(250);
  assert.equal(socket.take("utterance.partial").rev, 2);
  client.final({ id, text: "Good morning." });
  await settle();
  let final = await socket.accept();
  // As if it had been under way when the final was sent.
  await socket.say(refused("stale_revision", { utterance: id }), translated(final, "fr", "Bonjour.", 3));

  id = client.partial({ text: "Bye" });
  await settle();
  client.final({ id, text: "Goodbye." });
  await settle();
  socket.take("utterance.partial");
  final = socket.take("utterance.final");
  await socket.say(refused("limit_exceeded", { utterance: id }));
  assert.deepEqual(await socket.accept(), final);
  assert.deepEqual([session.of("error"), session.of("utterance.refused")], [[], []]);

  // What was answered already cannot be what is refused.
  id = client.partial({ text: "One" });
  await settle();
  await socket.say(caption(socket.take("utterance.partial")));
  client.final({ id, text: "One more." });
  await settle();
  socket.take("utterance.final");
  await socket.say(refused("limit_exceeded", { utterance: id }));
  assert.deepEqual(session.codes("utterance.refused"), ["limit_exceeded"]);
});

test("a refusal of a partial that was given up is no news", async () => {
  const session = new Session({ speaks: "en" });
  const { client } = session;
  const socket = await session.open();
  const id = client.partial({ text: "Good" });
  await settle();
  await socket.say(caption(socket.take("utterance.partial")));
  client.cancel(id);
  assert.equal(socket.take("utterance.cancel").id, id);
  client.setStability("stable");
  await settle();
  socket.take("session.update");
  await socket.say(refused("rate_limited", { utterance: id, retry_after_ms: 10 }), updated(["fr"], "en", "stable"));
  assert.deepEqual([session.codes("utterance.refused"), session.of("error")], [["cancelled"], []]);
});

// ---- any order of losses

/** Numbers from 0 to 1 that are the same in each run. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

for (const seed of Array.from({ length: 20 }, (_, n) => n + 1)) {
  test(`however often the connection breaks, each final is accepted in order (seed ${seed})`, async () => {
    const random = numbers(seed);
    const session = new Session({ speaks: "en" });
    const accepted = new Map();
    let socket = await session.open();
    const said = [];
    for (let rounds = 0; rounds < 400 && accepted.size < 25; rounds += 1) {
      if (said.length < 25 && random() < 0.5) {
        const id = random() < 0.5 ? session.client.partial({ text: "Number" }) : undefined;
        said.push(`Number ${said.length}.`);
        session.client.final({ id, text: said.at(-1) });
        await settle();
      }
      let message;
      while ((message = socket.next()) !== undefined) {
        if (message.type !== "utterance.final") continue;
        const { id, rev, text } = message;
        if (random() < 0.2) {
          await socket.say(refused("overloaded", { utterance: id, retry_after_ms: 1 }));
          continue;
        }
        assert.equal(accepted.get(id) ?? text, text);
        accepted.set(id, text);
        if (random() < 0.7) await socket.say({ type: "utterance.accepted", id, rev, offset: accepted.size });
      }
      if (random() < 0.2) socket = await session.again();
      await pass(50);
    }
    assert.deepEqual([...accepted.values()], said);
    assert.equal(said.length, 25);
  });
}

// ---- what ends badly

/** What a socket was sent, as `type:text`. */
function sentOn(socket) {
  const sent = [];
  for (let message = socket.next(); message !== undefined; message = socket.next())
    sent.push(message.type.replace("utterance.", "") + (message.text === undefined ? "" : `:${message.text}`));
  return sent;
}

for (const code of ["invalid_message", "message_too_large"])
  test(`a refusal that names no utterance blocks nothing: ${code}`, async () => {
    const session = new Session();
    const socket = await session.open();
    session.client.partial({ text: "On", lang: "en", id: "u1" });
    await settle();
    session.client.final({ text: "One.", lang: "en", id: "u1" });
    await say(session, "Two.");
    assert.deepEqual(sentOn(socket), ["partial:On", "final:One."]);
    await socket.say(refused(code));
    assert.deepEqual(sentOn(socket), ["final:One."]); // it may have been about another frame
    await socket.say(refused(code));
    assert.deepEqual(sentOn(socket), ["cancel", "final:Two."]);
    await socket.say({ type: "utterance.accepted", id: "u2", rev: 1, offset: 1 });
    assert.deepEqual(
      session.of("utterance.refused").map(({ id, code }) => [id, code]),
      [["u1", code]],
    );
    assert.deepEqual(session.of("error"), []);
  });

test("a final without text cancels what was begun, and nothing else", async () => {
  const session = new Session();
  const socket = await session.open();
  session.client.partial({ text: "We", lang: "en", id: "u1" });
  await settle();
  assert.equal(session.client.final({ text: " ", lang: "en", id: "u1" }), "u1");
  const ids = await say(session, "", "Yes.");
  assert.deepEqual(sentOn(socket), ["partial:We", "cancel", "final:Yes."]);
  await socket.say({ type: "utterance.accepted", id: ids[1], rev: 1, offset: 1 });
  session.client.final({ text: "", lang: "en", id: ids[1] }); // as some recognisers do
  await settle();
  socket.nothingMore();
  assert.deepEqual(
    session.of("utterance.refused").map(({ id, code }) => [id, code]),
    [
      ["u1", "cancelled"],
      [ids[0], "cancelled"],
    ],
  );
});

test("a final that cannot be sent takes its partial along", async () => {
  const session = new Session();
  const socket = await session.open({ limits: { message_bytes: 1024, id_chars: 64 } });
  session.client.partial({ text: "We", lang: "en", id: "u1" });
  await settle();
  session.client.final({ text: "long ".repeat(210), lang: "en", id: "u1" });
  await settle();
  assert.deepEqual(sentOn(socket), ["partial:We", "cancel"]);
});

test("a partial that is what it was is not sent, unless it may have been lost", async () => {
  const session = new Session();
  let socket = await session.open();
  const hear = async (text) => {
    session.client.partial({ text, lang: "en", id: "u1" });
    await pass(300);
  };
  for (const text of ["We", "We", "We will", "We", "We"]) await hear(text);
  assert.deepEqual(sentOn(socket), ["partial:We", "partial:We will", "partial:We"]);
  await socket.say(refused("rate_limited", { utterance: "u1" }));
  await hear("We");
  assert.deepEqual(sentOn(socket), ["partial:We"]);
  socket = await session.again();
  assert.deepEqual(sentOn(socket), ["partial:We"]);
});

test("what is sent can be read: whole characters, whole milliseconds", async () => {
  const session = new Session();
  const socket = await session.open();
  session.client.setOptions({ glossary: { fr: { "launch\ud83d": "x" } } });
  await settle();
  assert.deepEqual(socket.take("session.update").glossary, { fr: { "launch\ufffd": "x" } });
  await socket.say(updated({}));
  const times = [
    [0.4, 2.5],
    [-1, 5],
    [9, 1],
    [NaN, 1],
    [0, 1e300],
    [undefined, 7],
  ];
  for (const [start_ms, end_ms] of times) {
    session.client.final({ text: "half \ud83d 😀", lang: "en", id: "\udc00", start_ms, end_ms });
    await settle();
    const { id, text, ...sent } = await socket.accept();
    assert.deepEqual([id, text], ["\ufffd", "half \ufffd 😀"]);
    const isGood = start_ms === 0.4 || end_ms === 7;
    assert.deepEqual(
      [sent.start_ms, sent.end_ms],
      isGood ? [start_ms && 0, Math.round(end_ms)] : [undefined, undefined],
    );
  }
  assert.equal(session.client.unsent, 0);
});
