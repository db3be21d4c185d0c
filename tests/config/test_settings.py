"""The settings themselves: their defaults fit their ranges and the parts of the gateway that take them."""

from __future__ import annotations

import msgspec
import pytest

from gateway.config import EngineSettings, Settings, part
from gateway.engines.supervisor import RestartPolicy
from gateway.engines.vllm.options import VllmOptions
from tests.usual import usual


def test_every_default_is_in_its_range() -> None:
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings, strict=False) == Settings()


def test_a_part_takes_each_field_from_the_first_section_that_has_it() -> None:
    engine = EngineSettings(model="/m", extra={"seed": 1}, stall_s=5.0)
    settings = Settings(delta_interval_s=0.5, engine=engine)
    assert part(VllmOptions, engine, settings) == usual(
        VllmOptions, model="/m", extra={"seed": 1}, delta_interval_s=0.5
    )
    assert part(RestartPolicy, engine) == usual(RestartPolicy, stall_s=5.0)


def test_a_part_that_asks_for_more_than_there_is_is_a_mistake_of_ours() -> None:
    with pytest.raises(AttributeError, match="delta_interval_s"):
        part(VllmOptions, EngineSettings())
