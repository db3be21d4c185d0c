"""The sessions of a gateway: how they end, and how they go to another gateway; nothing raises out of that."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import LogUnavailable
from gateway.domain.grants import Revocation
from gateway.domain.ports import SessionStore
from gateway.domain.session_store import Held
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.protocol.limits import Limits
from gateway.protocol.messages import UtteranceFinal
from gateway.sessions import local_sessions
from gateway.sessions.local_session import LocalSession
from gateway.sessions.local_sessions import Writes
from gateway.sessions.machine import Update
from tests.sessions.desk import desk
from tests.sessions.faulty_session_store import FaultySessionStore
from tests.translation.stage import idle


async def test_moved_session_takes_nothing_and_ends_nothing() -> None:
    session_store = FaultySessionStore()
    async with desk(session_store=session_store) as d:
        entry, ana = await d.join(name="Ana", speaks="en")
        d.sessions.local.moved(entry.session.key, elsewhere=True)
        d.sessions.local.moved(entry.session.key, elsewhere=True)
        assert ana.closed == [CloseCode.REPLACED]
        assert ana.send(UtteranceFinal("u", 1, "One.")) == []
        # Its connection closes only now.
        d.sessions.local.away(entry.session, entry.feed)
        d.sessions.local.end(entry.session)
        await idle()
        assert len(d.sessions.local.all) == 0
        assert (await session_store.counts("default")).sessions == 1, "the other gateway has it"


async def test_session_ended_elsewhere_is_told_to_return() -> None:
    async with desk() as d:
        entry, ana = await d.join()
        d.sessions.local.moved(entry.session.key, elsewhere=False)
        assert ana.closed == [CloseCode.RESTART]
        assert isinstance(ana.reasons[0], LogUnavailable)


async def test_changes_during_an_outage_are_told_later() -> None:
    session_store = FaultySessionStore()
    async with desk(Limits(keep_s=60), session_store=session_store) as d:
        away, _ = await d.join(name="Ana")
        gone, _ = await d.join(name="Bo")
        changed, _ = await d.join(name="Cy")
        session_store.down |= {"save", "end", "release"}
        d.sessions.local.away(away.session, away.feed)
        d.sessions.local.end(gone.session)
        with pytest.raises(LogUnavailable):
            await d.sessions.update(changed.session, Update("de", ("fr",)))
        assert (changed.session.member.speaks, changed.session.member.reads) == (None, ())
        d.now_s = 30.0
        await d.sessions.sweep()
        await idle()
        assert (await session_store.counts("default")).sessions == 3
        session_store.down.clear()
        await d.sessions.sweep()
        await idle()
        assert (await session_store.counts("default")).sessions == 2
        [session] = [each for each in session_store.store.sessions.values() if each.record.name == "Ana"]
        assert session.away_s == pytest.approx(session_store.store.wall_clock() - 30.0, abs=10.0)
        held = await session_store.find(changed.session.key)
        assert held is not None
        assert held.record.reads == ()


async def test_unshared_revocation_is_to_be_repeated() -> None:
    session_store = FaultySessionStore()
    async with desk(session_store=session_store) as d:
        session_store.down.add("revoke")
        with pytest.raises(LogUnavailable):
            await d.sessions.revoke(Revocation(tenant="acme", before_s=1.0, subject="ana"))
        assert d.sessions.lifetimes.revocations.kept_revocations(), "here it counts at once"
        session_store.down.clear()
        await d.sessions.revoke(Revocation(tenant="acme", before_s=1.0, subject="ana"))
        assert session_store.store.revocations


# ---------------------------------------------------------------- what the session store is told


class Told:
    """A session store that notes what it is told, while it can be reached."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.reachable = asyncio.Event()
        self.reachable.set()
        # Sessions of which it can be told nothing.
        self.away: set[bytes] = set()
        self.answers = True
        self.held: Held | None = None
        # Its answer takes until then.
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def _take(self, *said: Any) -> None:
        await self.go_on.wait()
        if not self.reachable.is_set() or said[1] in self.away:
            raise LogUnavailable("The test says so.")
        self.said.append(said)

    async def save(self, session: bytes, fence: int, record: str, *, away_s: float | None = None) -> bool:
        await self._take("save", session, fence, record, away_s)
        return self.answers

    async def find(self, _session: bytes) -> Held | None:
        return self.held

    async def end(self, session: bytes, fence: int, unused: UsedToken | None = None) -> None:
        await self._take("end", session, fence, *filter(None, [unused]))

    async def release(self, session: bytes, fence: int) -> None:
        await self._take("release", session, fence)


class Writing:
    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.session_store = Told()
        self.name = "first"
        self.moved: list[bytes] = []
        # Whether another gateway has it, of each.
        self.elsewhere: list[bool] = []
        self.writes = Writes(
            cast(SessionStore, self.session_store),
            tasks,
            lambda _: (cast(SessionRecord, self.name), 3.0),
            self._note_moved,
        )

    def _note_moved(self, session: LocalSession, elsewhere: bool) -> None:
        self.moved.append(session.key)
        self.elsewhere.append(elsewhere)


class _Session(LocalSession):
    def __init__(self, key: bytes, fence: int = 1) -> None:
        self.key, self.fence = key, fence


