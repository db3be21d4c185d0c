"""What is asked for, and the translations that it becomes. Checks it.

Each line and each sentence of a text is translated by itself, with what comes before it as context, because models
know sentences. Line breaks and the blanks around lines stay as they were.
Knows: limits, languages, which text fails by itself. Must not know: bodies of any API, who waits, detectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import regex
from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.engine import EngineProfile, Formality, TranslationOptions, TranslationRequest
from gateway.domain.errors import GatewayError, InvalidValue, UnsupportedOption
from gateway.domain.languages import AUTO, UNDETERMINED
from gateway.protocol import checks
from gateway.protocol.limits import Limits
from gateway.text.segments import segments
from gateway.text.units import SPOKEN, UNSPACED

# Most requests that the texts of a call are divided into, unless there are more texts and languages.
_MOST_REQUESTS = 256

# Sentences of a text that the next one has as context.
_CONTEXT_SENTENCES = 3

# The language of a text, one of those given; None if the text has no words of any.
Detect = Callable[[str, Collection[str]], str | None]


class Asked(Struct, frozen=True, kw_only=True):
    """Texts, and the languages into which each of them is to be translated."""

    # (field, value) each: errors name the field.
    texts: Sequence[tuple[str, str]]
    targets: Sequence[tuple[str, str]]
    # A language tag. `AUTO`: each text's is detected.
    source: str = AUTO
    glossary: Mapping[str, str] = {}
    context: str = ""
    formality: Formality | None = None
    # One text that cannot be translated is an error for the whole call.
    all_or_none: bool = False
    # By text, what its language is detected by, where that is more than the text. Empty: the texts themselves.
    samples: Sequence[str] = ()


class Job(Struct, frozen=True):
    """One text into one language."""

    # Number of the text, from 0.
    index: int
    # Field of the body that has the text.
    field: str
    text: str
    # Normalised tags. The source of a text that was not understood is what was asked for.
    source: str
    target: str
    # What the engine does, in order. Empty: nothing, as the text is its own translation, or there is an error.
    requests: tuple[TranslationRequest, ...] = ()
    # What stands before, between and behind their translations.
    around: tuple[str, ...] = ()
    error: GatewayError | None = None

    def put_together(self, translations: Sequence[str]) -> str:
        """The translation of the text, as far as that of its parts has come."""
        parts = [before + translation for before, translation in zip(self.around, translations, strict=False)]
        return "".join([*parts, *self.around[len(translations) :][: len(translations) == len(self.requests)]])


class Plan(Struct, frozen=True):
    """What becomes of a call."""

    # By text, then by language, in the order in which they were given.
    jobs: list[Job]
    # Normalised tag, or `AUTO`.
    source: str
    # Normalised tags, each once.
    targets: list[str]
    # Options that the model cannot take.
    left_out: list[UnsupportedOption]


def plan(
    asked: Asked,
    *,
    id_prefix: str,
    # Whose prompts they may share the engine's prefix cache with.
    scope: str,
    profile: EngineProfile,
    limits: Limits,
    # Most texts of one call.
    batch_texts: int,
    # A sentence of more characters is cut at a clause or a word.
    segment_chars: int,
    detect: Detect,
    # `traceparent` of the call's span; empty: the call is not traced.
    traceparent: str = "",
) -> Plan:
    """Check what is asked for.

    A text that cannot be translated has its error in its own jobs, as long as there is another that can and not
    all of them are asked for or none. Raises `LimitExceeded`, `InvalidValue` or `UnsupportedLanguage`, with
    `field`, otherwise, or for the whole call.
    """
    if not asked.texts:
        raise InvalidValue("There is nothing to translate.", field="texts")
    checks.check_count(len(asked.texts), batch_texts, "texts", "texts")
    source = asked.source
    if source != AUTO:
        source = checks.supported_language(source, profile.languages, "source_lang")
    targets = _targets(asked.targets, source, profile, limits)
    options = _options(asked, profile, limits)
    most_parts = max(1, _MOST_REQUESTS // (len(asked.texts) * len(targets)))
    jobs: list[Job] = []
    # The parts of a text have one sample.
    detected: dict[str, str | None] = {}
    for index, (field, text) in enumerate(asked.texts):
        lang, error = source, _error(text, limits, field)
        if lang == AUTO:
            sample = asked.samples[index] if asked.samples else text
            if error is None and sample not in detected:
                detected[sample] = detect(sample, profile.languages)
            lang = (error is None and detected[sample]) or UNDETERMINED
        for target in targets:
            job = Job(index, field, text, lang, target, error=error or _pair_error(lang, target, profile, field))
            if job.error is None and lang not in (target, UNDETERMINED):
                around, parts = _divided(text, lang, target, longest=segment_chars, most=most_parts)
                requests = [
                    TranslationRequest(
                        id=f"{id_prefix}-{len(jobs)}.{number}",
                        text=part,
                        source=lang,
                        target=target,
                        options=_after(options, parts[:number], profile),
                        cache_scope=scope,
                        traceparent=traceparent,
                    )
                    for number, part in enumerate(parts)
                ]
                job = replace(job, requests=tuple(requests), around=tuple(around))
            jobs.append(job)
    errors = [job.error for job in jobs if job.error is not None]
    if errors and (asked.all_or_none or len(errors) == len(jobs)):
        raise errors[0]
    given = {"glossary": asked.glossary, "context": asked.context, "formality": asked.formality}
    return Plan(jobs, source, targets, checks.unsupported_options(given, profile))


def _targets(given: Sequence[tuple[str, str]], source: str, profile: EngineProfile, limits: Limits) -> list[str]:
    if not given:
        raise InvalidValue("There is no language to translate into.", field="target_langs")
    checks.check_count(len(given), limits.languages, "languages", "target_langs")
    targets = []
    for field, tag in given:
        target = checks.supported_language(tag, profile.languages, field)
        if source not in (AUTO, target):
            checks.check_pair(source, target, profile, field)
        targets.append(target)
    return list(dict.fromkeys(targets))


def _options(asked: Asked, profile: EngineProfile, limits: Limits) -> TranslationOptions:
    checks.check_length(asked.context, limits.context_chars, "context")
    checks.check_count(len(asked.glossary), limits.glossary_terms, "terms", "glossary")
    checks.check_terms(asked.glossary, limits, "glossary")
    return TranslationOptions(
        glossary=tuple(asked.glossary.items()) if "glossary" in profile.options else (),
        context=(asked.context,) if asked.context and "context" in profile.options else (),
        formality=asked.formality if "formality" in profile.options else None,
    )


_LINE_BREAKS = regex.compile(r"((?<!\s)\s*[\n\v\f\r\x85\u2028\u2029]\s*)")


def _divided(text: str, source: str, target: str, *, longest: int, most: int) -> tuple[list[str], list[str]]:
    """The sentences of a text, at most so many parts, and what stands around their translations."""
    around, parts, within_line = [""], [], [False]
    for number, line in enumerate(_LINE_BREAKS.split(text)):
        if number % 2 or not SPOKEN.search(line):
            around[-1] += line
            within_line[-1] = False
            continue
        for sentence in segments(line, source, longest):
            core = sentence.strip()
            before, _, after = sentence.partition(core)
            around[-1] += before
            parts.append(core)
            around.append(after)
            within_line.append(True)
        within_line[-1] = False
    at_once = -(-len(parts) // most) or 1
    for begin in range(0, len(parts), at_once) if at_once > 1 else ():
        end = min(begin + at_once, len(parts))
        parts[begin] += "".join(around[n] + parts[n] for n in range(begin + 1, end))
    kept = [*range(0, len(parts), at_once), len(parts)]
    between = "" if target in UNSPACED else " "
    around = [between if within_line[n] and not around[n].strip(" \u3000") else around[n] for n in kept]
    return around, parts[::at_once]


def _after(options: TranslationOptions, before: Sequence[str], profile: EngineProfile) -> TranslationOptions:
    """The options of a sentence that comes after others of its text."""
    known = before[-_CONTEXT_SENTENCES:] if "context" in profile.options else ()
    return replace(options, context=(*options.context, *known)) if known else options


def _error(text: str, limits: Limits, field: str) -> GatewayError | None:
    try:
        checks.check_text(text, limits, field)
    except GatewayError as error:
        return error
    return None


def _pair_error(source: str, target: str, profile: EngineProfile, field: str) -> GatewayError | None:
    """Only for a language that was detected; for one that was given, the whole call is refused before."""
    if source in (target, UNDETERMINED):
        return None
    try:
        checks.check_pair(source, target, profile, field)
    except GatewayError as error:
        return error
    return None
