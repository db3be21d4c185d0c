"""A speaker who changes languages, over real sockets and with the real detector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.config import EventLogSettings, Settings
from gateway.protocol.messages import (
    Caption,
    TranslationFinal,
    UtteranceAccepted,
)
from tests.gateways import running
from tests.meetings import joined, say
from tests.over_http import serving

GERMAN, ENGLISH = "Wir verschieben das auf Freitag.", "So Friday is fine for everybody."


def logged(messages: list[Any]) -> list[Any]:
    return [message for message in messages if isinstance(message, Caption | TranslationFinal)]


async def test_detected_languages_reach_readers_latecomers_and_transcript() -> None:
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
