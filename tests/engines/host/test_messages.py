"""Errors cross the border between two processes and stay what they are."""

from __future__ import annotations

import msgspec
import pytest

from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable, GatewayError, TextTooLong
from gateway.engines.host.messages import (
    PROTOCOL,
    Failed,
    Hello,
    ToGateway,
    ToHost,
    error_of,
    failed_with,
)
from tests.engines.host.digests import digest

# Digest of all messages in each version of the protocol.
MESSAGES = {
    1: "1f6533b26c591f09",
    2: "2c9153d4afd8dd72",
    3: "007d3ff413520acd",
    4: "01f34a0825ec2737",
    5: "5e2b109ba26e09a7",
    6: "d1bc77650b23bae4",
    7: "300d9d177949d487",
    8: "5343921b11fa7760",
}


def test_a_change_of_a_message_is_another_protocol() -> None:
    # A gateway of one version speaks to hosts of another: raise PROTOCOL, and add the digest.
    assert MESSAGES[PROTOCOL] == digest(ToHost, ToGateway)
    assert max(MESSAGES) == PROTOCOL


def test_the_first_word_is_understood_by_every_version() -> None:
    oldest = {"protocol": 1, "made_of": "m", "version": "0.1.0", "shared_at": "/s"}
    later = msgspec.msgpack.encode({**oldest, "protocol": 99, "added": [1]})
    assert msgspec.msgpack.decode(later, type=Hello) == Hello(99, "m", "0.1.0", "/s")
    now = msgspec.to_builtins(Hello(1, "m", "0.1.0", "/s"))
    assert now.items() >= oldest.items()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EngineUnavailable("It died.", retry_after_ms=50), EngineUnavailable),
        (EngineRestarting("It is built again.", retry_after_ms=5), EngineUnavailable),
        (EngineFailed("Not this text."), EngineFailed),
        (TextTooLong("Not so long."), TextTooLong),
        (GatewayError("A bug."), EngineFailed),
    ],
)
def test_whether_the_engine_or_the_text_is_at_fault(error: GatewayError, kind: type[GatewayError]) -> None:
    said = msgspec.msgpack.decode(msgspec.msgpack.encode(failed_with(error)), type=Failed)
    heard = error_of(said)
    assert type(heard) is kind
    assert heard.message == error.message
    assert heard.retry_after_ms == error.retry_after_ms
