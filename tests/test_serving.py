"""What a gateway that starts says of itself."""

from __future__ import annotations

import asyncio
import io
import json
import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from gateway.app import Gateway
from gateway.config import EngineSettings, Settings
from gateway.domain.engine import EngineHealth, EngineState
from gateway.domain.errors import StartupError
from gateway.server.uvicorn_server import listen
from gateway.serving import Terminal, page_address, server_config, tell_model
from tests.certificates import certificate
from tests.cli.commands import Ran, run
from tests.processes import gateway_process


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "[::1]"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
    ],
)
def test_the_address_that_is_shown_can_be_opened(host: str, shown: str) -> None:
    if ":" in host and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with listen(host, 0) as sock:
        port = sock.getsockname()[1]
        assert page_address(sock) == f"http://{shown}:{port}"
        assert page_address(sock, tls=True) == f"https://{shown}:{port}"
        with socket.create_connection((shown.strip("[]"), port), timeout=5):
            pass


def test_gateway_on_every_address_names_one() -> None:
    with gateway_process("--engine", "simulated", "--host", "0.0.0.0", "--insecure-open") as gateway:
        gateway.ready()
        first, second, third, *_ = gateway.said.splitlines()
        port = gateway.port
        assert gateway.end() == 0
    assert first == (f"Loading the engine; the page is at http://127.0.0.1:{port} already and says how far it is.")
    assert second == "Others reach it too, at every address of this machine."
    assert third == "Warning: nobody needs a token; whoever reaches it can read and write every meeting."
    assert f"Ready: http://127.0.0.1:{port}" in gateway.said


def test_a_system_that_allows_few_connections_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(Settings(engine=EngineSettings(kind="simulated")))
    monkeypatch.setattr("gateway.serving.raise_file_limit", lambda: 511)
    with pytest.raises(StartupError, match="open 511 files and connections; it needs at least 512"):
        server_config(gateway)
    monkeypatch.setattr("gateway.serving.raise_file_limit", lambda: 512)
    server_config(gateway)


def test_a_gateway_on_loopback_says_nothing_of_others() -> None:
    with gateway_process("--engine", "simulated") as gateway:
        gateway.ready()
        assert gateway.end() == 0
    assert "Others" not in gateway.said
    assert "Warning" not in gateway.said


def test_public_gateway_does_not_start_without_keys() -> None:
    with gateway_process("--engine", "simulated", "--host", "0.0.0.0") as gateway:
        assert gateway.process.wait(400) == 1
        gateway.end()
    [sentence] = gateway.said.splitlines()
    assert sentence.startswith("gateway: Everybody who reaches 0.0.0.0 could read and write every meeting")
    assert "gateway key new" in sentence


def _run(*argv: str, **environment: str) -> Ran:
    return asyncio.run(run(*argv, **environment))


def test_gateway_is_reached_over_tls(tmp_path: Path) -> None:
    pair = certificate(tmp_path)
    tls = ("--tls-cert", str(pair.cert), "--tls-key", str(pair.key))
    with gateway_process("--engine", "simulated", *tls, env={"GATEWAY__ADMIN_PORT": "0"}) as gateway:
        gateway.ready()
        assert gateway.url.startswith("https://127.0.0.1:")
        with urllib.request.urlopen(f"{gateway.url}/healthz", context=pair.trusting()) as answer:  # noqa: S310
            assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
        # The clients trust what the variable says, besides which there is nothing to set.
        trusting = {"SSL_CERT_FILE": str(pair.cert)}
        translated = _run("translate", "--url", gateway.url, "--to", "ja", "Good morning.", **trusting)
        assert (translated.status, translated.out) == (0, "ja\t[ja] Good morning.\n"), translated.err
        missing = _run("read", "--url", gateway.url, "--meeting", "x", "--transcript", "txt", **trusting)
        assert "There is no transcript of x" in missing.err
        refused = _run("translate", "--url", gateway.url, "--to", "ja", "Good morning.")
        assert (refused.status, "No secure connection to wss://" in refused.err) == (1, True), refused.err
        # Metrics are for this machine or a network of their own.
        metrics = gateway.wait_for(r"Metrics: (http://\S+)").group(1)
        with urllib.request.urlopen(metrics) as answer:  # noqa: S310 -- our own address
            assert answer.headers["Strict-Transport-Security"] is None
        assert gateway.end() == 0
    assert re.search("Traceback|ERROR|WARNING", gateway.said) is None, gateway.said


def test_gateway_with_wrong_certificate_does_not_start(tmp_path: Path) -> None:
    pair = certificate(tmp_path)
    other = certificate(tmp_path, "other")
    tls = ("--tls-cert", str(pair.cert), "--tls-key", str(other.key))
    with gateway_process("--engine", "simulated", *tls) as gateway:
        assert gateway.process.wait(400) == 1
        gateway.end()
    assert gateway.said == (
        f"gateway: The private key in {other.key} is not that of the certificate in {pair.cert}.\n"
    )


SIMULATED = """
[[engines]]
name = "{name}"
kind = "simulated"
pairs = ["{pair}"]
"""


def test_a_hangup_lets_several_engines_come_and_go(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(SIMULATED.format(name="old", pair="en-ja"))
    with gateway_process("--config", str(config)) as gateway:
        gateway.ready()
        config.write_text(SIMULATED.format(name="old", pair="en-de"))
        gateway.process.send_signal(signal.SIGHUP)
        gateway.wait_for("the engines stay as they were: engine old cannot change while it runs")
        config.write_text(SIMULATED.format(name="new", pair="en-de"))
        gateway.process.send_signal(signal.SIGHUP)
        gateway.wait_for("the engines are those of the settings now")
        assert json.loads(gateway.get("/v1/languages"))["targets"] == {"en": ["de"]}
        assert gateway.metric('gateway_engine_ready{engine="new"}') == 1
        assert gateway.end() == 0
    assert "engine old is gone" in gateway.said


def test_lost_handover_is_told_by_the_exit_status(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with gateway_process("--engine", "simulated", "--handover-file", str(folder / "handover")) as gateway:
        gateway.ready()
        folder.rmdir()
        assert gateway.end() == 1
    assert "sessions and logs are lost" in gateway.said


def test_what_is_assembled_is_told_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr("gateway.serving.ready_model", lambda _settings, tell: tell("Assembling …"))
    tell_model(terminal, Settings())
    assert terminal.getvalue() == "Assembling …\n"


async def test_a_long_stage_is_said_again_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    said, now_s = io.StringIO(), 0.0

    def health() -> EngineHealth:
        nonlocal now_s
        now_s += 10
        return EngineHealth(EngineState.STARTING if now_s < 60 else EngineState.READY, "loading the weights")

    async def no_time(_seconds: float) -> None:
        pass

    monkeypatch.setattr("gateway.serving.time.monotonic", lambda: now_s)
    monkeypatch.setattr("gateway.serving.asyncio.sleep", no_time)
    with listen("127.0.0.1", 0) as sock:
        await Terminal(said, Settings(engine=EngineSettings(kind="simulated")), sock).until_ready(
            health, lambda: False
        )
    assert said.getvalue().splitlines() == [f"  {seconds:4d} s  loading the weights" for seconds in (10, 30, 50)]
