from __future__ import annotations

import io
import runpy
from typing import Any

import pytest

from gateway.client.recognisers import Recogniser, Said, say
from tests.conftest import ROOT


@pytest.mark.parametrize("result", [{}, {"type": "config"}, {"t": 1.2}, "INFO: started", ""])
def test_what_is_no_result_says_nothing(result: Any) -> None:
    recogniser = Recogniser()
    assert (recogniser.hear(result), recogniser.rest()) == ([], [])
    assert recogniser.hear({"text": "yes"}) == [Said("final", "u1", "yes")]


def test_ids_begin_as_they_are_told() -> None:
    assert Recogniser("ana-").hear({"text": "yes"}) == [Said("final", "ana-1", "yes")]


class _Session:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    async def partial(self, text: str, id: str | None, **options: Any) -> str:
        self.heard.append(("partial", text, id, options))
        return ""

    async def final(self, text: str, id: str | None, **options: Any) -> str:
        self.heard.append(("final", text, id, options))
        return ""

    async def cancel(self, id: str) -> None:
        self.heard.append(("cancel", id))

    async def end(self) -> None:
        self.heard.append(("end",))


async def test_each_kind_is_said_in_its_way() -> None:
    session = _Session()
    for said in (Said("partial", "u1", "go"), Said("final", "u1", "good", 5, 9), Said("cancel", "u2")):
        await say(session, said, "en")
    assert session.heard == [
        ("partial", "go", "u1", {"lang": "en", "start_ms": None, "end_ms": None}),
        ("final", "good", "u1", {"lang": "en", "start_ms": 5, "end_ms": 9}),
        ("cancel", "u2"),
    ]


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        (['{"partial": "good mor"}', '{"text": ""}'], [("partial", "good mor"), ("cancel", "u1")]),
        (['{"partial": "good mor"}'], [("partial", "good mor"), ("final", "good mor")]),
        (
            ['{"lines": [], "buffer_transcription": "You"}', '{"lines": []}', '{"type": "ready_to_stop"}'],
            [("partial", "You"), ("cancel", "u1")],
        ),
    ],
)
async def test_the_example_passes_on_what_is_given_up(
    lines: list[str], heard: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    speak = runpy.run_path(str(ROOT / "examples/recogniser.py"))["speak"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    session = _Session()
    await speak(session)
    assert [each[:2] for each in session.heard] == [*heard, ("end",)]
