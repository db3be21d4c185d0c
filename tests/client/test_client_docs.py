"""docs/client.md: every Python block is run against a gateway, every table is held against the code."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import gateway.client
from gateway.client import ClientError, ClientSession, Line, Reconnect, SessionEvent, connect
from gateway.domain.sessions import Stability
from gateway.protocol.messages import Error, SessionStarted
from tests.gateways import running
from tests.scripted_gateway import Peer, scripted_gateway

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8000"


def block(words: str) -> str:
    (found,) = [each for each in BLOCKS if words in each]
    return str(found)


def run(source: str, url: str) -> str:
    """Run a block as a program of its own; what it prints. It is a thread's: it has an event loop of its own."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source.replace(ADDRESS, url), "docs/client.md", "exec"), {"__name__": "__main__"})  # noqa: S102
    return out.getvalue()


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("Can you hear me?", "(ja \\[ja\\] Can you hear me\\?\nde \\[de\\] Can you hear me\\?\n|de.*\nja.*\n)"),
        ("client.blocking", "(ja|de) \\[..\\] Do you hear me, too\\?\n(ja|de) \\[..\\] Do you hear me, too\\?\n"),
        ("def recogniser", ""),
        ("def say", "(… .*\\(.*\\)\n)+\\[ja\\] Let us begin with the budget\\.\n"),
        ("def describe", ""),
        ("Said before the crash", "nothing missed: True\n\\[ja\\] Said before the crash\\.\n"),
        ("def main() -> None:\n    transcript", "unknown_meeting There is no log of a meeting 'standup': .*\n"),
        ("MSGPACK", "\\['en', 'ja', .*\\]\n"),
    ],
)
async def test_block(words: str, printed: str) -> None:
    async with running() as serving:
        shown = await asyncio.to_thread(run, block(words), serving.url)
    assert re.fullmatch(printed, shown)


async def test_captions_are_shown_as_they_grow() -> None:
    source = block("def captions").replace("asyncio.run(captions(", "program = (captions(")
    async with running() as serving:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(source.replace(ADDRESS, serving.url), "docs/client.md", "exec"), names)  # noqa: S102
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(names["program"])
                async with connect(serving.url, meeting="standup", name="Ana", speaks="en", reads=["ja"]) as ana:
                    await ana.final("Good morning.")
                    while "Ana: [ja] Good morning." not in out.getvalue():
                        await asyncio.sleep(0.01)
                reading.cancel()
    assert "  … Ana: [ja]" in out.getvalue()


async def test_a_token_is_read_for_each_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def script(peer: Peer) -> None:
        assert peer.connection.request is not None
        seen.append(peer.connection.request.headers["Authorization"])
        if peer.visit == 1:
            await peer.start()
        else:
            await peer.leave(4501, Error("unauthenticated", "This gateway needs a valid token."))

    monkeypatch.chdir(tmp_path)
    printed = []
    async with scripted_gateway(script) as url:
        for token in ("t1", "t2"):
            (tmp_path / "token.txt").write_text(f"{token}\n")
            printed.append(await asyncio.to_thread(run, block("TOKEN_FILE"), url))
    assert printed == ["m1\n", "unauthenticated This gateway needs a valid token.\n"]
    assert seen == ["Bearer t1", "Bearer t2"]


def test_every_block_is_run() -> None:
    words = {
        "TOKEN_FILE",
        "Can you hear me?",
        "client.blocking",
        "def recogniser",
        "def describe",
        "Said before",
        "MSGPACK",
        "def main() -> None:\n    transcript",
        "def captions",
        "def say",
    }
    assert {block(each) for each in words} == set(BLOCKS)


def test_every_event_is_described() -> None:
    # The first `session.started` is `session.started` itself, and later ones are in `Reconnected`.
    for kind in get_args(SessionEvent):
        assert (
            kind is SessionStarted
            or f"case {kind.__name__}(" in block("def describe")
            or (f"| {kind.__name__}(" in block("def describe"))
        )


def rows(heading: str, table: str = "") -> Iterator[list[str]]:
    """The rows of a section's tables, or of the one for the fields of a type."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    if table:
        section = section.split(f"| field of `{table}` |")[1].split("\n\n")[0]
        section = f"| field |{section}"
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    for line in lines:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_every_stability_is_explained() -> None:
    assert tuple(name.strip("`") for name, _ in rows("While somebody is speaking")) == get_args(Stability)


def test_every_error_is_listed() -> None:
    errors = {
        name
        for name, value in vars(gateway.client).items()
        if isinstance(value, type) and issubclass(value, ClientError)
    }
    assert {name.strip("`") for name, *_ in rows("Errors")} == errors


def test_every_method_is_listed() -> None:
    methods = {
        name
        for name, value in vars(ClientSession).items()
        if inspect.iscoroutinefunction(value) and not name.startswith("_")
    }
    listed = {match[1] for name, *_ in rows("Speaking") if (match := re.match(r"`(\w+)\(", name))}
    assert listed == methods - {"close"}


def test_the_limits_are_the_defaults() -> None:
    defaults = {name: each.default for name, each in inspect.signature(connect).parameters.items()}
    for name, value, _ in rows("Limits and timeouts"):
        assert value == f"{defaults[name.strip('`')]:g}"
    policy = {name.strip("`"): value for name, value, _ in rows("When the connection is lost", "Reconnect")}
    assert policy == {
        "first_s": f"{Reconnect().first_s:g}",
        "most_s": f"{Reconnect().most_s:g}",
        "give_up_s": f"{Reconnect().give_up_s:g}",
        "jitter": "`random.random`",
    }


def test_every_field_of_a_line_is_explained() -> None:
    listed = {name for cell, _ in rows("Reading", "Line") for name in re.findall(r"`(\w+)`", cell)}
    assert listed == {*Line.__struct_fields__, "text"}
