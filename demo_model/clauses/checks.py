"""Checks the words and composed sentences for mistakes. Each problem begins with where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from demo_model import LANGUAGES
from demo_model.clauses.compose import Composer
from demo_model.clauses.compose_phrases import choices, expanded
from demo_model.clauses.lexicon import load_words
from demo_model.clauses.linearize import sentences
from demo_model.clauses.owners import FACTS, KINDS, OWNERS
from demo_model.clauses.syntax import Utterance
from demo_model.patterns import written
from demo_model.sampling import Sampler, Split

_WRONG = {
    "en": r"\ba (?!one)[aeio]\w|\ban [bcdfgjklmnpqrstvwxz]\w| 's\b|\bdon't (?:does|has)\b|\bamn't\b|\bi\b(?!')",
    "de": r"\b(?:zu dem|zu der|von dem|bei dem|in dem|an dem)\b(?!,| [^,]+, d(?:er|ie|as|e[nm])\b)"
    r"|\bein (?:der|die|das)\b|\|",
    "fr": r"\b[jdnmtsl]e (?!yoga|yaourt|yo-yo|user |onze)[aâeéèêiîoôuy]\w|\bque (?:il|elle|ils|elles|on|Anna)\b|"
    r"\b(?:de|à) (?:le|les)\b(?! (?:(?:lui|leur) )?\w+(?:er|ir|re)\b)|\bsi ils?\b"
    r"|\*|[^ ][?!]",
    "es": r"\bde el\b|\ba el\b|\by (?:i|hi)(?![eao])\w|\bcon mí\b|\*|~|\bla (?:acta|agua|área|aula)\b",
    "ja": r"[ぁ-鿿] | [ぁ-鿿]|はを|をを|がが(?!っ)|だな|なな|しいだと|[TO]を|[るい]1(?!\d)",
    "zh": r"[一-鿿] | [一-鿿]|了了|的的|在在|不是是|没有有|[=~|]|(?:向|给|对|把)(?:[给对把]|向(?!日葵))",
}
_GERMAN_SUB = re.compile(r", (?:dass|ob|weil|obwohl) ([^,.?]+)(?!, d[eia])[,.?]")
_GERMAN_FINITE = re.compile(r"(?:t|e|en|e?[lr]n|ß|ag|ann|uss|ill|arf|ar|[ai]nd|bin|ird|sei|a[mb]|ing)$")

_CAUSES = ("follow", "before", "after", "causes", "purpose")
"""Tables of what happens and who does what because of it."""
_FILLED = ("ongoing", "lasted")
"""Tables of verbs, some with what a role is."""


def _verbs(causes: list[str]) -> list[str]:
    """ "same:inform O=person:boss" → "inform"."""
    return [each.split()[0].rpartition(":")[2] for each in causes if not each.startswith("@")]


def _strangers(where: str, types: Sequence[str], known: frozenset[str] = frozenset()) -> Iterator[str]:
    """Which of these are neither types nor nouns. known: what else they may be."""
    words = load_words()
    for each in expanded(types):
        if each not in known and each not in words.nouns and each not in words.by_type:
            yield f"{where} {each} is neither a type nor a noun"


def word_problems() -> Iterator[str]:
    """Types, nouns, frames and adverbials that are named somewhere but do not exist."""
    words = load_words()
    known = frozenset(("people", "we", "they", "weather"))
    for frame in words.frames.values():
        for role, types in frame.types.items():
            yield from _strangers(f"[{frame.key}] {role}:", types, known)
        for language in LANGUAGES:
            roles = set(re.findall(r"[SOT](?![a-z])", frame.cells[language]))
            if {"O", "T"} & set(frame.types) != roles - {"S"}:
                yield f"[{frame.key}] {language}: takes {sorted(roles)}, not {sorted(frame.types)}"
        if not re.search(r"=", frame.cells["zh"]):
            yield f"[{frame.key}] zh: no verb is marked"
    for adjective, types in words.adjective_types.items():
        if adjective not in words.adjectives:
            yield f"[{adjective}] is no adjective"
        yield from _strangers(f"[{adjective}]", types)
    for noun in words.nouns.values():
        if set(noun.cells) != set(LANGUAGES):
            yield f"[{noun.key}] has not all languages"
    for table, rows in choices().items():
        for key, members in rows.items():
            if table in ("put", "rooms"):
                missing = sorted(set(members) - set(words.adverbials))
                if missing:
                    yield f"choices [{table}] {key}: {missing} do not exist"
                continue
            if table in ("whose", "whose_subject"):
                told = [each.partition(": ") for each in members]
                conditions = {word for row in told for word in row[0].split()}
                strange = {key} - KINDS | (conditions - FACTS - set(words.frames))
                strange |= {row[2] for row in told} - OWNERS
                if strange:
                    yield f"choices [{table}] {key}: {sorted(strange)} do not exist"
                continue
            if table in ("compared", "jobs", "paired", "broader"):
                verb = key.split()[0] if table == "paired" else key
                keys = {"compared": set(words.adjectives), "broader": set(words.nouns)}
                if verb not in keys.get(table, set(words.frames)):
                    yield f"choices [{table}]: {key} does not exist"
                yield from _strangers(f"choices [{table}] {key}:", members, frozenset(["people"]))
                continue
            known_keys = {
                **{each: set(words.frames) for each in _CAUSES},
                "causes": set(words.adverbials),
                "then": set(words.frames),
                "reasons": set(words.adjectives),
            }.get(table)
            if known_keys is not None and key not in known_keys:
                yield f"choices [{table}]: {key} does not exist"
            for each in _verbs(members) if table in (*_CAUSES, *_FILLED) else members:
                if each.lstrip("+-&!") not in (words.adjectives if table == "adjectives" else words.frames):
                    yield f"choices [{table}] {key}: {each} does not exist"
            causes = members if table in (*_CAUSES, *_FILLED) else ()
            filled = [each for row in causes for each in re.findall(r"[SOT]=(?!\$)(.*)", row)]
            yield from _strangers(f"choices [{table}] {key}:", [each for row in filled for each in row.split(",")])
            if table in ("manners", "companions", "during") and key not in words.adverbials:
                yield f"choices [{table}]: {key} does not exist"


def sentence_problems(language: str, text: str) -> Iterator[str]:
    """What is wrong with one written sentence."""
    if re.search(r"[\ue000-\ue0ff\u2060{}_+]", text):
        yield "an internal sign is left"
    if "  " in text or text != text.strip() or re.search(r",[,.?]|[、，][、，。？]", text):
        yield "spaces or commas are doubled"
    if not re.search(r"[.?。？]$", text):
        yield "no end"
    found = re.search(_WRONG[language], re.sub(r"[A-ZÀ-Ý][^\s,.?]*", "X", text) if language != "en" else text)
    if found is not None and not (language == "en" and "a user" in text):
        yield f"{found.group()!r}"
    if language == "de":
        for clause in _GERMAN_SUB.finditer(re.sub(r"(\d)\. ", r"\1 ", text)):
            words = re.sub(r"\b(ist|sind|bin|war|waren) als .*", r"\1", clause.group(1))
            if not _GERMAN_FINITE.search(words.split()[-1]):
                yield f"the verb is not last: {words!r}"


def composed(seed: int, count: int) -> Iterator[tuple[Utterance, dict[str, str]]]:
    """Utterances and what is written for them."""
    composer = Composer(Sampler(seed, Split.ANY))
    for _ in range(count):
        said = composer.draw()
        yield said, {language: written(each, language).text for language, each in sentences(said).items()}


def problems(seed: int, count: int) -> list[str]:
    """Everything that the checks find in the words and in `count` sentences."""
    found = list(word_problems())
    for _, texts in composed(seed, count):
        found += [
            f"{language}: {problem}: {text}"
            for language, text in texts.items()
            for problem in sentence_problems(language, text)
        ]
    return found
