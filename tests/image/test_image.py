"""The container image as an operator runs it: read-only, as its own user, with the shared memory the docs name.

`make image-test` builds it first.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.client import connect
from gateway.protocol.messages import TranslationFinal
from loadtest.systems.server import free_port
from scripts import image

# An engine on two busy cores may take minutes.
pytestmark = [pytest.mark.image, pytest.mark.timeout(600)]

TAG = f"{image.IMAGE}:cpu"
QUESTION = {"text": "Can you hear me?", "source_lang": "en", "target_lang": "ja"}
# In a container it listens on every address; only loopback leads to it here.
OPEN = "--insecure-open"
HEARD = re.compile("聞こえ")


class Container:
    """A gateway in a container; `said` is everything that it wrote."""

    def __init__(self, tool: image.Tool, log: Path, *arguments: str, shm_size: str | None) -> None:
        self._tool = tool
        self._log = log
        self.name = f"gateway-image-test-{uuid.uuid4().hex[:8]}"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        with log.open("w") as file:
            command = tool.run(TAG, self.name, self.port, "--log-format", "text", *arguments, shm_size=shm_size)
            self.process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def ready(self) -> None:
        """It takes requests; the test's timeout is the bound."""
        while True:
            assert self.process.poll() is None, self.said
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/readyz"):  # noqa: S310 -- ours
                return
            time.sleep(0.5)

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._tool.command, "exec", self.name, *command], capture_output=True, text=True, check=False
        )

    def stop(self) -> int:
        """SIGTERM, as an orchestrator sends it; the exit status."""
        subprocess.run([self._tool.command, "stop", "--time", "90", self.name], capture_output=True, check=True)
        return self.process.wait(60)

    def remove(self) -> None:
        subprocess.run([self._tool.command, "rm", "--force", self.name], capture_output=True, check=False)
        self.process.wait(60)


@pytest.fixture(scope="module")
def tool() -> image.Tool:
    found = image.find_tool()
    if not image.succeeds(found.command, "image", "inspect", TAG):
        pytest.fail(f"There is no image {TAG}; `make image-test` builds it.")
    return found


@contextlib.contextmanager
def container(tool: image.Tool, log: Path, *arguments: str, shm_size: str | None) -> Iterator[Container]:
    started = Container(tool, log, *arguments, shm_size=shm_size)
    try:
        yield started
    finally:
        started.remove()


@pytest.fixture(scope="module")
def gateway(tool: image.Tool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A gateway that is ready, shared by the tests; at last it stops in order."""
    with container(tool, tmp_path_factory.mktemp("image") / "log", OPEN, shm_size="1g") as started:
        started.ready()
        yield started
        assert started.stop() == 0
        assert "Traceback" not in started.said
        assert started.said.endswith("stopped\n")


def test_its_first_line_names_an_address_that_can_be_opened(gateway: Container) -> None:
    first, second, *_ = gateway.said.splitlines()
    assert re.match(r"Loading the engine; the page is at http://127\.0\.0\.1:\d+ already", first)
    assert second == "Others reach it too, at every address of this machine."
    assert "0.0.0.0" not in gateway.said


def test_it_serves_the_page(gateway: Container) -> None:
    with urllib.request.urlopen(gateway.url) as response:  # noqa: S310 -- ours
        assert "<title>" in response.read().decode()


def test_it_translates_over_http(gateway: Container) -> None:
    asked = urllib.request.Request(  # noqa: S310 -- ours
        f"{gateway.url}/v1/translate", json.dumps(QUESTION).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked) as response:  # noqa: S310 -- ours
        assert HEARD.search(json.load(response)["translation"])


async def test_it_translates_over_the_websocket(gateway: Container) -> None:
    async with connect(gateway.url, speaks="en", reads=["ja"]) as session:
        await session.final("Can you hear me?")
        await session.end()
        finals = [message async for message in session if isinstance(message, TranslationFinal)]
    assert [final.lang for final in finals] == ["ja"]
    assert HEARD.search(finals[0].text)


def test_it_is_neither_root_nor_able_to_change_itself(gateway: Container) -> None:
    assert gateway.execute("id", "-u").stdout.strip() == "10001"
    for path in ("/app/new", "/home/gateway/new"):
        assert "Read-only file system" in gateway.execute("touch", path).stderr


def test_without_shared_memory_it_says_at_once_what_to_do(tool: image.Tool, tmp_path: Path) -> None:
    with container(tool, tmp_path / "log", OPEN, shm_size=None) as refused:
        assert refused.process.wait(60) == 1
        *_, last = refused.said.splitlines()
    assert last.startswith("gateway: Too little shared memory: the engine needs 241 MiB in /dev/shm")
    assert "--shm-size 1g" in last


def test_it_asks_for_keys(tool: image.Tool, tmp_path: Path) -> None:
    with container(tool, tmp_path / "log", shm_size="1g") as refused:
        assert refused.process.wait(60) == 1
        assert "make a key with `gateway key new" in refused.said.splitlines()[-1]
