"""docs/protocol.md: every transcript is run on a real socket, every table is held against the code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from gateway.config import AuthSettings, LaneSettings, Settings
from gateway.domain.close_codes import CloseCode
from gateway.domain.engine import EngineState
from gateway.domain.errors import error_classes
from gateway.domain.grants import Grant, Revocation
from gateway.domain.roles import Role
from gateway.identity import key_file
from gateway.identity.authenticator import Keys
from gateway.identity.key_file import KeyFile, new_signing_key
from gateway.protocol.limits import Limits
from gateway.protocol.messages import client_messages, server_messages
from scripts.protocol_fields import rewritten
from tests.documents import ASYNCAPI, resolve
from tests.gateways import SCRIPT, running
from tests.usual import usual

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
BLOCKS = re.findall(r"^```transcript ?(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


# Of a transcript in which one of them goes.
ENGINES = tuple(LaneSettings(name=lang, kind="simulated", pairs=(f"en-{lang}",)) for lang in ("ja", "de"))

# In a live transcript, of the final.
LAST_REVISION = 4

LINE = re.compile(r"(?P<side>[CSX])(?: (?P<name>\w+))?(?:: (?P<rest>.*))?")


def matches(expected: Any, actual: Any, names: dict[str, Any]) -> bool:
    """Equal, with `…` in place of anything, and `$name` in place of what it stood for first."""
    if expected == "…":
        return True
    if isinstance(expected, str) and expected.startswith("$"):
        return bool(names.setdefault(expected, actual) == actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(matches(expected[k], actual[k], names) for k in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(matches(e, a, names) for e, a in pairs)
    return bool(expected == actual)


class Transcript:
    """Plays one client's lines and checks the gateway's. Deltas may arrive merged, or not at all before their
    final; finals of several languages come in any order; all else is in the order of the page.

    live: deltas of what is not final are those of the page, one by one.
    """

    def __init__(self, connection: Any, names: dict[str, Any], *, live: bool = False) -> None:
        self.live = live
        self.connection = connection
        self.names = names
        self.deltas: dict[tuple[str, str], str] = defaultdict(str)
        self.expected_deltas: dict[tuple[str, str], str] = defaultdict(str)
        self.early: list[Any] = []

    async def next(self) -> Any:
        if self.early:
            return self.early.pop(0)
        while True:
            message = json.loads(await self.connection.recv())
            if message["type"] != "translation.delta" or (self.live and not self._of_final(message)):
                return message
            self.deltas[message["utterance"], message["lang"]] += message["committed"]

    def _of_final(self, delta: Any) -> bool:
        """Whether it goes on where the page shows no tentative text any more."""
        return bool(delta["rev"] == LAST_REVISION)

    async def send(self, line: str) -> None:
        for name, value in self.names.items():
            line = line.replace(f'"{name}"', json.dumps(value))
        await self.connection.send(line)

    async def expect(self, line: str) -> None:
        if line.startswith("close "):
            with pytest.raises(ConnectionClosed) as caught:
                pytest.fail(f"instead of a close: {await self.next()}")
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == int(line.removeprefix("close "))
            return
        expected = json.loads(line)
        if expected["type"] == "translation.delta" and not (self.live and not self._of_final(expected)):
            self.expected_deltas[expected["utterance"], expected["lang"]] += expected["committed"]
            return
        if expected["type"] == "translation.final":
            skipped = []
            while not matches(expected, message := await self.next(), self.names):
                assert message["type"] == "translation.final", f"{line}\n{message}"
                skipped.append(message)
            self.early += skipped
            return
        message = await self.next()
        assert matches(expected, message, self.names), (
            f"expected {line}\ngot      {json.dumps(message, ensure_ascii=False)}"
        )

    def check_deltas(self) -> None:
        for key, text in self.expected_deltas.items():
            assert text.startswith(self.deltas[key])


def with_keys(path: Path) -> tuple[Settings, dict[str, Any]]:
    """Settings of a gateway with keys, and the tokens that the page names."""
    key_file.save(path, KeyFile(signing=(new_signing_key(),)))
    keys = usual(Keys, path)

    def token(*roles: Role, max_s: float) -> str:
        ana = Grant(subject="ana", meeting="standup", roles=frozenset(roles), max_s=max_s)
        return keys.issue(ana, for_s=600).token

    names = {
        "$reader": token("read", max_s=600),
        # So short that it is about to expire at once.
        "$token": token("speak", "read", max_s=50),
        "$next_token": token("speak", "read", max_s=3_600),
    }
    return Settings(auth=AuthSettings(keys_file=str(path))), names


@pytest.mark.parametrize(("variant", "block"), BLOCKS, ids=[f"block{n}" for n in range(len(BLOCKS))])
async def test_transcript(variant: str, block: str, tmp_path: Path) -> None:
    settings, names = with_keys(tmp_path / "keys.json") if variant == "tokens" else (Settings(), {})
    if variant == "engines":
        settings = Settings(engines=ENGINES)
    async with running(settings, script=SCRIPT) as gateway, contextlib.AsyncExitStack() as connections:
        clients: dict[str | None, Transcript] = {}
        ending: asyncio.Task[Any] | None = None
        while gateway.gateway.engine.health().state is not EngineState.READY:
            await asyncio.sleep(0.001)
        for line in block.strip().splitlines():
            match = LINE.fullmatch(line)
            assert match is not None, line
            name = match["name"]
            if match["side"] == "X":
                clients.pop(name).connection.transport.abort()
                continue
            if name not in clients:
                connection = await connections.enter_async_context(connect(gateway.url))
                clients[name] = Transcript(connection, names, live=variant == "live")
            if match["side"] == "C":
                await clients[name].send(match["rest"])
                continue
            if variant == "draining" and '"session.draining"' in line:
                ending = asyncio.create_task(gateway.gateway.drain())
            if variant == "engines" and '"languages.changed"' in line:
                ending = asyncio.create_task(gateway.gateway.change_engines(lambda _: ENGINES[:1]))
            if variant == "ended" and '"meeting_ended"' in line:
                ended = Revocation(tenant="default", before_s=time.time(), meeting="standup", by_operator=True)
                ending = asyncio.create_task(gateway.gateway.sessions.revoke(ended))
            if variant == "crash" and '"engine_restarting"' in line:
                gateway.kill_engine()
            await clients[name].expect(match["rest"])
        for client in clients.values():
            client.check_deltas()
        if ending is not None:
            await ending


def test_there_is_a_transcript_for_every_message() -> None:
    shown = "\n".join(block for _, block in BLOCKS)
    for cls in (*client_messages(), *server_messages()):
        assert f'"type": "{cls.__struct_config__.tag}"' in shown


def rows(heading: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_limits_are_the_defaults() -> None:
    defaults = Limits()
    assert [(name, int(value)) for name, value, _ in rows("Limits")] == [
        (name, getattr(defaults, name)) for name in Limits.__struct_fields__
    ]


def test_every_error_code_is_listed_with_its_retry() -> None:
    retry = {cls.code: cls.retryable for cls in reversed(error_classes())}
    assert {code: word == "yes" for code, word, _ in rows("Error codes")} == retry


def test_every_close_code_is_listed() -> None:
    assert {int(code) for code, _ in rows("Close codes")} == {*CloseCode, 1009}


def test_the_tables_of_fields_are_those_of_the_structs() -> None:
    assert rewritten(PAGE) == PAGE, "write them anew: make docs"


# Limit → a value just above it, where that one limit is 3.
TOO_MUCH: dict[str, Any] = {
    "id_chars": "abcd",
    "name_chars": "Anna",
    "context_chars": "abcd",
    "languages": ["en", "ja", "de", "fr"],
    "glossary_terms": {"de": dict.fromkeys("abcd", "x")},
}
# What is sent with the field in question.
LEAST: dict[str, dict[str, Any]] = {
    "session.start": {"reads": []},
    "participant.mute": {"muted": True},
    "utterance.partial": {"id": "u", "rev": 1, "text": "a", "lang": "en"},
    "utterance.final": {"id": "u", "rev": 1, "text": "a", "lang": "en"},
}


def limited_fields() -> list[tuple[str, str, str]]:
    """(message, path of the field, its limit)."""
    found = []
    for cls in client_messages():
        for name, schema in ASYNCAPI["components"]["schemas"][cls.__name__]["properties"].items():
            for branch in schema.get("anyOf", [schema]):
                inner = resolve(ASYNCAPI, branch["$ref"]) if "$ref" in branch else {}
                paths = {
                    name: branch,
                    **{f"{name}.{key}": value for key, value in inner.get("properties", {}).items()},
                }
                tag = str(cls.__struct_config__.tag)
                found += [(tag, path, each["x-limit"]) for path, each in paths.items() if "x-limit" in each]
    return found


@pytest.mark.parametrize(("message", "path", "limit"), limited_fields())
async def test_documented_limit_holds(message: str, path: str, limit: str) -> None:
    """One above it is refused, and the error names the field."""
    outer, _, inner = path.partition(".")
    value = TOO_MUCH[limit]
    if inner:
        value = {"session": "s", "epoch": "e", "offset": 0, inner: value}
    sent = {"type": message, **LEAST.get(message, {}), outer: value}
    settings = Settings(limits=Limits(**{limit: 3}))
    async with running(settings) as gateway, connect(gateway.url) as connection:
        if message != "session.start":
            await connection.send(json.dumps({"type": "session.start", "reads": []}))
            assert json.loads(await connection.recv())["type"] == "session.started"
        await connection.send(json.dumps(sent))
        answer = json.loads(await connection.recv())
    assert (answer["code"], answer["field"]) == ("limit_exceeded", path), answer
