"""What breaks in production, done to real processes: engines killed and stopped, readers stopped, restarts.

Nothing that was accepted is lost, nobody else notices, and it is over by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from demo_model import SMALL_MODEL
from gateway.client import ClientSession, Reconnected, connect
from gateway.protocol.messages import Error, TranslationFailed, TranslationFinal, UtteranceAccepted
from loadtest.systems.server import free_port
from tests.e2e.test_real_engine import SENTENCES
from tests.processes import (
    COMMAND,
    GatewayProcess,
    alive,
    descendants,
    engine_processes,
    gateway_process,
    parent,
    resident_bytes,
)

engine = pytest.mark.engine
# A machine that others use as well takes minutes to start an engine five times.
pytestmark = pytest.mark.timeout(1_800)


class Reader:
    """Somebody who reads until told to stop, and everything they got."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.events: list[Any] = []
        self._more = asyncio.Event()

    async def run(self) -> None:
        async for event in self.session:
            self.events.append(event)
            self._more.set()

    async def until(self, kind: type[Any], count: int, code: str | None = None) -> None:
        """Until so many of a kind have come; the suite's timeout is the bound."""
        while len(self.of(kind, code)) < count:
            self._more.clear()
            await self._more.wait()

    def of(self, kind: type[Any], code: str | None = None) -> list[Any]:
        """What came of a kind; errors and failures by their code where one is given."""
        return [e for e in self.events if isinstance(e, kind) and (code is None or e.code == code)]

    async def finals(self, count: int) -> list[TranslationFinal]:
        """So many, none of which may have failed."""
        while len(self.of(TranslationFinal)) < count and not self.of(TranslationFailed):
            self._more.clear()
            await self._more.wait()
        assert not self.of(TranslationFailed)
        return self.of(TranslationFinal)


@contextlib.asynccontextmanager
async def somebody(url: str, **options: Any) -> AsyncIterator[Reader]:
    async with connect(url, **{"reads": [], **options}) as session, asyncio.TaskGroup() as tasks:
        reader = Reader(session)
        reading = tasks.create_task(reader.run())
        yield reader
        reading.cancel()


async def transcript(gateway: GatewayProcess, meeting: str, lang: str) -> list[dict[str, Any]]:
    text = await asyncio.to_thread(gateway.get, f"/v1/meetings/{meeting}/transcript.json?lang={lang}")
    utterances: list[dict[str, Any]] = json.loads(text)["utterances"]
    return utterances


async def engine_process(gateway: GatewayProcess) -> int:
    """The engine's process, once there is one."""
    while not (found := engine_processes(gateway)):
        await asyncio.sleep(0.2)
    return found[0]


