"""`utterances.jsonl`, written and read back."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from loadtest.results import LoadtestError
from loadtest.tests.made_up_trials import comparison, open_trial
from loadtest.trial import records_file
from loadtest.trial.values import Record


def test_records_come_back_under_their_trial(tmp_path: Path) -> None:
    trials = comparison(levels=(2,))
    records_file.write(tmp_path / "u.jsonl", trials)
    kept = records_file.read(tmp_path / "u.jsonl")
    assert not kept.cut_off
    assert set(kept.records) == {(trial.name, trial.repetition) for trial in trials}
    for trial in trials:
        assert kept.records[trial.name, trial.repetition] == trial.records


def test_a_line_is_one_record_with_the_name_of_its_trial(tmp_path: Path) -> None:
    trial = msgspec.structs.replace(
        open_trial(5, 2, 1), records=[Record("l\n1", "en", 0.123, 0.1, None, None, failed="overloaded")]
    )
    records_file.write(tmp_path / "u.jsonl", [trial])
    assert [json.loads(line) for line in (tmp_path / "u.jsonl").read_text().splitlines()] == [
        {
            "trial": "gateway at 5/s",
            "repetition": 2,
            "line": "l\n1",
            "target": "en",
            "due_s": 0.123,
            "sent_s": 0.1,
            "first_s": None,
            "done_s": None,
            "failed": "overloaded",
        }
    ]


def test_a_last_line_that_is_cut_off_is_told(tmp_path: Path) -> None:
    path = tmp_path / "u.jsonl"
    records_file.write(path, [open_trial(5, 1, 1)])
    whole = records_file.read(path)
    path.write_bytes(path.read_bytes()[:-20])
    kept = records_file.read(path)
    assert kept.cut_off
    (key,) = whole.records
    assert kept.records[key] == whole.records[key][:-1]


def test_a_broken_line_elsewhere_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "u.jsonl"
    records_file.write(path, [open_trial(5, 1, 1)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b'{"trial": "x"}\n', *lines[1:]]))
    with pytest.raises(LoadtestError, match="line 2"):
        records_file.read(path)


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    records_file.write(tmp_path / "u.jsonl", [])
    assert records_file.read(tmp_path / "u.jsonl") == records_file.Kept({}, cut_off=False)
