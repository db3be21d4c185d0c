"""A gateway with workers as an operator starts, reloads and stops it."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import time
from pathlib import Path

import pytest

from gateway import state_folder
from gateway.domain.errors import StartupError
from gateway.workers import serving
from tests.cli.commands import run
from tests.processes import DEFAULT_SIGNALS, GatewayProcess, descendants, gateway_process
from tests.workers.gateways import taken_port

pytestmark = pytest.mark.slow


def arguments(state: Path, *more: str) -> tuple[str, ...]:
    return "--engine", "simulated", "--workers", "2", "--state-dir", str(state), *more


def refused(*given: str) -> str:
    with gateway_process(*given) as gateway:
        assert gateway.process.wait(400) == 1
        gateway.end()
    assert "Traceback" not in gateway.said
    (sentence,) = [line for line in gateway.said.splitlines() if line.startswith("gateway: ")]
    return sentence


def test_it_says_what_one_process_says_reloads_and_drains(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text("snapshot_utterances = 10\n")
    with gateway_process(*arguments(tmp_path), "--config", str(config)) as gateway:
        gateway.ready()
        first, *others = gateway.said.splitlines()
        assert first == f"Loading the engine; the page is at {gateway.url} already and says how far it is."
        assert others[-1] == f"Ready: {gateway.url}"
        assert gateway.said.count("Loading the engine") == gateway.said.count("Ready: ") == 1
        assert json.loads(gateway.get("/readyz"))["status"] == "ready"
        assert gateway.metric("gateway_sessions_started_total") == 0
        before = descendants(gateway.process.pid)

        config.write_text("snapshot_uterances = 20\n")
        gateway.process.send_signal(signal.SIGHUP)
        gateway.wait_for("the settings stay as they were: .*snapshot_uterances")
        assert descendants(gateway.process.pid) == before

        config.write_text("snapshot_utterances = 20\n")
        ran = asyncio.run(run("reload", "--state-dir", str(tmp_path)))
        assert (ran.status, ran.err) == (0, "")
        assert f"The workers of process {gateway.process.pid} are replaced" in ran.out
        gateway.wait_for("all workers were replaced")
        assert gateway.end() == 0
    assert "Traceback" not in gateway.said
    # The store was the last to end, and kept its data.
    assert (tmp_path / "store" / "appendonlydir").is_dir()
    assert state_folder.holder(tmp_path) is None


@pytest.mark.long
def test_it_reloads_also_where_nohup_has_its_signal_ignored(tmp_path: Path) -> None:
    prefix = (*DEFAULT_SIGNALS, "env", "--ignore-signal=HUP")
    gateway = GatewayProcess(*arguments(tmp_path), prefix=prefix)
    gateway.ready()
    gateway.process.send_signal(signal.SIGHUP)
    gateway.wait_for("all workers were replaced")
    assert gateway.end(signal.SIGINT) == 0


def test_signals_while_its_store_loads_are_not_lost(tmp_path: Path) -> None:
    program = tmp_path / "valkey-server"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 1000\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    prefix = (*DEFAULT_SIGNALS, "sh", "-c", 'ulimit -Sn 512; exec "$@"', "sh")
    with gateway_process(*arguments(tmp_path / "state"), env=env, prefix=prefix) as gateway:
        while not (tmp_path / "started").exists():
            time.sleep(0.02)
        # It may open as many files as the system allows.
        assert resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE)[0] > 512
        gateway.process.send_signal(signal.SIGHUP)
        assert gateway.end() == 0
    assert "Traceback" not in gateway.said


def test_one_sentence_says_why_it_cannot_start(tmp_path: Path) -> None:
    with taken_port() as taken:
        port = str(taken.getsockname()[1])
        assert refused(*arguments(tmp_path, "--port", port)) == (
            f"gateway: Port {port} on 127.0.0.1 is taken: stop what runs there, or choose another with --port."
        )
    assert "could read and write every meeting" in refused(*arguments(tmp_path, "--host", "0.0.0.0"))
    handover = str(tmp_path / "handover")
    assert "handover_file is for one process" in refused(*arguments(tmp_path, "--handover-file", handover))
    assert "cannot be reached" in refused(*arguments(tmp_path, "--store", f"unix://{tmp_path}/none.sock"))


def test_admin_address_shows_metrics_and_readiness_of_all(tmp_path: Path) -> None:
    given = arguments(tmp_path, "--log-level", "error")
    with gateway_process(*given, env={"GATEWAY__ADMIN_PORT": "0"}) as gateway:
        gateway.ready()
        side = gateway.wait_for(r"Metrics: (http://\S+)/metrics").group(1)
        url, gateway.url = gateway.url, side
        # Without those that are late.
        while 'gateway_sessions{worker="2"} 0.0' not in gateway.get("/metrics"):
            pass
        assert json.loads(gateway.get("/readyz")) == {
            "status": "ready",
            "reason": "",
            "running": 0,
            "waiting": 0,
            "auth": "none",
        }
        gateway.url = url
        with pytest.raises(OSError, match="404"):
            gateway.get("/metrics")


def test_two_never_have_one_port_or_one_folder(tmp_path: Path) -> None:
    with gateway_process(*arguments(tmp_path / "a")) as gateway:
        gateway.ready()
        port = str(gateway.port)
        assert f"Port {port} on 127.0.0.1 is taken" in refused(*arguments(tmp_path / "b", "--port", port))
        assert f"process {gateway.process.pid}" in refused(*arguments(tmp_path / "a"))


def test_nothing_to_reload(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"No gateway with workers has its state in .*--workers N.*--state-dir"):
        serving.reload(tmp_path)
