"""`/asyncapi.json`: it says all there is of the protocol, and what it says is true."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import error_classes
from gateway.protocol.codec import CODECS, JSON
from gateway.protocol.messages import ClientMessage, ServerMessage, client_messages, server_messages
from tests.documents import ASYNCAPI, MESSAGES, nodes, resolve, tag, validator


def test_the_unions_and_the_lists_of_messages_agree() -> None:
    assert set(get_args(ClientMessage)) == set(client_messages())
    assert set(get_args(ServerMessage)) == set(server_messages())


def test_every_message_goes_its_way_with_its_docstring() -> None:
    def sent_by(operation: str) -> list[str]:
        refs = [message["$ref"] for message in ASYNCAPI["operations"][operation]["messages"]]
        # Through the channel to the component, as the specification asks.
        return [resolve(ASYNCAPI, resolve(ASYNCAPI, ref)["$ref"])["name"] for ref in refs]

    assert sent_by("fromClient") == [tag(cls) for cls in client_messages()]
    assert sent_by("toClient") == [tag(cls) for cls in server_messages()]
    assert ASYNCAPI["operations"]["fromClient"]["action"] == "receive"
    assert ASYNCAPI["operations"]["toClient"]["action"] == "send"
    for cls in MESSAGES:
        summary = ASYNCAPI["components"]["messages"][tag(cls)]["summary"]
        assert cls.__doc__ is not None
        assert summary.split() == cls.__doc__.split()


@pytest.mark.parametrize("cls", MESSAGES, ids=tag)
def test_every_field_is_described_under_its_name(cls: type[msgspec.Struct]) -> None:
    payload = ASYNCAPI["components"]["messages"][tag(cls)]["payload"]["$ref"]
    schema = resolve(ASYNCAPI, payload)
    assert set(schema["properties"]) == {"type", *cls.__struct_encode_fields__}
    assert schema["properties"]["type"]["const"] == tag(cls)
    required = {"type", *(f.encode_name for f in msgspec.structs.fields(cls) if f.required)}
    assert set(schema["required"]) == required


def example(schema: Any, *, full: bool) -> Any:
    """A value that a schema allows: with every property, or with the required ones alone."""
    if "$ref" in schema:
        return example(resolve(ASYNCAPI, schema["$ref"]), full=full)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example(schema["anyOf"][0 if full else -1], full=full)
    match schema["type"]:
        case "object":
            properties = schema.get("properties", {})
            made = {
                name: example(inner, full=full)
                for name, inner in properties.items()
                if full or name in schema["required"]
            }
            if extra := schema.get("additionalProperties"):
                made["en"] = example(extra, full=full)
            return made
        case "array":
            return [example(schema["items"], full=full)]
        case "integer":
            return schema.get("minimum", 7)
        case kind:
            return {"string": "ja", "number": 1.5, "boolean": True, "null": None}[kind]


@pytest.mark.parametrize("full", [True, False], ids=["full", "least"])
@pytest.mark.parametrize("cls", MESSAGES, ids=tag)
def test_schema_and_codec_agree(cls: type[msgspec.Struct], full: bool) -> None:
    ref = ASYNCAPI["components"]["messages"][tag(cls)]["payload"]["$ref"]
    payload = example({"$ref": ref}, full=full)
    check = validator(ASYNCAPI, ref)
    check.validate(payload)
    frame = json.dumps(payload)
    message = JSON.decode(frame, max_bytes=10_000) if cls in client_messages() else JSON.decode_server(frame)
    assert type(message) is cls
    encoded = json.loads(JSON.encode(message))
    check.validate(encoded)
    for name, value in payload.items():
        assert value == {} or encoded[name] == value
    assert not check.is_valid({**payload, "type": "something.else"})


def test_choices_have_names_of_their_own() -> None:
    """Generators call an enumeration within a message by a number."""
    schemas = ASYNCAPI["components"]["schemas"]
    named = {name: schema["enum"] for name, schema in schemas.items() if "enum" in schema}
    assert named == {"Stability": ["final", "live", "stable"], "Formality": ["formal", "informal"]}
    assert [node["enum"] for node in nodes(schemas) if "enum" in node] == list(named.values())


def test_there_is_a_server_to_connect_to() -> None:
    assert ASYNCAPI["asyncapi"] == "3.1.0"
    (server,) = ASYNCAPI["servers"].values()
    assert server["protocol"] == "wss"
    assert server["host"] == "{host}"


def test_errors_closes_and_subprotocols_are_all_there() -> None:
    listed = {item["code"]: item for item in ASYNCAPI["x-error-codes"]}
    assert len(listed) == len(ASYNCAPI["x-error-codes"])
    assert set(listed) == {cls.code for cls in error_classes()}
    for cls in error_classes():
        if not cls.__subclasses__():
            assert cls.__doc__ is not None
            assert listed[cls.code]["meaning"] == " ".join(cls.__doc__.split())
            assert listed[cls.code]["retryable"] is cls.retryable
    channel = ASYNCAPI["channels"]["stream"]
    assert {close["code"] for close in channel["x-close-codes"]} == set(CloseCode)
    headers = channel["bindings"]["ws"]["headers"]["properties"]
    assert headers["Sec-WebSocket-Protocol"]["enum"] == list(CODECS)
    assert channel["address"] == "/v1/stream"
