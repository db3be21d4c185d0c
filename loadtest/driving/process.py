"""A client process: `python -m loadtest.driving.process`, started by the driver and told what to do on stdin.

Knows: the order of orders and answers, its own CPU time and lag. Must not know: protocols, what is measured
elsewhere. It is a process of its own so that its CPU time is not counted as the system's. It ends with the
process that started it: when its standard input does.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress

import msgspec
import uvloop

from gateway.runtime import raise_file_limit
from loadtest.driving import exchange
from loadtest.driving.exchange import Client, Share
from loadtest.driving.requests import Tally
from loadtest.results import LoadtestError, first_error
from loadtest.trial.values import (
    Address,
    EngineInProcess,
    Http,
    InMeetings,
    Line,
    Load,
    OpenAiServer,
    Record,
    WebSocketGateway,
)

_PROGRESS_S = 1.0

# For a client to close, once no process listens any more; then the process ends the hard way.
_CLOSE_S = 25.0

_READ_BYTES = 2**16


def _client(address: Address, load: Load, share: Share) -> AbstractAsyncContextManager[Client]:
    """The client for a protocol; only its module is imported."""
    match address, load:
        case WebSocketGateway(), InMeetings():
            from loadtest.driving import meetings

            return meetings.client(address, load, share)
        case _, InMeetings():
            raise LoadtestError("Only a gateway can be loaded through meetings.")
        case WebSocketGateway(), _:
            from loadtest.driving import websocket

            return websocket.client(address, load, share)
        case OpenAiServer(), _:
            from loadtest.driving import http

            return http.completions_client(address, load, share)
        case Http(), _:
            from loadtest.driving import http

            return http.client(address, load, share)
        case EngineInProcess(), _:
            from loadtest.driving import engine

            return engine.client(address, load, share)


class _Worker:
    """Answers orders, one at a time. out: the descriptor of what the driver reads."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._orders: asyncio.Queue[exchange.Order | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Until there are no more orders."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 -- a coroutine runs in one

        def end() -> None:
            self._orders.put_nowait(None)
            task.cancel()

        def read() -> None:
            for line in _lines(0):
                loop.call_soon_threadsafe(self._orders.put_nowait, exchange.orders.decode(line))
            # It may be over already.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end)
            time.sleep(_CLOSE_S)
            os._exit(1)

        threading.Thread(target=read, name="orders", daemon=True).start()
        start = await self._orders.get()
        if not isinstance(start, exchange.Start):
            raise LoadtestError("A client process was not told what to do.")
        async with _client(start.address, start.load, start.share) as client:
            self.say(exchange.Done())
            lines: Sequence[Line] = ()
            while True:
                match await self._orders.get():
                    case exchange.ResetPrefixCache():
                        await client.reset_prefix_cache()
                        self.say(exchange.Done())
                    case exchange.Prepare() as prepare:
                        lines = await client.prepare(prepare.lines, prepare.load)
                        self.say(exchange.Done())
                    case exchange.Begin() as begin:
                        tally = Tally(begin.begin_s, begin.keep_text, start.share.processes)
                        with _without_garbage(isinstance(start.address, EngineInProcess)):
                            cpu_s = time.process_time()
                            await self._play(client, lines, tally, begin)
                            use = tally.lag.use(time.process_time() - cpu_s, tally.now_s())
                        played = (tally.last_s, tally.records, tally.delivered(), use, tally.ran_out_s)
                        self.say(exchange.Played(*played))

    async def _play(self, client: Client, lines: Sequence[Line], tally: Tally, begin: exchange.Begin) -> None:
        async def tell() -> None:
            while True:
                await asyncio.sleep(_PROGRESS_S)
                self.say(exchange.Progress(len(tally.records), tally.failed))

        async with asyncio.TaskGroup() as tasks:
            meanwhile = [tasks.create_task(tally.lag.watch()), tasks.create_task(tell())]
            try:
                async with asyncio.timeout(begin.begin_s + begin.limit_s - time.monotonic()) as limit:
                    await client.play(tally)
            except TimeoutError:
                if not limit.expired():
                    raise
                known = {(record.line, record.target) for record in tally.records}
                now_s = tally.now_s()
                for line in lines:
                    for target in line.targets:
                        if (line.id, target) not in known:
                            due_s = min(line.due_s, now_s)
                            tally.done(Record(line.id, target, due_s, now_s, None, None, failed="time limit"))
            for task in meanwhile:
                task.cancel()

    def say(self, answer: exchange.Answer) -> None:
        left = memoryview(msgspec.json.encode(answer) + b"\n")
        while left:
            left = left[os.write(self._out, left) :]


def _lines(descriptor: int) -> Iterator[bytes]:
    """What is read, line by line. A file object's lock would be held by the thread that waits here at the end."""
    left: list[bytes] = []
    while data := os.read(descriptor, _READ_BYTES):
        first, *others = data.split(b"\n")
        left.append(first)
        for other in others:
            yield b"".join(left)
            left = [other]


@contextmanager
def _without_garbage(of_the_system: bool) -> Iterator[None]:
    """No pauses for garbage, of which a pass makes little; a process that is part of the system keeps its ways."""
    if of_the_system:
        yield
        return
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def _main() -> None:
    # Whatever else is printed in here goes to the log.
    out = os.dup(1)
    os.dup2(2, 1)
    worker = _Worker(out)
    # A connection each for thousands of sessions.
    raise_file_limit()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(worker.serve())
    except* LoadtestError as errors:
        worker.say(exchange.Broken(str(first_error(errors))))
    except* (asyncio.CancelledError, BrokenPipeError):
        pass  # the process that started this one is leaving, or gone


if __name__ == "__main__":
    _main()