@pytest.fixture(scope="module")
def handover(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults") / "handover"


@pytest.fixture(scope="module")
def lasting(handover: Path) -> tuple[str, ...]:
    """Flags of gateways that take the meetings over from one another, and the engine with a model of one's own."""
    model = shutil.copytree(SMALL_MODEL, handover.with_name("own-model"))
    state = str(handover.with_name("state"))
    port = str(free_port())  # that the next one can have
    return (
        *("--handover-file", str(handover), "--keep-engine", "600", "--state-dir", state),
        *("--model", str(model), "--port", port),
    )


async def host_process(gateway: GatewayProcess) -> int:
    """The process that hosts the engine: the parent of it."""
    return parent(await engine_process(gateway))


def hosts(gateway: GatewayProcess) -> list[int]:
    """The processes that host an engine, or are to when it is loaded."""
    found: list[int] = []
    for pid in descendants(gateway.process.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"gateway engine host"):
                found.append(pid)
    return found


# A plugin of vLLM: a step of the engine fails once a file of this name is there, which it takes away.
BUG = """
from pathlib import Path


def session_store():
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    works = WorkerWrapperBase.execute_model

    def execute_model(self, *args, **kwargs):
        bug = Path(__file__).with_name("bug")
        if bug.exists():
            bug.unlink()
            raise RuntimeError("the test says so")
        return works(self, *args, **kwargs)

    if works.__module__ != __name__:
        WorkerWrapperBase.execute_model = execute_model
"""


@pytest.fixture(scope="module")
def broken_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder: with a file `bug` in it the engine fails in its next step, and says why in its log."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "broken_engine.py").write_text(BUG)
    (folder / "broken_engine-1.dist-info").mkdir()
    (folder / "broken_engine-1.dist-info" / "METADATA").write_text("Name: broken-engine\nVersion: 1\n")
    plugins = "[vllm.general_plugins]\nbroken_engine = broken_engine:session_store\n"
    (folder / "broken_engine-1.dist-info" / "entry_points.txt").write_text(plugins)
    return folder


def texts(folder: Path) -> str:
    """What the logs of engines and the audit file say."""
    return "".join(file.read_text() for file in (*folder.glob("*.log"), folder / "audit.jsonl"))


@pytest.fixture(scope="module")
def settings(broken_engine: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(broken_engine), os.environ.get("PYTHONPATH")])),
        "TMPDIR": str(broken_engine),
        "GATEWAY__AUTH__AUDIT_FILE": str(broken_engine / "audit.jsonl"),
        "GATEWAY__LOG_LEVEL": "debug",
        "GATEWAY__ENGINE__STALL_S": "30",
        "GATEWAY__ENGINE__MAX_RESTARTS": "4",
        "GATEWAY__ENGINE__RESTART_BACKOFF_MAX_S": "1",
        "GATEWAY__LIMITS__UTTERANCES_IN_FLIGHT": "100",
    }


@pytest.fixture(scope="module")
def gateway(lasting: tuple[str, ...], settings: dict[str, str]) -> Iterator[GatewayProcess]:
    """One for all that is done to an engine; each test leaves it ready, but the last, which ends it."""
    with gateway_process(*lasting, env=settings) as process:
        yield process.ready()
        assert process.end() == 0
    assert "Traceback" not in process.said


@engine
def test_own_model_is_named_before_it_loads(gateway: GatewayProcess) -> None:
    model, memory, speed, *_ = gateway.said.splitlines()
    assert re.fullmatch(r"Model: /.*/own-model; prompt family bundled, 6 languages\.", model)
    assert (memory.split()[0], speed.split()[0]) == ("Memory:", "Speed:")
    assert json.loads(gateway.get("/v1/languages"))["model"] == "own-model"


@engine
async def test_a_crash_leaves_nothing_of_what_was_said(gateway: GatewayProcess, broken_engine: Path) -> None:
    """Neither in the engine's log, which shows what it was working on, nor anywhere else."""
    sentence, token, meeting = "The canary sings at night.", "canary-token", "canary-meeting"
    options = {"meeting": meeting, "token": token, "context": sentence, "reads": ["ja"], "speaks": "en"}
    async with somebody(gateway.url, **options) as ana:
        await ana.session.final(sentence)
        await ana.finals(1)
        said = 1
        (broken_engine / "bug").touch()
        while not ana.of(Error, "engine_restarting"):
            await ana.session.final(f"{sentence} {said}")
            said += 1
            await ana.until(UtteranceAccepted, said)
        await ana.finals(said)
    written = await asyncio.to_thread(texts, broken_engine)
    assert "the test says so" in written
    assert "Dumping scheduler output" in written
    assert '"action":"join"' in written
    tokenizer = Tokenizer.from_file(str(SMALL_MODEL / "tokenizer.json"))
    tokens = str(tokenizer.encode(sentence, add_special_tokens=False).ids[1:4]).strip("[]")
    everything = written + gateway.said + await asyncio.to_thread(gateway.get, "/metrics")
    for secret in ("canary", tokens):
        assert secret not in everything.lower()


