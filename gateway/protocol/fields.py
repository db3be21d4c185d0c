"""The types of fields that several messages have, with what `/asyncapi.json` says of them.

Knows: bounds that hold for every gateway. Must not know: limits that are settings (`protocol.limits`), messages.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, UnsetType

from gateway.domain.sessions import Stability

__all__ = ["AtMs", "Glossary", "Lang", "Millis", "Offset", "Rev", "Stable", "Targets", "Token"]

Lang = Annotated[str, Meta(description="BCP 47 language tag; a region is ignored (`en-US` is `en`).")]
# The largest integer that JavaScript, JSON and msgpack all carry exactly.
_MAX_INT = 2**53 - 1
Rev = Annotated[int, Meta(ge=0, le=_MAX_INT, description="Revision of the utterance, growing.")]
Millis = Annotated[int, Meta(ge=0, le=_MAX_INT)]
Offset = Annotated[int, Meta(ge=0, le=_MAX_INT)]
AtMs = Annotated[
    int | UnsetType,
    Meta(description="When it came into the log: Unix time in milliseconds, by the gateway's clock."),
]
Stable = Annotated[
    Stability,
    Meta(
        description="How much of a translation is shown while its utterance is still being said. `live`: the "
        "earliest words; the last of them may change. `stable`: only text that is never taken back. "
        "`final`: nothing."
    ),
]
Token = Annotated[
    str,
    Meta(
        description="What the gateway's operator or your backend issued. Programs may send it as a header instead."
    ),
]
Targets = Annotated[
    dict[str, list[str]] | UnsetType,
    Meta(
        description="Language that is spoken → the languages it is translated into. Absent: each of `languages` "
        "is translated into every other."
    ),
]
Glossary = Annotated[
    dict[str, dict[str, str]],
    Meta(description="Target language → source term → target term."),
]
