"""What a meeting past its budget is shown late, and what it is told in any case; the meeting is Ana's and Bo's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.meeting import room
from gateway.protocol.messages import (
    Caption,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    SessionUpdate,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceCancelled,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.sessions.machine import Accept, Reply, Show, Update, Withdraw
from tests.sessions.desk import Desk, desk, joined
from tests.sessions.talk import only
from tests.translation.stage import idle, until

LONG = "and they said it again and again " * 12


class Crowd:
    """Ana speaks, and Bo reads."""

    def __init__(self, d: Desk, ana: Any, bo: Any) -> None:
        self.sessions, self.log, self.finals = d.sessions, d.core.log, d.core.finals
        (self._entry, self._ana), (_, self._bo) = ana, bo
        self.session = self._entry.session
        self.room = self.session.room

    async def sends(self, message: Any) -> None:
        for effect in self._ana.send(message):
            match effect:
                case Show():
                    await self.sessions.hear(self.session, effect)
                case Accept():
                    await self.sessions.accept(self.session, effect)
                case Withdraw(id, wait_s):
                    self.sessions.withdraw(self.session, id, wait_s)
                case Update():
                    await self.sessions.update(self.session, effect)
                case Reply():
                    pass

    async def says(self, text: str, rev: int, id: str = "u") -> None:
        await self.sends(UtterancePartial(id, rev, text))

    def is_past_its_budget(self) -> None:
        """What waits, waits until `turns_come`."""
        self.room.turns.charge(self.room._payer(self.session.member.participant), 1e9)
        self._held = self.room.turns._next = asyncio.get_running_loop().call_later(3_600, lambda: None)

    async def turns_come(self) -> None:
        self._held.cancel()
        self.room.turns._go_on()
        while self.room.turns._next is not None:
            await asyncio.sleep(0)
        await idle()

    async def told(self, connection: Any) -> list[Any]:
        shown = [m for m in await connection.received() if not isinstance(m, ParticipantJoined | ParticipantLeft)]
        return [(m.text, m.final) if isinstance(m, Caption) else type(m) for m in shown]

    async def ana_sees(self) -> list[Any]:
        return await self.told(self._ana)

    async def bo_sees(self) -> list[Any]:
        return await self.told(self._bo)


@contextlib.asynccontextmanager
async def crowd() -> AsyncIterator[Crowd]:
    async with desk() as d:
        ana, bo = await joined(d, speaks="en", reads=["en"]), await joined(d, reads=["en"])
        await idle()
        made = Crowd(d, ana, bo)
        await made.ana_sees(), await made.bo_sees()
        yield made


async def test_within_its_budget_each_revision_is_shown_at_once() -> None:
    async with crowd() as c:
        for rev, text in enumerate(["we", "we will", "we will do"], 1):
            await c.says(text, rev)
            assert await c.bo_sees() == [(text, False)]


async def test_the_newest_revision_is_shown_in_its_turn() -> None:
    async with crowd() as c:
        c.is_past_its_budget()
        await c.says("we", 1)
        await c.says("we will", 2)
        assert await c.bo_sees() == []
        await c.turns_come()
        assert await c.bo_sees() == await c.ana_sees() == [("we will", False)]


async def test_no_caption_comes_after_its_final() -> None:
    async with crowd() as c:
        c.is_past_its_budget()
        await c.says("we will", 1)
        await c.sends(UtteranceFinal("u", 2, "We will."))
        await c.turns_come()
        assert await c.bo_sees() == [("We will.", True)]
        assert await c.ana_sees() == [UtteranceAccepted, ("We will.", True)]


async def test_unshown_text_is_withdrawn_for_its_speaker() -> None:
    async with crowd() as c:
        c.is_past_its_budget()
        await c.says("we", 1)
        await c.says("we will", 2)
        await c.sends(UtteranceCancel("u"))
        await c.turns_come()
        assert (await c.ana_sees(), await c.bo_sees()) == ([UtteranceCancelled], [])


async def test_what_was_shown_is_withdrawn_for_everybody() -> None:
    async with crowd() as c:
        await c.says("we", 1)
        c.is_past_its_budget()
        await c.says("we will", 2)
        await c.sends(UtteranceCancel("u"))
        assert await c.bo_sees() == [("we", False)]
        await c.says("they", 1)
        await c.turns_come()
        assert await c.bo_sees() == [UtteranceCancelled, ("they", False)]


async def test_withdrawal_comes_before_a_final_of_the_same_id() -> None:
    async with crowd() as c:
        await c.says("we", 1)
        assert await c.bo_sees() == [("we", False)]
        c.is_past_its_budget()
        await c.sends(UtteranceCancel("u"))
        await c.sends(UtteranceFinal("u", 1, "They will."))
        await c.turns_come()
        assert await c.bo_sees() == [UtteranceCancelled, ("They will.", True)]


async def test_language_change_comes_before_its_final() -> None:
    async with crowd() as c:
        await c.says("so", 1)
        assert await c.bo_sees() == [("so", False)]
        c.is_past_its_budget()
        show = only(Show, c._ana.send(UtterancePartial("u", 2, "so", lang="de")))
        await c.sessions.hear(c.session, replace(show, last=True))
        assert await c.bo_sees() == [("so", False)]


async def test_nothing_is_shown_of_a_speaker_who_has_left() -> None:
    async with crowd() as c:
        c.is_past_its_budget()
        await c.says("we", 1)
        c.sessions.local.end(c.session)
        await c.turns_come()
        assert await c.bo_sees() == []


async def settling(c: Crowd, text: str) -> asyncio.Task[None]:
    """Turns come, and the first segment of a talk is accepted once `c.log` is open."""
    c.log.open.clear()
    c.is_past_its_budget()
    await c.says(text, 1)
    coming = asyncio.create_task(c.turns_come())
    await until(lambda: c.finals.busy(c.room))
    return coming


async def test_a_talk_is_settled_in_its_turn() -> None:
    async with crowd() as c:
        coming = await settling(c, f"first {LONG}")
        for rev in (2, 3, 4):
            await c.says(f"first {LONG} and more {rev}", rev)
        c.log.open.set()
        await coming
        seen: list[Any] = []
        while not seen or seen[-1][1] or not seen[-1][0].endswith("more 4"):
            await idle()
            seen += await c.bo_sees()
        assert [text for text, final in seen if final]
        assert not [text for text, _ in seen if text.endswith(("more 2", "more 3"))]
        await c.sends(UtteranceFinal("u", 5, f"first {LONG} and more."))
        await idle()
        assert (await c.bo_sees())[-1][1]


async def test_what_is_not_accepted_holds_up_no_revision() -> None:
    async with crowd() as c:
        c.log.refuses = lambda _: True
        c.is_past_its_budget()
        await c.says(f"first {LONG}", 1)
        await c.turns_come()
        await c.says(f"first {LONG} then", 2)
        seen: list[Any] = []
        while not seen or not seen[-1][0].endswith("then"):
            await idle()
            seen += await c.bo_sees()
        assert c.log.refused


@contextlib.asynccontextmanager
async def being_accepted(c: Crowd) -> AsyncIterator[None]:
    """The first segment of a talk, with a rest, while the context lasts."""
    coming = await settling(c, f"first {LONG} and some rest")
    yield
    await until(lambda: c.room.turns._next is None)
    c.log.open.set()
    await coming
    await until(lambda: not c.session.late and c.room.history.said_by(c.session.member.participant))
    await idle()


async def test_nothing_is_shown_after_a_cancel_while_it_is_settled() -> None:
    async with crowd() as c:
        async with being_accepted(c):
            await c.sends(UtteranceCancel("u"))
        assert not list(c.room.live.captions)
        assert [final for _, final in [each for each in await c.bo_sees() if each is not UtteranceCancelled]] == [
            True
        ]
        assert not c.session.state.in_flight


async def test_speaker_who_left_while_settling_is_not_shown() -> None:
    async with crowd() as c:
        async with being_accepted(c):
            c.sessions.local.end(c.session)
        assert not list(c.room.live.captions)


async def test_few_utterances_of_a_speaker_wait() -> None:
    async with crowd() as c:
        c.session.state._pace = lambda *_: None
        c.is_past_its_budget()
        for n in range(50):
            await c.says(f"we say {n}", 1, id=f"u{n}")
        assert list(c.session.late) == ["u47", "u48", "u49"]
        await c.turns_come()
        assert await c.bo_sees() == [("we say 47", False), ("we say 48", False), ("we say 49", False)]
        assert not c.session.late


async def test_no_more_utterances_wait_than_are_settled() -> None:
    async with crowd() as c, being_accepted(c):
        for n in range(50):
            await c.says(f"we say {n}", 1, id=f"u{n}")
        assert list(c.session.late) == ["u", "u48", "u49"]


async def test_a_refused_final_takes_nothing_back_that_waits() -> None:
    async with crowd() as c:
        c.is_past_its_budget()
        await c.says("we", 1)
        c.sessions.withdraw(c.session, "u", 0.01)
        assert await c.ana_sees() == []
        await c.turns_come()
        assert await c.bo_sees() == [("we", False)]
        await until(lambda: not list(c.room.live.captions))
        assert (await c.bo_sees(), (await c.ana_sees())[-1]) == ([UtteranceCancelled], UtteranceCancelled)


async def test_no_caption_comes_after_its_final_from_another_address() -> None:
    async with crowd() as c:
        c.is_past_its_budget()
        await c.says("we", 1)
        c.session.member.account = "another address"
        await c.sends(UtteranceFinal("u", 2, "We will."))
        await c.turns_come()
        assert await c.bo_sees() == [("We will.", True)]


async def test_members_are_told_the_newest_of_what_others_read() -> None:
    async with crowd() as c:
        c.is_past_its_budget()
        for reads in (["de"], ["fr"], ["ja"]):
            await c.sends(SessionUpdate(reads=reads))
        await c.turns_come()
        [updated] = await c._bo.received()
        assert isinstance(updated, ParticipantUpdated)
        assert updated.reads == ["ja"]


async def test_a_final_is_charged_to_its_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    async with crowd() as c:
        monkeypatch.setattr(room, "FRAME_S", 1e9)
        await c.sends(UtteranceFinal("u", 1, "We will."))
        assert await c.bo_sees() == [("We will.", True)]
        c.room.turns.close()
        await c.says("they", 1, id="v")
        assert await c.bo_sees() == []
