"""`utterances.jsonl`: every record of a load test, one a line, with the name and the repetition of its trial.

Knows: the file. Must not know: what is made of the records.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from loadtest.results import LoadtestError
from loadtest.trial.values import Record, Trial

__all__ = ["Kept", "read", "write"]

_Key = tuple[str, int]
"""The name of a trial, and its repetition."""


class Kept(Struct):
    """What was in a file. cut_off: whether its last line was not whole, as an interrupted run leaves it."""

    records: dict[_Key, list[Record]]
    cut_off: bool


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


def read(path: Path) -> Kept:
    """The records by trial; raises `LoadtestError` with the line for what is none, unless it is the last."""
    of, record = msgspec.json.Decoder(_Of), msgspec.json.Decoder(Record)
    kept = Kept({}, cut_off=False)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                key = of.decode(line)
                kept.records.setdefault((key.trial, key.repetition), []).append(record.decode(line))
            except msgspec.DecodeError as error:
                if file.read(1):
                    raise LoadtestError(f"{path}, line {number}: {error}") from None
                kept.cut_off = True
    return kept
