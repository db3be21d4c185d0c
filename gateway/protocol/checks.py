"""Checks the values of requests: ids of meetings, languages, texts, glossaries, options.

Knows: each rule, once, and its error, which names the field.
Must not know: messages, HTTP bodies, sessions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping

from msgspec import UNSET, UnsetType

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import InvalidValue, LimitExceeded, UnsupportedLanguage, UnsupportedOption
from gateway.domain.languages import UNDETERMINED, language_name, normalise
from gateway.protocol.fields import MAX_INT
from gateway.protocol.limits import Limits

# Regular expression for a whole meeting id. Its characters are safe in a URL path and in a file name. An id of
# only dots is not valid, although it matches.
MEETING_ID = "[A-Za-z0-9._~-]+"

# Regular expression for a whole language tag.
LANGUAGE_TAG = "[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8}){0,4}"


def one_line(text: str) -> str:
    """A text of one line, for people: without control characters and what would turn what is around it."""
    joined = {"\u200c", "\u200d"}  # parts of words and of emoji
    kept = (char if char in joined or unicodedata.category(char)[0] != "C" else " " for char in text)
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


def check_length(value: str, limit: int, field: str) -> None:
    """Check a text. Raises `LimitExceeded` for more than `limit` characters."""
    if len(value) > limit:
        raise LimitExceeded(f"{field} has {len(value)} characters; the limit is {limit}.", field=field)


def check_count(count: int, limit: int, what: str, field: str) -> None:
    """Check a number of things. Raises `LimitExceeded` for more than `limit`. what: their name in the error."""
    if count > limit:
        raise LimitExceeded(f"{count} {what}; the limit is {limit}.", field=field)


def is_meeting_id(text: str) -> bool:
    """Whether a text may be a meeting's id; does not check its length."""
    return re.fullmatch(MEETING_ID, text) is not None and bool(text.strip("."))


def check_meeting_id(meeting: str, limits: Limits) -> None:
    """Check a meeting's id. Raises `LimitExceeded` or `InvalidValue`."""
    check_length(meeting, limits.id_chars, "meeting")
    if not is_meeting_id(meeting):
        raise InvalidValue(
            "A meeting id has only letters, digits and . _ ~ -, and not only dots.", field="meeting"
        )


def check_language_tag(tag: str, field: str) -> None:
    """Raises `InvalidValue` if `tag` does not have the form of a language tag."""
    if not re.fullmatch(LANGUAGE_TAG, tag):
        raise InvalidValue(f"{tag[:20]!r} is not a language tag.", field=field)


def supported_language(tag: str, languages: Collection[str], field: str) -> str:
    """The tag, normalised. Raises `UnsupportedLanguage` if it is not one of `languages`."""
    lang = normalise(tag)
    if lang not in languages:
        raise UnsupportedLanguage(
            f"The model does not know the language {tag[:20]!r}; it knows {', '.join(languages)}.", field=field
        )
    return lang


def check_pair(source: str, target: str, profile: EngineProfile, field: str | None = None) -> None:
    """Raises `UnsupportedLanguage` if nothing translates from one of the languages into the other."""
    if source == UNDETERMINED:
        raise UnsupportedLanguage("The language of the text was not recognised.", field=field)
    if not profile.translates(source, target):
        possible = ", ".join(profile.targets(source)) or "none"
        raise UnsupportedLanguage(
            f"Nothing here translates {language_name(source)} into {language_name(target)}; languages into which "
            f"{language_name(source)} is translated: {possible}.",
            field=field,
        )


def targets_by_source(profile: EngineProfile) -> dict[str, list[str]] | UnsetType:
    """Language → those into which it is translated; unset if each is translated into every other."""
    if all(len(profile.targets(source)) == len(profile.languages) - 1 for source in profile.languages):
        return UNSET
    return {source: list(targets) for source in profile.languages if (targets := profile.targets(source))}


def check_text(text: str, limits: Limits, field: str) -> None:
    """Check a text to translate. Raises `LimitExceeded` or `InvalidValue`."""
    check_length(text, limits.text_chars, field)
    check_said(text, field)


def check_said(text: str, field: str) -> None:
    """Check that a text says something. Raises `InvalidValue`."""
    if not text.strip():
        raise InvalidValue("The text is empty.", field=field)


def position(start_ms: float | None, end_ms: float | None) -> tuple[int | None, int | None]:
    """Times in an audio as whole milliseconds; neither if one is none, or the end is before the start."""
    times = [time_ms for time_ms in (start_ms, end_ms) if time_ms is not None]
    if not all(0 <= time_ms <= MAX_INT for time_ms in times) or times != sorted(times):
        return None, None
    return _whole(start_ms), _whole(end_ms)


def _whole(time_ms: float | None) -> int | None:
    return None if time_ms is None else round(time_ms)


def check_terms(terms: Mapping[str, str], limits: Limits, field: str) -> None:
    """Check source term → target term of one target language. Raises `LimitExceeded` or `InvalidValue`."""
    for pair in terms.items():
        for term in pair:
            if not term.strip():
                raise InvalidValue("A glossary term is empty.", field=field)
            check_length(term, limits.term_chars, field)


def unsupported_options(given: Mapping[str, object], profile: EngineProfile) -> list[UnsupportedOption]:
    """An error for each given option that the model cannot take. given: option → value."""
    return [
        UnsupportedOption(f"The model {profile.model} takes no {option}; it is left out.", field=option)
        for option, value in given.items()
        if value and option not in profile.options
    ]
