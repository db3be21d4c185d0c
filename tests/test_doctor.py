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
from gateway.engines.host import kept_hosts as kept_module
from gateway.engines.simulated import Script
from gateway.engines.vllm import hardware
from gateway.identity import key_file
from gateway.identity.key_file import KeyFile
from loadtest.systems.server import free_port
from tests.administration import Operator
from tests.certificates import certificate
from tests.engines.host.test_kept_hosts import Impatient
from tests.engines.vllm.nvml import Device, installed
from tests.redis_server import shared_server
from tests.workers.gateways import taken_port

ENGINE = EngineSettings(kind="simulated", script=Script())


def settings(**changed: object) -> Settings:
    return replace(Settings(engine=ENGINE, port=free_port()), **changed)


async def found(about: str, given: Settings, *, workers: int | None = None) -> Finding:
    """The only finding about it."""
    [finding] = [each for each in await examine(given, workers=workers) if each.about == about]
    return finding


async def check(about: str, given: Settings, state: str, words: str = "", *, workers: int | None = None) -> None:
    """The state of the only finding about it, and words of what is said."""
    finding = await found(about, given, workers=workers)
    assert (finding.state, words in finding.said) == (state, True), finding.said


async def test_only_warning_is_the_simulated_engine() -> None:
    given = settings()
    assert {each.about: each.state for each in await examine(given)} == {
        "port": "ok",
        "keys": "ok",
        "connections": "ok",
        "memory": "ok",
        "engine": "warning",
    }
    # It was only looked at.
    await check("port", given, "ok")


async def test_ports_that_are_taken() -> None:
    with taken_port() as taken:
        port = taken.getsockname()[1]
        for about, given in (("port", settings(port=port)), ("metrics", settings(admin_port=port))):
            await check(about, given, "problem", "is taken")


async def test_operators_keys(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    given = settings(admin_port=0, admin_keys_file=str(operator.path))
    await check("operators", given, "ok")
    key_file.save(operator.path, KeyFile())
    await check("operators", given, "problem")


async def test_everybody_would_be_let_in() -> None:
    await check("keys", settings(host="0.0.0.0"), "problem")
    await check("keys", settings(host="0.0.0.0", auth=AuthSettings(insecure_open=True)), "warning")


async def test_more_sessions_than_the_system_allows_connections() -> None:
    await check("connections", settings(max_sessions=10_000_000), "warning", "LimitNOFILE")


@pytest.mark.parametrize(("days", "state"), [(-1, "problem"), (3, "warning"), (300, "ok")])
async def test_a_certificate_that_ends(days: int, state: str, tmp_path: Path) -> None:
    made = certificate(tmp_path, days=days)
    await check("certificate", settings(tls_cert=str(made.cert), tls_key=str(made.key)), state)


async def test_a_certificate_that_is_not_there(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere.pem")
    await check("certificate", settings(tls_cert=nowhere, tls_key=nowhere), "problem")


async def test_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = shared_server().url, "unix:///nowhere/redis.sock"
    given = settings(store=StoreSettings(url=f"{good} {bad}"))
    stores = [each for each in await examine(given, workers=2) if each.about == "store"]
    assert [each.state for each in stores] == ["ok", "problem"]
    assert "cannot be reached" in stores[1].said

    async def an_hour_ahead(_url: str) -> float:
        return 3_600.0

    monkeypatch.setattr(doctor, "clock_offset_s", an_hour_ahead)
    await check("store", settings(store=StoreSettings(url=good)), "warning", "3600 s ahead")


SECRET = f"whsec_{'A' * 32}"


@pytest.mark.usefixtures("no_proxies")
@pytest.mark.parametrize(
    ("url", "secret", "proxy", "state", "words"),
    [
        ("https://localhost/hook?s3cret", SECRET, "", "ok", "Webhook backend has a secret"),
        ("https://nowhere.invalid/?s3cret", SECRET, "", "warning", "The host nowhere.invalid of webhook"),
        (f"https://{'a' * 64}.invalid/?s3cret", SECRET, "", "warning", "of webhook backend is not found"),
        ("https://localhost/hook?s3cret", "password", "", "problem", "openssl rand"),
        ("https://no.invalid", SECRET, "http://ana:s3cret@localhost:3128", "ok", "its proxy localhost is found"),
        (
            "https://no.invalid",
            SECRET,
            "http://ana:s3cret@nowhere.invalid:3128",
            "warning",
            "proxy nowhere.invalid",
        ),
        ("https://no.invalid", SECRET, "socks5://ana:s3cret@localhost", "warning", "not one for HTTP"),
        ("https://no.invalid", SECRET, "http://ana:s3cret@[localhost", "warning", "cannot be used"),
    ],
)
async def test_webhooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, secret: str, proxy: str, state: str, words: str
) -> None:
    (tmp_path / "secret").write_text(secret)
    webhook = Webhook(name="backend", url=url, secret_file=str(tmp_path / "secret"))
    if proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
    finding = await found("webhook", settings(webhooks=(webhook,)))
    assert (finding.state, words in finding.said, "s3cret" in finding.said) == (state, True, False)


async def test_workers_need_a_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    await check("store", settings(), "ok", workers=2)
    monkeypatch.setenv("PATH", str(tmp_path))
    await check("store", settings(), "problem", workers=2)


async def test_doctor_does_not_assemble_the_bundled_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "is_ready", lambda: False)
    words = "The bundled model is assembled at the first start, in about 10 s."
    await check("engine", settings(engine=EngineSettings()), "ok", words)


