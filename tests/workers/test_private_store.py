"""A store of the gateway's own: a real server, whose data outlive it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.domain.errors import StartupError
from gateway.ownership import Peer
from gateway.stores.redis.checks import check
from gateway.workers import private_store
from gateway.workers.private_store import PrivateStore, data_folders


@asynccontextmanager
async def private(data: Path) -> AsyncIterator[PrivateStore]:
    with TemporaryDirectory() as folder:
        store = PrivateStore(Path(folder), data, os.open(folder, os.O_RDONLY))
        try:
            await store.start()
            yield store
        finally:
            await store.stop()
            os.close(store._lock)


async def ask(store: PrivateStore, command: str) -> str:
    reader, writer = await asyncio.open_unix_connection(store.url.removeprefix("unix://"))
    writer.write(f"{command}\r\n".encode())
    answer = await reader.readline()
    if answer.startswith(b"$") and answer != b"$-1\r\n":
        answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer.decode().strip()


async def until_it_has(store: PrivateStore, value: str) -> None:
    """Until `a` is this, however often it is started meanwhile; the suite's timeout is the bound."""
    while True:
        try:
            if await ask(store, "GET a") == value:
                return
        except OSError:
            await asyncio.sleep(0.02)


async def test_private_store_is_durable_as_the_gateway_asks(tmp_path: Path) -> None:
    async with private(tmp_path / "store") as store:
        await check(store.url)
        assert stat.S_IMODE(os.stat(store.url.removeprefix("unix://")).st_mode) == 0o700
        assert await ask(store, "SET a 1") == "+OK"
    async with private(tmp_path / "store") as store:
        assert await ask(store, "GET a") == "1"


async def test_one_that_dies_is_started_again_with_its_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with private(tmp_path / "store") as store:
        assert await ask(store, "SET a 1") == "+OK"
        assert store._process is not None
        first = store._process.pid
        os.kill(first, signal.SIGKILL)
        await until_it_has(store, "1")
        assert store._process.pid != first
        assert f"the store in {tmp_path}/store ended with status -9; it is started again" in caplog.text


async def test_hanging_store_is_restarted_with_its_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with private(tmp_path / "store") as store:
        assert await ask(store, "SET a 1") == "+OK"
        assert store._process is not None
        first = store._process.pid
        os.kill(first, signal.SIGSTOP)
        # Only from now on, so that a slow one is not taken for it.
        with monkeypatch.context() as impatient:
            impatient.setattr(private_store, "_ASK_S", 0.1)
            impatient.setattr(private_store, "_UNANSWERED", 2)
            while store._process.pid == first:
                await asyncio.sleep(0.02)
        await until_it_has(store, "1")
        assert f"the store (process {first}) does not answer; it is killed" in caplog.text
        assert f"the store in {tmp_path}/store ended with status -9; it is started again" in caplog.text


async def test_one_that_is_slow_or_busy_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_store, "_ASK_S", 0.0)
    silence = [b""] * (private_store._UNANSWERED - 1)
    answers = [*silence, b"+PONG\r\n", *silence, b"-BUSY Redis is busy running a script.\r\n", *silence]
    asked = asyncio.Event()

    async def answer(_within_s: float) -> bytes:
        if not answers:
            asked.set()
            return b"+PONG\r\n"
        return answers.pop(0)

    async with private(tmp_path / "store") as store:
        assert store._process is not None
        first = store._process
        monkeypatch.setattr(store, "_answer", answer)
        await asked.wait()
        assert store._process is first
        assert first.returncode is None


async def test_one_that_cannot_start_names_its_log(tmp_path: Path) -> None:
    data = tmp_path / "store"
    data.mkdir(mode=0o700)
    (data / "appendonlydir").mkdir()
    (data / "appendonlydir" / "appendonly.aof.manifest").write_text("not a manifest\n")
    with pytest.raises(StartupError, match=r"store ended with status 1; its log is .*store\.log"):
        async with private(data):
            pass


def test_missing_store_program_is_named_for_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_store, "_PROGRAMS", ("no-such-server",))
    with pytest.raises(StartupError, match=r"install redis-server .* or valkey-server, or .*--store"):
        PrivateStore(tmp_path, tmp_path, 0)


async def test_valkey_is_as_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    redis = shutil.which("redis-server")
    assert redis is not None
    (tmp_path / "valkey-server").symlink_to(redis)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    async with private(tmp_path / "store") as store:
        assert store._command[0] == str(tmp_path / "valkey-server")


def test_four_workers_share_one_store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert data_folders(tmp_path / "four", 4) == [tmp_path / "four" / "store"]
    several = [tmp_path / "store", tmp_path / "store-2", tmp_path / "store-3"]
    assert data_folders(tmp_path, 9) == several
    with caplog.at_level("INFO"):
        assert data_folders(tmp_path, 12) == several
        assert not caplog.text
        assert data_folders(tmp_path, 1) == several
    assert f"{tmp_path} has the data of 3 stores" in caplog.text


def test_folders_that_cannot_be_made_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartupError, match="cannot be started"):
        data_folders(tmp_path / "file" / "state", 2)


async def test_its_socket_may_have_a_path_with_spaces(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="a b") as folder:
        store = PrivateStore(Path(folder), tmp_path / "store", os.open(folder, os.O_RDONLY))
        await store.start()
        await check(store.url)
        assert " " not in store.url
        await store.stop()
        os.close(store._lock)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_data_of_another_user_are_not_used(tmp_path: Path) -> None:
    [data] = data_folders(tmp_path, 1)
    os.chown(data, 65_534, -1)
    with pytest.raises(StartupError, match=f"{data} belongs to another user"):
        data_folders(tmp_path, 1)
    with pytest.raises(StartupError, match=f"{data} belongs to another user"):
        async with private(data):
            pass


def test_data_that_others_read_are_not_used(tmp_path: Path) -> None:
    [data] = data_folders(tmp_path, 1)
    data.chmod(0o755)
    with pytest.raises(StartupError, match=f"{data} can be read by other users"):
        data_folders(tmp_path, 1)


async def test_store_of_another_user_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.ownership.peer_of", lambda _: Peer(os.getpid(), 65_534))
    with pytest.raises(StartupError, match="is served by another user"):
        async with private(tmp_path / "store"):
            pass
