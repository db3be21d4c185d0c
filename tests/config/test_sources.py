"""Where settings come from: which source wins, and which file cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import load
from gateway.domain.errors import StartupError
from gateway.engines.simulated import Rule


def test_the_later_source_wins(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('port = 1\nhost = "::1"\nmax_sessions = 5\n[engine]\nmax_num_seqs = 2\ndtype = "float32"\n')
    environment = {"GATEWAY__PORT": "2", "GATEWAY__ENGINE__MAX_NUM_SEQS": "3", "PORT": "9"}
    settings = load(file, environment, {"port": 4, "engine.model": "/m"})
    assert (settings.port, settings.host, settings.max_sessions) == (4, "::1", 5)
    assert (settings.engine.max_num_seqs, settings.engine.dtype, settings.engine.model) == (
        3,
        "float32",
        "/m",
    )


def test_sections_merge_over_the_sources(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[engine.extra]\nseed = 1\nnested.a = 1\n[[engine.script.rules]]\nmatch = 'x'\n")
    settings = load(file, {"GATEWAY__ENGINE__EXTRA__QUANTIZATION": "fp8"}, {"engine.extra.nested.b": 2})
    assert settings.engine.extra == {"seed": 1, "quantization": "fp8", "nested": {"a": 1, "b": 2}}
    assert settings.engine.script.rules == (Rule("x"),)


@pytest.mark.parametrize("content", [b"port = ", b"port = 1\nport = 2", b"\xff"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "gateway.toml"
    file.write_bytes(content)
    with pytest.raises(StartupError, match=r"The configuration file \S+gateway\.toml cannot be read: "):
        load(file)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(StartupError, match=r"no configuration file nowhere\.toml"):
        load(Path("nowhere.toml"))