async def test_models(monkeypatch: pytest.MonkeyPatch) -> None:
    await check("engine", settings(engine=EngineSettings()), "ok", "vllm")
    await check("engine", settings(engine=EngineSettings(model="/nowhere")), "problem", "config.json is missing")
    monkeypatch.setattr(doctor, "_is_installed", lambda _: False)
    await check("engine", settings(engine=EngineSettings()), "problem", "make install")


@pytest.mark.parametrize("memory", ["available_gib", "available_shared_mib"])
async def test_too_little_memory(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, memory, lambda: 0.1)
    await check("engine", settings(engine=EngineSettings()), "problem", "Too little")


async def test_a_remote_server_that_does_not_answer() -> None:
    remote = EngineSettings(kind="remote", url=f"http://127.0.0.1:{free_port()}")
    await check("engine", settings(engine=remote), "problem", "takes no requests")


async def test_missing_key_file_of_a_remote_server() -> None:
    remote = EngineSettings(kind="remote", url=f"http://127.0.0.1:{free_port()}", api_key_file="/nowhere")
    await check("engine", settings(engine=remote), "problem", "api_key_file")


GIB = 2**30


@pytest.mark.parametrize(
    ("version", "state"), [("0.32.0", "problem"), ("0.32.0+cu130", "problem"), ("0.32.0+cpu", "ok")]
)
async def test_the_build_for_gpus_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, version: str, state: str
) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    monkeypatch.setattr(hardware, "_answers", lambda: False)
    monkeypatch.setattr(doctor, "_is_installed", lambda name: name == "vllm")
    monkeypatch.setattr("importlib.metadata.version", lambda _: version)
    finding = await found("engine", settings(engine=EngineSettings()))
    assert (finding.state, "docker run --gpus all" in finding.said) == (state, state == "problem")


async def test_a_machine_without_a_gpu_uses_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    monkeypatch.setattr(hardware, "_answers", lambda: False)
    given = settings(engine=EngineSettings())
    await check("driver", given, "ok")
    await check("gpu", given, "ok", "the CPU build")


async def test_a_gpu_with_room_and_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: True)
    installed(monkeypatch, Device("GPU-1", used=1 * GIB), Device("GPU-2", used=30 * GIB))
    driver = await found("driver", settings(engine=EngineSettings()))
    assert (driver.state, "580.65.06" in driver.said) == ("ok", True)
    state, _, said = await found("gpu", settings(engine=EngineSettings(device="0")))
    assert (state, said) == ("ok", "GPU 0 is an NVIDIA H100 with 79.0 of 80.0 GiB free.")
    await check("gpu", settings(engine=EngineSettings(device="1")), "warning", "lower gpu_memory_utilization")
    await check("gpu", settings(engine=EngineSettings(device="7")), "problem", "nvidia-smi -L")


async def test_a_driver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: True)
    monkeypatch.setattr(hardware, "_answers", lambda: False)
    await check("driver", settings(engine=EngineSettings()), "problem", "--gpus all")


async def test_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "available_gib", lambda: 0.4)
    await check("memory", settings(), "warning", "0.4 GiB")


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


async def test_state_dir_alone_is_refused(tmp_path: Path) -> None:
    [finding] = [each for each in await examine(settings(), state_dir=tmp_path) if each.about == "kept"]
    assert (finding.state, finding.said) == ("problem", "--state-dir goes with --workers or --keep-engine.")
