"""What is written into the store and read from it: utterances, outcomes, pages, pushes.

The one place that makes bytes of what people said, and texts of the bytes. What cannot be read, because a newer
gateway wrote it, is left out and logged.

Knows: the format of entries, digests. Must not know: connections, scripts.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gateway.domain.log import (
    LoggedEvent,
    Owed,
    Page,
    Publication,
    Recent,
    Said,
    Translated,
    Unfinished,
    Untranslated,
    Utterance,
    UtteranceKey,
)
from gateway.stores.sealing import Seal

_log = logging.getLogger(__name__)

_DIGEST_BYTES = 16
_encoder = msgspec.msgpack.Encoder()
_utterance = msgspec.msgpack.Decoder(Utterance)
_outcome = msgspec.msgpack.Decoder(Translated | Untranslated)
# In a push, instead of languages: it is an outcome.
_OUTCOME = b"-"


class Position(Struct, frozen=True):
    """How far a meeting's log goes."""

    epoch: str
    # Offset before the first that was appended in this epoch.
    start: int
    # As in `Page`.
    first: int
    last: int
    recorded: bool = True


class Push(Struct, frozen=True):
    """A publication as it is pushed to subscribers."""

    epoch: str
    offset: int
    # None if it cannot be read.
    publication: Publication | None


def encode(value: Utterance | Translated | Untranslated, seal: Seal) -> bytes:
    """What the store keeps of an utterance or an outcome."""
    return seal.close(_encoder.encode(value))


def text_digest(utterance: Utterance, key: bytes = b"") -> bytes:
    """16 bytes that tell whether its text or language is another. key: without it nobody can try texts."""
    said = _encoder.encode((utterance.lang, utterance.text))
    return hashlib.blake2b(said, digest_size=_DIGEST_BYTES, key=key).digest()


def key_digest(key: UtteranceKey) -> bytes:
    """16 bytes for what identifies an utterance in its meeting."""
    return hashlib.blake2b(_encoder.encode(key), digest_size=_DIGEST_BYTES).digest()


def languages_of(text: bytes) -> tuple[str, ...]:
    """`b"de,ja"` → `("de", "ja")`"""
    return tuple(text.decode().split(",")) if text else ()


def position_of(reply: Sequence[bytes]) -> Position:
    """Epoch, start, first, last, and "1" for a meeting that is not recorded, as the scripts return them."""
    epoch, start, first, last, unrecorded = reply
    return Position(epoch.decode(), int(start), int(first), int(last), unrecorded != b"1")


def page_of(position: Position, entries: Iterable[tuple[bytes, Sequence[bytes]]], seal: Seal) -> Page:
    """Entries of the stream as a page."""
    found = []
    for id, fields in entries:
        entry = dict(zip(fields[::2], fields[1::2], strict=True))
        offset = int(id.partition(b"-")[0])
        publication = _publication(offset, int(entry[b"t"]), entry.get(b"l", _OUTCOME), entry[b"d"], seal)
        if publication is not None:
            found.append(publication)
    return Page(position.epoch, position.first, position.last, tuple(found), position.recorded)


def recent_of(reply: Sequence[Any], seal: Seal) -> Recent:
    """Position, entries and what is owed of older utterances, as the script returns them."""
    position, entries, unfinished = reply
    owed = tuple(each for parts in unfinished if (each := _owed(parts, seal)) is not None)
    return Recent(page_of(position_of(position), entries, seal), owed)


def _owed(parts: Sequence[bytes], seal: Seal) -> Owed | None:
    """None: it cannot be read."""
    offset, languages, ended, payload = parts
    if (utterance := _unfinished_utterance(int(offset), payload, seal)) is None:
        return None
    outcomes = {lang: done == "1" for lang, _, done in (each.partition(":") for each in languages_of(ended))}
    return Owed(utterance, int(offset), languages_of(languages), outcomes)


def push_of(data: bytes, seal: Seal) -> Push:
    """A pushed message: epoch, offset, at_ms and languages; a new line; the payload."""
    header, _, payload = data.partition(b"\n")
    epoch, offset, at_ms, languages = header.split(b" ")
    if not payload:  # a log has begun, and nothing is in it
        return Push(epoch.decode(), int(offset), None)
    return Push(epoch.decode(), int(offset), _publication(int(offset), int(at_ms), languages, payload, seal))


def unfinished_of(reply: tuple[bytes, bytes, bytes, int, bytes, bytes], seal: Seal) -> Unfinished | None:
    """Meeting, offset, languages, tries, account and payload, as the scripts return them. None: cannot be read."""
    meeting, offset, languages, tries, account, payload = reply
    if (utterance := _unfinished_utterance(int(offset), payload, seal)) is None:
        return None
    return Unfinished(meeting.decode(), utterance, int(offset), languages_of(languages), tries, account.decode())


def _unfinished_utterance(offset: int, payload: bytes, seal: Seal) -> Utterance | None:
    try:
        return _utterance.decode(seal.open(payload))
    except (msgspec.MsgspecError, ValueError):
        _log.error("an unfinished utterance of a meeting (offset %d) cannot be read", offset)
        return None


def _publication(offset: int, at_ms: int, languages: bytes, sealed: bytes, seal: Seal) -> Publication | None:
    try:
        payload = seal.open(sealed)
        event: LoggedEvent
        if languages == _OUTCOME:
            event = _outcome.decode(payload)
        else:
            event = Said(_utterance.decode(payload), languages_of(languages))
    except (msgspec.MsgspecError, ValueError):  # its text is not logged: it may quote the transcript
        _log.error(
            "a publication (offset %d) cannot be read; did a newer gateway write it, or one with another key?",
            offset,
        )
        return None
    return Publication(offset, at_ms, event)
