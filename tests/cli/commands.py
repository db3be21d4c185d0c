"""The command line in a process of its own, on pipes or on a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from gateway.protocol.messages import Error, ServerMessage, SessionEnd, UtteranceFinal
from tests.processes import DEFAULT_SIGNALS
from tests.scripted_gateway import Peer, accepted, delta, refused, scripted_gateway, translated

ROOT = Path(__file__).parents[2]

COMMAND = (*DEFAULT_SIGNALS, sys.executable, "-m", "gateway")

COMMANDS = ("serve", "engines", "translate", "chat", "version")


class Ran(NamedTuple):
    status: int | None
    out: str
    err: str


async def run(*argv: str, stdin: str = "", **environment: str) -> Ran:
    """Run the command to its end with its output going to pipes."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    try:
        out, err = await process.communicate(stdin.encode())
    finally:
        if process.returncode is None:  # the test ran out of time
            process.kill()
    return Ran(process.returncode, out.decode(), err.decode())


async def run_against(
    script: Callable[[Peer], Awaitable[None]], *argv: str, stdin: str = "", **environment: str
) -> Ran:
    """Run the command with a gateway that follows this script."""
    async with scripted_gateway(script) as url:
        return await run(*argv, "--url", url, stdin=stdin, **environment)


async def translate_everything(peer: Peer, text: Callable[[UtteranceFinal, str], str]) -> None:
    """A gateway that translates whatever comes into the languages of `session.start` until the end."""
    start = await peer.start()
    while isinstance(message := await peer.receive(), UtteranceFinal):
        await peer.say(accepted(message))
        for lang in start.reads:
            await peer.say(delta(message, lang, "so", " far"), translated(message, lang, text(message, lang)))
    assert isinstance(message, SessionEnd), message
    await peer.leave(1000)


async def echo(peer: Peer) -> None:
    await translate_everything(peer, lambda utterance, lang: f"{lang}: {utterance.text}")


def leaving(code: int, *last_words: Error, translates: int) -> Callable[[Peer], Awaitable[None]]:
    """A gateway that translates the first so many texts and is gone."""

    async def script(peer: Peer) -> None:
        await peer.start()
        for _ in range(translates):
            utterance = await peer.take()
            await peer.say(translated(utterance, "ja", utterance.text))
        await peer.leave(code, *last_words)

    return script


def answering(*answers: ServerMessage) -> Callable[[Peer], Awaitable[None]]:
    """A gateway that accepts one text, and answers it with these."""

    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.take()
        await peer.say(*answers)
        await peer.end()

    return script


RESTARTS = refused("draining", "The gateway restarts; reconnect.", retry_after_ms=1_000)

FOUND = "gateway: The gateway is back; continuing.\n"


class Terminal:
    """A process whose terminal we are."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, fd: int) -> None:
        self.process = process
        self.seen = ""
        self._reader = reader
        self._fd = fd

    async def until(self, text: str) -> str:
        """Everything shown up to and including `text`, without what was asked for before."""
        while text not in self.seen:
            chunk = await self._reader.read(4096)
            assert chunk, self.seen
            self.seen += chunk.decode()
        shown, _, self.seen = self.seen.partition(text)
        return shown + text

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    async def asleep(self) -> None:
        """Until the main thread waits for something; with the prompt shown, that is a key."""
        while _state(self.process.pid) != "S":
            await asyncio.sleep(0.01)

    async def rest(self) -> str:
        with contextlib.suppress(OSError):  # Linux reports a terminal without processes as an I/O error
            while chunk := await self._reader.read(4096):
                self.seen += chunk.decode()
        return self.seen


def _state(pid: int) -> str:
    """What Linux says of a process's main thread: `S` sleeps, `R` runs."""
    return Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _others_ignore_interrupts(pid: int) -> bool:
    """Whether SIGINT is blocked in every thread but the main one, of which there is at least one."""
    threads = [path for path in Path(f"/proc/{pid}/task").iterdir() if path.name != str(pid)]
    masks = [re.search(r"^SigBlk:\s*(\w+)", (path / "status").read_text(), re.MULTILINE) for path in threads]
    return bool(masks) and all(mask and int(mask[1], 16) & 1 << signal.SIGINT - 1 for mask in masks)


@contextlib.asynccontextmanager
async def on_a_terminal(*argv: str, columns: int = 80) -> AsyncGenerator[Terminal, None]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *argv,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm", "INPUTRC": "/dev/null"},
        start_new_session=True,
    )
    os.close(theirs)
    reader = asyncio.StreamReader()
    file = os.fdopen(ours, "rb", buffering=0, closefd=False)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        yield Terminal(process, reader, ours)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        transport.close()
        os.close(ours)


async def chat(url: str, *lines: str, argv: tuple[str, ...] = ()) -> Ran:
    return await run("chat", "--url", url, *argv, stdin="".join(f"{line}\n" for line in lines))


@contextlib.asynccontextmanager
async def real_gateway(**environment: str) -> AsyncGenerator[str, None]:
    """The address of a gateway in a process of its own, with the simulated engine; it may still be loading."""
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "serve", "--engine", "simulated", "--port", "0", "--log-format", "text"),
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert process.stderr is not None
    try:
        said = ""
        while (address := re.search(r"http://[\w.:]+", said)) is None:
            line = await process.stderr.readline()
            assert line, said
            said += line.decode()
        yield address[0]
    finally:
        process.terminate()
        await process.stderr.read()
        assert await process.wait() == 0
