"""Settings from four places, and clear sentences for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import BUNDLED_MODEL, Settings, load
from gateway.errors import StartupError


def refusal(tmp_path: Path, toml: str = "", **environment: str) -> str:
    file = tmp_path / "gateway.toml"
    file.write_text(toml)
    with pytest.raises(StartupError) as caught:
        load(file, environment)
    return caught.value.message


def test_without_anything_it_is_the_defaults() -> None:
    assert load() == Settings()
    assert load().engine.model == str(BUNDLED_MODEL)


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


def test_nested_settings_keep_their_defaults(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[limits]\ntext_chars = 10\n[engine.script]\nload_s = 1.5\n")
    settings = load(file)
    assert (settings.limits.text_chars, settings.limits.languages) == (10, 8)
    assert settings.engine.script.load_s == 1.5


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("prot = 1", "prot"),
        ("[engine]\nmodle = 'x'", "modle"),
        ("[limits]\ntext_char = 1", "text_char"),
        ("port = 'many'", "port"),
        ("port = 70000", "between 0 and 65535"),
        ("[engine]\nkind = 'magic'", "engine.kind"),
        ("[engine]\nmax_num_seqs = 0", "engine.max_num_seqs"),
        ("[limits]\nlanguages = 0", "limits.languages"),
        ("port = ", "cannot be read"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, toml: str, says: str) -> None:
    assert says in refusal(tmp_path, toml)


def test_a_mistake_in_the_environment_is_named(tmp_path: Path) -> None:
    assert "port" in refusal(tmp_path, GATEWAY__PORT="many")
    assert "colour" in refusal(tmp_path, GATEWAY__COLOUR="red")
    assert "section" in refusal(tmp_path, "engine = 1", GATEWAY__ENGINE__MODEL="x")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(StartupError, match=r"no configuration file nowhere\.toml"):
        load(Path("nowhere.toml"))
