"""What speech recognisers say, repaired: results in; partials, finals and cancels out.

Knows: the forms of results, and what recognisers do wrong. Must not know: where results come from, clocks.
Its twin is `web_demo/client/recognisers/`; both run the recordings in `tests/recordings/`.

    utterances  the utterance that is being said, and what is never said (pure)
    texts       words of a text, as far as texts are compared (pure)
    lines       Vosk and pocketsphinx: a line for each result (pure)
    states      WhisperLiveKit, WhisperLive, whisper_streaming: everything so far, again and again (pure)
    browser     SpeechRecognition of browsers (pure)
    recogniser  which of them it is (pure)
    listening   the WebSocket of a recogniser
"""

from __future__ import annotations

from typing import Protocol

from gateway.client.recognisers.recogniser import Recogniser, Result
from gateway.client.recognisers.utterances import Said

__all__ = ["Recogniser", "Result", "Said", "say"]


class Speaker(Protocol):
    """The methods of a session that speak."""

    async def partial(
        self, text: str, id: str | None, *, lang: str | None, start_ms: int | None, end_ms: int | None
    ) -> str: ...

    async def final(
        self, text: str, id: str | None, *, lang: str | None, start_ms: int | None, end_ms: int | None
    ) -> str: ...

    async def cancel(self, id: str) -> None: ...


async def say(session: Speaker, said: Said, lang: str | None = None) -> None:
    """Say it in a session. Raises what the session's methods raise."""
    if said.kind == "cancel":
        await session.cancel(said.id)
        return
    send = session.final if said.kind == "final" else session.partial
    await send(said.text, said.id, lang=lang, start_ms=said.start_ms, end_ms=said.end_ms)
