"""Accepted utterances and what becomes of them: one outcome for each language, whatever happens."""

from __future__ import annotations

from collections import Counter

from gateway.config import Settings
from gateway.domain.log import Said, Translated, Untranslated
from gateway.engines.simulated import Rule, Script
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Error,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
)
from tests.gateways import running
from tests.meetings import finals, joined, logged, say

# ---------------------------------------------------------------- coming late


async def test_a_new_language_is_made_up_for_and_finals_come_first() -> None:
    script = Script(first_token_s=0.002, token_s=0.002, max_running=1)
    settings = Settings(snapshot_utterances=10, limits=Limits(messages_burst=1_000))
    async with running(settings, script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        for n in range(12):
            await ana.peer.send(say(str(n)))
        await ana.until(TranslationFinal, 12)
        async with joined(gateway, reads=["de"]) as late:
            await ana.peer.send(say("now"))
            await late.until(TranslationFinal, 11)
            got = [u for _, u, _ in finals(late.received)]
            assert sorted(got) == sorted([*(str(n) for n in range(2, 12)), "now"])
            # One was running and up to two more were handed over before it was said.
            assert got.index("now") <= 3
            async with joined(gateway, reads=["de"]) as third:
                assert len(finals(await third.everything())) == 10
        done = Counter((e.utterance, e.lang) for e in await logged(gateway) if isinstance(e, Translated))
        assert set(done.values()) == {1}


# ---------------------------------------------------------------- engine crashes


async def test_everything_accepted_survives_engine_crashes_and_is_logged_once() -> None:
    script = Script(first_token_s=0.005, token_s=0.005, max_running=4)
    limits = Limits(utterances_in_flight=100, messages_burst=1_000)
    async with (
        running(Settings(limits=limits), script=script) as gateway,
        joined(gateway, speaks="en", reads=["ja"]) as ana,
    ):
        await ana.peer.send(*(say(str(n), f"text number {n} of many") for n in range(50)))
        for goal in (1, 10, 25):
            await ana.until(TranslationFinal, goal)
            gateway.kill_engine()
            while len(gateway.engines) < 2:
                await ana.receive()
        await ana.until(TranslationFinal, 50)
        got = await ana.everything()
        assert [m.code for m in got if isinstance(m, Error)].count("engine_restarting") >= 1
        assert Counter(u for _, u, _ in finals(got)) == Counter(str(n) for n in range(50))
        events = await logged(gateway)
        assert not [e for e in events if isinstance(e, Untranslated)]
        assert len([e for e in events if isinstance(e, Translated)]) == 50
        for n in range(50):
            deltas = "".join(m.committed for m in got if isinstance(m, TranslationDelta) and m.utterance == str(n))
            assert f"[ja] text number {n} of many".startswith(deltas), "shown text is not taken back"


async def test_a_failed_translation_can_be_asked_for_again() -> None:
    script = Script(first_token_s=0.001, token_s=0.05, rules=(Rule("STALL", stall_after=0),))
    settings = Settings(utterance_deadline_s=1)
    async with running(settings, script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "STALL"))
        await ana.until(TranslationFailed)
        await ana.peer.send(say("1", "STALL"))
        assert [m.id for m in await ana.until(UtteranceAccepted, 1)] == ["1"]
        await ana.until(TranslationFailed, 2)
        assert len([e for e in await logged(gateway) if isinstance(e, Said)]) == 1


# ---------------------------------------------------------------- each language once


async def test_a_resent_final_and_a_late_joiner_do_not_translate_twice() -> None:
    """Both want the same language of the same utterance at the same time."""
    script = Script(
        first_token_s=0.001, token_s=0.001, max_running=1, rules=(Rule("HOLD", token_s=0.05), Rule("FAIL", 1))
    )
    async with running(script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "one two"))
        await ana.until(TranslationFinal)
        await ana.peer.send(say("2", "STAYS a while"), UtteranceCancel("2"))
        await ana.until(TranslationFailed)
        await ana.peer.send(*(say(f"busy{n}", "HOLD this for a moment") for n in range(4)))
        await ana.until(UtteranceAccepted, 6)
        async with joined(gateway, reads=["fr"]) as late:
            await ana.peer.send(say("2", "STAYS a while"))
            assert [m.id for m in await ana.until(UtteranceAccepted, 7)][-1] == "2", "told once more"
            await late.until(TranslationFinal, 6)
            await ana.until(TranslationFinal, 6)
        done = Counter((e.utterance, e.lang) for e in await logged(gateway) if isinstance(e, Translated))
        assert set(done.values()) == {1}
        assert len([e for e in await logged(gateway) if isinstance(e, Said)]) == 6
        await ana.peer.send(say("3"))
        await ana.until(TranslationFinal, 7)


async def test_an_engine_that_comes_back_is_not_asked_for_what_nobody_was_promised() -> None:
    async with running() as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(*(say(str(n)) for n in range(30)))
        await ana.until(TranslationFinal, 30)
        await ana.peer.send(SessionUpdate(reads=["de"]))
        await ana.until(SessionUpdated)
        gateway.kill_engine()
        await ana.until(Error)
        await ana.peer.send(say("now"))
        await ana.until(TranslationFinal, 31)
        assert finals(ana.received)[-1][1:] == ("now", "de")
        assert [e.utterance for e in await logged(gateway) if isinstance(e, Translated) and e.lang == "de"] == [
            "now"
        ]
