"""`gateway bridge`: says in a meeting what a speech recogniser hears.

Knows: where results come from, which is stdin or the recogniser's own WebSocket, and how audio goes there.
Must not know: how flags are spelled (`cli.flags`), what results look like (`client.recognisers`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TextIO

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from gateway.cli.meeting import MeetingOptions, join_meeting
from gateway.cli.notes import note
from gateway.cli.speak import Speech, speak_until_the_end
from gateway.cli.terminal.drawing import head, printable
from gateway.cli.terminal.lines import chunks_of, lines_of
from gateway.client import ClientError, ClientSession
from gateway.client.recognisers import Recogniser, Said, say

# How long to wait before the recogniser is tried again, at first and at most.
_RETRY_S = 0.5
_LONGEST_RETRY_S = 10.0

# How long a recogniser may take to say its last words after the end of the audio.
_LAST_WORDS_S = 30.0

_COLUMNS = 60


class RecogniserUnreachable(ClientError):
    """There is no recogniser at the address."""


class Ear:
    """A recogniser's WebSocket: audio goes in from a file or pipe, results come out.

    sample_rate: told first and with the end, as a Vosk server wants it; None: as WhisperLiveKit does without.
    wait_s: how long a recogniser that cannot be reached is tried again.
    """

    def __init__(self, url: str, audio_fd: int | None, sample_rate: int | None, wait_s: float) -> None:
        self._url = url
        self._audio_fd = audio_fd
        self._sample_rate = sample_rate
        self._wait_s = wait_s
        self._has_ended = False

    async def results(self) -> AsyncGenerator[str | None, None]:
        """Each message; None where the connection was lost and is there again. Raises `RecogniserUnreachable`."""
        is_first = True
        while (connection := await self._connected()) is not None:
            if not is_first:
                note("The recogniser is back.")
                yield None
            is_first = False
            async with connection:
                sending = asyncio.create_task(self._send_audio(connection))
                try:
                    async for message in connection:
                        text = message if isinstance(message, str) else message.decode(errors="replace")
                        yield text
                        if self._has_ended and '"ready_to_stop"' in text:
                            return
                except ConnectionClosed:
                    pass
                finally:
                    sending.cancel()
                    with suppress(asyncio.CancelledError):
                        await sending
            if self._has_ended or connection.close_code == 1000:
                return
            note("The connection to the recogniser was lost. Trying again.")

    async def _connected(self) -> ClientConnection | None:
        """A connection; None if none is needed any more."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._wait_s
        delay_s = _RETRY_S
        while not self._has_ended:
            try:
                connection = await connect(self._url, max_size=None, close_timeout=1)
                if self._sample_rate is not None:
                    await connection.send(json.dumps({"config": {"sample_rate": self._sample_rate}}))
                return connection
            except InvalidURI as error:
                raise RecogniserUnreachable(f"{self._url} is not the address of a WebSocket.") from error
            except (OSError, InvalidHandshake, ConnectionClosed) as error:
                if loop.time() + delay_s > until_s:
                    raise RecogniserUnreachable(f"No recogniser answers at {self._url}.") from error
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, _LONGEST_RETRY_S)
        return None

    async def _send_audio(self, connection: ClientConnection) -> None:
        """Send the audio until its end, then wait for the last words."""
        if self._audio_fd is None:
            return
        with suppress(ConnectionClosed):  # reading the results finds out
            async for chunk in chunks_of(self._audio_fd):
                await connection.send(chunk)
            self._has_ended = True
            await connection.send(b"" if self._sample_rate is None else '{"eof": 1}')
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_S):
                    await connection.wait_closed()
            await connection.close()


async def bridge(options: MeetingOptions, lang: str, stdin: TextIO, ear: Ear | None) -> int:
    """Say what a recogniser hears until it ends, or Ctrl-C. Returns the exit status.

    ear: the recogniser's WebSocket; None: its results are the lines of `stdin`.
    Raises `ClientError`.
    """
    results: AsyncGenerator[str | None, None] = lines_of(stdin.fileno()) if ear is None else ear.results()
    async with join_meeting(options, speaks=lang) as session:
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
