"""A meeting that is not recorded, at two gateways on one store: who decides it, and what newcomers get."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.errors import Forbidden, InvalidValue
from gateway.domain.sessions import Handover
from gateway.protocol.messages import Caption, TranslationFinal
from gateway.stores.memory_log import MemoryStore
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from tests.sessions.desk import ANA, Desk, desk, joined, resume_of
from tests.sessions.two_gateways import says
from tests.translation.stage import Log, idle, until
from tests.usual import usual

KEPT_S = 5.0
# The stage has a meeting `m` of its own.
BOARD: dict[str, Any] = {"meeting": "board"}


class Two:
    here: Desk
    there: Desk

    def __init__(self) -> None:
        self.now_s = 0.0
        self.store = usual(MemoryStore, unrecorded_s=KEPT_S, wall_clock=lambda: self.now_s)

    async def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        await self.here.core.log.sweep()
        await idle()


@contextlib.asynccontextmanager
async def two() -> AsyncIterator[Two]:
    both = Two()
    session_store = usual(MemorySessions, keep_s=60, wall_clock=lambda: both.now_s)
    both.store.fence_of = session_store.fence_of
    async with (
        desk(log=Log(store=both.store), session_store=MemorySessionStore(session_store)) as both.here,
        desk(log=Log(store=both.store), session_store=MemorySessionStore(session_store)) as both.there,
    ):
        yield both


async def heard(connection: Any) -> list[str]:
    messages = await connection.received()
    return [message.text for message in messages if isinstance(message, Caption | TranslationFinal)]


async def translates(d: Desk, text: str) -> None:
    await until(d.core.engine.pending)
    d.core.engine.says(text)
    await idle()


async def test_latecomers_see_only_what_follows() -> None:
    async with two() as g:
        ana, to_ana = await joined(g.here, **BOARD, speaks="en", reads=["de"], record=False)
        bo, to_bo = await joined(g.there, **BOARD, reads=["de"])
        assert not ana.session.room.recorded
        assert not bo.session.room.recorded
        await says(g.here, ana, to_ana, "One.")
        await translates(g.here, "Eins.")
        assert await heard(to_bo) == ["Eins."]
        # It is still in the store, for whoever has lost their connection, and for nobody else.
        cem, to_cem = await joined(g.there, **BOARD, reads=["de", "en"])
        assert await heard(to_cem) == []
        await says(g.here, ana, to_ana, "Two.")
        await translates(g.here, "Zwei.")
        assert await heard(to_cem) == ["Two.", "Zwei."]
        # The gateways hold nothing of it either.
        for entry in (ana, bo, cem):
            assert not entry.session.room.history.said_by(ana.session.member.participant)
        await g.pass_time(2 * KEPT_S)
        assert "Two." not in repr((g.store.logs.dump(), g.store.meetings))


async def test_lost_connection_resumes_while_entries_are_kept() -> None:
    async with two() as g:
        ana, to_ana = await joined(g.here, **BOARD, speaks="en", record=False)
        bo, _ = await joined(g.here, **BOARD, reads=["de"])
        g.here.sessions.local.away(bo.session, bo.feed)
        await says(g.here, ana, to_ana, "One.")
        await translates(g.here, "Eins.")
        again, to_bo = await joined(g.there, **BOARD, reads=["de"], resume=resume_of(bo))
        assert (again.recovered, await heard(to_bo)) == (True, ["Eins."])
        g.there.sessions.local.away(again.session, again.feed)
        await g.pass_time(2 * KEPT_S)
        late, to_bo = await joined(g.there, **BOARD, reads=["de"], resume=resume_of(bo))
        assert (late.recovered, await heard(to_bo)) == (False, []), "told that it has missed something"


@pytest.mark.parametrize("first", [True, False])
async def test_contrary_recording_request_is_refused(first: bool) -> None:
    async with two() as g:
        await joined(g.here, **BOARD, record=first)
        for d in (g.here, g.there):
            with pytest.raises(InvalidValue, match="not recorded" if not first else "is recorded") as refused:
                await d.join(**BOARD, record=not first)
            assert refused.value.field == "record"
            assert (await d.session_store.counts("default")).sessions == 1
        await joined(g.there, **BOARD, record=first)


async def test_what_a_token_says_decides_and_cannot_be_overruled() -> None:
    async with two() as g:
        silent = replace(ANA, record=False)
        with pytest.raises(Forbidden) as refused:
            await g.here.join(grant=silent, record=True)
        assert refused.value.field == "record"
        entry, _ = await joined(g.here, grant=silent)
        assert not entry.session.room.recorded
        # A token that says nothing joins as it is.
        entry, _ = await joined(g.there, grant=replace(ANA, subject="bo", token_id="t2"))
        assert not entry.session.room.recorded
        with pytest.raises(Forbidden):
            await g.there.join(grant=replace(ANA, subject="cem", token_id="t3", record=True))
        with pytest.raises(Forbidden):
            await g.there.sessions.refresh(entry.session, replace(ANA, subject="bo", token_id="t4", record=True))


async def test_resumed_session_renews_a_lost_log_unrecorded() -> None:
    session_store = usual(MemorySessions, keep_s=60, wall_clock=lambda: 0.0)
    async with desk(log=Log(), session_store=MemorySessionStore(session_store)) as here:
        entry, _ = await joined(here, **BOARD, reads=["de"], record=False)
        kept = entry.session.kept(60.0)
        async with desk(log=Log(), session_store=MemorySessionStore(session_store)) as another:
            again, _ = await joined(another, **BOARD, reads=["de"], resume=resume_of(entry))
            assert (again.recovered, again.session.room.recorded) == (False, False)
    async with desk(log=Log()) as successor:
        await successor.sessions.restore(Handover(sessions=(kept,)))
        again, _ = await joined(successor, **BOARD, reads=["de"], resume=resume_of(entry))
        assert (again.recovered, again.session.room.recorded) == (False, False)
