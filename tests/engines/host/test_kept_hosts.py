"""Hosts that outlive their gateway, as processes: the next one goes on with them, or ends them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway import __version__
from gateway.domain.engine import EngineState
from gateway.domain.errors import EngineUnavailable, StartupError
from gateway.engines.host import kept_hosts as module
from gateway.engines.host import main, orphans
from gateway.engines.host.kept_hosts import KeptHosts, look
from gateway.engines.host.main import Keep, Role
from gateway.engines.host.messages import PROTOCOL, Hello
from gateway.engines.host.proxy import HostedEngine
from gateway.engines.prompting.completions import OnNews, Prompt
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.ownership import Peer
from tests.engines.host.pairs import request, text_of
from tests.generations import events_of
from tests.processes import alive

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason to end a host."""
    monkeypatch.setattr(module, "_HELLO_S", 3_600.0)


BUILD = partial(
    SimulatedEngine, Script(first_token_s=0, token_s=0, rules=(Rule(match="endless", repeat=100_000),))
)


class Hanging(SimulatedEngine):
    """Stops its process's event loop for as long as there is a file `hang`, and looks often whether that hangs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Script(first_token_s=0, token_s=0))
        self._folder = folder
        main._HUNG_S = 0.0
        orphans._LOOK_S = 0.01
        vars(orphans)["time"] = self

    def sleep(self, seconds: float) -> None:
        """Another look."""
        with (self._folder / "looks").open("a") as looks:
            looks.write(".")
        time.sleep(seconds)

    def complete(self, prompt: Prompt, on_news: OnNews) -> Coroutine[Any, Any, None]:
        (self._folder / "asked").touch()
        while (self._folder / "hang").exists():
            time.sleep(0.01)
        return super().complete(prompt, on_news)


class Impatient:
    """A clock by which there is time for two answers, however long they take, and for no third."""

    def __init__(self) -> None:
        # When it begins, when the first answer is waited for and there, and when the second is waited for.
        self._looks = iter((0.0, 0.0, 0.0, 0.0))

    def monotonic(self) -> float:
        return next(self._looks, 2 * module._HELLO_S)

    def sleep(self, _seconds: float) -> None:
        """No time passes."""


@asynccontextmanager
async def gateway(
    folder: Path,
    keep_s: float = 60,
    made_of: str = "a",
    wanted: str = "a",
    build: Callable[[], SimulatedEngine] = BUILD,
) -> AsyncIterator[HostedEngine]:
    """The engine of one gateway, which leaves it to the next one in the end."""
    kept = KeptHosts(folder, keep_s)
    await asyncio.to_thread(kept.find, [wanted])
    engine = HostedEngine(partial(kept.open, build, made_of), leaves=lambda: kept.leaving)
    await engine.start()
    try:
        yield engine
        kept.leaving = True
    finally:
        await engine.stop()


def pid_of(engine: HostedEngine) -> int:
    assert engine.pid is not None
    return engine.pid


def left_in(folder: Path) -> set[str]:
    """What kinds of files are there."""
    return {path.suffix.removeprefix(".") for path in folder.iterdir()}


async def until_gone(pid: int) -> None:
    while alive(pid):
        await asyncio.sleep(0.02)


async def test_next_gateway_takes_the_kept_engine(tmp_path: Path) -> None:
    async with gateway(tmp_path) as engine:
        pid = pid_of(engine)
        endless = events_of(engine, request("endless"))
        await anext(endless)
    async with gateway(tmp_path) as engine:
        assert pid_of(engine) == pid
        assert engine.health().state is EngineState.READY
        assert await text_of(engine, "still there") == "[de] still there"
        while engine.capacity().running:
            await asyncio.sleep(0.01)
        assert engine.shared_at is not None
        assert engine.shared_at.is_socket()
        # As a supervisor does with one that hangs: the one that was found is ended like any other.
        os.kill(pid, signal.SIGSTOP)
        await asyncio.to_thread(engine._host.kill)  # type: ignore[union-attr]
    await until_gone(pid)


async def test_unclaimed_host_ends(tmp_path: Path) -> None:
    async with gateway(tmp_path, keep_s=0.2) as engine:
        pid = pid_of(engine)
    await until_gone(pid)
    assert "host" not in left_in(tmp_path)
    async with gateway(tmp_path, keep_s=0) as engine:
        assert pid_of(engine) != pid
        pid = pid_of(engine)
    await until_gone(pid)


async def test_hung_host_ends_once_its_gateway_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "told"
    folder.mkdir()

    async def looked(times: int) -> None:
        until = len((folder / "looks").read_text()) + times
        while alive(pid) and len((folder / "looks").read_text()) < until:
            await asyncio.sleep(0.01)

    async with gateway(tmp_path / "hosts", keep_s=0.1, build=partial(Hanging, folder)) as engine:
        pid = pid_of(engine)
        (folder / "hang").touch()
        said = asyncio.create_task(text_of(engine, "late"))
        while not (folder / "asked").exists():
            await asyncio.sleep(0.01)
        # Three times what it waits for where nobody has it.
        await looked(30)
        (folder / "hang").unlink()
        assert await said == "[de] late"
        (folder / "asked").unlink()
        (folder / "hang").touch()
        said = asyncio.create_task(text_of(engine, "never"))
        while not (folder / "asked").exists():
            await asyncio.sleep(0.01)
    await until_gone(pid)
    assert isinstance((await asyncio.gather(said, return_exceptions=True))[0], EngineUnavailable)


async def test_host_of_other_settings_is_ended_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with gateway(tmp_path) as engine:
        before = pid_of(engine)
    caplog.set_level("INFO")
    async with gateway(tmp_path, keep_s=0, made_of="b", wanted="b") as engine:
        assert pid_of(engine) != before
        assert not alive(before)
    assert f"the engine of process {before} is ended: no engine has its settings" in caplog.text


async def test_host_of_another_protocol_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path) as engine:
        before = pid_of(engine)
    caplog.set_level("INFO")
    monkeypatch.setattr(module, "PROTOCOL", PROTOCOL + 1)
    async with gateway(tmp_path, keep_s=0):
        assert not alive(before)
    assert f"version {__version__} has loaded it, which speaks to engines in another way" in caplog.text


async def test_silent_host_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path) as engine:
        before = pid_of(engine)
    os.kill(before, signal.SIGSTOP)
    caplog.set_level("INFO")
    monkeypatch.setattr(module, "_HELLO_S", 0.2)
    async with gateway(tmp_path, keep_s=0):
        assert not alive(before)
    assert f"the engine of process {before} is ended: it does not answer" in caplog.text


async def test_host_of_another_gateway_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path) as first:
        monkeypatch.setattr(module, "_HELLO_S", 3_600.0)
        monkeypatch.setattr(module, "time", Impatient())
        async with gateway(tmp_path, keep_s=0) as second:
            assert pid_of(second) != pid_of(first)
        assert await text_of(first, "undisturbed") == "[de] undisturbed"
        os.kill(pid_of(first), signal.SIGKILL)
    assert "another gateway has the engine" in caplog.text


async def test_files_of_a_killed_host_are_removed(tmp_path: Path) -> None:
    async with gateway(tmp_path) as engine:
        pid = pid_of(engine)
    os.kill(pid, signal.SIGKILL)
    await until_gone(pid)
    assert left_in(tmp_path) == {"host", "workers", "log"}
    await asyncio.to_thread(KeptHosts(tmp_path, 60).find, ["a"])
    assert left_in(tmp_path) == set()


async def test_log_of_an_ended_host_is_removed(tmp_path: Path) -> None:
    (tmp_path / "12345678.log").write_text("It has waited long enough.")
    await asyncio.to_thread(KeptHosts(tmp_path, 60).find, ["a"])
    assert left_in(tmp_path) == set()


async def test_host_ends_if_its_gateway_left_before_it_listened(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    engine = SimulatedEngine(Script())
    async with asyncio.timeout(60):
        role = Role(keep=Keep(tmp_path / "h", 3_600, "a"))
        await main.serve(theirs, engine, asyncio.create_task(engine.start()), role)
    assert left_in(tmp_path) == set()


def test_a_folder_that_no_socket_fits_into(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"is too long for sockets.*--state-dir"):
        KeptHosts(tmp_path / ("x" * 100), 60)
    (tmp_path / "file").touch()
    with pytest.raises(StartupError, match="cannot be used"):
        KeptHosts(tmp_path / "file" / "x", 60)


def test_a_first_word_of_another_kind_is_none() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode({"protocol": 1}), type=Hello)


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Path]:
    """The folder of a gateway, with a socket that somebody serves."""
    folder = tmp_path / "engines"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "0a.host"))
        listening.listen()
        yield folder


def test_host_of_another_user_is_not_asked(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELLO_S", 0.1)
    monkeypatch.setattr("gateway.ownership.peer_of", lambda _: Peer(os.getpid(), 65_534))
    for find in (lambda: KeptHosts(planted, 60).find(["a"]), lambda: look(planted, ["a"])):
        with pytest.raises(StartupError, match=r"0a\.host is served by another user"):
            find()


def test_hosts_in_a_shared_folder_are_refused(planted: Path) -> None:
    planted.chmod(0o777)
    for find in (lambda: KeptHosts(planted, 60), lambda: look(planted, ["a"])):
        with pytest.raises(StartupError, match="can be changed by other users"):
            find()
