"""Transcripts: what a client is told to do, what it must send and show, and what the gateway answers.

Knows: the JSON of `transcripts/`, and how a message is compared. Must not know: sockets, processes.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

Names = dict[str, Any]


class Step(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that happens; exactly one field is set."""

    # A command for the driver.
    do: dict[str, Any] | None = None
    # The next message that the client must send, but for pings. It may have more fields than these.
    client: dict[str, Any] | None = None
    # A message from the gateway.
    gateway: dict[str, Any] | None = None
    # What the client must give its application next: a translation, a failure, or the end of the session.
    shown: dict[str, Any] | None = None
    # The gateway closes the connection with this code; 0: the connection breaks.
    close: int | None = None


class Transcript(Struct, frozen=True, forbid_unknown_fields=True):
    """A transcript. Its name is that of its file."""

    name: str
    # What a client must be able to do, as a sentence.
    about: str
    steps: list[Step]


def transcripts() -> list[Transcript]:
    """All of them, by name."""
    found = files("gateway.conformance") / "transcripts"
    texts = sorted((file.name, file.read_bytes()) for file in found.iterdir() if file.name.endswith(".json"))
    return [msgspec.json.decode(text, type=Transcript) for _, text in texts]


def matches(expected: Any, actual: Any, names: Names) -> bool:
    """Whether a message has what is expected of it.

    `…` stands for anything, `$name` for what it stood for first. An object may have more fields than expected;
    a field that is expected to be null may be absent.
    """
    match expected:
        case "…":
            return True
        case str() if expected.startswith("$"):
            return bool(names.setdefault(expected, actual) == actual)
        case dict():
            return isinstance(actual, dict) and all(
                matches(value, actual.get(key), names) for key, value in expected.items()
            )
        case list():
            return (
                isinstance(actual, list)
                and len(expected) == len(actual)
                and all(matches(e, a, names) for e, a in zip(expected, actual, strict=True))
            )
    return bool(expected == actual)


def filled(message: Any, names: Names) -> Any:
    """The message with each `$name` replaced. Raises `KeyError` for one that stands for nothing yet."""
    match message:
        case str() if message.startswith("$"):
            return names[message]
        case dict():
            return {key: filled(value, names) for key, value in message.items()}
        case list():
            return [filled(value, names) for value in message]
    return message