@contextlib.asynccontextmanager
async def writing() -> AsyncIterator[Writing]:
    async with asyncio.TaskGroup() as tasks:
        yield Writing(tasks)


async def test_what_changed_is_told_as_it_is_then() -> None:
    async with writing() as d:
        d.writes.save(_Session(b"a"))
        d.name = "second"
        await idle()
        assert d.session_store.said == [("save", b"a", 1, "second", 3.0)]


async def test_only_the_newest_untold_state_is_told_later() -> None:
    async with writing() as d:
        d.session_store.reachable.clear()
        session = _Session(b"a")
        d.writes.save(session)
        d.writes.end(b"b", 4)
        await idle()
        d.writes.end(b"a", 1)
        await idle()
        assert d.session_store.said == []
        d.session_store.reachable.set()
        d.writes.retry()
        await idle()
        assert sorted(d.session_store.said) == [("end", b"a", 1), ("end", b"b", 4)]
        d.writes.retry()
        await idle()
        assert len(d.session_store.said) == 2


async def test_newer_state_follows_the_one_being_told() -> None:
    async with writing() as d:
        d.session_store.go_on.clear()
        d.writes.save(_Session(b"a"))
        await idle()
        d.writes.end(b"a", 1)
        d.session_store.go_on.set()
        await idle()
        assert [said[0] for said in d.session_store.said] == ["save", "end"]


async def test_failed_write_gives_way_to_a_newer_one() -> None:
    async with writing() as d:
        d.session_store.reachable.clear()
        d.session_store.go_on.clear()
        d.writes.save(_Session(b"a"))
        await idle()
        d.writes.end(b"a", 1)
        d.session_store.go_on.set()
        await idle()
        d.session_store.reachable.set()
        d.writes.retry()
        await idle()
        assert [said[0] for said in d.session_store.said] == ["end"]


async def test_a_session_ends_until_the_session_store_knows_it() -> None:
    async with writing() as d:
        d.session_store.go_on.clear()
        d.writes.end(b"a", 1)
        assert d.writes.is_ending(b"a")
        await idle()
        assert d.writes.is_ending(b"a"), "it is being told"
        d.session_store.go_on.set()
        await idle()
        assert not d.writes.is_ending(b"a")
        assert not d.writes.is_ending(b"b")


async def test_doubtful_session_is_released() -> None:
    async with writing() as d:
        d.writes.release(b"a", 4)
        assert not d.writes.is_ending(b"a")
        await idle()
        assert d.session_store.said == [("release", b"a", 4), ("release", b"a", 5)]


@pytest.mark.parametrize(("fence", "elsewhere"), [(None, False), (1, False), (2, True)])
async def test_lost_session_is_found_elsewhere_or_ended(fence: int | None, elsewhere: bool) -> None:
    async with writing() as d:
        d.session_store.answers = False
        d.session_store.held = None if fence is None else Held(cast(Any, None), fence)
        d.writes.save(_Session(b"a"))
        await idle()
        assert (d.moved, d.elsewhere) == ([b"a"], [elsewhere])


@pytest.mark.parametrize("resumed", [False, True])
async def test_another_gateways_session_is_not_kept_here(resumed: bool) -> None:
    async with writing() as d:
        d.session_store.answers = False
        d.session_store.go_on.clear()
        session = _Session(b"a")
        d.writes.save(session)
        await idle()
        session.fence += resumed
        d.session_store.go_on.set()
        await idle()
        assert d.moved == ([] if resumed else [b"a"])


async def test_a_bug_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async with writing() as d:
        d.session_store.save = None  # type: ignore[method-assign, assignment]
        d.writes.save(_Session(b"a"))
        d.writes.end(b"b", 1)
        await idle()
        assert d.session_store.said == [("end", b"b", 1)]
    assert "could not be told" in caplog.text


async def test_once_closed_nothing_is_told_and_nothing_raises() -> None:
    async with writing() as d:
        pass
    d.writes.close()
    d.writes.end(b"a", 1)
    d.writes.retry()
    await idle()
    assert d.session_store.said == []


async def test_whether_a_token_is_about_to_be_given_back() -> None:
    token = UsedToken("acme", "t1", "ana", 2e9)
    async with writing() as d:
        d.session_store.go_on.clear()
        d.writes.end(b"a", 1, token)
        d.writes.end(b"b", 1)
        assert d.writes.is_giving_back(replace(token, user="bo"))
        assert not d.writes.is_giving_back(replace(token, tenant="other"))
        await idle()
        assert d.writes.is_giving_back(token), "it is being told"
        d.session_store.go_on.set()
        await idle()
        assert not d.writes.is_giving_back(token)
        assert d.session_store.said == [("end", b"a", 1, token), ("end", b"b", 1)]


async def test_failures_do_not_hold_up_later_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_sessions, "_AT_ONCE", 2)
    async with writing() as d:
        d.session_store.away = {b"a", b"b", b"c"}  # on a store that is away
        for session in (b"a", b"b", b"c"):
            d.writes.end(session, 1)
        await idle()
        d.writes.end(b"d", 1)
        await idle()
        assert d.session_store.said == [("end", b"d", 1)]
        d.session_store.away.clear()
        d.writes.retry()
        await idle()
        assert sorted(d.session_store.said) == [("end", session, 1) for session in (b"a", b"b", b"c", b"d")]
