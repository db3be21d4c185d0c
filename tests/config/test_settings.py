"""The settings themselves: their defaults fit their ranges and the parts of the gateway that take them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import fields

import gateway
from gateway.config import EngineSettings, EventLogSettings, LaneSettings, Settings, part
from gateway.engines.simulated import Script
from gateway.engines.supervisor import RestartPolicy
from gateway.engines.vllm.options import VllmOptions
from gateway.protocol.limits import Limits
from tests.usual import usual

GATEWAY = Path(gateway.__file__).parent


def test_every_default_is_in_its_range() -> None:
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings, strict=False) == Settings()


def test_part_takes_first_section_with_field() -> None:
    engine = EngineSettings(model="/m", extra={"seed": 1}, stall_s=5.0)
    settings = Settings(delta_interval_s=0.5, engine=engine)
    assert part(VllmOptions, engine, settings) == usual(
        VllmOptions, model="/m", extra={"seed": 1}, delta_interval_s=0.5
    )
    assert part(RestartPolicy, engine) == usual(RestartPolicy, stall_s=5.0)


def test_part_without_setting_is_an_error() -> None:
    with pytest.raises(AttributeError, match="delta_interval_s"):
        part(VllmOptions, EngineSettings())


def _defaults(file: Path) -> Iterator[tuple[str, object]]:
    """Name and default of each parameter and each field of a class that has a literal as its default."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.arguments):
            last = [*node.posonlyargs, *node.args][-len(node.defaults) :] if node.defaults else []
            both = zip([*last, *node.kwonlyargs], [*node.defaults, *node.kw_defaults], strict=True)
            yield from ((each.arg, default.value) for each, default in both if isinstance(default, ast.Constant))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
            yield ast.unparse(node.target), node.value.value


def test_numeric_defaults_stand_in_settings_alone() -> None:
    sections = (Settings, LaneSettings, EventLogSettings, Limits, Script)
    numbers = {each.name for kind in sections for each in fields(kind) if type(each.default) in (int, float)}
    # What `config` puts together, and what a client decides for itself.
    own = {"config/settings.py", "engines/vllm/options.py", "engines/simulated.py", "protocol/limits.py"}
    found = {
        f"{path}: {name}"
        for file in GATEWAY.rglob("*.py")
        if (path := file.relative_to(GATEWAY).as_posix()) not in own and not path.startswith("client/")
        for name, default in _defaults(file)
        if name in numbers and default
    }
    # The model of an engine that does not know its longest text.
    assert found == {"domain/engine.py: max_text_tokens"}
