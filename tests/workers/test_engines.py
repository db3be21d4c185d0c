"""What workers are told of the engines that their parent has; simulated ones, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import EngineSettings, LaneSettings, Settings
from gateway.domain.engine import EngineHealth, EngineProfile, EngineState
from gateway.domain.errors import EngineUnavailable
from gateway.engines.host.shared import SharedEngine
from gateway.engines.pool import Pool
from gateway.engines.simulated import Script
from gateway.workers.engines import Engines
from gateway.workers.messages import EngineIs

pytestmark = pytest.mark.slow


def simulated(name: str, *pairs: str) -> LaneSettings:
    return LaneSettings(name=name, kind="simulated", pairs=pairs, script=Script(), restart_backoff_s=0)


async def test_only_engine_has_no_name(tmp_path: Path) -> None:
    said: list[EngineIs] = []
    engines = Engines(Settings(engine=EngineSettings(kind="simulated")), tmp_path, said.append)
    [now] = engines.all_messages()
    assert (now.name, now.health.state, now.path) == ("", EngineState.STARTING, None)
    await engines.engine.start()
    [now] = engines.all_messages()
    assert (now.name, now.health.state) == ("", EngineState.READY)
    assert now.path is not None
    assert said[-1] == now
    before = len(said)
    engines.tell_workers()
    assert len(said) == before, "nothing has changed"
    await engines.engine.stop()


async def test_workers_hear_of_engines_once_all_are_ready(tmp_path: Path) -> None:
    said: list[EngineIs] = []
    settings = Settings(engines=(simulated("a", "en-ja"), simulated("b", "en-de")))
    engines = Engines(settings, tmp_path, said.append)
    await engines.engine.start()
    states = [each.health.state for each in said if each.name == "a"]
    assert states[-1] is EngineState.READY
    assert set(states[:-1]) == {EngineState.STARTING}
    first_ready = next(n for n, each in enumerate(said) if each.health.state is EngineState.READY)
    assert engines.engine.health().state is EngineState.READY
    assert {each.name for each in said[first_ready:]} == {"a", "b"}
    paths = {each.path for each in engines.all_messages()}
    assert len(paths) == 2
    await engines.engine.stop()


async def test_new_settings_first_add_and_then_remove(tmp_path: Path) -> None:
    said: list[EngineIs] = []
    engines = Engines(Settings(engines=(simulated("a", "en-ja"),)), tmp_path, said.append)
    await engines.engine.start()
    wanted = Settings(engines=(simulated("b", "en-de"),))
    await engines.add(wanted)
    assert [each.name for each in engines.all_messages()] == ["a", "b"]
    assert said[-1].name == "b"
    assert said[-1].health.state is EngineState.READY
    await engines.remove(wanted)
    assert [each.name for each in engines.all_messages()] == ["b"]
    assert list(engines.hosted) == ["b"]
    assert isinstance(engines.engine, Pool)
    assert [lane.name for lane in engines.engine.lane_health()] == ["b"]
    await engines.engine.stop()


async def test_new_worker_knows_profile_of_restarting_engine(
    tmp_path: Path,
) -> None:
    engines = Engines(
        Settings(engines=(simulated("a", "en-ja"), simulated("b", "en-de"))), tmp_path, lambda _: None
    )
    await engines.engine.start()
    list(engines.all_messages())
    engines._engines["b"].supervisor.health = lambda: EngineHealth(EngineState.RESTARTING, "it died")  # type: ignore[method-assign]
    engines._engines["b"].supervisor.profile = _unknown  # type: ignore[method-assign]
    told = {each.name: each for each in engines.all_messages()}["b"]
    assert told.profile is not None
    worker = SharedEngine()
    worker.follow_parent(told.health, None, told.profile)
    assert worker.health().state is not EngineState.READY
    assert worker.profile() == told.profile
    await engines.engine.stop()


def _unknown() -> EngineProfile:
    raise EngineUnavailable("It is being started again.")
