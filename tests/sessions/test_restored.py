"""What the log tells the next process of a session, and of a meeting that is not finished."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.grants import OPEN, Grant
from gateway.domain.log import LoggedEvent, Said, Timings, Translated, Untranslated, Utterance
from gateway.domain.sessions import KeptSession
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.sessions.machine import State
from gateway.sessions.restored import recalled
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.logs import append
from tests.sessions.desk import Connection

ANA = Grant(tenant="acme", subject="ana", roles=frozenset({"speak"}), meeting="m", speaks=frozenset({"en"}))


def said(id: str, *languages: str, participant: str = "ana") -> Said:
    return Said(Utterance(id, 1, f"{id}.", "en", participant, "Ana", final=True), languages)


def done(id: str, lang: str, participant: str = "ana") -> Translated:
    return Translated(participant, id, "Ana", lang, 1, "…", Timings(0.0, 0.0, 0.0), tokens=1, said=1)


def failed(id: str, lang: str) -> Untranslated:
    return Untranslated("ana", id, "Ana", lang, 1, "engine_failed", "The engine failed.", said=1)


def kept(grant: Grant = OPEN) -> KeptSession:
    return KeptSession("ana", "m", False, "Ana", "en", ("de",), session="s", left_s=60.0, grant=grant)


async def state_after(*events: LoggedEvent, grant: Grant = OPEN) -> Connection:
    log = MemoryEventLog(MemoryStore(max_publications=99, keep_s=60, max_bytes=10**6))
    for event in events:
        await append(log, "m", event)
    connection = Connection(Limits())
    connection.state = await recalled(Room("m", log, private=False, snapshot=1), kept(grant), Limits())
    return connection


async def test_the_session_is_the_one_that_was_kept() -> None:
    state = (await state_after(grant=ANA)).state
    assert (state.participant, state.grant, state.state) == ("ana", ANA, State.AWAITING_START)


@pytest.mark.parametrize(
    ("events", "in_flight", "is_failed"),
    [
        ([said("u", "de", "fr")], True, False),
        ([said("u", "de", "fr"), done("u", "de")], True, False),
        ([said("u", "de", "fr"), done("u", "de"), done("u", "fr")], False, False),
        ([said("u", "de", "fr"), done("u", "de"), failed("u", "fr")], False, True),
        # What failed in one language and is open in another has not failed yet.
        ([said("u", "de", "fr"), failed("u", "de")], True, False),
        ([said("u", "de"), failed("u", "de"), done("u", "de")], False, False),
        ([said("u")], False, False),
    ],
)
async def test_what_became_of_an_utterance(events: list[Any], in_flight: bool, is_failed: bool) -> None:
    state = (await state_after(*events)).state
    utterance = state._known.get("u")
    assert utterance is not None
    assert utterance.is_final_as("u.")
    assert (state.in_flight, utterance.failed) == (int(in_flight), is_failed)


async def test_what_others_said_is_not_the_sessions() -> None:
    others: list[LoggedEvent] = [
        said("u", "de", participant="bo"),
        done("u", "de", participant="bo"),
        said("v", participant="bo"),
    ]
    state = (await state_after(*others)).state
    assert (state._known.get("u"), state._known.get("v"), state.in_flight) == (None, None, 0)