@engine
async def test_accepted_utterances_survive_engine_hang_and_crash(
    gateway: GatewayProcess, broken_engine: Path
) -> None:
    """The engine hangs, and the next one dies."""
    async with (
        somebody(gateway.url, meeting="faults", name="Bo", reads=["ja"]) as bo,
        somebody(gateway.url, meeting="faults", name="Ana", speaks="en") as ana,
    ):
        # Before anything is generated: all of it hangs.
        victims = [await engine_process(gateway), *hosts(gateway)]
        os.kill(victims[0], signal.SIGSTOP)
        said = 5 * len(SENTENCES)
        for n in range(said):
            await ana.session.final(SENTENCES[n % len(SENTENCES)])
        await bo.until(Error, 1, "engine_restarting")
        while not (loading := [pid for pid in hosts(gateway) if pid not in victims]):
            await asyncio.sleep(0.05)
        os.kill(loading[0], signal.SIGKILL)
        finals = await bo.finals(said)
        assert max(Counter((f.utterance, f.lang) for f in finals).values()) == 1
        assert not any(map(alive, [*victims, *loading]))
        # The log of the newest that failed is kept, and no other.
        assert "the test says so" not in await asyncio.to_thread(texts, broken_engine)
        assert len(await transcript(gateway, "faults", "ja")) == said, "each is in the log, once"
        # One text has one translation, whether its engine died on the way or not.
        assert len({f.text for f in bo.of(TranslationFinal)}) == len(SENTENCES)


@engine
@pytest.mark.long
async def test_engine_that_keeps_dying_recovers_by_itself(
    gateway: GatewayProcess,
) -> None:
    """The gateway is not ready in between."""
    async with somebody(gateway.url, speaks="en", reads=["ja"]) as ana:
        said = 0
        # It dies as often in a row as it is made good, and once more: each successor while it loads.
        while not ana.of(TranslationFailed):
            if len(ana.of(TranslationFinal)) == said:
                await ana.session.final(SENTENCES[0])
                said += 1
                await ana.until(UtteranceAccepted, said)
            for pid in hosts(gateway):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.05)
        assert {e.code for e in ana.of(TranslationFailed)} == {"engine_failed"}
        while gateway.metric("gateway_engine_ready") != 1:
            await asyncio.sleep(0.5)
        done = len(ana.of(TranslationFinal))
        await ana.session.final("Good morning, everyone.")
        await ana.until(TranslationFinal, done + 1)


@engine
async def test_restart_in_meeting_loses_nothing_and_loads_nothing(
    gateway: GatewayProcess, handover: Path, lasting: tuple[str, ...], settings: dict[str, str]
) -> None:
    """It loads no model."""
    async with contextlib.AsyncExitStack() as meeting:
        url = gateway.url
        bo = await meeting.enter_async_context(somebody(url, meeting="m", name="Bo", reads=["de"]))
        ana = await meeting.enter_async_context(somebody(url, meeting="m", name="Ana", speaks="en"))
        for sentence in SENTENCES:
            await ana.session.final(sentence)
        await bo.finals(2)
        host = await host_process(gateway)
        gateway.process.terminate()
        assert await asyncio.to_thread(gateway.process.wait) == 0
        for sentence in SENTENCES:
            await ana.session.final(f"{sentence[:-1]}, {sentence}")  # while there is no gateway
        with gateway_process(*lasting, env=settings) as successor:
            successor.ready()
            assert f"going on with the engine of process {host}," in successor.said
            assert "importing vLLM" not in successor.said
            finals = await bo.finals(2 * len(SENTENCES))
            assert not await asyncio.to_thread(handover.exists), "used once"
            assert max(Counter(f.utterance for f in finals).values()) == 1
            assert [e.started.recovered for e in bo.of(Reconnected)] == [True]
            assert [e.started.recovered for e in ana.of(Reconnected)] == [True]
            said = await transcript(successor, "m", "de")
            assert [u["text"] for u in said] == [*SENTENCES, *(f"{s[:-1]}, {s}" for s in SENTENCES)]
            successor.process.kill()
            await asyncio.to_thread(successor.process.wait)
            with gateway_process(*lasting, env=settings) as third:
                third.ready()
                assert f"going on with the engine of process {host}," in third.said
                # Nobody knows of what was said before, as nothing was handed over.
                await ana.until(Reconnected, 2)
                await bo.until(Reconnected, 2)
                done = len(bo.of(TranslationFinal))
                await ana.session.final("Good morning, everyone.")
                await bo.finals(done + 1)
                await meeting.aclose()
                below = descendants(host)
                third.process.terminate()
                assert await asyncio.to_thread(third.process.wait) == 0
            # Nobody is to wait for the next gateway here.
            os.kill(host, signal.SIGKILL)
            while any(map(alive, [host, *below])):
                await asyncio.sleep(0.05)


