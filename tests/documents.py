"""How a schema document is read: its references, its schemas, its messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from jsonschema import Draft202012Validator

from gateway.protocol.asyncapi import asyncapi
from gateway.protocol.messages import client_messages, server_messages

ASYNCAPI = asyncapi()

MESSAGES = [*client_messages(), *server_messages()]


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of a document."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from nodes(inner)


def resolve(document: Any, ref: str) -> Any:
    for step in ref.removeprefix("#/").split("/"):
        document = document[step.replace("~1", "/").replace("~0", "~")]
    return document


def validator(document: Any, ref: str) -> Draft202012Validator:
    # The references are relative to the whole document.
    return Draft202012Validator({**document, "$ref": ref})


def tag(cls: type[msgspec.Struct]) -> str:
    return str(cls.__struct_config__.tag)
