"""`utterances.jsonl`, as it is written."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from loadtest.tests.made_up_trials import open_trial
from loadtest.trial import records_file
from loadtest.trial.values import Record


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
