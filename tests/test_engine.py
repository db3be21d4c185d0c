"""Which engines the settings make, what they are given, and what the metrics tell of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from gateway.config import EngineSettings, LaneSettings, Settings
from gateway.domain.errors import StartupError
from gateway.engine import (
    engine_options,
    engine_pool,
    lane_changes,
    made_of,
    ready_model,
    show_engines,
    supervised,
)
from gateway.engines.simulated import Script


def simulated(name: str, *pairs: str) -> LaneSettings:
    return LaneSettings(name=name, kind="simulated", pairs=pairs, script=Script(max_running=3))


def ready(name: str) -> float | None:
    return REGISTRY.get_sample_value("gateway_engine_ready", {"engine": name})


def test_engine_gets_its_section_and_needed_top_level() -> None:
    settings = Settings(delta_interval_s=0.5, engine=EngineSettings(model="m", max_num_seqs=7))
    options = engine_options(settings)
    assert (options.model, options.max_num_seqs, options.delta_interval_s) == ("m", 7, 0.5)
    options = engine_options(settings, LaneSettings(name="n", model="of n", device="1"))
    assert (options.model, options.device, options.max_num_seqs, options.delta_interval_s) == (
        "of n",
        "1",
        16,
        0.5,
    )


async def test_a_pool_has_a_lane_for_each_engine() -> None:
    pool = engine_pool(Settings(engines=(simulated("a", "en-ja"), simulated("b", "*-de"))))
    await pool.start()
    assert list(pool.lanes()) == ["a", "b"]
    assert pool.capacity().max_running == 6
    assert ("en", "ja") in (pool.profile().pairs or ())
    await pool.stop()


async def test_metrics_cover_each_engine_while_present() -> None:
    pool = engine_pool(Settings(engines=(simulated("metrics-a", "en-ja"), simulated("metrics-b", "*-de"))))
    shown = show_engines(pool)
    assert (ready("metrics-a"), ready("metrics-b")) == (0, 0)
    await pool.start()
    assert (ready("metrics-a"), ready("metrics-b")) == (1, 1)
    pool._leaving.add("metrics-b")
    assert show_engines(pool, shown) == {"metrics-a"}
    assert (ready("metrics-a"), ready("metrics-b")) == (1, None)
    await pool.stop()


async def test_the_only_engine_has_a_name_too() -> None:
    settings = Settings(engine=EngineSettings(kind="simulated"))
    engine = supervised(settings.engine, settings)
    assert show_engines(engine) == {"default"}
    await engine.start()
    assert ready("default") == 1
    await engine.stop()


def test_which_engines_come_and_go() -> None:
    a, b, c = simulated("a", "en-ja"), simulated("b", "en-ja"), simulated("c", "en-ja")
    assert lane_changes((a, b), (b, c)) == ([c], ["a"])
    assert lane_changes((a,), (a,)) == ([], [])
    with pytest.raises(StartupError, match=r"^engine a cannot change while it runs"):
        lane_changes((a,), (simulated("a", "en-de"),))


def test_kept_engine_needs_same_settings_model_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_text("old")
    settings = Settings()
    engine = EngineSettings(model=str(tmp_path))
    before = made_of(engine, settings)
    assert made_of(LaneSettings(name="n", model=str(tmp_path), pairs=("en-de",)), Settings(drain_s=1)) == before
    others = {made_of(EngineSettings(model=str(tmp_path), max_num_seqs=7), settings)}
    others.add(made_of(EngineSettings(kind="remote", model=str(tmp_path), url="http://gpu:8000"), settings))
    others.add(made_of(engine, Settings(delta_interval_s=0.5)))
    monkeypatch.setenv("VLLM_ATTENTION_BACKEND", "another")
    others.add(made_of(engine, settings))
    monkeypatch.undo()
    weights.write_text("a new one")
    others.add(made_of(engine, settings))
    assert len({before, *others}) == 6


@pytest.mark.parametrize(
    ("settings", "ready"),
    [
        (Settings(), True),
        (Settings(engine=EngineSettings(kind="remote")), True),
        (Settings(engine=EngineSettings(model="acme/other")), False),
        (Settings(engine=EngineSettings(kind="simulated")), False),
        (Settings(engines=(LaneSettings(name="a", model="acme/other"), LaneSettings(name="b"))), True),
    ],
)
def test_bundled_model_is_prepared_only_where_used(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, ready: bool
) -> None:
    said: list[str] = []
    monkeypatch.setattr("gateway.engine.model_folder", lambda tell: tell("assembling"))
    ready_model(settings, said.append)
    assert said == ["assembling"] * ready


def test_engine_is_given_the_bundled_models_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.engine.model_folder", lambda: Path("/assembled"))
    assert engine_options(Settings()).model == "/assembled"
    assert engine_options(Settings(engine=EngineSettings(model="/other"))).model == "/other"
