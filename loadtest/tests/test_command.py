"""What `make` and the docs call, what a report says of its own command, the arithmetic on what was measured."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loadtest.__main__ as entry
from loadtest.__main__ import _parser
from loadtest.machine import command_line
from loadtest.options import Command, Say, add_options
from loadtest.results import first_error, nearest_rank, until_it_ends
from loadtest.shapes import write
from loadtest.trial.values import Results

ROOT = Path(__file__).parents[2]
TARGETS = ("soak", "loadtest", "bench-peers", "bench-journey", "bench-gateway", "bench-sweep", "bench-recommend")
PAGES = ("docs/loadtest.md", "docs/tuning.md")


def load_tests(text: str) -> list[list[str]]:
    """Arguments of every `python -m loadtest …` in a shell's text, up to the end of its command."""
    joined = text.replace("\\\n", " ")
    found = re.findall(r"python -m loadtest (\w.*?)(?:\|\||#|$)", joined, re.MULTILINE)
    return [shlex.split(arguments) for arguments in found]


def said_by_make(*target: str) -> str:
    make = shutil.which("make")
    assert make is not None
    # Without the installation, and without what the surroundings say to another make.
    command = [make, "--dry-run", "--assume-old=install-dev", "--no-print-directory", *target]
    quiet = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=ROOT, env=quiet, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("target", TARGETS)
def test_make_gives_valid_options(target: str) -> None:
    calls = load_tests(said_by_make(target))
    assert calls
    folders = [_parser().parse_args(call).out for call in calls]
    assert len(set(folders)) == len(folders)


def test_make_soak_takes_workers() -> None:
    for words, workers in ((["soak"], None), (["soak", "WORKERS=3", "MINUTES=5"], 3)):
        [call] = load_tests(said_by_make(*words))
        assert _parser().parse_args(call).workers == workers


@pytest.mark.parametrize("page", PAGES)
def test_the_documentation_gives_valid_options(page: str) -> None:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    calls = load_tests("\n".join(blocks))
    assert calls
    for call in calls:
        _parser().parse_args(call)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--out", "HERE/docs/out"], "--out docs/out"),
        (["--model", "/somewhere/else/model"], "--model model"),
        (["--model=/somewhere/else/model"], "--model=model"),
        (["--set", "engine.model=/somewhere/else/model"], "--set engine.model=model"),
        (["--set", "engine.extra.seed=1"], "--set engine.extra.seed=1"),
        (["/somewhere/a=b/c"], "c"),
        (
            ["--set", "engine.script={'a b': 1}", "--name", "a; b"],
            """--set 'engine.script={'"'"'a b'"'"': 1}' --name 'a; b'""",
        ),
    ],
)
def test_a_command_line_hides_the_machine(given: list[str], told: str) -> None:
    here = str(Path.cwd())
    assert command_line("loadtest", [each.replace("HERE", here) for each in given]) == f"python -m loadtest {told}"


async def _measure(_options: argparse.Namespace, _say: Say) -> Results:
    return Results(model="m", findings=[], parts=["What was found."])


def test_written_files_are_named_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        entry, "_TESTS", (Command("nothing", "", "", lambda own: add_options(own, "--out"), _measure),)
    )
    out = tmp_path / "results"
    assert entry.main(["nothing", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("What was found.\n\n`python -m loadtest nothing --out results`, ")
    assert said.endswith(f"\n\nWritten to {out}, which holds result.json.gz, table.md\n")


@pytest.mark.parametrize(
    ("quantile", "expected"), [(0.0, 1), (0.01, 1), (0.5, 50), (0.501, 51), (0.99, 99), (0.991, 100), (1.0, 100)]
)
def test_nearest_rank_of_one_to_hundred(quantile: float, expected: float) -> None:
    assert nearest_rank([float(n) for n in range(100, 0, -1)], quantile) == expected


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.floats(0, 1))
def test_a_percentile_was_measured(values: list[float], quantile: float) -> None:
    found = nearest_rank(values, quantile)
    assert found in values
    assert sum(value <= found for value in values) >= quantile * len(values) * (1 - 1e-9)


def test_the_first_of_grouped_errors_is_told() -> None:
    inner = ExceptionGroup("of tasks", [KeyError("first"), ValueError("then")])
    assert str(first_error(ExceptionGroup("of more", [inner, OSError()]))) == "'first'"
    alone = ValueError("alone")
    assert first_error(alone) is alone


async def test_a_time_limit_keeps_what_was_measured() -> None:
    assert await until_it_ends(asyncio.sleep(0), 5, lambda: True) == ""
    why = await until_it_ends(asyncio.Event().wait(), 0.01, lambda: False)  # type: ignore[arg-type]
    assert "--time-limit-s" in why


@pytest.mark.parametrize("something", [True, False])
async def test_an_interruption_keeps_what_was_measured(something: bool) -> None:
    async def interrupted() -> str:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        why = await until_it_ends(asyncio.sleep(5), 5, lambda: something)
        # What is left to be done is not cancelled.
        await asyncio.sleep(0)
        return why

    task = asyncio.create_task(interrupted())
    if something:
        assert await task == "It was interrupted."
    else:
        with pytest.raises(asyncio.CancelledError):
            await task


def test_a_shape_has_words_for_all_tokens(tmp_path: Path) -> None:
    folder = write(tmp_path, "1.7b")
    config = json.loads((folder / "config.json").read_text())
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert (config["hidden_size"], config["vocab_size"]) == (2_048, len(vocabulary))
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
