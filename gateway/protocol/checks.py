"""Checks the values of client messages: every limit and rule, with an error that names the field.

Knows: the limits, and the languages and options of the loaded model.
Must not know: what was sent before (`sessions.machine`).
"""

from __future__ import annotations

import re

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import (
    EngineUnavailable,
    GatewayError,
    InvalidValue,
    LimitExceeded,
    UnsupportedLanguage,
    UnsupportedOption,
)
from gateway.domain.languages import normalise
from gateway.protocol.limits import Limits
from gateway.protocol.messages import UtteranceFinal, UtterancePartial

__all__ = ["SessionRules", "Terms"]

# Target language → its (source term, target term) pairs, as in `Utterance.glossary`.
Terms = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]

# Characters that are safe in a URL path and in a file name.
_MEETING = re.compile(r"[A-Za-z0-9._~-]+")


class SessionRules:
    """The checks of one gateway. Those that need the profile raise `EngineUnavailable` while it is None."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # None while the engine is loading.
        self.profile: EngineProfile | None = None

    def supported(self) -> EngineProfile:
        """What the model can do. Raises `EngineUnavailable`."""
        if self.profile is None:
            raise EngineUnavailable("The engine is still loading; send this again.", retry_after_ms=2_000)
        return self.profile

    def bound(self, value: str, limit: int, field: str) -> None:
        """Raises `LimitExceeded` for a text of more than `limit` characters."""
        if len(value) > limit:
            raise LimitExceeded(f"{field} has {len(value)} characters; the limit is {limit}.", field=field)

    def meeting(self, meeting: str) -> str:
        """The meeting's id, checked. Raises `LimitExceeded` or `InvalidValue`."""
        self.bound(meeting, self.limits.id_chars, "meeting")
        if not _MEETING.fullmatch(meeting) or not meeting.strip("."):
            raise InvalidValue(
                "A meeting's id has letters, digits and . _ ~ - only, and is more than dots.", field="meeting"
            )
        return meeting

    def language(self, tag: str, field: str) -> str:
        """The normalised tag. Raises `UnsupportedLanguage`."""
        lang = normalise(tag)
        known = self.supported().languages
        if lang not in known:
            raise UnsupportedLanguage(
                f"The model does not know the language {tag[:20]!r}; it knows {', '.join(known)}.",
                field=field,
            )
        return lang

    def languages(self, tags: list[str]) -> tuple[str, ...]:
        """The languages to read, normalised, each once. Raises `UnsupportedLanguage` or `LimitExceeded`."""
        langs = tuple(dict.fromkeys(self.language(tag, f"reads[{n}]") for n, tag in enumerate(tags)))
        if len(langs) > self.limits.languages:
            raise LimitExceeded(f"{len(langs)} languages; the limit is {self.limits.languages}.", field="reads")
        return langs

    def utterance(self, message: UtterancePartial | UtteranceFinal, speaks: str | None) -> str:
        """Check the rules that partials and finals share. Returns the utterance's language."""
        if not message.id:
            raise InvalidValue("An utterance needs an id.", field="id")
        self.bound(message.id, self.limits.id_chars, "id")
        if len(message.text) > self.limits.text_chars:
            raise LimitExceeded(
                f"The text has {len(message.text)} characters; the limit is {self.limits.text_chars}.",
                field="text",
            )
        if not message.text.strip():
            raise InvalidValue("The text is empty.", field="text")
        if message.end_ms is not None and message.start_ms is not None and message.end_ms < message.start_ms:
            raise InvalidValue("end_ms is before start_ms.", field="end_ms")
        if message.lang is not None:
            return self.language(message.lang, "lang")
        if speaks is None:
            raise InvalidValue("Neither the utterance's lang nor the session's speaks is set.", field="lang")
        return speaks

    def glossary(self, glossary: dict[str, dict[str, str]]) -> Terms:
        """The glossary, checked. Raises `LimitExceeded`, `InvalidValue` or `UnsupportedLanguage`."""
        if (count := sum(map(len, glossary.values()))) > self.limits.glossary_terms:
            raise LimitExceeded(f"{count} terms; the limit is {self.limits.glossary_terms}.", field="glossary")
        checked = []
        for tag, terms in glossary.items():
            lang = self.language(tag, f"glossary.{tag[:20]}")
            for source, target in terms.items():
                if not source.strip() or not target.strip():
                    raise InvalidValue("A glossary term is empty.", field=f"glossary.{lang}")
                for term in (source, target):
                    self.bound(term, self.limits.term_chars, f"glossary.{lang}")
            checked.append((lang, tuple(terms.items())))
        return tuple(checked)

    def left_out(self, given: dict[str, bool]) -> list[GatewayError]:
        """An error for each given option that the model cannot take."""
        profile = self.supported()
        return [
            UnsupportedOption(f"The model {profile.model} takes no {option}; it is left out.", field=option)
            for option, is_given in given.items()
            if is_given and option not in profile.options
        ]
