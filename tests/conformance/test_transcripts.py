"""The transcripts are of the protocol: each message of the gateway decodes, each of the client's is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gateway.conformance
from gateway.conformance.transcripts import Transcript, filled, matches, transcripts
from gateway.domain.errors import UnknownType
from gateway.protocol.codec import JSON
from gateway.protocol.messages import client_messages

ALL = transcripts()
TYPES = {str(cls.__struct_config__.tag): set(cls.__struct_encode_fields__) for cls in client_messages()}


def test_each_is_called_like_its_file() -> None:
    files = Path(gateway.conformance.__file__).parent / "transcripts"
    assert {f"{transcript.name}.json" for transcript in ALL} == {file.name for file in files.iterdir()}


@pytest.mark.parametrize("transcript", ALL, ids=lambda transcript: transcript.name)
def test_its_messages_are_those_of_the_protocol(transcript: Transcript) -> None:
    names = {"$rev": 1, "$rev0": 1, "$rev1": 1, "$rev2": 1}
    for step in transcript.steps:
        (kind,) = [name for name in step.__struct_fields__ if getattr(step, name) is not None]
        if kind == "gateway":
            try:
                JSON.decode_server(json.dumps(filled(step.gateway, names)))
            except UnknownType:
                assert transcript.name == "newer-gateway"
        if kind == "client":
            assert step.client is not None
            assert set(step.client) - {"type"} <= TYPES[step.client["type"]]
    assert transcript.steps[-1].shown == {"type": "closed"}


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({"a": None}, {}, True),
        ({"a": "…"}, {"a": [1]}, True),
        (["…", 2], [1, 2], True),
        ([1], [1, 2], False),
        ({"a": "$x", "b": "$x"}, {"a": 1, "b": 1}, True),
        ({"a": "$x", "b": "$x"}, {"a": 1, "b": 2}, False),
    ],
)
def test_what_is_expected_of_a_message(expected: object, actual: object, same: bool) -> None:
    assert matches(expected, actual, {}) is same


def test_names_are_replaced_by_what_they_stood_for() -> None:
    names: dict[str, object] = {}
    assert matches({"rev": "$rev"}, {"rev": 3}, names)
    assert filled({"rev": "$rev", "in": ["$rev"]}, names) == {"rev": 3, "in": [3]}
    with pytest.raises(KeyError):
        filled("$other", names)
