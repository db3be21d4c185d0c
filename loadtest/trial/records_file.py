"""`utterances.jsonl`: every record of a load test, one a line, with the name and the repetition of its trial.

Knows: the file. Must not know: what is made of the records.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from loadtest.trial.values import Trial

__all__ = ["write"]


class _Of(Struct, frozen=True):
    trial: str
    repetition: int


def write(path: Path, trials: Iterable[Trial]) -> None:
    """All records of all trials."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for trial in trials:
            of = encode(_Of(trial.name, trial.repetition))[:-1] + b","
            for record in trial.records:
                file.write(of + encode(record)[1:] + b"\n")
