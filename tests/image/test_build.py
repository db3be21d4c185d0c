"""What the container image is built from, and how the build finds packages where there is no Docker."""

from __future__ import annotations

import fnmatch
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from scripts import image

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
DOCUMENTS = [ROOT / "Dockerfile", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def stage(name: str) -> str:
    """The instructions of a stage of the Dockerfile."""
    return re.split(rf"^FROM .* AS {name}$", DOCKERFILE, flags=re.MULTILINE)[1].split("\nFROM ")[0]


def copied(text: str) -> list[str]:
    """What of this repository some instructions copy."""
    return [
        path for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for path in line.split()[:-1]
    ]


def let_through(path: str) -> bool:
    """Whether .dockerignore, which excludes everything first, names a path, what it is in, or something in it."""
    patterns = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    return any(
        fnmatch.fnmatch(path, pattern) or pattern.startswith(f"{path}/") or path.startswith(f"{pattern}/")
        for pattern in patterns
    )


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_the_project_is_installed_with_all_that_its_metadata_names(target: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    there = copied(stage(target))
    for path in ("pyproject.toml", project["readme"], *project["license-files"]):
        assert any(path == each or path.startswith(f"{each}/") for each in there), path


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_what_changes_often_is_copied_after_the_engine_is_installed(target: str) -> None:
    assert f"--engine {target} --no-project" in stage(f"engine-{target}")
    assert copied(stage(f"engine-{target}")) == ["locks", "scripts/install.py"]
    assert f"FROM engine-{target} AS {target}\n" in DOCKERFILE


def test_the_builder_is_given_all_that_is_copied() -> None:
    assert [path for path in copied(DOCKERFILE) if not let_through(path) or not (ROOT / path).exists()] == []


def test_every_documented_command_gives_the_engine_its_shared_memory() -> None:
    commands = [
        (document.name, command)
        for document in DOCUMENTS
        for command in re.findall(r"^#? *(docker run (?:.*\\\n)*.*)", document.read_text(), re.MULTILINE)
    ]
    assert len(commands) >= 5
    for name, command in commands:
        options = shlex.split(command)
        assert options[options.index("--shm-size") + 1] == "1g", name
        # Nobody has to authenticate, so nobody else is let in by default.
        assert options[options.index("-p") + 1].startswith("127.0.0.1:"), name


def test_the_base_image_is_the_one_that_the_dockerfile_names() -> None:
    assert re.fullmatch(r"python:3\.\d+-slim-bookworm", image.base_name(DOCKERFILE))
    assert image.base_name("ARG TAG=1\nFROM debian:${TAG} AS base\nFROM base") == "debian:1"


def test_pips_settings_are_taken_over_and_what_they_name_is_mounted(tmp_path: Path) -> None:
    wheels, index, certificates = tmp_path / "wheels", tmp_path / "mirror" / "simple", tmp_path / "ca.crt"
    wheels.mkdir()
    index.mkdir(parents=True)
    certificates.touch()
    settings = image.parse_settings(
        f"""\
:env:.find-links='{wheels}'
global.cert='{certificates}'
global.extra-index-url='{index.as_uri()} https://packages.example.com/simple'
global.find-links='/somewhere/else'
global.index-url='https://packages.example.com/it%27s'
install.no-index='false'
"""
    )
    assert settings == {
        "cert": str(certificates),
        "extra-index-url": f"{index.as_uri()} https://packages.example.com/simple",
        "find-links": str(wheels),
        "index-url": "https://packages.example.com/it%27s",
        "no-index": "false",
    }
    # Of an index on disk, the folder around it: its pages lead to files beside it.
    assert image.named_paths(settings) == [certificates, index.parent, wheels]


@pytest.mark.parametrize(("engine", "target"), [("", "cpu"), ("cuda", "cuda")])
def test_the_engine_of_the_environment_is_built_as_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, engine: str, target: str
) -> None:
    built = []
    monkeypatch.setattr(image.Docker, "build", lambda _, *what: built.append(what))
    monkeypatch.setattr(image, "find_tool", image.Docker)
    monkeypatch.setattr("sys.argv", ["image.py", "build"])
    monkeypatch.setenv("ENGINE", engine)
    assert image.main() == 0
    assert built == [(target, f"translation-gateway:{target}")]
    monkeypatch.setenv("ENGINE", "auto")
    with pytest.raises(SystemExit):
        image.main()


def test_the_container_is_run_as_the_documentation_says() -> None:
    documented = (ROOT / "docs" / "operations.md").read_text()
    for tool in (image.Docker(), image.Podman()):
        command = shlex.join(tool.run("image:tag", "name", 8080, shm_size="1g"))
        for options in ("--shm-size 1g", "--init", "--read-only --tmpfs /tmp", "--cap-drop ALL"):
            assert options in command
            assert options in documented
    assert "--publish 127.0.0.1:8080:8000" in shlex.join(image.Docker().run("image:tag", "name", 8080))
