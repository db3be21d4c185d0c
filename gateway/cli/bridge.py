"""`gateway bridge`: says in a meeting what a speech recogniser hears.

Knows: where results come from: stdin, or the recogniser's own WebSocket, which then gets stdin as audio.
Must not know: how flags are spelled (`cli.flags`), what results look like (`client.recognisers`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from gateway.cli.sessions import MeetingOptions, note
from gateway.cli.speak import Speech, speak_until_the_end
from gateway.cli.terminal.drawing import head, printable
from gateway.cli.terminal.lines import chunks_of, lines_of
from gateway.client import ClientSession
from gateway.client.recognisers import Recogniser, Said, say
from gateway.client.recognisers.listening import listen

_COLUMNS = 60


async def bridge(
    options: MeetingOptions, lang: str, stdin_fd: int | None, *, url: str | None, sample_rate: int | None
) -> int:
    """Say what a recogniser hears until it ends, or Ctrl-C. Returns the exit status. Raises `ClientError`.

    url: the recogniser's WebSocket, which gets stdin as audio; None: stdin has its results, a line each.
    """
    results: AsyncGenerator[str | None, None]
    if url is None:
        assert stdin_fd is not None  # noqa: S101 -- the command checks it
        results = lines_of(stdin_fd)
    else:
        audio = None if stdin_fd is None else chunks_of(stdin_fd)
        results = listen(url, audio, sample_rate=sample_rate, wait_s=options.wait_s)
    async with options.join_meeting(speaks=lang) as session:
        speech = Speech(session, None, unit="utterance")
        return await speak_until_the_end(session, speech, _Bridge(session, speech).say(results))


class _Bridge:
    """What a recogniser says, on its way into a session."""

    def __init__(self, session: ClientSession, speech: Speech) -> None:
        self._session = session
        self._speech = speech
        self._begun_s = asyncio.get_running_loop().time()
        self._has_complained = False

    async def say(self, results: AsyncGenerator[str | None, None]) -> None:
        """Say everything; end the session when all of it has an answer."""
        recogniser = Recogniser()
        async with aclosing(results):
            async for result in results:
                if result is None:
                    note("The recogniser was lost, and is back.")
                    recogniser.restarted(round((asyncio.get_running_loop().time() - self._begun_s) * 1000))
                else:
                    await self._say(self._heard(recogniser, result))
        await self._say(recogniser.rest())
        await self._speech.finish()

    def _heard(self, recogniser: Recogniser, line: str) -> list[Said]:
        with suppress(AttributeError, IndexError, KeyError, TypeError, ValueError):
            if line.lstrip().startswith("{"):
                return recogniser.hear(json.loads(line))
            if heard := recogniser.hear(line):
                return heard
        if line.strip() and not self._has_complained:
            self._has_complained = True
            note(f"This is not a recogniser's result: {head(printable(line), _COLUMNS)}")
        return []

    async def _say(self, heard: list[Said]) -> None:
        for said in heard:
            if said.kind == "final":
                self._speech.begin(said.id, said.text)
            try:
                await say(self._session, said)
            except ValueError as error:  # too long to send
                if said.kind == "final":
                    self._speech.refuse(said.id, str(error))
