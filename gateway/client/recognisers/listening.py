"""The WebSocket of a recogniser: audio goes in, results come out. A Vosk server, WhisperLiveKit, and their like.

Knows: how audio is sent to a recogniser and ended, and when to connect again.
Must not know: what results look like (`recogniser`), where audio comes from.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from gateway.client.errors import ClientError

# How long to wait before the recogniser is tried again, at first and at most.
_RETRY_S = 0.5
_LONGEST_RETRY_S = 10.0

# How long a recogniser may take to say its last words after the end of the audio.
_LAST_WORDS_S = 30.0


class RecogniserUnreachable(ClientError):
    """There is no recogniser at the address."""


async def listen(
    url: str, audio: AsyncIterator[bytes] | None, *, sample_rate: int | None, wait_s: float
) -> AsyncGenerator[str | None, None]:
    """Each message of a recogniser; None where its connection was lost and is there again.

    audio: None if another program sends it. sample_rate: told first, as a Vosk server wants it, which is also told
    the end in its way; None: as WhisperLiveKit does without. wait_s: how long one that does not answer is tried
    again. Ends with the last words after the audio, or when the recogniser closes normally. Raises
    `RecogniserUnreachable`.
    """
    audio_is_over = asyncio.Event()
    connection = await _connected(url, sample_rate, wait_s)
    while True:
        async with connection:
            sending = asyncio.create_task(_send(connection, audio, sample_rate, audio_is_over))
            try:
                async for message in connection:
                    text = message if isinstance(message, str) else message.decode(errors="replace")
                    yield text
                    if audio_is_over.is_set() and '"ready_to_stop"' in text:
                        return
            except ConnectionClosed:
                pass
            finally:
                sending.cancel()
                with suppress(asyncio.CancelledError):
                    await sending
        if audio_is_over.is_set() or connection.close_code == 1000:
            return
        connection = await _connected(url, sample_rate, wait_s)
        yield None


async def _connected(url: str, sample_rate: int | None, wait_s: float) -> ClientConnection:
    loop = asyncio.get_running_loop()
    until_s = loop.time() + wait_s
    delay_s = _RETRY_S
    while True:
        try:
            connection = await connect(url, max_size=None, close_timeout=1)
            if sample_rate is not None:
                await connection.send(json.dumps({"config": {"sample_rate": sample_rate}}))
            return connection
        except InvalidURI as error:
            raise RecogniserUnreachable(f"{url} is not the address of a WebSocket.") from error
        except (OSError, InvalidHandshake, ConnectionClosed) as error:
            if loop.time() + delay_s > until_s:
                raise RecogniserUnreachable(f"No recogniser answers at {url}.") from error
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, _LONGEST_RETRY_S)


async def _send(
    connection: ClientConnection,
    audio: AsyncIterator[bytes] | None,
    sample_rate: int | None,
    audio_is_over: asyncio.Event,
) -> None:
    """Send the audio until its end, then wait for the last words."""
    if audio is None:
        return
    with suppress(ConnectionClosed):  # reading the results finds out
        async for chunk in audio:
            await connection.send(chunk)
        audio_is_over.set()
        await connection.send(b"" if sample_rate is None else '{"eof": 1}')
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await connection.wait_closed()
        await connection.close()
