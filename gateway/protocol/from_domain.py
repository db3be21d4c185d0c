"""Makes messages to clients from values of the domain.

Knows: the event log's entries, the error tree and `messages`. Must not know: encodings, sessions, who gets them.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import GatewayError
from gateway.domain.log import Publication, Said, Translated, Untranslated, Utterance
from gateway.protocol.checks import targets_by_source
from gateway.protocol.messages import (
    Caption,
    Error,
    LanguagesChanged,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceReplaced,
)


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


def languages_message(profile: EngineProfile) -> LanguagesChanged:
    """What the engine can do, as sessions are told when that has changed."""
    return LanguagesChanged(list(profile.languages), sorted(profile.options), targets_by_source(profile))


def accepted_message(said: Utterance, offset: int) -> UtteranceAccepted:
    """What its speaker is told of a final utterance in the log. said: the segment that closes it."""
    return UtteranceAccepted(said.whole[1], said.rev, offset, said.lang if said.detected else UNSET)


def caption_message(utterance: Utterance, offset: int | None = None, at_ms: int | UnsetType = UNSET) -> Caption:
    """What was said. offset, at_ms: its place in the log, and when it came there; none while it is being said."""
    return Caption(
        participant=utterance.participant,
        utterance=utterance.id,
        speaker=utterance.speaker,
        lang=utterance.lang,
        rev=utterance.rev,
        text=utterance.text,
        final=offset is not None,
        offset=offset,
        at_ms=at_ms,
    )


def replaced_message(said: Utterance, first: int = 1) -> UtteranceReplaced:
    """What readers are told of an utterance that stands in place of others, before its caption.

    first: offset of the oldest that the log holds. What replaces something older has no place but its own.
    """
    if said.is_taking_back:
        return UtteranceReplaced(said.participant, list(said.replaces), None)
    place, at_ms = (said.place, said.placed_ms) if said.place >= first else (UNSET, UNSET)
    return UtteranceReplaced(said.participant, list(said.replaces), said.id, place, at_ms)


def publication_message(publication: Publication) -> Caption | TranslationFinal | TranslationFailed:
    """An entry of the log as a message."""
    match publication.event:
        case Said(utterance=said):
            return caption_message(said, publication.offset, publication.at_ms)
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
                at_ms=publication.at_ms,
                source_lang=done.source or UNSET,
                confidence=done.confidence.value if done.confidence else UNSET,
                unsure=done.unsure or UNSET,
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
