"""What is found of a machine and its settings before a gateway is started, on real sockets, files and stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway import doctor
from gateway.config import AuthSettings, EngineSettings, Settings, StoreSettings
from gateway.doctor import Finding, examine
from gateway.engines.simulated import Script
from gateway.engines.vllm import hardware
from gateway.identity import key_file
from gateway.identity.key_file import KeyFile
from tests.administration import Operator
from tests.certificates import certificate
from tests.processes import free_port
from tests.redis_server import shared_server
from tests.workers.gateways import taken_port

ENGINE = EngineSettings(kind="simulated", script=Script())


def settings(**changed: object) -> Settings:
    return replace(Settings(engine=ENGINE, port=free_port()), **changed)


async def found(about: str, given: Settings, *, workers: int | None = None) -> Finding:
    """The only finding about it."""
    [finding] = [each for each in await examine(given, workers=workers) if each.about == about]
    return finding


async def test_where_all_is_well_the_only_warning_is_the_engine_that_translates_nothing() -> None:
    given = settings()
    assert {each.about: each.state for each in await examine(given)} == {
        "port": "ok",
        "keys": "ok",
        "connections": "ok",
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


async def test_workers_need_a_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (await found("store", settings(), workers=2)).state == "ok"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await found("store", settings(), workers=2)).state == "problem"


async def test_models(monkeypatch: pytest.MonkeyPatch) -> None:
    state, _, said = await found("engine", settings(engine=EngineSettings()))
    assert state == "ok"
    assert "vllm" in said
    state, _, said = await found("engine", settings(engine=EngineSettings(model="/nowhere")))
    assert (state, "config.json is missing" in said) == ("problem", True)
    assert (await found("engine", settings(engine=EngineSettings(model="nobody/nothing")))).state == "warning"
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


async def test_the_file_of_a_remote_servers_key_is_not_there() -> None:
    remote = EngineSettings(kind="remote", url=f"http://127.0.0.1:{free_port()}", api_key_file="/nowhere")
    state, _, said = await found("engine", settings(engine=remote))
    assert (state, "api_key_file" in said) == ("problem", True)
