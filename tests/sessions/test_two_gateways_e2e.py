"""Two gateways on one store: a session resumed, seen and ended at the other, and what is said translated once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import (
    Forbidden,
    GatewayError,
    InvalidValue,
    SessionReplaced,
    Unauthenticated,
)
from gateway.domain.grants import Revocation
from gateway.domain.log import Said
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.sessions.machine import Acknowledge, Show, Update
from tests.sessions.desk import ANA, Desk, joined, resume_of
from tests.sessions.talk import only
from tests.sessions.two_gateways import says, translated, two
from tests.translation.stage import idle, until


async def translate(d: Desk, text: str) -> None:
    await until(d.core.engine.pending)
    d.core.engine.says(text)
    await d.core.finals.quiet()


def names(messages: list[Any]) -> list[tuple[str, str]]:
    kinds = (ParticipantJoined, ParticipantUpdated, ParticipantLeft)
    return [(type(m).__name__.removeprefix("Participant"), m.name) for m in messages if isinstance(m, kinds)]


# ---------------------------------------------------------------- resuming


async def test_resumed_elsewhere_nothing_is_lost_or_doubled() -> None:
    async with two() as g:
        speaker, ana = await joined(g.here, name="Ana", speaks="en")
        reader, bo = await joined(g.here, name="Bo", reads=["de"])
        await says(g.here, speaker, ana, "One.")
        await translate(g.here, "Eins.")
        seen = reader.session.room.offset
        assert [type(message) for message in await bo.received()] == [TranslationFinal]
        g.here.sessions.local.away(reader.session, reader.feed)
        await says(g.here, speaker, ana, "Two.")
        await translate(g.here, "Zwei.")
        again, bo = await joined(g.there, name="Bo", reads=["de"], resume=resume_of(reader, seen))
        await says(g.here, speaker, ana, "Three.")
        await translate(g.here, "Drei.")
        assert again.recovered
        assert again.session.member.participant == reader.session.member.participant
        heard = [message for message in await bo.received() if isinstance(message, TranslationFinal)]
        assert [message.text for message in heard] == ["Zwei.", "Drei."]
        assert (len(g.here.sessions.local.all), len(g.there.sessions.local.all)) == (1, 1)
        assert await translated(g.there) == [("One.", "de"), ("Two.", "de"), ("Three.", "de")]


async def test_moving_speaker_sends_nothing_twice() -> None:
    async with two() as g:
        speaker, ana = await joined(g.here, speaks="en")
        await joined(g.there, reads=["de"])
        await says(g.here, speaker, ana, "One.")
        again, newer = await joined(g.there, speaks="en", resume=resume_of(speaker))
        assert ana.closed == [CloseCode.REPLACED]
        assert newer.state.in_flight == 1, "it is still being translated at the gateway that accepted it"
        assert newer.send(UtteranceFinal("One.", 1, "One.")) == [Acknowledge("One.", 1)]
        await translate(g.here, "Eins.")
        assert newer.state.in_flight == 0
        await says(g.there, again, newer, "Two.")
        await translate(g.there, "Zwei.")
        assert await translated(g.here) == [("One.", "de"), ("Two.", "de")]
        acknowledged = [m.id for m in await newer.received() if isinstance(m, UtteranceAccepted)]
        assert acknowledged == ["One.", "Two."]


async def test_log_recognises_what_the_session_has_forgotten() -> None:
    async with two() as g:
        speaker, ana = await joined(g.here, speaks="en")
        texts = [f"{n}." for n in range(15)]
        for text in texts:
            await says(g.here, speaker, ana, text)
        again, newer = await joined(g.there, speaks="en", resume=resume_of(speaker, speaker.session.room.offset))
        assert await says(g.there, again, newer, texts[0]), "it is known"
        log = await g.here.core.log.read("m", 0)
        assert log.last == len(texts)
        assert newer.state.in_flight == 0


async def test_final_over_a_left_connection_is_refused() -> None:
    async with two() as g:
        entry, connection = await joined(g.here, name="Ana", speaks="en")
        # What it is told is lost.
        g.here.session_store._moved = lambda _session, _elsewhere: None  # type: ignore[attr-defined]
        again, _ = await joined(g.there, name="Ana", speaks="en", resume=resume_of(entry))
        assert (again.recovered, connection.closed) == (True, [])
        with pytest.raises(SessionReplaced):
            await says(g.here, entry, connection, "late")
        assert (len(g.here.sessions.local.all), connection.closed) == (0, [CloseCode.REPLACED])
        assert (await g.here.core.log.read("m", 0)).publications == ()


async def test_final_in_transit_during_a_resume_is_accepted() -> None:
    async with two() as g:
        entry, connection = await joined(g.here, name="Ana", speaks="en")
        log = g.here.core.log
        log.open.clear()
        saying = asyncio.create_task(says(g.here, entry, connection, "slow"))
        await idle()
        again, newer = await joined(g.here, name="Ana", speaks="en", resume=resume_of(entry))
        log.open.set()
        assert await saying is False
        assert (again.session.fence, newer.closed) == (2, [])
        assert len((await log.read("m", 0)).publications) == 1


@pytest.mark.parametrize("is_connected", [True, False])
async def test_one_of_two_simultaneous_resumes_wins(is_connected: bool) -> None:
    async with two() as g:
        entry, first = await joined(g.here)
        if not is_connected:
            g.here.sessions.local.away(entry.session, entry.feed)
        entered = await asyncio.gather(
            *(joined(d, resume=resume_of(entry)) for d in (g.here, g.there, g.here, g.there))
        )
        await idle()
        left = [connection for _, connection in entered if not connection.closed]
        assert len(left) == 1
        assert len(g.here.sessions.local.all) + len(g.there.sessions.local.all) == 1
        replaced = [connection.closed for _, connection in entered if connection is not left[0]]
        assert replaced == [[CloseCode.REPLACED]] * 3
        assert first.closed == ([CloseCode.REPLACED] if is_connected else [])


async def test_translations_of_a_dropped_language_still_arrive() -> None:
    async with two() as g:
        speaker, ana = await joined(g.here, speaks="en")
        reader, _ = await joined(g.here, reads=["de"])
        await says(g.here, speaker, ana, "One.")
        seen = reader.session.room.offset
        await g.here.sessions.update(reader.session, Update(None, ("fr",)))
        await idle()
        _, bo = await joined(g.there, reads=["fr"], resume=resume_of(reader, seen))
        await translate(g.here, "Eins.")
        assert [m.text for m in await bo.received() if isinstance(m, TranslationFinal)] == ["Eins."]


async def test_returning_session_skips_what_preceded_its_restart() -> None:
    async with two() as g:
        speaker, ana = await joined(g.here, speaks="en")
        reader, _ = await joined(g.here, reads=["de"])
        for n in range(15):
            await says(g.here, speaker, ana, f"{n}.")
        anew, _ = await joined(g.there, reads=["de"], resume=resume_of(reader, 99))
        assert anew.session.member.since == 6, "the ten newest"
        await idle()
        again, _ = await joined(g.here, reads=["de"], resume=resume_of(anew, 15))
        assert again.session.member.since == 6


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"subject": "bo"}, Forbidden),
        ({"tenant": "other"}, Forbidden),
        ({"meeting": "n"}, InvalidValue),
        ({"meeting": None}, Forbidden),
        ({"token_id": "revoked"}, Unauthenticated),
        ({"token_id": "used", "once": True}, Unauthenticated),
    ],
)
async def test_a_session_is_the_same_persons_at_every_gateway(
    fields: dict[str, Any], error: type[GatewayError]
) -> None:
    async with two() as g:
        await g.here.sessions.revoke(Revocation(tenant="acme", before_s=1e9, token_id="revoked"))
        await joined(g.here, grant=replace(ANA, subject="bo", token_id="used", once=True))
        entry, ana = await joined(g.here, grant=ANA)
        eve = replace(ANA, **fields)
        with pytest.raises(error):
            await joined(g.there, grant=eve, meeting=eve.meeting, resume=resume_of(entry))
        assert ana.closed == []
        assert (len(g.here.sessions.local.all), len(g.there.sessions.local.all)) == (2, 0)
        again, _ = await joined(g.there, grant=ANA, resume=resume_of(entry))
        assert again.recovered


async def test_same_token_gives_no_more_time_elsewhere() -> None:
    async with two() as g:
        grant = replace(ANA, max_s=600.0)
        entry, _ = await joined(g.here, grant=grant)
        g.here.now_s = 500.0
        g.here.sessions.local.away(entry.session, entry.feed)
        await idle()
        again, ana = await joined(g.there, grant=grant, resume=resume_of(entry))
        assert again.session.until_s == pytest.approx(100.0, abs=5.0)
        g.there.now_s = 110.0
        await g.there.sessions.sweep()
        assert ana.closed == [CloseCode.TOKEN_EXPIRED]


async def test_a_private_meeting_moves_with_its_session() -> None:
    async with two() as g:
        speaker, _ = await joined(g.here, meeting=None, speaks="en", reads=["de"])
        again, newer = await joined(g.there, meeting=None, speaks="en", reads=["de"], resume=resume_of(speaker))
        assert again.session.room.private
        await says(g.there, again, newer, "One.")
        await translate(g.there, "Eins.")
        assert await translated(g.here, again.session.room.id) == [("One.", "de")]


# ---------------------------------------------------------------- a gateway that is gone


async def test_sessions_of_a_lost_gateway_leave_in_time() -> None:
    async with two(Limits(keep_s=20)) as g:
        entry, ana = await joined(g.here, name="Ana", reads=["de"])
        _, bo = await joined(g.there, name="Bo")
        await g.pass_time(19, g.there)
        assert names(await bo.received()) == []
        await g.pass_time(2, g.there)
        assert names(await bo.received()) == [("Left", "Ana")]
        again, _ = await joined(g.there, name="Ana", reads=["de"], resume=resume_of(entry))
        assert again.recovered is False
        assert again.session.member.participant != entry.session.member.participant
        # It was not gone, only cut off: its client is to come again.
        assert (ana.closed, len(g.here.sessions.local.all)) == ([CloseCode.RESTART], 0)


# ---------------------------------------------------------------- quotas, tokens, revocations


@pytest.mark.parametrize("is_connected", [True, False])
async def test_what_is_revoked_ends_at_every_gateway(is_connected: bool) -> None:
    async with two() as g:
        entry, ana = await joined(g.here, grant=ANA, name="Ana")
        _, bo = await joined(g.there, grant=replace(ANA, subject="bo", token_id="t2"), name="Bo")
        if not is_connected:
            g.here.sessions.local.away(entry.session, entry.feed)
        await joined(g.there, grant=replace(ANA, meeting="n"), meeting="n")
        assert await g.there.sessions.revoke(Revocation(tenant="acme", before_s=1e9, subject="ana")) == 2
        await idle()
        assert ana.closed == ([CloseCode.TOKEN_REVOKED] if is_connected else [])
        assert (len(g.here.sessions.local.all), bo.closed) == (0, [])
        assert names(await bo.received()) == [("Left", "Ana")]
        for d in (g.here, g.there):
            with pytest.raises(Unauthenticated):
                await joined(d, grant=ANA)
        newer = replace(ANA, issued_s=2e9, token_id="t9")
        assert (await joined(g.there, grant=newer, resume=resume_of(entry)))[0].recovered is False


async def test_revoked_session_of_a_lost_gateway_stays_ended() -> None:
    async with two() as g:
        entry, _ = await joined(g.here, grant=ANA, name="Ana")
        _, bo = await joined(g.there, grant=replace(ANA, subject="bo", token_id="t2"), name="Bo")
        await g.pass_time(10, g.there)
        await g.there.sessions.revoke(Revocation(tenant="acme", before_s=1e9, subject="ana"))
        newer = replace(ANA, issued_s=2e9, token_id="t9")
        again, _ = await joined(g.there, grant=newer, name="Ana", resume=resume_of(entry))
        assert again.recovered is False
        await idle()
        assert set(names(await bo.received())) == {("Joined", "Ana"), ("Left", "Ana")}


async def test_caption_is_acknowledged_at_the_speakers_gateway() -> None:
    async with two() as g:
        speaker, ana = await joined(g.here, speaks="en", reads=["en"])
        await says(g.here, speaker, ana, "One.")
        _, newer = await joined(g.there, speaks="en", reads=["en"], resume=resume_of(speaker))
        heard = await newer.received()
        assert [type(message) for message in heard] == [UtteranceAccepted, Caption]


# ---------------------------------------------------------------- translated once, wherever it is read


async def test_remote_reader_gets_one_translation() -> None:
    async with two(live=True) as g:
        speaker, ana = await joined(g.here, speaks="en")
        _, bo = await joined(g.there, reads=["de"])
        await says(g.here, speaker, ana, "One.")
        await until(g.here.core.engine.pending)
        g.here.core.engine.says("Eins.")
        await g.here.core.finals.quiet()
        heard = await bo.received()
        assert [message.text for message in heard if isinstance(message, TranslationFinal)] == ["Eins."]
        assert g.there.core.engine.requests == []
        assert await translated(g.here) == [("One.", "de")]
        assert ana.state.in_flight == 0


async def test_partials_are_translated_for_a_remote_reader() -> None:
    async with two(live=True) as g:
        speaker, ana = await joined(g.here, speaks="en")
        _, bo = await joined(g.there, reads=["de", "en"])
        await idle()
        show = only(Show, ana.send(UtterancePartial("1", 1, "good morn")))
        g.here.core.partials.hear(speaker.session.room, show.utterance)
        await until(g.here.core.engine.pending)
        g.here.core.engine.says("Guten Morgen zusammen allerseits heute")
        await idle()
        heard = await bo.received()
        assert [(m.text, m.final) for m in heard if isinstance(m, Caption)] == [("good morn", False)]
        assert [m.tentative for m in heard if isinstance(m, TranslationDelta)] == ["Guten"]
        await says(g.here, speaker, ana, "Good morning.")
        await until(g.here.core.engine.pending)
        await g.here.sessions.sweep()
        assert g.there.core.engine.requests == []


async def test_what_another_gateway_translates_is_cancelled_there() -> None:
    async with two(live=True) as g:
        speaker, ana = await joined(g.here, speaks="en")
        _, bo = await joined(g.there, reads=["de"])
        await idle()
        await says(g.here, speaker, ana, "One.")
        await until(g.here.core.engine.pending)
        key = (speaker.session.member.participant, "One.")
        g.there.core.finals.cancel(next(iter(g.there.sessions.rooms)), key)
        await until(lambda: not g.here.core.engine.pending())
        await g.here.core.finals.quiet()
        assert [m.code for m in await bo.received() if isinstance(m, TranslationFailed)] == ["cancelled"]


async def test_a_latecomer_at_another_gateway_is_caught_up_there() -> None:
    async with two(live=True) as g:
        speaker, ana = await joined(g.here, speaks="en")
        await says(g.here, speaker, ana, "One.")
        _, bo = await joined(g.there, reads=["de"])
        await until(g.there.core.engine.pending)
        g.there.core.engine.says("Eins.")
        await g.there.core.finals.quiet()
        assert [type(message) for message in await bo.received()] == [TranslationFinal]
        assert g.here.core.engine.requests == []


async def test_final_resent_elsewhere_is_heard_once() -> None:
    async with two(live=True) as g:
        speaker, ana = await joined(g.here, speaks="en")
        _, bo = await joined(g.there, reads=["de", "en"])
        await says(g.here, speaker, ana, "One.")
        participant = speaker.session.member.participant
        again = (await g.here.core.log.read("m", 0)).publications[0].event
        assert isinstance(again, Said)
        assert (await g.there.core.finals.accept(next(iter(g.there.sessions.rooms)), again.utterance)).known
        await until(g.here.core.engine.pending)
        g.here.core.engine.says("Eins.")
        await g.here.core.finals.quiet()
        assert g.there.core.engine.requests == []
        heard = await bo.received()
        assert [(m.participant, m.text) for m in heard if isinstance(m, Caption)] == [(participant, "One.")]


async def test_lost_gateways_accepted_finals_are_translated() -> None:
    async with two(live=True) as g:
        speaker, ana = await joined(g.here, speaks="en")
        _, bo = await joined(g.there, reads=["de"])
        await says(g.here, speaker, ana, "One.")
        await until(g.here.core.engine.pending)
        await g.here.core.log.close()
        await g.there.sessions.sweep()
        await until(g.there.core.engine.pending)
        g.there.core.engine.says("Eins.")
        await g.there.core.finals.quiet()
        g.here.core.engine.fails(*g.here.core.engine.pending())
        await g.here.core.finals.quiet()
        assert await translated(g.there) == [("One.", "de")]
        heard = [message for message in await bo.received() if not isinstance(message, Caption)]
        assert [type(message) for message in heard] == [TranslationFinal]
