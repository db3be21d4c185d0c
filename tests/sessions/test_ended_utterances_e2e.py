"""However an utterance ends, nothing of it stays on a screen: here, at another gateway, of latecomers."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from gateway.config import Settings, StoreSettings
from gateway.domain.errors import GatewayError, Overloaded
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    ParticipantLeft,
    SessionEnd,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceCancel,
    UtteranceCancelled,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.sessions import machine
from gateway.translation.scheduling.scheduler import Scheduler
from tests.gateways import Running, running
from tests.meetings import Somebody, joined
from tests.redis_server import shared_urls

pytestmark = pytest.mark.slow

# Ana comes third, so the others are not told that she leaves.
LIMITS = Limits(text_chars=50, utterances_in_flight=1, message_bytes=1_000, participants_shown=2)


@contextlib.asynccontextmanager
async def two() -> AsyncIterator[tuple[Running, Running]]:
    store = StoreSettings(url=shared_urls(1), prefix=f"{secrets.token_hex(4)}:")
    settings = Settings(store=store, limits=LIMITS)
    async with running(settings) as one, running(settings) as another:
        yield one, another


def unfinished(reader: Somebody) -> set[tuple[str, str]]:
    """What a screen shows of `u1` that may still change: text, by language."""
    shown: set[tuple[str, str]] = set()
    for message in reader.received:
        match message:
            case Caption(utterance="u1", final=False, lang=lang):
                shown.add(("caption", lang))
            case Caption(utterance="u1", final=True, lang=lang):
                shown.discard(("caption", lang))
            case TranslationDelta(utterance="u1", lang=lang):
                shown.add(("translation", lang))
            case TranslationFinal(utterance="u1", lang=lang) | TranslationFailed(utterance="u1", lang=lang):
                shown.discard(("translation", lang))
            case UtteranceCancelled(utterance="u1") | ParticipantLeft():
                shown.clear()
    return shown


Join = Callable[[contextlib.AbstractAsyncContextManager[Somebody]], Awaitable[Somebody]]


class Talk:
    """Ana, who is saying `u1`, and the gateway that she is not at."""

    def __init__(self, there: Running, ana: Somebody, join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there, self.ana, self.join = there, ana, join
        self.monkeypatch = monkeypatch

    async def sends(self, **fields: Any) -> None:
        """A final with these fields."""
        await self.ana.peer.send(UtteranceFinal(**{"id": "u1", "rev": 9, "text": "Good morning.", **fields}))

    async def sends_raw(self, frame: str) -> None:
        await self.ana.peer.connection.send(frame)

    async def sends_second(self) -> None:
        """While another one is not finished."""
        await self.ana.peer.send(UtteranceFinal("u0", 1, "STALL"))
        await self.sends()

    async def sends_to_failing(self, error: GatewayError) -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise error

        self.monkeypatch.setattr(Scheduler, "admit", refuse)
        await self.sends()

    async def cancels(self) -> None:
        await self.ana.peer.send(UtteranceCancel("u1"))

    async def ends(self) -> None:
        await self.ana.peer.send(SessionEnd())

    async def moves(self, then: Callable[[Talk], Awaitable[None]]) -> None:
        """She goes on at the other gateway, without a word of what she was saying."""
        self.ana.lose()
        self.ana = await self.join(joined(self.there, speaks="en", reads=[], resume=self.ana.resume()))
        assert self.ana.started.recovered
        await then(self)


ENDINGS: dict[str, Callable[[Talk], Awaitable[None]]] = {
    "too long": lambda t: t.sends(text="x" * 51),
    "an unknown language": lambda t: t.sends(lang="tlh"),
    "no text": lambda t: t.sends(text=""),
    "blanks": lambda t: t.sends(text=" \n\u3000"),
    "an old revision": lambda t: t.sends(rev=0),
    "a field that cannot be read": lambda t: t.sends_raw(
        '{"type": "utterance.final", "id": "u1", "rev": "nine", "text": "Good morning."}'
    ),
    "a frame that is too large": lambda t: t.sends_raw(
        '{"type": "utterance.final", "id": "u1", "rev": 9, "text": "' + "x" * 1_000 + '"}'
    ),
    "too many, and not again": Talk.sends_second,
    "overload, and not again": lambda t: t.sends_to_failing(Overloaded("Too much waits.", retry_after_ms=1)),
    "a bug": lambda t: t.sends_to_failing(GatewayError("A bug.")),
    "cancelled": Talk.cancels,
    "the end of the session": Talk.ends,
    "lost by the engine": lambda t: t.sends(text="FAIL please."),
    "cancelled at another gateway": lambda t: t.moves(Talk.cancels),
    "refused at another gateway": lambda t: t.moves(lambda t: t.sends(text="x" * 51)),
    "accepted": lambda t: t.sends(),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_what_ended_is_on_no_screen(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_AGAIN_S", 0.05)
    async with two() as (here, there), contextlib.AsyncExitStack() as stack:
        join = stack.enter_async_context
        readers = [await join(joined(gateway, reads=["en", "ja"])) for gateway in (here, there)]
        ana = await join(joined(here, speaks="en", reads=[]))
        await ana.peer.send(UtterancePartial("u1", 1, "We will move the launch to Friday"))
        for reader in readers:
            await reader.until(Caption)
            await reader.until(TranslationDelta)
            assert unfinished(reader) == {("caption", "en"), ("translation", "ja")}
        await ENDINGS[ending](Talk(there, ana, join, monkeypatch))
        for reader in readers:
            while unfinished(reader):
                await reader.receive()
        for gateway in (here, there):
            latecomer = await join(joined(gateway, reads=["en", "ja"]))
            await latecomer.everything()
            assert not unfinished(latecomer)
        for reader in readers:
            await reader.everything()
            assert not unfinished(reader)
