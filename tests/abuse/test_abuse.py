"""One rude client, and an honest session beside it that must not notice: `make abuse` has the figures.

How long the honest session waits depends on the machine: only `make abuse`, which runs alone, asserts it.
Attacks that last until the gateway closes them are `long`: tests/server/guard has the same bounds without waiting.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest

from gateway.client import connect
from gateway.protocol.codec import MSGPACK
from gateway.protocol.messages import Error, TranslationFinal
from tests.keys import Keyring
from tests.over_http import NO_TLS
from tests.patience import PATIENCE_MS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MIB = 2**20
# What others may wait for a session beside texts over HTTP.
MOST_JOIN_MS = 20.0
# The gateway closes an offender after about ten seconds; on a busy machine later.
PATIENCE_S = PATIENCE_MS / 1_000


@pytest.mark.long
@pytest.mark.parametrize("flood", ["pings", "pongs", "messages", "fragments", "bytes"])
async def test_one_that_never_stops_sending_is_closed(scene: Any, flood: str) -> None:
    async with scene() as it:
        found = await it.attacked(flood, PATIENCE_S)
        assert found["closed after s"] is not None
        assert it.gateway.metric('gateway_errors_total{code="rate_limited"}') > 0
        assert found["grown"] < 20 * MIB


@pytest.mark.long
async def test_pings_whose_pongs_nobody_reads_take_no_memory(scene: Any) -> None:
    async with scene() as it:
        assert (await it.attacked("unread pongs"))["grown"] < 20 * MIB


@pytest.mark.long
@pytest.mark.parametrize(("attack", "status"), [("endless head", "431"), ("endless address", "414")])
async def test_a_head_without_end_is_refused(scene: Any, attack: str, status: str) -> None:
    async with scene() as it:
        found = await it.attacked(attack)
        assert found["sent"] < 20 * MIB
        assert found["grown"] < 20 * MIB
        # The answer may be lost with the connection, which is reset because the rest was not read.
        assert status in found["answer"] or not found["answer"]


@pytest.mark.long
async def test_silent_connections_lock_nobody_out(scene: Any) -> None:
    async with scene() as it:
        attack = asyncio.create_task(it.attacked("silent connections"))
        async with httpx.AsyncClient(verify=NO_TLS) as client:
            while not attack.done():
                assert (await client.get(f"{it.gateway.url}/healthz")).status_code == 200
                await asyncio.sleep(0.1)
        async with connect(it.gateway.url, meeting="honest", reads=[]):
            pass
        assert (await attack)["closed"] >= 500


async def test_unfinished_speech_is_kept_within_bounds(scene: Any) -> None:
    # A quarter of the log's bytes; the figures are those of the log as it comes.
    env = None if "ABUSE_OUT" in os.environ else {"GATEWAY__EVENT_LOG__MAX_BYTES": str(16 * MIB)}
    async with scene(env) as it:
        found = await it.attacked("unfinished emoji")
        assert found["grown"] < (60 if env else 128) * MIB


async def test_what_nobody_reads_pushes_out_only_its_own(scene: Any) -> None:
    # In a short test, a small log; the figures are those of the log as it comes.
    env = None if "ABUSE_OUT" in os.environ else {"GATEWAY__EVENT_LOG__MAX_BYTES": str(8 * MIB)}
    async with scene(env) as it:
        for n in range(3):
            await it.honest.session.final(f"Sentence {n}.")
        await it.honest.until(TranslationFinal, 3)
        found = await it.attacked("utterances nobody reads", 12 if env is None else 2)
        assert found["utterances"] > 100
        text = await asyncio.to_thread(it.gateway.get, "/v1/meetings/honest/transcript.txt?lang=ja")
        assert all(f"Sentence {n}." in text for n in range(3))


async def test_joins_push_out_no_session_of_others(scene: Any) -> None:
    # In a short test, a gateway that is full soon.
    env = None if "ABUSE_OUT" in os.environ else {"GATEWAY__MAX_SESSIONS": "200"}
    async with scene(env) as it:
        found = await it.attacked("joins")
        assert found["begun"] <= 1_100
        # Its connection is lost; the client resumes by itself.
        await it.honest.session.drop()
        await it.honest.session.final("Still here.")
        await it.honest.until(TranslationFinal, 1)
        assert it.honest.session.started.recovered


async def test_a_crowd_of_private_meetings_leaves_others_their_turns(scene: Any) -> None:
    # 35 sentences at once may take longer than is waited for otherwise; without turns they would take minutes.
    async with scene({"GATEWAY__MAX_QUEUE_S": "60"}) as it:
        attack = asyncio.create_task(it.attacked("crowd", 4))
        await asyncio.sleep(2)
        for n in range(35):
            await it.honest.session.final(f"Sentence {n}.")
        await it.honest.until(TranslationFinal, 35)
        await attack
        codes = [event.code for event in it.honest.events if isinstance(event, Error)]
        it.note("crowd", **{"honest refused, times": codes.count("overloaded")})
        assert "overloaded" not in codes


@pytest.mark.parametrize(
    ("attack", "workers"),
    [
        *((attack, None) for attack in ("60 say much", "100 say much", "100 take back", "100 change")),
        ("60 say much", 2),
        ("100 change", 2),
    ],
)
async def test_a_meeting_that_costs_much_waits_itself(scene: Any, attack: str, workers: int | None) -> None:
    async with scene(workers=workers) as it:
        await it.alone()
        found = await it.attacked(attack, row=f"{attack}, {workers} workers" if workers else attack)
        assert found["finals accepted"] == int(attack.split()[0])
        await it.honest.unharmed()


async def test_a_number_that_not_everybody_can_hold_reaches_nobody(scene: Any) -> None:
    async with scene(codec=MSGPACK) as it:
        for n in range(3):
            await it.honest.session.final(f"Sentence {n}.")
        await it.honest.until(TranslationFinal, 3)
        found = await it.attacked("numbers")
        assert found["answers"] == {"invalid_message": found["sent"]}
        await it.honest.unharmed()
        said = [f"Sentence {n}." for n in range(3)] + ["Still here."]
        async with connect(it.gateway.url, meeting="honest", reads=["ja"], codec=MSGPACK) as later:
            async for event in later:
                if isinstance(event, TranslationFinal):
                    assert event.text == f"[ja] {said.pop(0)}"
                if not said:
                    break


async def test_what_failed_long_ago_is_sent_again_without_end(scene: Any) -> None:
    async with scene() as it:
        found = await it.attacked("old finals")
        assert found["accepted"] + found["refused"] >= found["sent"]
        assert found["accepted"] > 0
        # Each was translated again until it was cancelled again.
        assert found["cancelled"] > 0
        await it.honest.unharmed()


@pytest.mark.parametrize(
    ("attack", "answers"),
    [("foreign pages", {"421", "4504", "403"}), ("malformed", {"4504", "403", "400", "1007"})],
)
async def test_what_is_refused_at_the_door_leaves_no_trace(scene: Any, attack: str, answers: set[str]) -> None:
    async with scene() as it:
        lines = it.gateway.said.count("\n")
        found = await it.attacked(attack)
        assert found["answers"].keys() == answers
        # Otherwise anybody could fill a disk.
        assert it.gateway.said.count("\n") < lines + 40 + sum(found["answers"].values()) / 10
        assert found["grown"] < 20 * MIB
        await it.honest.unharmed()


async def test_documents_and_transcripts_are_cheap(scene: Any) -> None:
    async with scene() as it:
        for n in range(20):
            await it.honest.session.final(f"Sentence {n}.")
        await it.honest.until(TranslationFinal, 20)
        for attack in ("openapi", "transcripts"):
            assert (await it.attacked(attack))["mb"] > 0


# ---------------------------------------------------------------- texts over HTTP


@pytest.mark.parametrize("connections", [64, 200])
@pytest.mark.parametrize("roles", [{"read"}, {"speak", "read"}], ids=["may not", "may"])
async def test_texts_with_tags_hold_up_no_joins(
    scene: Any, connections: int, roles: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where their token may have them translated, and where it may not: another tenant's joins go on."""
    keys = Keyring(tmp_path)
    monkeypatch.setenv("TOKEN", keys.token(roles=frozenset(roles)))
    name = f"texts with tags, {connections}"
    row = f"{name}, {'refused' if roles == {'read'} else 'allowed'}"
    env = {"GATEWAY__AUTH__KEYS_FILE": str(keys.path)}
    honest: dict[str, Any] = {"tenant": "honest", "meeting": "honest"}
    async with scene(env, token=keys.token(**honest)) as it:

        async def join_ms() -> float:
            """How long one more session of the honest tenant takes to begin."""
            began_s = time.monotonic()
            async with connect(it.gateway.url, meeting="honest", reads=[], token=keys.token(**honest)):
                return (time.monotonic() - began_s) * 1_000

        alone_ms = [await join_ms() for _ in range(20)]
        attack, joins_ms = asyncio.create_task(it.attacked(name, row=row)), list[float]()
        while not attack.done():
            joins_ms.append(await join_ms())
            await asyncio.sleep(0.05)
        figures = f"{median(alone_ms):.1f} alone, {median(joins_ms):.1f} beside, {len(joins_ms)} joins"
        it.note(row, **{"join p50, ms": figures})
        answers = (await attack)["answers"]
        # Where they are looked into: longer than a text may be, or more of them than wait.
        assert set(answers) <= ({"403"} if roles == {"read"} else {"400", "429"})
        if "ABUSE_OUT" in os.environ:
            assert median(joins_ms) < MOST_JOIN_MS
        await it.honest.unharmed()
