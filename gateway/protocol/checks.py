"""The rules for values, each written once: ids of meetings, languages, texts, glossaries, options.

Knows: what a value has to be like, and the error that names the field it came in.
Must not know: messages, HTTP bodies, sessions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import InvalidValue, LimitExceeded, UnsupportedLanguage, UnsupportedOption
from gateway.domain.languages import normalise
from gateway.protocol.limits import Limits

__all__ = [
    "MEETING_ID",
    "check_count",
    "check_language_tag",
    "check_length",
    "check_meeting_id",
    "check_terms",
    "check_text",
    "is_meeting_id",
    "supported_language",
    "unsupported_options",
]

# A meeting's id, as a regular expression for the whole of it: safe in a path and in a file name, so that it can be
# part of an address. One that is nothing but dots is none.
MEETING_ID = "[A-Za-z0-9._~-]+"

_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8}){0,4}")


def check_length(value: str, limit: int, field: str) -> None:
    """Raises `LimitExceeded` for a text of more than `limit` characters."""
    if len(value) > limit:
        raise LimitExceeded(f"{field} has {len(value)} characters; the limit is {limit}.", field=field)


def check_count(count: int, limit: int, what: str, field: str) -> None:
    """Raises `LimitExceeded` for more than `limit` of something."""
    if count > limit:
        raise LimitExceeded(f"{count} {what}; the limit is {limit}.", field=field)


def is_meeting_id(text: str) -> bool:
    """Whether a meeting may be called so, however long its id may be."""
    return re.fullmatch(MEETING_ID, text) is not None and bool(text.strip("."))


def check_meeting_id(meeting: str, limits: Limits) -> None:
    """Raises `LimitExceeded` or `InvalidValue`."""
    check_length(meeting, limits.id_chars, "meeting")
    if not is_meeting_id(meeting):
        raise InvalidValue(
            "A meeting's id has letters, digits and . _ ~ - only, and is more than dots.", field="meeting"
        )


def check_language_tag(tag: str, field: str) -> None:
    """Raises `InvalidValue` for what is no language tag in any model."""
    if not _LANGUAGE_TAG.fullmatch(tag):
        raise InvalidValue(f"{tag[:20]!r} is not a language tag.", field=field)


def supported_language(tag: str, languages: Collection[str], field: str) -> str:
    """The normalised tag, which is one of `languages`. Raises `UnsupportedLanguage`."""
    lang = normalise(tag)
    if lang not in languages:
        raise UnsupportedLanguage(
            f"The model does not know the language {tag[:20]!r}; it knows {', '.join(languages)}.", field=field
        )
    return lang


def check_text(text: str, limits: Limits, field: str) -> None:
    """A text to translate. Raises `LimitExceeded` or `InvalidValue`."""
    check_length(text, limits.text_chars, field)
    if not text.strip():
        raise InvalidValue("The text is empty.", field=field)


def check_terms(terms: Mapping[str, str], limits: Limits, field: str) -> None:
    """Source term → target term of one target language. Raises `LimitExceeded` or `InvalidValue`."""
    for pair in terms.items():
        for term in pair:
            if not term.strip():
                raise InvalidValue("A glossary term is empty.", field=field)
            check_length(term, limits.term_chars, field)


def unsupported_options(given: Mapping[str, object], profile: EngineProfile) -> list[UnsupportedOption]:
    """What to say of each option that is given, by its name, and that the model cannot take."""
    return [
        UnsupportedOption(f"The model {profile.model} takes no {option}; it is left out.", field=option)
        for option, value in given.items()
        if value and option not in profile.options
    ]