def finals_in(file: Path) -> list[dict[str, Any]]:
    """The translations that a client has printed, as far as the lines are whole."""
    lines = [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [message for message in map(json.loads, lines) if message["type"] == "translation.final"]


@pytest.mark.slow
async def test_stopped_reader_gets_everything_later_within_bounds(tmp_path: Path) -> None:
    """It costs no more than its bound."""
    settings = {
        "GATEWAY__LIMITS__UTTERANCES_IN_FLIGHT": "1000",
        "GATEWAY__SEGMENT_CHARS": "1000",
        "GATEWAY__LIMITS__MESSAGES_PER_S": "100000",
        "GATEWAY__LIMITS__MESSAGES_BURST": "100000",
        "GATEWAY__ENGINE__SCRIPT__FIRST_TOKEN_S": "0",
        "GATEWAY__ENGINE__SCRIPT__TOKEN_S": "0",
        "GATEWAY__EVENT_LOG__MAX_PUBLICATIONS": "100000",
        "GATEWAY__EVENT_LOG__MAX_BYTES": str(2**32),
        # It is dropped for what it has not read, not because it has answered no ping while others spoke.
        "GATEWAY__PING_TIMEOUT_S": "3600",
    }
    words = "x" * 900  # two tokens, and much to write
    with gateway_process("--engine", "simulated", env=settings) as gateway:
        gateway.ready()
        async with contextlib.AsyncExitStack() as stack:
            ana = await stack.enter_async_context(somebody(gateway.url, meeting="m", speaks="en"))
            bo = await stack.enter_async_context(somebody(gateway.url, meeting="m", reads=["ja"]))
            written = tmp_path / "read"
            with written.open("w") as output:
                stopped = subprocess.Popen(  # noqa: ASYNC220 -- signals go to its own pid
                    [COMMAND, "read", "--url", gateway.url, "--meeting", "m", "--json", "ja"], stdout=output
                )
            try:
                await ana.session.final("first")
                while not finals_in(written):
                    await asyncio.sleep(0.05)
                stopped.send_signal(signal.SIGSTOP)
                base = resident_bytes(gateway.process.pid)
                count = 1
                # Given up by the gateway or, where it takes a minute to fill what is between them, by the kernel.
                while gateway.metric("gateway_sessions") == 3:
                    for _ in range(200):
                        await ana.session.final(words)
                    count += 200
                    await bo.finals(count)
                grown = resident_bytes(gateway.process.pid) - base
                logged = gateway.metric("gateway_log_bytes")
                # The log keeps what was said, for everybody; the stopped reader has its outbox and the kernel's
                # buffers. Python's allocator is given as much again.
                assert grown < 2 * logged + 32 * 2**20, (grown, logged)
                stopped.send_signal(signal.SIGCONT)
                while len(finals := finals_in(written)) < count:
                    assert stopped.poll() is None
                    await asyncio.sleep(0.2)
                offsets = [message["offset"] for message in finals]
                assert offsets == sorted(set(offsets))
                assert len(offsets) == count
            finally:
                stopped.send_signal(signal.SIGCONT)
                stopped.send_signal(signal.SIGINT)
                assert stopped.wait(300) == 0
        assert gateway.end() == 0
