"""Makes messages to clients from values of the domain.

Knows: the event log's entries, the error tree and `messages`. Must not know: encodings, sessions, who gets them.
"""

from __future__ import annotations

from gateway.domain.errors import GatewayError
from gateway.domain.log import Publication, Said, Translated, Untranslated
from gateway.protocol.messages import Caption, Error, TranslationFailed, TranslationFinal

__all__ = ["error_message", "publication_message"]


def error_message(error: GatewayError) -> Error:
    """An error of the tree as a message."""
    return Error(
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        retry_after_ms=error.retry_after_ms,
        utterance=error.utterance,
        field=error.field,
    )


def publication_message(publication: Publication) -> Caption | TranslationFinal | TranslationFailed:
    """An entry of the log as a message."""
    match publication.event:
        case Said(utterance=said):
            return Caption(
                participant=said.participant,
                utterance=said.id,
                speaker=said.speaker,
                lang=said.lang,
                rev=said.rev,
                text=said.text,
                final=True,
                offset=publication.offset,
            )
        case Translated() as done:
            return TranslationFinal(
                participant=done.participant,
                utterance=done.utterance,
                speaker=done.speaker,
                lang=done.lang,
                rev=done.rev,
                text=done.text,
                offset=publication.offset,
                timings=done.timings,
                tokens=done.tokens,
                truncated=done.truncated,
            )
        case Untranslated() as failed:
            return TranslationFailed(
                participant=failed.participant,
                utterance=failed.utterance,
                speaker=failed.speaker,
                lang=failed.lang,
                rev=failed.rev,
                code=failed.code,
                message=failed.message,
                offset=publication.offset,
            )
