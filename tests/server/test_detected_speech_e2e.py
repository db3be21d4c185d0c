"""A speaker who changes languages, over real sockets and with the real detector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.config import EventLogSettings, Settings
from gateway.protocol.messages import (
    Caption,
    Error,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceFinal,
    UtterancePartial,
)
from tests.gateways import running
from tests.keys import Keyring
from tests.meetings import joined, say
from tests.over_http import serving

GERMAN, ENGLISH = "Wir verschieben das auf Freitag.", "So Friday is fine for everybody."


def logged(messages: list[Any]) -> list[Any]:
    return [message for message in messages if isinstance(message, Caption | TranslationFinal)]


async def test_readers_of_each_language_get_what_they_can_read_also_later_and_in_the_transcript() -> None:
    async with serving() as (gateway, client), joined(gateway, name="Ana", speaks="auto", reads=[]) as ana:
        async with joined(gateway, reads=["de"]) as bo:
            (other,) = bo.started.participants
            assert (other.name, other.speaks) == ("Ana", None)
            await ana.peer.send(say("1", GERMAN), say("2", ENGLISH))
            accepted = await ana.until(UtteranceAccepted, 2)
            assert [(each.id, each.lang) for each in accepted] == [("1", "de"), ("2", "en")]
            (final,) = await bo.until(TranslationFinal)
            assert (final.text, final.source_lang) == (f"[de] {ENGLISH}", "en")
            (caption,) = [each for each in bo.received if isinstance(each, Caption)]
            assert (caption.text, caption.lang) == (GERMAN, "de")
            live = bo.received
        async with joined(gateway, reads=["de"]) as late:
            await late.until(TranslationFinal)
            logged = (Caption, TranslationFinal)
            assert [m for m in late.received if isinstance(m, logged)] == [
                m for m in live if isinstance(m, logged)
            ]
        transcript = (await client.get("/v1/meetings/m/transcript.json?lang=de")).json()["utterances"]
        assert [(each["lang"], each["translations"]["de"]["status"]) for each in transcript] == [
            ("de", "original"),
            ("en", "translated"),
        ]


async def test_a_beginning_is_taken_for_the_language_of_before_until_it_is_certain() -> None:
    async with running() as gateway, joined(gateway, speaks="auto", reads=[]) as ana:
        await ana.peer.send(say("1", GERMAN))
        shown = []
        for rev, text in enumerate(("So", "So Friday", "So Friday is fine", ENGLISH), start=1):
            await ana.peer.send(UtterancePartial(id="2", rev=rev, text=text))
            shown.append((await ana.until(Caption, 1 + rev))[-1].lang)
        assert shown == ["de", "de", "en", "en"]
        await ana.peer.send(say("3", "42"))
        assert (await ana.until(UtteranceAccepted, 2))[-1].lang == "de"


async def test_whoever_was_shown_it_as_their_language_learns_that_it_is_another() -> None:
    async with (
        running() as gateway,
        joined(gateway, name="Ana", speaks="auto", reads=[]) as ana,
        joined(gateway, reads=["de"]) as bo,
    ):
        await ana.peer.send(say("1", GERMAN))
        await bo.until(Caption)
        await ana.peer.send(UtterancePartial(id="2", rev=1, text="So"))
        await bo.until(Caption, 2)
        await ana.peer.send(say("2", ENGLISH, rev=2))
        await bo.until(TranslationFinal)
        shown = [(m.lang, m.text) for m in bo.received if isinstance(m, Caption) and m.utterance == "2"]
        assert shown == [("de", "So"), ("en", ENGLISH)]
        assert [m.text for m in bo.received if isinstance(m, TranslationFinal)] == [f"[de] {ENGLISH}"]
        assert {m.lang for m in bo.received if isinstance(m, TranslationDelta)} <= {"de"}


async def test_one_utterance_alone_is_detected_and_one_that_tells_is_not() -> None:
    async with running() as gateway, joined(gateway, speaks="fr", reads=["fr"]) as ana:
        await ana.peer.send(UtteranceFinal(id="1", rev=1, text=GERMAN, lang="AUTO"))
        await ana.peer.send(UtteranceFinal(id="2", rev=1, text="Guten Tag", lang=None))
        await ana.peer.send(SessionUpdate(speaks="auto"))
        (updated,) = await ana.until(SessionUpdated)
        assert updated.speaks == "auto"
        await ana.peer.send(UtteranceFinal(id="3", rev=1, text=GERMAN, lang="es"), say("4", GERMAN))
        accepted = await ana.until(UtteranceAccepted, 4)
        assert [each.lang or None for each in accepted] == ["de", None, None, "de"]
        await ana.until(TranslationFinal, 3)
        found = {m.utterance: m.source_lang or None for m in ana.received if isinstance(m, TranslationFinal)}
        assert found == {"1": "de", "3": None, "4": "de"}


async def test_a_session_that_is_resumed_goes_on_in_its_language() -> None:
    async with running() as gateway:
        async with joined(gateway, speaks="auto", reads=["en"]) as ana:
            await ana.peer.send(say("1", GERMAN))
            await ana.until(TranslationFinal)
            ana.lose()
        async with joined(gateway, speaks="auto", reads=["en"], resume=ana.resume()) as again:
            assert again.started.recovered is True
            await again.peer.send(say("1", GERMAN), say("2", "42"))
            assert (await again.until(UtteranceAccepted, 2))[-1].lang == "de"


async def test_only_languages_that_the_token_allows_are_found(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings()) as gateway:
        token = keys.token(speaks=frozenset({"en", "fr"}))
        async with joined(gateway, speaks="auto", reads=["en"], token=token) as ana:
            await ana.peer.send(say("1", GERMAN))
            (accepted,) = await ana.until(UtteranceAccepted)
            assert accepted.lang in ("en", "fr")
        reader = keys.token(roles=frozenset({"read"}))
        async with joined(gateway, reads=["en"], token=reader) as bo:
            await bo.peer.send(SessionUpdate(speaks="auto"))
            (error,) = await bo.until(Error)
            assert (error.code, error.field) == ("forbidden", "speaks")


async def test_the_next_process_knows_what_was_found(tmp_path: Path) -> None:
    settings = Settings(event_log=EventLogSettings(handover_file=str(tmp_path / "handover")))
    async with running(settings) as gateway, joined(gateway, speaks="auto", reads=["en"]) as ana:
        await ana.peer.send(say("1", GERMAN))
        await ana.until(TranslationFinal)
        await gateway.gateway.drain()
        resume = ana.resume()
    async with running(settings) as gateway, joined(gateway, speaks="auto", reads=["en"], resume=resume) as again:
        assert again.started.recovered is True
        await again.peer.send(say("2", "42"))
        assert (await again.until(UtteranceAccepted))[-1].lang == "de"
