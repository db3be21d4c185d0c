"""What a connection works with, and what is made ready for a message."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.protocol.messages import (
    ClientMessage,
    Ping,
    SessionStart,
    SessionUpdate,
    UtteranceFinal,
    UtterancePartial,
)
from tests.gateways import running


@pytest.mark.parametrize(
    ("message", "loads"),
    [
        (SessionStart(reads=[], speaks="auto"), True),
        (SessionStart(reads=[], speaks="AUTO"), True),
        (SessionStart(reads=[], speaks="en"), False),
        (SessionStart(reads=["auto"]), False),
        (SessionUpdate(speaks="auto"), True),
        (SessionUpdate(), False),
        (UtterancePartial("u", 1, "hi", lang="auto"), True),
        (UtteranceFinal("u", 1, "hi", lang="auto"), True),
        (UtteranceFinal("u", 1, "auto"), False),
        (Ping("auto"), False),
    ],
)
async def test_the_detector_is_loaded_before_it_is_needed_and_not_otherwise(
    message: ClientMessage, loads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as gateway:
        core = gateway.gateway.stream._core
        loaded: list[Any] = []

        async def load() -> None:
            loaded.append(message)

        monkeypatch.setattr(core.detector, "load", load)
        await core.prepare(message)
    assert loaded == [message] * loads
