"""The recordings of `tests/recordings/`, which both languages run, as cases of a test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.client.recognisers import Recogniser, Said
from tests.conftest import ROOT

# What a recogniser says, and what is to be said after it.
Step = tuple[Any, list[list[Any]]]


def recorded(form: str) -> pytest.MarkDecorator:
    """Every recording of a form."""
    recordings: dict[str, list[Step]] = json.loads((ROOT / f"tests/recordings/{form}.json").read_text())
    return pytest.mark.parametrize("steps", recordings.values(), ids=recordings.keys())


def play(steps: list[Step]) -> None:
    """Play one to a recogniser."""
    recogniser = Recogniser()
    for number, (result, expected) in enumerate(steps, 1):
        assert (number, [_short(each) for each in _heard(recogniser, result)]) == (number, expected)


def _heard(recogniser: Recogniser, result: Any) -> list[Said]:
    if "rest" in result:
        return recogniser.rest()
    if "restarted" in result:
        recogniser.restarted(result["restarted"])
        return []
    return recogniser.hear(result)


def _short(said: Said) -> list[Any]:
    times = [] if said.end_ms is None else [said.start_ms, said.end_ms]
    return [said.kind, said.id, said.text, *(times or [said.start_ms] * (said.start_ms is not None))]
