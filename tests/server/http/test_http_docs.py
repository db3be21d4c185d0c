"""docs/http.md: every example is run, every table is held against the code."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from http import HTTPStatus
from pathlib import Path
from typing import Any, get_args, get_type_hints

import httpx
import pytest
from msgspec.structs import fields

from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits
from gateway.protocol.messages import SessionStart, SessionStarted, TranslationFinal, UtteranceFinal
from gateway.server.http.bodies import (
    HTTP_ERRORS,
    HTTP_STATUSES,
    STREAM_EVENTS,
    TranscriptText,
    status_code,
)
from gateway.server.http.request_bodies import BODY_BYTES
from gateway.server.http.transcripts import MEDIA_TYPES, MOST_UTTERANCES
from gateway.server.http.translate_request import TranslateBody
from gateway.server.translate.call import Translator
from tests.gateways import Running, running

PAGE = (Path(__file__).parents[3] / "docs" / "http.md").read_text()
EXAMPLES = re.findall(r"^```console\n\$ (.*)\n((?s:.*?))\n```$", PAGE, re.MULTILINE)
ADDRESS = "http://127.0.0.1:8000"


def request_of(command: str) -> tuple[httpx.Request, str]:
    """What a curl command sends, and the pattern its output is filtered by."""
    command, _, filtered = command.partition(" | ")
    program, *words = shlex.split(command)
    assert program == "curl"
    url, content, headers = "", None, {}
    while words:
        match words.pop(0):
            case "-s" | "-sN":
                pass
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers[name] = value
            case "-d":
                content = words.pop(0).encode()
            case word:
                assert word.startswith(ADDRESS)
                url = word.removeprefix(ADDRESS)
    method = "GET" if content is None else "POST"
    return httpx.Request(method, f"http://gateway{url}", headers=headers, content=content), filtered


_RANDOM = {"epoch", "participant"}


def without_chance(value: Any) -> Any:
    """The same, with every time and random id (they differ from run to run) checked to be one and left out."""
    if isinstance(value, dict):
        for name in value:
            assert not name.endswith("_ms") or value[name] is None or value[name] >= 0
            assert name not in _RANDOM or re.fullmatch("[0-9a-f]{8}", value[name])
        kept = {name: inner for name, inner in value.items() if not name.endswith("_ms") and name not in _RANDOM}
        return {name: without_chance(inner) for name, inner in kept.items()}
    return [without_chance(inner) for inner in value] if isinstance(value, list) else value


def stream(text: str) -> tuple[dict[int, str], list[Any]]:
    """The text that the deltas of each index add up to, and the other events."""
    shown: dict[int, str] = {}
    others = []
    for block in text.strip("\n").split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        if name == "event: translation.delta":
            shown[event["index"]] = shown.get(event["index"], "") + event["committed"]
        else:
            others.append((name, without_chance(event)))
    return shown, others


async def hold_standup(gateway: Running) -> None:
    """The meeting of the page's transcripts, through the WebSocket."""
    async with gateway.peer() as ana, gateway.peer() as kenji:
        for peer, name, lang in ((ana, "Ana", "en"), (kenji, "Kenji", "ja")):
            await peer.send(SessionStart(reads=[lang], speaks=lang, meeting="standup", name=name))
            await peer.until(SessionStarted)
        await ana.send(UtteranceFinal("1", 1, "Let us move the launch to Friday.", start_ms=400, end_ms=2_400))
        await kenji.until(TranslationFinal)
        await kenji.send(UtteranceFinal("1", 1, "金曜日なら大丈夫です。", start_ms=2_900, end_ms=4_300))
        await ana.until(TranslationFinal)


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=[f"example{n}" for n in range(len(EXAMPLES))])
async def test_example(command: str, output: str) -> None:
    request, filtered = request_of(command)
    async with running(script=Script()) as gateway, httpx.AsyncClient(timeout=None) as client:  # noqa: S113
        if "/meetings/" in request.url.path:
            await hold_standup(gateway)
        url = request.url.copy_with(host="127.0.0.1", port=gateway.port)
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        response = await client.request(request.method, url, headers=headers, content=request.content)
    if filtered:
        pattern = filtered.removeprefix("grep ^")

        def names(text: str) -> set[str]:
            lines = [line for line in text.splitlines() if line.startswith(pattern)]
            return {line.split(" ")[0] for line in lines}

        # How much was counted depends on what was translated before.
        assert names(output) == names(response.text) != set()
    elif response.headers["content-type"].startswith("text/event-stream"):
        assert stream(response.text) == stream(output)
    elif "json" not in response.headers["content-type"]:
        assert response.text.rstrip("\n") == output
    else:
        assert without_chance(response.json()) == without_chance(json.loads(output))


def test_there_are_examples_for_every_kind_of_answer() -> None:
    shown = "\n".join(output for _, output in EXAMPLES)
    for part in (
        '"translation":',
        '"translations":',
        "event: done",
        '"code":',
        '"status":"ready"',
        '"languages":',
        '"utterances":',
        "WEBVTT",
        " --> ",
    ):
        assert part in shown


def tables(heading: str) -> list[list[list[str]]]:
    """The tables of a section: each its rows, a row its cells."""
    section = re.split(rf"^##+ {re.escape(heading)}\n", PAGE, flags=re.MULTILINE)[1]
    section = re.split(r"^##+ ", section, flags=re.MULTILINE)[0]
    found = re.findall(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    return [
        [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in body.splitlines()]
        for body in found
    ]


def rows(heading: str) -> list[list[str]]:
    (table,) = tables(heading)
    return table


def test_every_error_is_listed_with_its_status_and_retry() -> None:
    expected = [(cls.code, cls.http_status, cls.retryable) for cls in HTTP_ERRORS]
    expected += [(status_code(status), int(status), False) for status in HTTP_STATUSES]
    listed = [(code, int(status), retry == "yes") for code, status, retry, _ in rows("Errors")]
    assert listed == expected
    assert {HTTPStatus(status) for _, status, _ in listed} >= set(HTTP_STATUSES)


def test_the_limits_are_the_defaults() -> None:
    defaults = Limits()
    batch_texts = inspect.signature(Translator).parameters["batch_texts"].default
    values = {setting: int(value) for _, value, setting in rows("Limits") if setting}
    assert values == {name: getattr(defaults, name.removeprefix("limits.")) for name in values}
    assert set(values) == {
        f"limits.{name}" for name in ("text_chars", "glossary_terms", "term_chars", "context_chars", "languages")
    }
    assert [int(value) for _, value, setting in rows("Limits") if not setting] == [
        batch_texts,
        BODY_BYTES,
        MOST_UTTERANCES,
    ]


def test_every_field_and_event_is_listed() -> None:
    names = [name for cell, *_ in rows("Translate: `POST /v1/translate`") for name in re.findall(r"\w+", cell)]
    assert [name for name in names if name != "or"] == [field.encode_name for field in fields(TranslateBody)]
    for (event, data), (cls, name) in zip(rows("As a stream"), STREAM_EVENTS.items(), strict=True):
        assert event == name
        assert [field.encode_name for field in fields(cls)] == [
            word for word in re.findall(r"`?(\w+)`", f"`{data}`") if word in cls.__struct_fields__
        ]


def test_every_format_and_status_of_a_transcript_is_listed() -> None:
    (formats, statuses) = tables("Transcripts: `GET /v1/meetings/{meeting}/transcript.{format}`")
    assert {name: media_type for name, media_type, _ in formats} == MEDIA_TYPES
    assert [name for name, _ in statuses] == list(get_args(get_type_hints(TranscriptText)["status"]))
