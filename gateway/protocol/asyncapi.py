"""The machine-readable documentation of the WebSocket: `/asyncapi.json`.

Knows: the structs of `protocol.messages`, from which every schema is generated; the error tree; the parts that
`/openapi.json` shares.
Must not know: HTTP endpoints (`server.openapi`), sockets, settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

import msgspec
from msgspec import Struct, structs

from gateway import __version__
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import GatewayError, error_classes
from gateway.protocol.codec import CODECS
from gateway.protocol.examples import examples
from gateway.protocol.messages import client_messages, server_messages

Document = dict[str, Any]

LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}


def asyncapi() -> Document:
    """The protocol of `/v1/stream`, as an AsyncAPI 3.1 document."""
    incoming, outgoing = client_messages(), server_messages()
    # Schemas have the names of the structs; messages have the names in `type`.
    names = {cls: str(cls.__struct_config__.tag) for cls in (*incoming, *outgoing)}
    shown = examples()
    subprotocols = {"type": "string", "enum": list(CODECS)}
    closes = [{"code": int(code), "description": code.meaning} for code in CloseCode]
    return {
        "asyncapi": "3.1.0",
        "info": {
            "title": "Live translation stream",
            "version": __version__,
            "description": (
                "One WebSocket carries one session. The first message is `session.start`. Unknown fields are "
                "ignored. A message that cannot be used gets an `error`, and the session goes on. The subprotocol "
                f"chooses between text and binary frames with the same messages: {', '.join(CODECS)}."
            ),
            "license": {"name": LICENSE["name"]},
        },
        "defaultContentType": "application/json",
        "servers": {
            "gateway": {
                "host": "{host}",
                "protocol": "wss",
                "description": "`ws` where there is no TLS.",
                "variables": {
                    "host": {"default": "localhost:8000", "description": "Name and port of the gateway."}
                },
            }
        },
        "channels": {
            "stream": {
                "address": "/v1/stream",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names.values()},
                "bindings": {
                    "ws": {
                        "method": "GET",
                        "headers": {
                            "type": "object",
                            "properties": {"Sec-WebSocket-Protocol": subprotocols},
                        },
                    }
                },
                "x-close-codes": closes,
            }
        },
        "operations": {
            "fromClient": _operation("receive", "Client to gateway.", [names[cls] for cls in incoming]),
            "toClient": _operation("send", "Gateway to client.", [names[cls] for cls in outgoing]),
        },
        "components": {
            "messages": {name: _message(cls, name, shown[name]) for cls, name in names.items()},
            "schemas": _with_named_choices(components(names)),
        },
        "x-error-codes": [structs.asdict(meaning) for meaning in _error_meanings()],
    }


def _operation(action: str, summary: str, messages: list[str]) -> Document:
    return {
        "action": action,
        "channel": {"$ref": "#/channels/stream"},
        "summary": summary,
        "messages": [{"$ref": f"#/channels/stream/messages/{name}"} for name in messages],
    }


def _message(cls: type[Struct], name: str, example: Document) -> Document:
    return {
        "name": name,
        "title": name,
        "summary": doc(cls),
        "contentType": "application/json",
        "payload": {"$ref": f"#/components/schemas/{cls.__name__}"},
        "examples": [{"payload": example}],
    }


# ---------------------------------------------------------------- errors


class ErrorMeaning(Struct, frozen=True):
    """What an error code means; a problem's `type` links to it."""

    code: str
    title: str
    status: int
    retryable: bool
    meaning: str


def error_meaning(cls: type[GatewayError]) -> ErrorMeaning:
    """The meaning of one class of the error tree."""
    meaning = " ".join((cls.__doc__ or "").split("\n\n")[0].split())
    return ErrorMeaning(cls.code, title(cls.code), cls.http_status, cls.retryable, meaning)


def title(code: str) -> str:
    """A code as a title: `rate_limited` → `Rate limited`."""
    return code.replace("_", " ").capitalize()


# ---------------------------------------------------------------- schemas


def components(kinds: Iterable[type[Struct]]) -> Document:
    """The JSON Schemas of structs and of the structs in them, by name."""
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    return dict(components)


def _with_named_choices(schemas: Document) -> Document:
    """Schemas from which generators make named types: each choice of values is a schema, with the field's name.

    A message's `type` has one value, which is a constant.
    """
    choices: Document = {}
    for schema in schemas.values():
        for field, described in schema.get("properties", {}).items():
            if field == "type":
                described["const"] = described.pop("enum")[0]
                described["type"] = "string"
            for branch in [described, *described.get("anyOf", ())]:
                if values := branch.pop("enum", None):
                    name = field.capitalize()
                    meaning = branch.pop("description", "")
                    choices[name] = {"title": name, "description": meaning, "type": "string", "enum": values}
                    reference = {"$ref": f"#/components/schemas/{name}"}
                    branch.update({"anyOf": [reference]} if branch is described else reference)
    return {**schemas, **choices}


def ref(cls: type[Struct]) -> Document:
    """A reference to the schema of a struct."""
    return {"$ref": f"#/components/schemas/{cls.__name__}"}


def doc(cls: type[Struct]) -> str:
    """The docstring of a struct."""
    return cleandoc(cls.__doc__ or "")


def _error_meanings() -> list[ErrorMeaning]:
    # If a parent and its child share a code, the child's meaning counts.
    return list({cls.code: error_meaning(cls) for cls in error_classes()}.values())
