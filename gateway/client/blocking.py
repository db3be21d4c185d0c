"""The client for programs without asyncio: each call waits for its result.

Knows: how to run coroutines in a thread of their own. Must not know: anything else; it is the session of
`client.session`, method by method, and the transcript of `client.transcript`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import signal
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, contextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from gateway.client import connect as connect_async
from gateway.client.events import SessionEvent
from gateway.client.lines import Line, LineStream
from gateway.client.session import ClientSession
from gateway.client.tokens import Secret, Tokens, TokenSource
from gateway.client.transcript import Transcript, kept_url, read_transcript, transcript_of, transcript_url
from gateway.protocol.messages import Resume, SessionStarted, UtteranceFinal

_P = ParamSpec("_P")
_T = TypeVar("_T")


class LoopThread:
    """An event loop in a thread of its own: it keeps connections alive while the program does other things.

    masked: whether Ctrl-C reaches neither the thread nor what it starts, so that it interrupts a wait for input in
    the main thread. Without it, Ctrl-C also ends a program that gets a token.
    """

    def __init__(self, *, masked: bool = False) -> None:
        self._masked = masked

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        # If the program ends without leaving the context, this thread must not keep it.
        self._thread = threading.Thread(target=self._run_loop, name="gateway-client", daemon=True)
        self._thread.start()
        return self

    def _run_loop(self) -> None:
        if self._masked and hasattr(signal, "pthread_sigmask"):  # not on Windows
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._loop.run_forever()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of a coroutine; it is cancelled if the wait is interrupted, by Ctrl-C for example."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def __exit__(self, *_: object) -> None:
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _blocking(
    method: Callable[Concatenate[ClientSession, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[BlockingSession, _P], _T]:
    """The method of the session, with the same parameters, that waits."""

    @functools.wraps(method)
    def call(self: BlockingSession, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._loop.run(method(self._session, *args, **kwargs))

    return call


class BlockingSession:
    """A started session: send with the methods, read with `for`; other threads may send while one reads.

    As with `ClientSession`, what is received, sent again and reconnected is done while a thread reads the session.
    """

    def __init__(self, session: ClientSession, loop: LoopThread) -> None:
        self._session = session
        self._loop = loop

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self._session.url

    @property
    def started(self) -> SessionStarted:
        """The gateway's newest answer to `session.start`, with its languages and limits."""
        return self._session.started

    @property
    def position(self) -> Resume:
        """Where the session is now; what `connect(resume=…)` takes."""
        return self._session.position

    @property
    def unacknowledged(self) -> tuple[UtteranceFinal, ...]:
        """The finals that the gateway has neither accepted nor refused for good, oldest first."""
        return self._session.unacknowledged

    def __iter__(self) -> Iterator[SessionEvent]:
        """Every event, until the gateway has closed the session with 1000; else raises `ClientError`."""
        while (event := self.receive()) is not None:
            yield event

    def lines(self) -> Generator[Line, None, None]:
        """Everything in the languages that are read, while it is being said; as `ClientSession.lines`."""
        return self._each(self._session.lines())

    def finals(self) -> Generator[Line, None, None]:
        """Everything that is complete, in the languages that are read; as `ClientSession.finals`."""
        return self._each(self._session.finals())

    def _each(self, lines: LineStream) -> Generator[Line, None, None]:
        async def following() -> Line | None:
            return await anext(lines, None)

        while (line := self._loop.run(following())) is not None:
            yield line

    def receive(self, timeout_s: float | None = None) -> SessionEvent | None:
        """The next event; None after the last one.

        Raises `ClientError`, and `TimeoutError` if none comes in time.
        """
        return self._loop.run(self._next(timeout_s))

    async def _next(self, timeout_s: float | None) -> SessionEvent | None:
        async with asyncio.timeout(timeout_s):
            return await anext(self._session, None)

    final = _blocking(ClientSession.final)
    partial = _blocking(ClientSession.partial)
    cancel = _blocking(ClientSession.cancel)
    update = _blocking(ClientSession.update)
    remove = _blocking(ClientSession.remove)
    mute = _blocking(ClientSession.mute)
    lock = _blocking(ClientSession.lock)
    entitle = _blocking(ClientSession.entitle)
    end_meeting = _blocking(ClientSession.end_meeting)
    ping = _blocking(ClientSession.ping)
    end = _blocking(ClientSession.end)
    send = _blocking(ClientSession.send)
    drop = _blocking(ClientSession.drop)


def _with_loop(
    opening: Callable[_P, AbstractAsyncContextManager[ClientSession]],
) -> Callable[_P, AbstractContextManager[BlockingSession]]:
    """The function that opens a session, with the same parameters, in a loop of its own."""

    @contextmanager
    @functools.wraps(opening)
    def connected(*args: _P.args, **kwargs: _P.kwargs) -> Iterator[BlockingSession]:
        kwargs["token"] = _in_a_thread(kwargs.get("token"))
        stack = AsyncExitStack()
        with LoopThread() as loop:
            session = loop.run(stack.enter_async_context(opening(*args, **kwargs)))
            try:
                yield BlockingSession(session, loop)
            finally:
                loop.run(stack.aclose())

    return connected


def _in_a_thread(source: Any) -> Any:
    """The source of tokens. A function that waits, for an answer over HTTP perhaps, must not hold up the loop."""
    if not callable(source) or inspect.iscoroutinefunction(source):
        return source

    async def ask() -> Any:
        token = await asyncio.to_thread(source)
        return await token if inspect.isawaitable(token) else token

    return ask


connect = _with_loop(connect_async)


def fetch_transcript(
    url: str,
    meeting: str,
    *,
    languages: Sequence[str] = (),
    last: int | None = None,
    before: int | None = None,
    token: TokenSource | None = None,
    timeout_s: float = 30.0,
) -> Transcript:
    """What was said in a meeting, now or before; as `gateway.client.fetch_transcript`, but it waits."""
    address = transcript_url(url, meeting, "json", languages, last=last, before=before)
    return transcript_of(read_transcript(address, _token_of(token), timeout_s))


def erase_transcript(url: str, meeting: str, *, token: TokenSource | None = None, timeout_s: float = 30.0) -> None:
    """Let the gateway forget what was said in a meeting; as `gateway.client.erase_transcript`, but it waits."""
    read_transcript(kept_url(url, meeting), _token_of(token), timeout_s, method="DELETE")


def _token_of(source: TokenSource | None) -> Secret | None:
    with LoopThread() as loop:
        return loop.run(Tokens(_in_a_thread(source)).ask())
