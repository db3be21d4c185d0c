"""What was said before, as programs read it: from a real gateway, with asyncio and without."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from msgspec.structs import fields

from gateway.client import (
    NotAuthorized,
    Rendering,
    SessionRefused,
    TranscriptRefused,
    TranscriptUtterance,
    UnreadableMessage,
    blocking,
    connect,
    erase_transcript,
    fetch_transcript,
)
from gateway.client.transcript import Transcript, transcript_of, transcript_url
from gateway.protocol.messages import UtteranceAccepted
from gateway.server.http import bodies
from tests.gateways import running
from tests.keys import Keyring


async def said(url: str, *texts: str, meeting: str, token: str | None = None) -> None:
    """Ana says it, one after the other, and leaves once all is translated into Japanese."""
    async with connect(url, meeting=meeting, name="Ana", speaks="en", reads=["ja"], token=token) as session:
        for text in texts:
            await session.final(text, start_ms=0, end_ms=900)
            async for event in session:
                if isinstance(event, UtteranceAccepted):
                    break
        await session.end()
        async for _ in session:
            pass


async def test_a_transcript_has_what_was_said_and_its_translations() -> None:
    async with running() as serving:
        await said(serving.url, "One.", "FAIL.", meeting="before.noon")
        whole = await fetch_transcript(serving.url, "before.noon", languages=["ja", "de"])
        waited = await asyncio.to_thread(
            blocking.fetch_transcript, serving.url, "before.noon", languages=["ja", "de"]
        )
    assert waited == whole
    assert (whole.meeting, whole.complete, whole.languages) == ("before.noon", True, ["ja", "de"])
    one, failed = whole.utterances
    assert (one.speaker, one.lang, one.text, one.start_ms, one.end_ms) == ("Ana", "en", "One.", 0, 900)
    missing = Rendering("missing", None, None)
    assert one.translations == {"ja": Rendering("translated", "[ja] One.", None), "de": missing}
    assert failed.translations == {"ja": Rendering("failed", None, "engine_failed"), "de": missing}


async def test_a_transcript_comes_in_parts_from_its_end() -> None:
    async with running() as serving:
        await said(serving.url, "One.", "Two.", "Three.", meeting="m")
        (newest,) = (await fetch_transcript(serving.url, "m", last=1)).utterances
        earlier = await fetch_transcript(serving.url, "m", last=5, before=newest.offset)
        waited = await asyncio.to_thread(blocking.fetch_transcript, serving.url, "m", last=5, before=newest.offset)
    assert newest.text == "Three."
    assert [each.text for each in earlier.utterances] == ["One.", "Two."]
    assert waited == earlier


async def test_a_refusal_says_why_as_the_gateway_does() -> None:
    async with running() as serving:
        with pytest.raises(TranscriptRefused, match="no log of a meeting 'nobody was here'") as refused:
            await fetch_transcript(serving.url, "nobody was here")
        assert (refused.value.code, refused.value.status) == ("unknown_meeting", 404)
        with pytest.raises(TranscriptRefused, match="xx") as refused:
            await asyncio.to_thread(blocking.fetch_transcript, serving.url, "m", languages=["xx"])
        assert (refused.value.code, refused.value.status) == ("unsupported_language", 422)


async def test_transcript_needs_the_role(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    roles = frozenset({"speak", "read", "transcript"})
    async with running(keys.settings()) as serving:
        await said(serving.url, "One.", meeting="m", token=keys.token())
        for source in (None, "bad", keys.token()):
            with pytest.raises(NotAuthorized) as refused:
                await fetch_transcript(serving.url, "m", token=source)
            assert refused.value.error.code == ("unauthenticated" if source in (None, "bad") else "forbidden")

        async def token() -> str:
            return keys.token(roles=roles)

        (one,) = (await fetch_transcript(serving.url, "m", token=token)).utterances
        waited = await asyncio.to_thread(blocking.fetch_transcript, serving.url, "m", token=token)
        again = await asyncio.to_thread(
            blocking.fetch_transcript, serving.url, "m", token=lambda: keys.token(roles=roles)
        )
    assert [one] == waited.utterances == again.utterances


async def test_erased_transcript_is_gone(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with running(keys.settings()) as serving:
        for text in ("One.", "Two."):
            await said(serving.url, text, meeting="m", token=keys.token())
            assert (await fetch_transcript(serving.url, "m", token=keys.api_key)).utterances[0].text == text
            with pytest.raises(NotAuthorized, match="admin"):
                await erase_transcript(serving.url, "m", token=keys.token())
            if text == "One.":
                await erase_transcript(serving.url, "m", token=lambda: keys.token(roles=frozenset({"admin"})))
            else:
                await asyncio.to_thread(blocking.erase_transcript, serving.url, "m", token=keys.api_key)
            with contextlib.suppress(TranscriptRefused):  # once the gateway has noticed that nobody is there
                assert not (await fetch_transcript(serving.url, "m", token=keys.api_key)).utterances


async def test_unrecorded_meeting_has_no_transcript() -> None:
    async with (
        running() as serving,
        connect(serving.url, meeting="board", reads=[], speaks="en", record=False) as ana,
        connect(serving.url, meeting="board", reads=["en"]) as bo,
    ):
        assert ana.started.record is bo.started.record is False
        with pytest.raises(TranscriptRefused, match="is not recorded") as refused:
            await fetch_transcript(serving.url, "board")
        assert (refused.value.code, refused.value.status) == ("not_recorded", 404)
        with pytest.raises(SessionRefused, match="is not recorded"):
            async with connect(serving.url, meeting="board", reads=[], record=True):
                pass


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"meeting": "m"}'])
def test_what_is_not_a_transcript_is_said_to_be_none(answer: bytes) -> None:
    with pytest.raises(UnreadableMessage, match=r"^The gateway sent a transcript that this client cannot read: "):
        transcript_of(answer)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Transcript, bodies.TranscriptAnswer),
        (TranscriptUtterance, bodies.TranscriptUtterance),
        (Rendering, bodies.TranscriptText),
    ],
)
def test_a_transcript_has_the_fields_that_gateways_send(ours: type, theirs: type) -> None:
    assert [field.name for field in fields(ours)] == [field.name for field in fields(theirs)]


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/meetings/m/transcript.srt?lang=ja,en"),
        ("wss://ws.example/deep/v1/stream", "https://ws.example/deep/v1/meetings/m/transcript.srt?lang=ja,en"),
        ("example:80", "http://example:80/v1/meetings/m/transcript.srt?lang=ja,en"),
    ],
)
def test_the_address_of_a_transcript(address: str, url: str) -> None:
    assert transcript_url(address, "m", "srt", ["ja", "en"]) == url


def test_one_language_is_a_list_too() -> None:
    with pytest.raises(TypeError, match="languages is a list"):
        transcript_url("http://127.0.0.1:8000", "m", "json", "ja")
