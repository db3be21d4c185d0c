"""Checks the values of client messages: the rules of `protocol.checks`, for this gateway's limits and model.

Knows: the limits, and the languages and options of the loaded model.
Must not know: what was sent before (`sessions.machine`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict, Unpack

from gateway.domain.engine import EngineProfile, Formality
from gateway.domain.errors import EngineUnavailable, GatewayError, InvalidValue, UnsupportedLanguage
from gateway.domain.grants import Grant
from gateway.domain.languages import AUTO, normalise
from gateway.domain.log import Utterance, cut_context, is_segment_id, whole_id
from gateway.protocol import checks
from gateway.protocol.limits import Limits
from gateway.protocol.messages import UtteranceFinal, UtterancePartial
from gateway.sessions.grants import check_role, check_speaks

# Target language → its (source term, target term) pairs, as in `Utterance.glossary`.
Terms = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


class _Said(TypedDict):
    """What an utterance is besides its message and its options, as in `Utterance`."""

    lang: str
    participant: str
    sender: str
    person: str
    speaker: str
    final: bool
    detected: bool


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

    def spoken(self, tag: str, field: str) -> str:
        """As `language`, or `AUTO`."""
        return AUTO if tag.lower() == AUTO else self.language(tag, field)

    def speaks(self, tag: str, grant: Grant) -> tuple[str | None, bool]:
        """What others see as spoken, and whether it is detected. Raises `Forbidden` or what `language` raises."""
        lang = self.spoken(tag, "speaks")
        if lang == AUTO:
            check_role(grant, "speak", "speaks")
            self.detectable(grant.speaks)
            return None, True
        check_speaks(grant, lang, "speaks")
        return lang, False

    def languages(self, tags: list[str]) -> tuple[str, ...]:
        """The languages to read, normalised, each once. Raises `LimitExceeded` or what `language` raises."""
        langs = tuple(dict.fromkeys(self.language(tag, f"reads[{n}]") for n, tag in enumerate(tags)))
        checks.check_count(len(langs), self.limits.languages, "languages", "reads")
        return langs

    def utterance(self, message: UtterancePartial | UtteranceFinal, speaks: str | None) -> str:
        """Check the rules that partials and finals share. Returns the utterance's language, or `AUTO`."""
        if not message.id:
            raise InvalidValue("An utterance needs an id.", field="id")
        checks.check_length(message.id, self.limits.id_chars, "id")
        if is_segment_id(message.id):
            raise InvalidValue(
                "An id must not end with ~ and a number: so do those of later segments.", field="id"
            )
        if isinstance(message, UtteranceFinal):
            checks.check_length(message.participant or "", self.limits.id_chars, "participant")
        if isinstance(message, UtteranceFinal) and message.replaces is not None:
            self._correction(message, message.replaces)
        else:
            # It may be long: it is translated in segments.
            checks.check_said(message.text, "text")
        if message.lang is not None:
            return self.spoken(message.lang, "lang")
        if speaks is None:
            raise InvalidValue("Neither the utterance's lang nor the session's speaks is set.", field="lang")
        return speaks

    def _correction(self, message: UtteranceFinal, replaces: str) -> None:
        replaced = whole_id(replaces)
        checks.check_length(replaced, self.limits.id_chars, "replaces")
        if not replaced or replaced == message.id:
            raise InvalidValue("A correction names the utterance that it replaces.", field="replaces")
        # It is one segment: what is corrected was one, or is said again.
        checks.check_length(message.text, self.limits.text_chars, "text")

    def glossary(self, glossary: dict[str, dict[str, str]]) -> Terms:
        """The glossary, checked. Raises `LimitExceeded`, `InvalidValue` or `UnsupportedLanguage`."""
        checks.check_count(sum(map(len, glossary.values())), self.limits.glossary_terms, "terms", "glossary")
        checked = []
        for tag, terms in glossary.items():
            lang = self.language(tag, f"glossary.{tag[:20]}")
            checks.check_terms(terms, self.limits, f"glossary.{lang}")
            checked.append((lang, tuple(terms.items())))
        return tuple(checked)

    def detectable(self, allowed: Collection[str] | None) -> tuple[str, ...]:
        """The languages that what is said may be in: those that are translated. allowed: of them; None: all.

        Raises `UnsupportedLanguage` if there is none.
        """
        profile = self.supported()
        found = tuple(
            lang for lang in profile.languages if (allowed is None or lang in allowed) and profile.targets(lang)
        )
        if not found:
            raise UnsupportedLanguage("Nothing that may be spoken here is translated.", field="lang")
        return found

    def unsupported_options(self, given: dict[str, bool]) -> list[GatewayError]:
        """An error for each given option that the model cannot take."""
        return [*checks.unsupported_options(given, self.supported())]


class Options:
    """What a session has its utterances translated with: all values are checked."""

    def __init__(self) -> None:
        self.glossary: Terms = ()
        self.context = ""
        self.formality: Formality | None = None
        # Its newest utterances.
        self.history: list[str] = []

    def cut_history(self) -> None:
        """Before a final utterance is made, which is added to it."""
        cut_context(self.history)

    def preceding(self) -> tuple[str, ...]:
        """What was said before, oldest first."""
        said = [text for text in self.history if text]
        return (self.context, *said) if self.context else tuple(said)

    def take(
        self,
        rules: SessionRules,
        glossary: dict[str, dict[str, str]] | None,
        context: str | None,
        formality: Formality | None,
    ) -> list[GatewayError]:
        """Check all, then take all; returns an error for each option that the model cannot take."""
        terms = rules.glossary(glossary) if glossary is not None else self.glossary
        if context is not None:
            checks.check_length(context, rules.limits.context_chars, "context")
        given = {"glossary": bool(glossary), "context": bool(context), "formality": formality is not None}
        errors = rules.unsupported_options(given)
        self.glossary = terms
        self.context = self.context if context is None else context
        self.formality = self.formality if formality is None else formality
        return errors

    def utterance(
        self, message: UtterancePartial | UtteranceFinal, taken: Collection[str], **fields: Unpack[_Said]
    ) -> Utterance:
        """What was said, with what it is to be translated with. taken: the options that the model takes."""
        start_ms, end_ms = checks.position(message.start_ms, message.end_ms)
        return Utterance(
            id=message.id,
            rev=message.rev,
            text=message.text,
            start_ms=start_ms,
            end_ms=end_ms,
            traceparent=(isinstance(message, UtteranceFinal) and message.traceparent) or "",
            # What the model cannot take is not carried along: utterances are logged whole.
            glossary=self.glossary if "glossary" in taken else (),
            context=self.preceding() if "context" in taken else (),
            formality=self.formality if "formality" in taken else None,
            replaces=(message.replaces,) if isinstance(message, UtteranceFinal) and message.replaces else (),
            **fields,
        )
