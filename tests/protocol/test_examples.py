"""`/asyncapi.json`: its examples are messages of the protocol."""

from __future__ import annotations

import json

import msgspec
import pytest

from gateway.protocol.codec import JSON
from gateway.protocol.messages import client_messages
from tests.documents import ASYNCAPI, MESSAGES, tag, validator


@pytest.mark.parametrize("cls", MESSAGES, ids=tag)
def test_every_message_has_an_example(cls: type[msgspec.Struct]) -> None:
    message = ASYNCAPI["components"]["messages"][tag(cls)]
    (payload,) = (example["payload"] for example in message["examples"])
    validator(ASYNCAPI, message["payload"]["$ref"]).validate(payload)
    frame = json.dumps(payload)
    read = JSON.decode(frame, max_bytes=10_000) if cls in client_messages() else JSON.decode_server(frame)
    assert type(read) is cls
