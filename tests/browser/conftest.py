"""A real gateway process with the simulated engine."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadtest.systems.server import free_port
from tests.processes import GatewayProcess, gateway_process

# As fast as it goes, and texts that ask for trouble.
SCRIPT = """
[engine]
kind = "simulated"
[engine.script]
first_token_s = 0.02
token_s = 0.01
[[engine.script.rules]]
match = "stall"
stall_after = 4
[[engine.script.rules]]
match = "never begin"
stall_after = 0
[[engine.script.rules]]
match = "fail"
fail_after = 2
"""

# What stalls keeps its place in the engine until its meeting is forgotten, and is not waited for at the end. The
# engine must not be taken for dead meanwhile: the texts that stalled would run again, one after another and alone.
ROOMY = "drain_s = 0\n" + SCRIPT.replace("[engine.script]", "stall_s = 3600\n[engine.script]\nmax_running = 1000")

StartGateway = Callable[..., GatewayProcess]


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[StartGateway]:
    """Starts gateways that end with the test."""
    with ExitStack() as running:
        # On a port that another one can have again.
        def start(config: str = SCRIPT, port: int | None = None) -> GatewayProcess:
            file = tmp_path / "gateway.toml"
            file.write_text(config)
            arguments = ("--config", str(file), "--port", str(port or free_port()), "--log-level", "warning")
            return running.enter_context(gateway_process(*arguments)).listening()

        yield start


def kill(gateway: GatewayProcess) -> None:
    """Gone without a word, as after a crash."""
    gateway.end(signal.SIGKILL)


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway that is ready, for tests that leave it as it was: each has meetings of its own."""
    file = tmp_path_factory.mktemp("gateway") / "gateway.toml"
    file.write_text(ROOMY)
    with gateway_process("--config", str(file), "--log-level", "warning") as process:
        yield process.ready()
