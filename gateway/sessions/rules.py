"""Checks the values of client messages: the rules of `protocol.checks`, for this gateway's limits and model.

Knows: the limits, and the languages and options of the loaded model.
Must not know: what was sent before (`sessions.machine`).
"""

from __future__ import annotations

from collections.abc import Collection

from gateway.domain.engine import EngineProfile
from gateway.domain.errors import EngineUnavailable, GatewayError, InvalidValue, UnsupportedLanguage
from gateway.domain.languages import normalise
from gateway.protocol import checks
from gateway.protocol.limits import Limits
from gateway.protocol.messages import UtteranceFinal, UtterancePartial

__all__ = ["SessionRules", "Terms"]

# Target language → its (source term, target term) pairs, as in `Utterance.glossary`.
Terms = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


class SessionRules:
    """The checks of one gateway. Those that need the profile raise `EngineUnavailable` while it is None."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # None while the engine is loading.
        self.profile: EngineProfile | None = None
        # What the session reads, and may go on reading where nothing translates it any more. None: that is not
        # known, as it is being resumed.
        self.held: Collection[str] | None = ()
        # Languages of a session that is being resumed which the gateway does not have → why.
        self.gone: dict[str, GatewayError] = {}

    def begin(self, *, resumes: bool) -> None:
        """A session is about to begin, or to go on."""
        self.held, self.gone = None if resumes else (), {}

    def supported(self) -> EngineProfile:
        """The loaded model's profile. Raises `EngineUnavailable`."""
        if self.profile is None:
            raise EngineUnavailable("The engine is still loading; send this again.", retry_after_ms=2_000)
        return self.profile

    def check_length(self, value: str, limit: int, field: str) -> None:
        """Raises `LimitExceeded` for a text of more than `limit` characters."""
        checks.check_length(value, limit, field)

    def meeting(self, meeting: str) -> str:
        """The meeting's id, checked. Raises `LimitExceeded` or `InvalidValue`."""
        checks.check_meeting_id(meeting, self.limits)
        return meeting

    def language(self, tag: str, field: str) -> str:
        """The normalised tag. Raises `UnsupportedLanguage` or `InvalidValue`."""
        known, lang = self.supported().languages, normalise(tag)
        if self.held is None:
            checks.check_language_tag(tag, field)
            try:
                checks.supported_language(tag, known, field)
            except UnsupportedLanguage as error:
                self.gone[lang] = error
        elif lang not in self.held:
            checks.supported_language(tag, known, field)
        return lang

    def languages(self, tags: list[str]) -> tuple[str, ...]:
        """The languages to read, normalised, each once. Raises `LimitExceeded` or what `language` raises."""
        langs = tuple(dict.fromkeys(self.language(tag, f"reads[{n}]") for n, tag in enumerate(tags)))
        checks.check_count(len(langs), self.limits.languages, "languages", "reads")
        return langs

    def utterance(self, message: UtterancePartial | UtteranceFinal, speaks: str | None) -> str:
        """Check the rules that partials and finals share. Returns the utterance's language."""
        if not message.id:
            raise InvalidValue("An utterance needs an id.", field="id")
        self.check_length(message.id, self.limits.id_chars, "id")
        checks.check_text(message.text, self.limits, "text")
        if message.end_ms is not None and message.start_ms is not None and message.end_ms < message.start_ms:
            raise InvalidValue("end_ms is before start_ms.", field="end_ms")
        if message.lang is not None:
            return self.language(message.lang, "lang")
        if speaks is None:
            raise InvalidValue("Neither the utterance's lang nor the session's speaks is set.", field="lang")
        return speaks

    def glossary(self, glossary: dict[str, dict[str, str]]) -> Terms:
        """The glossary, checked. Raises `LimitExceeded`, `InvalidValue` or `UnsupportedLanguage`."""
        checks.check_count(sum(map(len, glossary.values())), self.limits.glossary_terms, "terms", "glossary")
        checked = []
        for tag, terms in glossary.items():
            lang = self.language(tag, f"glossary.{tag[:20]}")
            checks.check_terms(terms, self.limits, f"glossary.{lang}")
            checked.append((lang, tuple(terms.items())))
        return tuple(checked)

    def unsupported_options(self, given: dict[str, bool]) -> list[GatewayError]:
        """An error for each given option that the model cannot take."""
        return [*checks.unsupported_options(given, self.supported())]
