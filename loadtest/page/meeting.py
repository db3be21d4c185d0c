"""The meeting that the page shows: one speaker in each language, over real connections.

Knows: the product's client, the schedule. Must not know: the browser, what is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from demo_model import LANGUAGES
from gateway.client import ClientSession, connect
from gateway.protocol.messages import Error
from loadtest.page.speech import speech
from loadtest.results import LoadtestError

__all__ = ["meeting"]

_NAMES = ("Ana", "Haruto", "Lucía", "Jonas", "Chloé", "Wei")


class Meeting:
    """Speakers that speak until they are hushed. late_ms: by how much one was behind at most."""

    def __init__(self, sessions: list[ClientSession], captions_per_s: float, seed: int) -> None:
        self.late_ms = 0.0
        self._sessions = sessions
        self._speech = speech(captions_per_s, seed)
        self._begun: set[int] = set()
        self._unfinished: set[int] = set()
        self._hushed = False

    @property
    def said(self) -> int:
        """Utterances so far, unfinished ones included."""
        return len(self._begun)

    async def speak(self) -> None:
        """Speak on schedule, whether anybody keeps up or not. Ends once hushed, with what was begun."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for said in self._speech:
            if self._hushed and not self._unfinished:
                return
            if self._hushed and said.utterance not in self._begun:
                continue
            await asyncio.sleep(max(began_s + said.at_s - loop.time(), 0))
            if self._hushed and said.utterance not in self._begun:
                continue
            self.late_ms = max(self.late_ms, (loop.time() - began_s - said.at_s) * 1000)
            self._begun.add(said.utterance)
            self._unfinished.add(said.utterance)
            session = self._sessions[said.speaker]
            if said.final:
                self._unfinished.discard(said.utterance)
                await session.final(said.text, str(said.utterance))
            else:
                await session.partial(said.text, str(said.utterance))

    def hush(self) -> None:
        """Begin nothing new."""
        self._hushed = True


@asynccontextmanager
async def meeting(url: str, id: str, captions_per_s: float, seed: int) -> AsyncIterator[Meeting]:
    """Everybody is there and silent until `speak`, and gone when the block ends. Raises `LoadtestError`."""
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(
                connect(url, reads=[], speaks=lang, meeting=id, name=name, reconnect=False)
            )
            for lang, name in zip(LANGUAGES, _NAMES, strict=True)
        ]
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        listening = [tasks.create_task(_listen(session)) for session in sessions]
        yield Meeting(sessions, captions_per_s, seed)
        for task in listening:
            task.cancel()


async def _listen(session: ClientSession) -> None:
    async for event in session:
        if isinstance(event, Error) and not event.retryable:
            raise LoadtestError(f"The gateway refused what was said: {event.code}.")
