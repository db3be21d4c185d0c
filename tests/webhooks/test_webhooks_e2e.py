"""Gateways as an operator starts them tell a real HTTP server of a meeting, whatever dies or refuses."""

from __future__ import annotations

import secrets
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect

from gateway.protocol.codec import JSON
from gateway.protocol.messages import (
    SessionEnd,
    SessionStart,
    SessionStarted,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceFinal,
)
from tests.processes import GatewayProcess, gateway_process
from tests.redis_server import shared_server
from tests.webhooks.receiver import Received, Receiver, receiver
from tests.webhooks.test_webhooks_docs import in_python

pytestmark = pytest.mark.slow

SECRET = f"whsec_{'A' * 32}"
ONCE = {"meeting.started": 1, "meeting.ended": 1, "transcript.ready": 1}


@contextmanager
def in_meeting(gateway: GatewayProcess, name: str) -> Iterator[ClientConnection]:
    """Somebody has come into the meeting at this gateway."""
    with connect(gateway.url.replace("http", "ws") + "/v1/stream", close_timeout=0.5) as connection:
        say(connection, SessionStart(meeting="standup", speaks="en", reads=["ja"], name=name))
        until(connection, SessionStarted)
        yield connection


def say(connection: ClientConnection, *messages: SessionStart | UtteranceFinal | SessionEnd) -> None:
    for each in messages:
        connection.send(JSON.encode(each))


def until(connection: ClientConnection, kind: type) -> None:
    while not isinstance(JSON.decode_server(connection.recv()), kind):
        pass


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(SECRET)
    return tmp_path / "gateway.toml"


def settings(config: Path, url: str, *more: str) -> str:
    lines = (
        *("[engine]", 'kind = "simulated"', "[limits]", "keep_s = 1"),
        *("[[webhooks]]", 'name = "backend"', f'url = "{url}"', f'secret_file = "{config.parent / "secret"}"'),
    )
    config.write_text("\n".join((*more, *lines)))
    return str(config)


def wait_for(condition: Callable[[], object]) -> None:
    """The suite's timeout is the bound."""
    while not condition():
        threading.Event().wait(0.05)


def check(other: Receiver) -> None:
    """Every request is signed, and each event has one id however often it came."""
    by_type: dict[str, set[str]] = {}
    for one in other.received:
        sent = {name.lower(): value for name, value in one.headers.items()}
        assert in_python(SECRET, sent, one.body)
        assert sent["webhook-id"] == one.event["id"]
        by_type.setdefault(one.type, set()).add(one.event["id"])
        assert b"Hello" not in one.body
        assert b"Ana" not in one.body
    assert {type: len(ids) for type, ids in by_type.items()} == ONCE


def test_two_gateways_tell_once_though_one_is_killed(config: Path) -> None:
    """They share one store."""
    killed, taken = threading.Event(), Counter[str]()

    def answer(one: Received) -> int:
        tries = sum(each.event["id"] == one.event["id"] for each in other.received)
        if one.type == "meeting.started" and tries == 1:
            killed.wait()  # whoever sends this dies before it is answered
            return 500
        if one.type == "meeting.ended" and tries == 1:
            return 503
        taken[one.type] += 1
        return 200

    store = ("[store]", f'url = "{shared_server().url}"', f'prefix = "{secrets.token_hex(4)}:"')
    try:
        with receiver(answer) as other:
            file = settings(config, other.url, *store)
            with (
                gateway_process("--config", file) as dies,
                gateway_process("--config", file) as stays,
            ):
                dies.ready()
                with in_meeting(dies, "Ana") as ana:
                    stays.ready()
                    say(ana, UtteranceFinal(id="u1", rev=1, text="Hello."))
                    until(ana, UtteranceAccepted)
                    until(ana, TranslationFinal)
                    wait_for(lambda: other.received)
                    assert dies.end(signal.SIGKILL) == -signal.SIGKILL
                    killed.set()
                # Its session can be resumed for a second, and then the meeting has ended.
                wait_for(lambda: taken == ONCE)
                assert stays.end() == 0
            check(other)
    finally:
        killed.set()


def test_waiting_events_and_presence_survive_a_restart(config: Path) -> None:
    """There is no store: the handover file keeps them."""
    back, taken = threading.Event(), Counter[str]()

    def answer(one: Received) -> int:
        if not back.is_set():
            return 500
        taken[one.type] += 1
        return 200

    with receiver(answer) as other:
        handover = config.parent / "handover"
        file = settings(config, other.url, "[event_log]", f'handover_file = "{handover}"')
        with gateway_process("--config", file) as first:
            first.ready()
            with in_meeting(first, "Ana") as ana:
                say(ana, UtteranceFinal(id="u1", rev=1, text="Hello."))
                until(ana, TranslationFinal)
                wait_for(lambda: other.received)
                assert first.end() == 0
        assert handover.exists()
        back.set()
        with gateway_process("--config", file) as second:
            second.ready()
            # Nobody comes back: the meeting ends there, and did not start again.
            wait_for(lambda: taken == ONCE)
            assert second.end() == 0
        check(other)
