"""Errors cross the border between two processes and stay what they are."""

from __future__ import annotations

import msgspec
import pytest

from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable, GatewayError
from gateway.engines.host.messages import GenerationFailed, error_of, generation_failed


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EngineUnavailable("It died.", retry_after_ms=50), EngineUnavailable),
        (EngineRestarting("It is built again.", retry_after_ms=5), EngineUnavailable),
        (EngineFailed("Not this text."), EngineFailed),
        (GatewayError("A bug."), EngineFailed),
    ],
)
def test_whether_the_engine_or_the_text_is_at_fault(error: GatewayError, kind: type[GatewayError]) -> None:
    said = msgspec.msgpack.decode(msgspec.msgpack.encode(generation_failed(7, error)), type=GenerationFailed)
    assert said.number == 7
    heard = error_of(said)
    assert type(heard) is kind
    assert heard.message == error.message
    assert heard.retry_after_ms == error.retry_after_ms
