"""docs/http.md: every example is run, every table is held against the code."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import fields

from gateway import http_api
from gateway.engines.simulated import Script
from gateway.http_messages import (
    HTTP_ERRORS,
    HTTP_STATUSES,
    STREAM_EVENTS,
    TranslateBody,
    status_code,
)
from gateway.messages import Limits
from tests.gateways import running

PAGE = (Path(__file__).parent.parent / "docs" / "http.md").read_text()
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


def without_times(value: Any) -> Any:
    """The same, with every time (they differ from run to run) checked to be one and left out."""
    if isinstance(value, dict):
        for name in value:
            assert not name.endswith("_ms") or value[name] is None or value[name] >= 0
        return {name: without_times(inner) for name, inner in value.items() if not name.endswith("_ms")}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


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
            others.append((name, without_times(event)))
    return shown, others


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=[f"example{n}" for n in range(len(EXAMPLES))])
async def test_example(command: str, output: str) -> None:
    request, filtered = request_of(command)
    async with running(script=Script()) as gateway, httpx.AsyncClient() as client:
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
    else:
        assert without_times(response.json()) == without_times(json.loads(output))


def test_there_are_examples_for_every_kind_of_answer() -> None:
    shown = "\n".join(output for _, output in EXAMPLES)
    for part in (
        '"translation":',
        '"translations":',
        "event: done",
        '"code":',
        '"status":"ready"',
        '"languages":',
    ):
        assert part in shown


def rows(heading: str) -> list[list[str]]:
    section = re.split(rf"^##+ {re.escape(heading)}\n", PAGE, flags=re.MULTILINE)[1]
    section = re.split(r"^##+ ", section, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_every_error_is_listed_with_its_status_and_retry() -> None:
    expected = [(cls.code, cls.http_status, cls.retryable) for cls in HTTP_ERRORS]
    expected += [(status_code(status), int(status), False) for status in HTTP_STATUSES]
    listed = [(code, int(status), retry == "yes") for code, status, retry, _ in rows("Errors")]
    assert listed == expected
    assert {HTTPStatus(status) for _, status, _ in listed} >= set(HTTP_STATUSES)


def test_the_limits_are_the_defaults() -> None:
    defaults = Limits()
    batch_texts = inspect.signature(http_api.routes).parameters["batch_texts"].default
    values = {setting: int(value) for _, value, setting in rows("Limits") if setting}
    assert values == {name: getattr(defaults, name.removeprefix("limits.")) for name in values}
    assert set(values) == {
        f"limits.{name}" for name in ("text_chars", "glossary_terms", "term_chars", "context_chars")
    }
    assert [int(value) for _, value, setting in rows("Limits") if not setting] == [
        batch_texts,
        http_api.BODY_BYTES,
    ]


def test_every_field_and_event_is_listed() -> None:
    names = [name for cell, *_ in rows("Translate: `POST /v1/translate`") for name in re.findall(r"\w+", cell)]
    assert [name for name in names if name != "or"] == [field.encode_name for field in fields(TranslateBody)]
    for (event, data), (cls, name) in zip(rows("As a stream"), STREAM_EVENTS.items(), strict=True):
        assert event == name
        assert [field.encode_name for field in fields(cls)] == [
            word for word in re.findall(r"`?(\w+)`", f"`{data}`") if word in cls.__struct_fields__
        ]
