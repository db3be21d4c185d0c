"""The client process: so many speakers, each with a session of its own and one utterance in flight.

Knows: `gateway.client` and the lines it exchanges with the process that started it. Must not know: what is
measured elsewhere. It is a process of its own so that its CPU time is not counted as the gateway's.

    python -m loadtest.speakers URL IN_FLIGHT SOURCE TARGET

One JSON line a message: it says `ready`; then for every `play` on its standard input, `progress` while it lasts
and `played` at the end. It leaves when its standard input ends, and says `broken` when it cannot go on.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
from msgspec import Struct

from gateway.client import ClientError, ClientSession, connect
from gateway.messages import Error, TranslationDelta, TranslationFailed, TranslationFinal
from loadtest.results import LoadtestError, Outcome
from loadtest.workload import Utterance

__all__ = ["Played", "Speakers", "speakers"]

# A round of thousands of utterances answers in one line.
_LINE_BYTES = 64 * 2**20

_PROGRESS_S = 1.0
_LEAVE_S = 10.0


class _Message(Struct, frozen=True, tag_field="type", tag=str.lower):
    pass


class Play(_Message, frozen=True):
    """Say all of these, one at a time and speaker."""

    utterances: list[Utterance]


class Ready(_Message, frozen=True):
    """Every speaker has its session."""


class Progress(_Message, frozen=True):
    """So many utterances are done."""

    done: int


class Played(_Message, frozen=True):
    """elapsed_s: from the first utterance sent to the last one done. cpu_s: of the client process meanwhile."""

    elapsed_s: float
    cpu_s: float
    outcomes: list[Outcome]


class Broken(_Message, frozen=True):
    """No round can be played any more; `reason` is a sentence."""

    reason: str


_answers = msgspec.json.Decoder(Ready | Progress | Played | Broken)
_commands = msgspec.json.Decoder(Play)


# ---------------------------------------------------------------- in the process that measures


class Speakers:
    """A client process whose sessions are open."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.done = 0

    async def play(self, said: Sequence[Utterance]) -> Played:
        """One round. `done` grows meanwhile. Raises `LoadtestError`."""
        assert self._process.stdin is not None  # noqa: S101 -- it was started with pipes
        self.done = 0
        self._process.stdin.write(msgspec.json.encode(Play(list(said))) + b"\n")
        await self._process.stdin.drain()
        while True:
            match await self._answer():
                case Played() as played:
                    return played
                case Progress(done=done):
                    self.done = done
                case other:
                    raise LoadtestError(f"The client process said {type(other).__name__} out of turn.")

    async def ready(self) -> None:
        """Wait for the sessions. Raises `LoadtestError`."""
        if not isinstance(await self._answer(), Ready):
            raise LoadtestError("The client process did not open its sessions.")

    async def _answer(self) -> Ready | Progress | Played:
        assert self._process.stdout is not None  # noqa: S101 -- it was started with pipes
        line = await self._process.stdout.readline()
        if not line:
            raise LoadtestError("The client process ended before its time.")
        answer: Ready | Progress | Played | Broken = _answers.decode(line)
        if isinstance(answer, Broken):
            raise LoadtestError(f"The client process gave up: {answer.reason}")
        return answer


@asynccontextmanager
async def speakers(url: str, in_flight: int, source: str, target: str) -> AsyncIterator[Speakers]:
    """Start a client process; it is gone when the block ends. Raises `LoadtestError`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loadtest.speakers", url, str(in_flight), source, target),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE_BYTES,
    )
    assert process.stdin is not None  # noqa: S101 -- it was started with pipes
    try:
        started = Speakers(process)
        await started.ready()
        yield started
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(_LEAVE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


# ---------------------------------------------------------------- in the client process


async def _serve(url: str, in_flight: int, source: str, target: str) -> None:
    async with AsyncExitStack() as stack:
        # A round in which a connection was lost and found again would measure something else.
        sessions = [
            await stack.enter_async_context(connect(url, reads=[target], speaks=source, reconnect=False))
            for _ in range(in_flight)
        ]
        _say(Ready())
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            _say(await _play(sessions, _commands.decode(line).utterances))


async def _play(sessions: list[ClientSession], said: list[Utterance]) -> Played:
    outcomes: list[Outcome] = []
    left = iter(said)
    cpu_s, began_s = time.process_time(), time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        showing = tasks.create_task(_show(outcomes))
        async with asyncio.TaskGroup() as speaking:
            for session in sessions:
                speaking.create_task(_speak(session, left, outcomes))
        elapsed_s = time.perf_counter() - began_s
        showing.cancel()
    return Played(elapsed_s, time.process_time() - cpu_s, outcomes)


async def _speak(session: ClientSession, left: Iterator[Utterance], outcomes: list[Outcome]) -> None:
    for utterance in left:
        outcomes.append(await _say_one(session, utterance))


async def _say_one(session: ClientSession, utterance: Utterance) -> Outcome:
    began_s = time.perf_counter()
    first_token_ms: float | None = None

    def elapsed_ms() -> float:
        return round((time.perf_counter() - began_s) * 1000, 3)

    # Ids of ours would be revisions of the same utterance in the next round.
    id = await session.final(utterance.text)
    async for message in session:
        match message:
            case TranslationDelta(utterance=about) if about == id and first_token_ms is None:
                first_token_ms = elapsed_ms()
            case TranslationFinal(utterance=about, tokens=tokens, text=text) if about == id:
                return Outcome(utterance.id, first_token_ms, elapsed_ms(), tokens, text)
            case TranslationFailed(utterance=about, code=code) if about == id:
                return Outcome(utterance.id, first_token_ms, elapsed_ms(), 0, failed=code)
            case Error(utterance=about, code=code) if about == id:
                return Outcome(utterance.id, first_token_ms, elapsed_ms(), 0, failed=code)
    raise LoadtestError("The gateway ended a session in the middle of a round.")


async def _show(outcomes: list[Outcome]) -> None:
    while True:
        await asyncio.sleep(_PROGRESS_S)
        _say(Progress(len(outcomes)))


def _say(message: _Message) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _main() -> None:
    url, in_flight, source, target = sys.argv[1:]
    try:
        asyncio.run(_serve(url, int(in_flight), source, target))
    except* (ClientError, LoadtestError) as errors:
        _say(Broken(str(_first(errors))))
    except* (KeyboardInterrupt, BrokenPipeError):
        # Whoever started us is leaving; nobody is there to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    _main()
