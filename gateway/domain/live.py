"""What gateways tell one another of a meeting while it happens, as frozen values.

All of it is worth nothing once the final is in the log, so none of it is kept.
Knows: what each of them says. Must not know: how they travel, what is done with them.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.domain.log import Utterance


class Revised(Struct, frozen=True, tag="revised"):
    """A new revision of what is being said."""

    # Without what only its translation needs.
    utterance: Utterance


class Partial(Struct, frozen=True, tag="partial"):
    """The translation of what is being said: all of it."""

    participant: str
    utterance: str
    lang: str
    rev: int
    # Never taken back.
    committed: str
    # Replaced by what comes next.
    tentative: str


class GrowingFinal(Struct, frozen=True, tag="final"):
    """New text of the translation of an utterance in the log."""

    participant: str
    utterance: str
    lang: str
    rev: int
    # Offset of its `Said`.
    said: int
    # Characters of the translation before this text.
    at: int
    text: str


class Withdrawn(Struct, frozen=True, tag="withdrawn"):
    """What was being said will not be finished."""

    participant: str
    utterance: str


class Ended(Struct, frozen=True, tag="ended"):
    """What was being said is not being said any more: its speaker is away, or has left."""

    participant: str
    utterance: str
    # Whether it will never be finished.
    for_good: bool


class Unwanted(Struct, frozen=True, tag="unwanted"):
    """The speaker has cancelled an utterance that is in the log: who translates it is to stop."""

    participant: str
    utterance: str


class Reads(Struct, frozen=True, tag="reads"):
    """The sender is there, and these languages are read at it."""

    languages: tuple[str, ...]
    # Those of them that are read while it is being said.
    live: tuple[str, ...]


class Asked(Struct, frozen=True, tag="asked"):
    """The sender may have missed something: each gateway that hears this tells its state again."""


LiveEvent = Revised | Partial | GrowingFinal | Withdrawn | Ended | Unwanted | Reads | Asked
