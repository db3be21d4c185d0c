"""The memory that a publication takes in this process, estimated from above.

Knows: what Python takes for texts and objects. Must not know: logs, bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gateway.domain.log import LoggedEvent, Publication, Said, Translated, Untranslated

# Estimated bytes of a publication, besides its texts.
_PUBLICATION_BYTES = 512
# Estimated bytes of what is remembered of an utterance and its outcomes.
_UTTERANCE_BYTES = 640
# Estimated bytes of a text, besides its characters.
_TEXT_BYTES = 80
# Bytes of a character at most, in a text of ASCII alone and in any other. The widest has four; a text that is
# not ASCII also keeps its UTF-8 form once it was encoded.
_ASCII_CHAR_BYTES = 4
_CHAR_BYTES = 8


def publication_bytes(publication: Publication) -> int:
    """The memory of a publication in bytes; a high estimate."""
    texts = 0
    chars_bytes = _UTTERANCE_BYTES if isinstance(publication.event, Said) else 0
    for text in _texts(publication.event):
        texts += 1
        chars_bytes += len(text) * (_ASCII_CHAR_BYTES if text.isascii() else _CHAR_BYTES)
    return _PUBLICATION_BYTES + _TEXT_BYTES * texts + chars_bytes


def _texts(event: LoggedEvent) -> Iterator[str]:
    match event:
        case Said(utterance=said, languages=languages):
            yield from (said.id, said.text, said.lang, said.participant, said.speaker, *said.context, *languages)
            for lang, terms in said.glossary:
                yield lang
                for term in terms:
                    yield from (*term, "")  # the empty text counts for the pair itself
        case Translated():
            yield from (event.participant, event.utterance, event.speaker, event.lang, event.text)
        case Untranslated():
            yield from (event.participant, event.utterance, event.speaker, event.lang, event.code, event.message)
        case _:
            assert_never(event)
