"""Server-sent events: buffers the events of one call and writes them to the client.

Knows: the event stream format (https://html.spec.whatwg.org/multipage/server-sent-events.html), keep-alives, and
that a client may read more slowly than texts are generated. Must not know: engines, tickets, scheduling.

Generation never waits for the client. Unwritten deltas of one text are merged, so the buffer is bounded by the
output of one call.
"""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import UNSET, UnsetType
from starlette.types import Send

from gateway.server.http.bodies import STREAM_EVENTS, DeltaEvent, DoneEvent, FailedEvent, FinalEvent

# Proxies close connections after 30 to 60 seconds without data.
KEEP_ALIVE_S = 15.0
# No empty line follows: some clients would take it for an event without data.
KEEP_ALIVE = b": keep-alive\n"

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Without this, nginx buffers the events.
    (b"x-accel-buffering", b"no"),
]


def encode(event: DeltaEvent | FinalEvent | FailedEvent | DoneEvent) -> bytes:
    """One event. JSON escapes line breaks, so the data is always a single line."""
    return b"event: %b\ndata: %b\n\n" % (STREAM_EVENTS[type(event)].encode(), msgspec.json.encode(event))


class EventStream:
    """The events of one call, from the tasks that translate its texts to the client."""

    def __init__(self, *, keep_alive_s: float = KEEP_ALIVE_S) -> None:
        self._keep_alive_s = keep_alive_s
        # Text and language, where a call has several → what is not written yet.
        self._deltas: dict[tuple[int, str | UnsetType], list[str]] = {}
        self._ready: list[bytes] = []
        self._done = False
        self._news = asyncio.Event()

    def delta(self, index: int, committed: str, target_lang: str | UnsetType = UNSET) -> None:
        """New text of one translation."""
        self._deltas.setdefault((index, target_lang), []).append(committed)
        self._news.set()

    def end(self, event: FinalEvent | FailedEvent) -> None:
        """The last event of one translation."""
        key = event.index, event.target_lang
        if (texts := self._deltas.pop(key, None)) is not None:
            self._ready.append(encode(DeltaEvent(event.index, "".join(texts), event.target_lang)))
        self._ready.append(encode(event))
        self._news.set()

    def done(self, event: DoneEvent) -> None:
        """The last event: every text has ended."""
        self._ready.append(encode(event))
        self._done = True
        self._news.set()

    async def start(self, send: Send) -> None:
        """Send status and headers."""
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})

    async def write(self, send: Send) -> None:
        """Write events until `done` is written. Does not close the body."""
        finished = False
        while not finished:
            try:
                async with asyncio.timeout(self._keep_alive_s):
                    await self._news.wait()
            except TimeoutError:
                chunk = KEEP_ALIVE
            else:
                finished, chunk = self._done, self._take()
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def finish(self, send: Send) -> None:
        """Close the body."""
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _take(self) -> bytes:
        self._news.clear()
        deltas = [encode(DeltaEvent(index, "".join(texts), to)) for (index, to), texts in self._deltas.items()]
        chunk = b"".join(self._ready + deltas)
        self._deltas.clear()
        self._ready.clear()
        return chunk
