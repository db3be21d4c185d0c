"""What is written into the store and read from it: utterances, outcomes, pages, pushes.

The one place that makes bytes of what people said, and texts of the bytes. What cannot be read, because a newer
gateway wrote it, is left out and logged.

Knows: the format of entries, digests. Must not know: connections, scripts.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from gateway.domain.log import (
    NO_TITLE,
    LoggedEvent,
    Owed,
    Page,
    Publication,
    Recent,
    Said,
    Title,
    Translated,
    Unfinished,
    Untranslated,
    Utterance,
    UtteranceKey,
)
from gateway.stores.sealing import Place, Seal, SealError

_log = logging.getLogger(__name__)

_DIGEST_BYTES = 16
_encoder = msgspec.msgpack.Encoder()
_utterance = msgspec.msgpack.Decoder(Utterance)
_outcome = msgspec.msgpack.Decoder(Translated | Untranslated)
# `Place.kind` of entries.
_SAID, _ENDED = "said", "outcome"
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
    title: Title = NO_TITLE

    def epoch_of(self, offset: int) -> str | None:
        """That in which the entry was appended; None: an earlier one, as the store has lost what came after it."""
        return self.epoch if offset > self.start else None


class Push(Struct, frozen=True):
    """A publication as it is pushed to subscribers."""

    epoch: str
    offset: int
    # None if it cannot be read.
    publication: Publication | None


def encode(value: Utterance | Translated | Untranslated, seal: Seal, meeting: str, epoch: str) -> bytes:
    """What the store keeps of an utterance or an outcome in this epoch of the meeting's log."""
    kind = _SAID if isinstance(value, Utterance) else _ENDED
    return seal.close(_encoder.encode(value), Place(kind, meeting, epoch))


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
    """As the scripts return it: epoch, start, first, last, "1" for one that is not recorded, and its title."""
    epoch, start, first, last, unrecorded, *title = reply
    return Position(epoch.decode(), int(start), int(first), int(last), unrecorded != b"1", title_of(*title))


def title_text(title: Title) -> str:
    """As the store keeps it."""
    return f"{title.text}\n{title.held_by}" if title.text else ""


def title_of(kept: bytes = b"") -> Title:
    text, _, held_by = kept.decode().partition("\n")
    return Title(text, held_by)


def page_of(
    meeting: str, position: Position, entries: Iterable[tuple[bytes, Sequence[bytes]]], seal: Seal
) -> Page:
    """Entries of the meeting's stream as a page."""
    found = []
    for id, fields in entries:
        entry = dict(zip(fields[::2], fields[1::2], strict=True))
        offset = int(id.partition(b"-")[0])
        place = _Entry(meeting, position.epoch_of(offset), offset)
        publication = _publication(place, int(entry[b"t"]), entry.get(b"l", _OUTCOME), entry[b"d"], seal)
        if publication is not None:
            found.append(publication)
    return Page(position.epoch, position.first, position.last, tuple(found), position.recorded, position.title)


def recent_of(meeting: str, reply: Sequence[Any], seal: Seal) -> Recent:
    """Position, entries and what is owed of older utterances, as the script returns them."""
    position, entries, unfinished = position_of(reply[0]), *reply[1:]
    owed = tuple(each for parts in unfinished if (each := _owed(meeting, position, parts, seal)) is not None)
    return Recent(page_of(meeting, position, entries, seal), owed)


def _owed(meeting: str, position: Position, parts: Sequence[bytes], seal: Seal) -> Owed | None:
    """None: it cannot be read."""
    offset, languages, ended, payload = parts
    entry = _Entry(meeting, position.epoch_of(int(offset)), int(offset))
    if (utterance := _unfinished_utterance(entry, payload, seal)) is None:
        return None
    outcomes = {lang: done == "1" for lang, _, done in (each.partition(":") for each in languages_of(ended))}
    return Owed(utterance, int(offset), languages_of(languages), outcomes)


def push_of(meeting: str, data: bytes, seal: Seal) -> Push:
    """A pushed message: epoch, offset, at_ms and languages; a new line; the payload."""
    header, _, payload = data.partition(b"\n")
    epoch, offset, at_ms, languages = header.split(b" ")
    if not payload:  # a log has begun, and nothing is in it
        return Push(epoch.decode(), int(offset), None)
    entry = _Entry(meeting, epoch.decode(), int(offset))
    return Push(epoch.decode(), int(offset), _publication(entry, int(at_ms), languages, payload, seal))


def unfinished_of(reply: tuple[bytes, bytes, bytes, int, bytes, bytes, bytes], seal: Seal) -> Unfinished | None:
    """Meeting, offset, languages, tries, account, payload and epoch, as the scripts return them. None: unreadable.

    The epoch is "" where it is an earlier one than the log's.
    """
    meeting, offset, languages, tries, account, payload, epoch = reply
    entry = _Entry(meeting.decode(), epoch.decode() or None, int(offset))
    if (utterance := _unfinished_utterance(entry, payload, seal)) is None:
        return None
    return Unfinished(meeting.decode(), utterance, int(offset), languages_of(languages), tries, account.decode())


class _Entry(NamedTuple):
    """Where an entry is."""

    meeting: str
    # As of `Position.epoch_of`.
    epoch: str | None
    offset: int


def _unfinished_utterance(entry: _Entry, payload: bytes, seal: Seal) -> Utterance | None:
    try:
        return _utterance.decode(seal.open(payload, Place(_SAID, entry.meeting, entry.epoch)))
    except (msgspec.MsgspecError, ValueError) as error:
        _tell_unreadable("an unfinished utterance", entry, error)
        return None


def _publication(entry: _Entry, at_ms: int, languages: bytes, sealed: bytes, seal: Seal) -> Publication | None:
    kind = _ENDED if languages == _OUTCOME else _SAID
    try:
        payload = seal.open(sealed, Place(kind, entry.meeting, entry.epoch))
        event: LoggedEvent
        if kind == _ENDED:
            event = _outcome.decode(payload)
        else:
            event = Said(_utterance.decode(payload), languages_of(languages))
    except (msgspec.MsgspecError, ValueError) as error:
        _tell_unreadable("a publication", entry, error)
        return None
    return Publication(entry.offset, at_ms, event)


def _tell_unreadable(what: str, entry: _Entry, error: Exception) -> None:
    # Another error than that of the seal is not logged: it may quote the transcript.
    why = error if isinstance(error, SealError) else "did a newer gateway write it?"
    _log.error("%s of a meeting (offset %d) cannot be read: %s", what, entry.offset, why)
