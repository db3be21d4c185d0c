"""What is found of a machine and its settings before a gateway is started, on real sockets, files and stores."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway import doctor, state_folder
from gateway.config import AuthSettings, EngineSettings, Settings, StoreSettings
from gateway.doctor import Finding, examine
from gateway.domain.webhooks import Webhook
from gateway.engine import hosted, kept_hosts
from gateway.engines import gpu
from gateway.engines.host import kept as kept_module
from gateway.engines.simulated import Script
from gateway.engines.vllm import hardware
from gateway.identity import key_file
from gateway.identity.key_file import KeyFile
from loadtest.systems.server import free_port
from tests.administration import Operator
from tests.certificates import certificate
from tests.engines.host.test_kept import Impatient
from tests.engines.nvml import Device, installed
from tests.redis_server import shared_server
from tests.workers.gateways import taken_port

ENGINE = EngineSettings(kind="simulated", script=Script())


def settings(**changed: object) -> Settings:
    return replace(Settings(engine=ENGINE, port=free_port()), **changed)


async def found(about: str, given: Settings, *, workers: int | None = None) -> Finding:
    """The only finding about it."""
    [finding] = [each for each in await examine(given, workers=workers) if each.about == about]
    return finding


async def test_healthy_setup_only_warns_of_simulated_engine() -> None:
    """That engine translates nothing."""
    given = settings()
    assert {each.about: each.state for each in await examine(given)} == {
        "port": "ok",
        "keys": "ok",
        "connections": "ok",
        "memory": "ok",
        "engine": "warning",
    }
    # It was only looked at.
    assert (await found("port", given)).state == "ok"


async def test_ports_that_are_taken() -> None:
    with taken_port() as taken:
        port = taken.getsockname()[1]
        for about, given in (("port", settings(port=port)), ("metrics", settings(admin_port=port))):
            state, _, said = await found(about, given)
            assert state == "problem"
            assert "is taken" in said


async def test_operators_keys(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    given = settings(admin_port=0, admin_keys_file=str(operator.path))
    assert (await found("operators", given)).state == "ok"
    key_file.save(operator.path, KeyFile())
    assert (await found("operators", given)).state == "problem"


async def test_everybody_would_be_let_in() -> None:
    assert (await found("keys", settings(host="0.0.0.0"))).state == "problem"
    assert (
        await found("keys", settings(host="0.0.0.0", auth=AuthSettings(insecure_open=True)))
    ).state == "warning"


async def test_more_sessions_than_the_system_allows_connections() -> None:
    state, _, said = await found("connections", settings(max_sessions=10_000_000))
    assert state == "warning"
    assert "LimitNOFILE" in said


@pytest.mark.parametrize(("days", "state"), [(-1, "problem"), (3, "warning"), (300, "ok")])
async def test_a_certificate_that_ends(days: int, state: str, tmp_path: Path) -> None:
    made = certificate(tmp_path, days=days)
    assert (await found("certificate", settings(tls_cert=str(made.cert), tls_key=str(made.key)))).state == state


async def test_a_certificate_that_is_not_there(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere.pem")
    assert (await found("certificate", settings(tls_cert=nowhere, tls_key=nowhere))).state == "problem"


async def test_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = shared_server().url, "unix:///nowhere/redis.sock"
    given = settings(store=StoreSettings(url=f"{good} {bad}"))
    stores = [each for each in await examine(given, workers=2) if each.about == "store"]
    assert [each.state for each in stores] == ["ok", "problem"]
    assert "cannot be reached" in stores[1].said

    async def an_hour_ahead(_url: str) -> float:
        return 3_600.0

    monkeypatch.setattr(doctor, "clock_offset_s", an_hour_ahead)
    state, _, said = await found("store", settings(store=StoreSettings(url=good)))
    assert (state, "3600 s ahead" in said) == ("warning", True)


@pytest.mark.usefixtures("no_proxies")
@pytest.mark.parametrize(
    ("url", "secret", "state", "words"),
    [
        ("https://localhost/hook?s3cret", f"whsec_{'A' * 32}", "ok", "Webhook backend has a secret"),
        ("https://nowhere.invalid/?s3cret", f"whsec_{'A' * 32}", "warning", "The host nowhere.invalid of webhook"),
        (f"https://{'a' * 64}.invalid/?s3cret", f"whsec_{'A' * 32}", "warning", "of webhook backend is not found"),
        ("https://localhost/hook?s3cret", "password", "problem", "openssl rand"),
    ],
)
async def test_webhooks(tmp_path: Path, url: str, secret: str, state: str, words: str) -> None:
    (tmp_path / "secret").write_text(secret)
    webhook = Webhook(name="backend", url=url, secret_file=str(tmp_path / "secret"))
    finding = await found("webhook", settings(webhooks=(webhook,)))
    assert (finding.state, words in finding.said, "s3cret" in finding.said) == (state, True, False)


@pytest.mark.usefixtures("no_proxies")
@pytest.mark.parametrize(
    ("proxy", "state", "words"),
    [
        ("http://ana:s3cret@localhost:3128", "ok", "its proxy localhost is found"),
        ("http://ana:s3cret@nowhere.invalid:3128", "warning", "The proxy nowhere.invalid of webhook backend"),
        ("socks5://ana:s3cret@localhost", "warning", "not one for HTTP"),
        ("http://ana:s3cret@[localhost", "warning", "cannot be used"),
    ],
)
async def test_proxies_of_webhooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str, state: str, words: str
) -> None:
    (tmp_path / "secret").write_text(f"whsec_{'A' * 32}")
    webhook = Webhook(name="backend", url="https://nowhere.invalid", secret_file=str(tmp_path / "secret"))
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    finding = await found("webhook", settings(webhooks=(webhook,)))
    assert (finding.state, words in finding.said, "s3cret" in finding.said) == (state, True, False)


async def test_workers_need_a_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (await found("store", settings(), workers=2)).state == "ok"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await found("store", settings(), workers=2)).state == "problem"


async def test_inspecting_does_not_assemble_the_bundled_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "is_ready", lambda: False)
    finding = await found("engine", settings(engine=EngineSettings()))
    assert finding.state == "ok"
    assert finding.said.endswith("The bundled model is assembled at the first start, in about 10 s.")


async def test_models(monkeypatch: pytest.MonkeyPatch) -> None:
    state, _, said = await found("engine", settings(engine=EngineSettings()))
    assert state == "ok"
    assert "vllm" in said
    state, _, said = await found("engine", settings(engine=EngineSettings(model="/nowhere")))
    assert (state, "config.json is missing" in said) == ("problem", True)
    monkeypatch.setattr(doctor, "_is_installed", lambda _: False)
    state, _, said = await found("engine", settings(engine=EngineSettings()))
    assert (state, "make install" in said) == ("problem", True)


@pytest.mark.parametrize("memory", ["available_gib", "available_shared_mib"])
async def test_too_little_memory(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, memory, lambda: 0.1)
    state, _, said = await found("engine", settings(engine=EngineSettings()))
    assert (state, "Too little" in said) == ("problem", True)


async def test_a_remote_server_that_does_not_answer() -> None:
    remote = EngineSettings(kind="remote", url=f"http://127.0.0.1:{free_port()}")
    state, _, said = await found("engine", settings(engine=remote))
    assert state == "problem"
    assert "takes no requests" in said


async def test_missing_remote_key_file_is_a_problem() -> None:
    remote = EngineSettings(kind="remote", url=f"http://127.0.0.1:{free_port()}", api_key_file="/nowhere")
    state, _, said = await found("engine", settings(engine=remote))
    assert (state, "api_key_file" in said) == ("problem", True)


GIB = 2**30


@pytest.mark.parametrize(
    ("version", "state"), [("0.32.0", "problem"), ("0.32.0+cu130", "problem"), ("0.32.0+cpu", "ok")]
)
async def test_the_build_for_gpus_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, version: str, state: str
) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    monkeypatch.setattr(gpu, "_answers", lambda: False)
    monkeypatch.setattr(doctor, "_is_installed", lambda name: name == "vllm")
    monkeypatch.setattr("importlib.metadata.version", lambda _: version)
    finding = await found("engine", settings(engine=EngineSettings()))
    assert (finding.state, "docker run --gpus all" in finding.said) == (state, state == "problem")


async def test_a_machine_without_a_gpu_uses_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    monkeypatch.setattr(gpu, "_answers", lambda: False)
    given = settings(engine=EngineSettings())
    assert (await found("driver", given)).state == "ok"
    state, _, said = await found("gpu", given)
    assert (state, "the CPU build" in said) == ("ok", True)


async def test_a_gpu_with_room_and_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: True)
    installed(monkeypatch, Device("GPU-1", used=1 * GIB), Device("GPU-2", used=30 * GIB))
    driver = await found("driver", settings(engine=EngineSettings()))
    assert (driver.state, "580.65.06" in driver.said) == ("ok", True)
    state, _, said = await found("gpu", settings(engine=EngineSettings(device="0")))
    assert (state, said) == ("ok", "GPU 0 is an NVIDIA H100 with 79.0 of 80.0 GiB free.")
    state, _, said = await found("gpu", settings(engine=EngineSettings(device="1")))
    assert (state, "lower gpu_memory_utilization" in said) == ("warning", True)
    state, _, said = await found("gpu", settings(engine=EngineSettings(device="7")))
    assert (state, "nvidia-smi -L" in said) == ("problem", True)


async def test_a_driver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: True)
    monkeypatch.setattr(gpu, "_answers", lambda: False)
    state, _, said = await found("driver", settings(engine=EngineSettings()))
    assert (state, "--gpus all" in said) == ("problem", True)


async def test_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "available_gib", lambda: 0.4)
    state, _, said = await found("memory", settings())
    assert (state, "0.4 GiB" in said) == ("warning", True)


async def test_an_engine_that_waits_for_the_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine is no reason not to answer.
    monkeypatch.setattr(kept_module, "_HELLO_S", 3_600.0)
    script = Script(first_token_s=0, token_s=0)
    given = settings(engine=EngineSettings(kind="simulated", script=script), keep_engine_s=60.0)

    async def kept(given: Settings) -> Finding:
        [finding] = [each for each in await examine(given, workers=1, state_dir=tmp_path) if each.about == "kept"]
        return finding

    state, _, said = await kept(given)
    assert (state, "No engine waits" in said) == ("ok", True)
    hosts = kept_hosts(given, tmp_path, workers=True)
    assert hosts is not None
    engine = hosted(given.engine, given, hosts)
    await engine.start()
    pid = engine.pid
    assert pid is not None
    try:
        with monkeypatch.context() as impatient:
            impatient.setattr(kept_module, "time", Impatient())
            state, _, said = await kept(given)
        assert (state, "another gateway has it" in said) == ("warning", True)
        hosts.leaving = True
        await engine.stop()
        for _ in range(2):  # it has only been looked at
            state, _, said = await kept(given)
            assert (state, f"(process {pid})" in said) == ("ok", True)
        other = replace(given, engine=EngineSettings(kind="simulated", script=Script(token_s=0.5)))
        state, _, said = await kept(other)
        assert (state, "settings, model and version" in said) == ("warning", True)
        with state_folder.held(tmp_path):
            assert (await kept(given)).state == "problem"
    finally:
        os.kill(pid, signal.SIGKILL)


async def test_a_folder_goes_with_something_that_is_kept_there(tmp_path: Path) -> None:
    [finding] = [each for each in await examine(settings(), state_dir=tmp_path) if each.about == "kept"]
    assert (finding.state, finding.said) == ("problem", "--state-dir goes with --workers or --keep-engine.")
