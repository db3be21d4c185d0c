"""Checks patterns for mistakes before training.

Each check returns problems that begin with `file [id] language:`, so that the writer can find the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from demo_model import LANGUAGES
from demo_model.grammar import AGREEMENT_CHOICES, KINDS, NOUN_FORMS, Slot, Template, parse_template
from demo_model.lexicon import NOUN_KINDS
from demo_model.patterns import Pattern, raw_tables

_ENDINGS = {"ja": "。？！", "zh": "。？！"}
_LONGEST = {"ja": 80, "zh": 60}  # in characters; other languages in words
_WORDS = 28
_QUOTES = re.compile(r"[\"“”„«»‘’‚‹›()\[\]<>「」『』（）【】《》…]|\.\.\.")

# Words whose form depends on the gender of the noun that follows.
_GENDERED = {
    "en": "a an",
    "es": "el la los las un una del al este esta ese esa aquel nuestro nuestra vuestro nuevo nueva primer primera "
    "otro otra todo toda ningún ninguna algún alguna cuyo cuya mismo misma",
    "fr": "le la l' un une du au ce cet cette mon ma ton ta son sa quel quelle tout toute nouveau nouvelle "
    "premier première aucun aucune ledit dernier dernière prochain prochaine",
    "de": "der die das den dem des ein eine einen einem einer eines im am zum zur vom beim ins ans kein keine "
    "keinen keinem keiner mein meine meinen meinem unser unsere unseren unserem unserer ihr ihre ihren ihrem "
    "ihrer dieser diese dieses diesen diesem jeder jede jedes jeden jedem welcher welche welches welchen welchem "
    "neue neuen neuer neues sein seine seinen seinem",
}
_FAMILIAR = {
    "de": re.compile(r"\b(du|dich|dir|deine?[nmrs]?|euch|eure?[nmrs]?)\b", re.IGNORECASE),
    "fr": re.compile(r"\b(tu|toi|ton|ta|tes|te|t')(?=[\s.,?!']|$)", re.IGNORECASE),
    "es": re.compile(r"\b(tú|tu|tus|ti|contigo|vosotros|vosotras|vuestr[oa]s?)\b", re.IGNORECASE),
    "zh": re.compile(r"你(?!们)"),
}
_DATIVE = re.compile(r"\b(in|seit|nach|vor|mit|von|zu|ab|bei) $", re.IGNORECASE)
_DOUBLED_UNIT = {  # kind → language → what must not follow, because the slot contains it
    "time": {"de": " Uhr", "ja": "時", "zh": "点", "en": " o'clock"},
    "percent": {language: "%" for language in LANGUAGES} | {"de": " %", "fr": " %", "es": " %"},
    "month": {"ja": "月", "zh": "月"},
    "weekday": {"ja": "曜", "de": "s "},
    "date": {"ja": "日", "zh": "日"},
    "money": {"en": " dollars", "es": " dólares", "de": " Dollar", "fr": " dollars", "ja": "ドル", "zh": "美元"},
}


def check_files(paths: list[Path], others: list[Path] | tuple[Path, ...] = ()) -> tuple[list[Pattern], list[str]]:
    """The valid patterns of `paths`, and the problems. others: files whose ids and sentences are used already."""
    ids: dict[str, str] = {}
    sentences: dict[str, str] = {}
    for path in others:
        try:
            tables = raw_tables(path)
        except ValueError:
            continue
        for id, table in tables.items():
            ids[id] = path.name
            sentences.setdefault(_plain(str(table.get("en", ""))), f"{path.name} [{id}]")
    patterns: list[Pattern] = []
    problems: list[str] = []
    for path in paths:
        try:
            tables = raw_tables(path)
        except (ValueError, OSError) as error:
            problems.append(f"{path.name}: {error}")
            continue
        for id, table in tables.items():
            place = f"{path.name} [{id}]"
            found = [f"{place} {complaint}" for complaint in check_table(id, table)]
            if id in ids:
                found.append(f"{place} the id is also in {ids[id]}")
            ids.setdefault(id, path.name)
            english = _plain(str(table.get("en", "")))
            if english in sentences:
                found.append(f"{place} en: the same sentence as {sentences[english]}")
            sentences.setdefault(english, place)
            problems += found
            if not found:
                templates = {language: parse_template(str(table[language])) for language in LANGUAGES}
                patterns.append(Pattern(id, templates))
    return patterns, problems


def _plain(text: str) -> str:
    return re.sub(r"[^\w{} ]", "", text.lower()).strip()


def check_table(id: str, table: dict[str, object]) -> Iterator[str]:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", id):
        yield "the id has other characters than a-z, 0-9 and _"
    missing = [language for language in LANGUAGES if language not in table]
    if missing:
        yield f"missing language: {', '.join(missing)}"
    unknown = [key for key in table if key not in LANGUAGES]
    if unknown:
        yield f"unknown key: {', '.join(unknown)}"
    slots: dict[str, frozenset[str]] = {}
    for language in LANGUAGES:
        text = table.get(language)
        if text is None:
            continue
        if not isinstance(text, str) or not text:
            yield f"{language}: not a text"
            continue
        try:
            template = parse_template(text)
        except ValueError as error:
            yield f"{language}: {error}"
            continue
        slots[language] = frozenset(slot.name for slot in template.slots if not slot.form.startswith("?"))
        agreeing = frozenset(slot.name for slot in template.slots) - slots[language]
        if agreeing:
            yield f"{language}: only an agreeing word for {', '.join(sorted(agreeing))}, never the noun itself"
        for complaint in [*check_slots(template, language), *check_text(text, template, language)]:
            yield f"{language}: {complaint}"
    for language, names in slots.items():
        if names != slots.get("en", names):
            english = slots["en"]
            lacks, extra = sorted(english - names), sorted(names - english)
            parts = [f"lacks {', '.join(lacks)}"] * bool(lacks) + [f"has {', '.join(extra)} more"] * bool(extra)
            yield f"{language}: other slots than en ({'; '.join(parts)})"


def check_slots(template: Template, language: str) -> Iterator[str]:
    for index, slot in enumerate(template.parts):
        if isinstance(slot, str):
            continue
        if slot.kind not in KINDS:
            yield f"unknown slot {{{slot.name}}}"
            continue
        yield from _check_form(slot, language)
        before = template.parts[index - 1] if index else ""
        after = template.parts[index + 1] if index + 1 < len(template.parts) else ""
        if isinstance(before, str):
            yield from _check_before(before, slot, language)
        unit = _DOUBLED_UNIT.get(slot.kind, {}).get(language)
        if unit and isinstance(after, str) and after.startswith(unit):
            yield f"{{{slot.name}}} already holds {unit.strip()!r}"


def _check_form(slot: Slot, language: str) -> Iterator[str]:
    form = slot.form
    if not form or (slot.kind == "duration" and form == "dat" and language == "de"):
        return
    if slot.kind not in NOUN_KINDS:
        yield f"{{{slot.name}}} has no form :{form}" + (" (only de :dat)" if slot.kind == "duration" else "")
    elif form.startswith("?"):
        choices = AGREEMENT_CHOICES.get(language)
        if choices is None:
            yield f"{{{slot.name}:{form}}}: {language} has no agreeing words"
        elif len(form[1:].split("/")) != choices or not all(form[1:].split("/")):
            yield f"{{{slot.name}:{form}}} needs {choices} words with / between"
    elif form not in NOUN_FORMS[language]:
        allowed = ", ".join(sorted(NOUN_FORMS[language])) or "none"
        yield f"{{{slot.name}:{form}}} is not a form of {language} (allowed: {allowed})"
    elif slot.kind == "topic" and language == "en":
        yield f"{{{slot.name}:{form}}}: a topic takes no article in English"


def _check_before(before: str, slot: Slot, language: str) -> Iterator[str]:
    word = re.search(r"([\w]+'?)\s?$", before)
    last = word.group(1).lower() if word and (before.endswith((" ", "'"))) else ""
    if slot.kind in NOUN_KINDS and not slot.form.startswith("?"):
        if last and last in _GENDERED.get(language, "").split():
            yield f"{last!r} before {{{slot.name}}} depends on the noun: use a form of the slot"
        if language == "es" and slot.form == "el" and last in ("de", "a"):
            yield f"'{last} {{{slot.name}:el}}' contracts: use {{{slot.name}:{last}}}"
        if language == "fr" and slot.form == "le" and last in ("de", "à"):
            yield f"'{last} {{{slot.name}:le}}' contracts: use {{{slot.name}:{last}}}"
        if language in ("es", "fr") and slot.form in ("de", "a", "à") and last == slot.form:
            yield f"{last!r} stands twice before {{{slot.name}}}"
        if language == "de" and slot.form in ("in", "zu", "von", "bei", "an") and last == slot.form:
            yield f"{last!r} stands twice before {{{slot.name}}}"
    if slot.kind == "duration" and language == "de" and not slot.form and _DATIVE.search(before):
        yield f"{last!r} takes the dative: use {{{slot.name}:dat}}"
    if language == "fr" and last in ("d'", "qu'") and slot.form != "un":
        yield f"write {'de' if last == 'd' + chr(39) else 'que'} before {{{slot.name}}}: the generator elides it"


def check_text(text: str, template: Template, language: str) -> Iterator[str]:
    bare = "".join(part if isinstance(part, str) else "\uffff" for part in template.parts)
    if text != text.strip() or "  " in text:
        yield "a space too many"
    if re.search(r"[\u00a0\u202f\u3000\t\n\r\u200b]", text):
        yield "a space that is not an ordinary one"
    quote = _QUOTES.search(bare)
    if quote:
        yield f"no quotation marks, brackets or dots like {quote.group()} (apostrophes are straight)"
    if not text.endswith(tuple(_ENDINGS.get(language, ".?!"))):
        yield f"must end with one of {' '.join(_ENDINGS.get(language, '.?!'))}"
    if language in ("ja", "zh"):
        if " " in bare:
            yield "no spaces between words"
        wrong = re.search(r"[,?!;:.，]" if language == "ja" else r"[,?!;:.]", bare)
        if wrong:
            yield f"{wrong.group()} is not punctuation of {language}"
        if len(bare) > _LONGEST[language]:
            yield f"longer than {_LONGEST[language]} characters"
    else:
        wide = re.search(r"[。、，？！；：]", bare)
        if wide:
            yield f"{wide.group()} is not punctuation of {language}"
        if len(text.split()) > _WORDS:
            yield f"longer than {_WORDS} words"
        if language != "fr" and re.search(r" [,.?!;:]", bare):
            yield "a space before punctuation"
    if language == "fr":
        if re.search(r"[^ ][?!:;]", bare.replace("?!", "?")):
            yield "needs a space before ? ! : ;"
        if re.search(r" [,.]", bare):
            yield "a space before punctuation"
    if language == "es":
        for opening, closing in ("¿?", "¡!"):
            if bare.count(opening) != bare.count(closing):
                yield f"unbalanced {opening} {closing}"
    elif "¿" in bare or "¡" in bare:
        yield "¿ and ¡ belong to es alone"
    familiar = _FAMILIAR[language].search(bare) if language in _FAMILIAR else None
    if familiar:
        yield f"{familiar.group().strip()!r} is not the polite register"
