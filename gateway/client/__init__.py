"""The Python client: a session that reconnects and resumes, for programs, the command line and tests.

Knows: how a session is opened and closed, and what else there is for programs.
Must not know: the server's code, terminals, what is done with the messages.
docs/client.md explains the client with examples.

    errors        the exceptions, as one tree
    events        what iterating a session gives
    lines         what is on a reader's screen (pure)
    tokens        where tokens come from, and when a new one is due
    connection    one WebSocket: address, opening, frames, close
    outgoing      finals and updates until they are answered (pure)
    received      position in the log, duplicates (pure)
    reconnecting  when to reconnect (pure)
    session       a session over any number of connections
    over_http     answers to requests over HTTP
    transcript    what was said in a meeting before
    blocking      the same for programs without asyncio
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from gateway.client.connection import Connection, Endpoint, stream_url
from gateway.client.errors import (
    ClientError,
    EngineNotReady,
    GatewayUnreachable,
    InvalidAddress,
    MessageRefused,
    NotAuthorized,
    SessionClosed,
    SessionRefused,
    TokenUnavailable,
    TranscriptRefused,
    UnreadableMessage,
    refusal,
)
from gateway.client.events import Reconnected, Reconnecting, SessionEvent
from gateway.client.lines import Line
from gateway.client.reconnecting import Reconnect
from gateway.client.session import ClientSession
from gateway.client.tokens import Tokens, TokenSource
from gateway.client.transcript import (
    Rendering,
    Transcript,
    TranscriptUtterance,
    erase_transcript,
    fetch_transcript,
)
from gateway.domain.engine import Formality
from gateway.domain.errors import EngineUnavailable, RateLimited
from gateway.domain.sessions import Stability
from gateway.protocol.codec import CODECS, JSON, Codec
from gateway.protocol.messages import Error, Resume, SessionStart, SessionStarted

__all__ = [
    "ClientError",
    "ClientSession",
    "EngineNotReady",
    "GatewayUnreachable",
    "InvalidAddress",
    "Line",
    "MessageRefused",
    "NotAuthorized",
    "Reconnect",
    "Reconnected",
    "Reconnecting",
    "Rendering",
    "Resume",
    "SessionClosed",
    "SessionEvent",
    "SessionRefused",
    "TokenSource",
    "TokenUnavailable",
    "Transcript",
    "TranscriptRefused",
    "TranscriptUtterance",
    "UnreadableMessage",
    "connect",
    "erase_transcript",
    "fetch_transcript",
    "stream_url",
]

# Wait between two `session.start` if the gateway does not say how long to wait.
_RETRY_MS = 2_000

_RECONNECT = Reconnect()

_LOG = logging.getLogger("gateway.client")


@asynccontextmanager
async def connect(
    url: str,
    *,
    reads: Sequence[str],
    speaks: str | None = None,
    meeting: str | None = None,
    name: str | None = None,
    stability: Stability = "live",
    originals: bool = False,
    glossary: dict[str, dict[str, str]] | None = None,
    context: str | None = None,
    formality: Formality | None = None,
    record: bool | None = None,
    host: str | None = None,
    guest: str | None = None,
    title: str | None = None,
    token: TokenSource | None = None,
    codec: Codec = JSON,
    ready_timeout_s: float = 300.0,
    on_waiting: Callable[[Error], object] | None = None,
    resume: Resume | None = None,
    reconnect: Reconnect | None = _RECONNECT,
    max_unacknowledged: int = 1_000,
    ping_interval_s: float | None = 20.0,
    ping_timeout_s: float | None = 20.0,
) -> AsyncGenerator[ClientSession, None]:
    """Open a connection and start a session on it; leaving the context ends both.

    meeting: its id; None starts a private meeting.
    stability: how much is received of an utterance that is still being said. `live`: the earliest translation,
        whose tentative end may change. `stable`: only text that is never taken back. `final`: nothing.
    originals: whether captions come in every language that is spoken, not only those in `reads`.
    glossary: target language → source term → target term.
    record: whether the meeting is recorded, if this session begins it; False: nothing is kept of what is said. In
        a meeting that is otherwise, `SessionRefused` is raised. None: as it is; `started.record` is False then.
    host: where no token is needed, the secret that the id of the meeting was made of: the session is a host. See
        "Hosts" in docs/protocol.md. `started.host` is True then.
    guest: a secret of this person's, the same in all their sessions, where no token says who it is: by it they are
        one `person` to the others, and stay muted if they come back.
    title: what the meeting is called, if it has no title yet and this session is a host's, or the first in it.
    token: for a gateway that needs one: a string, or a function that returns one or an awaitable of one. The
        function is called at every attempt to connect and when the session needs a new token. See "Tokens" in
        docs/client.md.
    ready_timeout_s: how long to wait for an engine that is loading, in seconds.
    on_waiting: called with each answer that asks to wait for the engine; without it the first one is logged.
    resume: the `position` of a session that an earlier process had.
    reconnect: when to reconnect. None: not at all; iterating raises `SessionClosed` when the connection is lost.
    max_unacknowledged: finals and updates that may wait for the gateway; with more, `final` and `update` wait.
    ping_interval_s: how often to ping the gateway. None: never.
    ping_timeout_s: how long to wait for the answer before the connection counts as lost. None: for ever.

    To receive all unfinished translations, call `ClientSession.end` and iterate to the end before you leave.

    Raises every class of the tree in `gateway.client.errors`; `ValueError` for a token that no header can carry;
    `TypeError` for `reads` that are no list and a `codec` that no gateway speaks.
    """
    if isinstance(reads, str):
        raise TypeError("reads is a list of languages, as in ['ja']")
    if getattr(codec, "subprotocol", None) not in CODECS:
        raise TypeError("codec is JSON or MSGPACK of gateway.protocol.codec: gateways speak no other")
    start = SessionStart(
        reads=list(reads),
        speaks=speaks,
        meeting=meeting,
        name=name,
        stability=stability,
        originals=originals,
        glossary=glossary,
        context=context,
        formality=formality,
        resume=resume,
        record=record,
        host=host,
        guest=guest,
        title=title,
    )
    tokens = Tokens(token)
    endpoint = Endpoint(stream_url(url), codec, ping_interval_s, ping_timeout_s, tokens)
    connection = await Connection.open(endpoint, await tokens.ask())
    try:
        started = await _start(connection, endpoint, start, ready_timeout_s, on_waiting)
    except BaseException:
        await connection.close()
        raise
    session = ClientSession(
        endpoint,
        connection,
        start,
        started,
        reconnect=Reconnect(give_up_s=0.0) if reconnect is None else reconnect,
        max_unacknowledged=max_unacknowledged,
    )
    try:
        yield session
    finally:
        await session.close()


async def _start(
    connection: Connection,
    endpoint: Endpoint,
    start: SessionStart,
    ready_timeout_s: float,
    on_waiting: Callable[[Error], object] | None,
) -> SessionStarted:
    """Send `session.start` until the engine is ready."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + ready_timeout_s
    is_told = False
    while True:
        answer = await connection.start(start)
        if isinstance(answer, SessionStarted):
            return answer
        if answer.code not in (EngineUnavailable.code, RateLimited.code):
            raise refusal(answer)
        wait_s = (_RETRY_MS if answer.retry_after_ms is None else answer.retry_after_ms) / 1000
        if loop.time() + wait_s > deadline_s:
            if answer.code == RateLimited.code:
                raise SessionRefused(answer)
            state = f"not ready after {ready_timeout_s:g} s" if ready_timeout_s else "still loading"
            raise EngineNotReady(f"The engine of the gateway at {endpoint.address} is {state}.")
        if on_waiting is not None:
            on_waiting(answer)
        elif not is_told:
            _LOG.warning("%s Waiting for it, for %g s at most.", answer.message, ready_timeout_s)
            is_told = True
        await asyncio.sleep(wait_s)
