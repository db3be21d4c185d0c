"""Writes sentences as a speech recogniser does: other number formats, no capitals, no punctuation, fillers.

It is applied only to the source. Every change keeps the positions of slots up to date, so that the sentence can
still be cut to a prefix.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

from demo_model.grammar import COPIED_KINDS, Slot, Value
from demo_model.patterns import Say, Sentence, Span

NUMBER_WORDS = {
    "en": ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    "es": ["dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once", "doce"],
    "de": ["zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"],
    "fr": ["deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze"],
    "ja": ["二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"],
    "zh": ["两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"],
}
_PERCENT = {
    "en": " percent",
    "es": " por ciento",
    "de": " Prozent",
    "fr": " pour cent",
    "ja": "パーセント",
    "zh": "%",
}
_FILLERS = {
    "en": ("um", "uh", "uhm", "er", "you know"),
    "es": ("eh", "este", "em"),
    "de": ("äh", "ähm", "hm"),
    "fr": ("euh", "heu", "ben"),
    "ja": ("えーと", "あの", "えっと", "ええと"),
    "zh": ("呃", "嗯", "那个"),
}
_PUNCTUATION = frozenset(".,?!;:¿¡。、，？！；：")
_PAUSES = frozenset("。、，？！；：")
COPIED_NAMES = ("name", "product", "ticket", "version")


def spoken_slots(language: str, rng: random.Random) -> Say:
    """A function that says slots; each call may say the same slot in another way."""

    def say(slot: Slot, value: Value, rendered: str) -> str:
        match slot.kind, value:
            case "time", (int(hour), int(minute)):
                return _spoken_time(hour, minute, language, rendered, rng)
            case "date", (int(), int(day)) if language == "en" and rng.random() < 0.5:
                ordinal = f"{day}{_ordinal(day)}"
                month = rendered.split()[0]
                return rng.choice((f"{month} {ordinal}", f"{ordinal} of {month}", f"the {ordinal} of {month}"))
            case ("bign", int(number)) if rng.random() < 0.4:
                return str(number)
            case ("money", int(number)) if rng.random() < 0.5:
                amount = str(number) if rng.random() < 0.5 else rendered.removeprefix("$")
                return f"{amount} dollars" if language == "en" else _ungrouped(rendered, number, rng)
            case ("percent", str()) if rng.random() < 0.5:
                return rendered.removesuffix("%").removesuffix(" ") + _PERCENT[language]
            case ("n", int(number)) if number <= 12 and rng.random() < 0.3:
                return NUMBER_WORDS[language][number - 2]
            case "duration", (int(number), str()) if number <= 12 and rng.random() < 0.3:
                return rendered.replace(str(number), NUMBER_WORDS[language][number - 2], 1)
            case ("weekday", str()) if rng.random() < 0.3:
                return rendered.replace("星期", rng.choice(("周", "礼拜"))).replace("曜日", "曜")
            case "quarter", str() if language in ("ja", "zh"):
                return rendered
        return rendered

    return say


def _ordinal(day: int) -> str:
    return "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _ungrouped(rendered: str, number: int, rng: random.Random) -> str:
    return re.sub(r"^[\d.,]+(?: \d{3})*", str(number), rendered) if rng.random() < 0.7 else rendered


def _spoken_time(hour: int, minute: int, language: str, rendered: str, rng: random.Random) -> str:
    draw = rng.random()
    match language:
        case "en":
            half = rng.choice(("am", "a.m.", "AM")) if hour < 12 else rng.choice(("pm", "p.m.", "PM"))
            shown = (hour - 1) % 12 + 1
            if minute == 0 and draw < 0.6:
                return f"{shown} {half}"
            return f"{shown} {minute:02} {half}" if draw < 0.4 else f"{shown}:{minute:02} {half}"
        case "de" if draw < 0.4:
            return f"{hour} Uhr {minute}" if minute else f"{hour} Uhr"
        case "fr" if draw < 0.4:
            return f"{hour}h{minute:02}" if minute else f"{hour} heures"
        case "es" if draw < 0.3:
            return f"{hour} {minute:02}" if minute else f"{hour}"
        case "ja" | "zh" if minute == 30 and draw < 0.3:
            return rendered.replace("30分", "半")
        case "zh" if draw < 0.6:
            return rendered.removesuffix("分")
    return rendered


def _rewritten(sentence: Sentence, keep: list[tuple[str, int]]) -> Sentence:
    """A sentence from pairs (character, its index in the original); slots move with their characters."""
    moved: dict[int, int] = {}
    for position, (_, origin) in enumerate(keep):
        moved.setdefault(origin, position)
    following = len(keep)
    target = [0] * (len(sentence.text) + 1)
    for index in range(len(sentence.text), -1, -1):
        following = moved.get(index, following)
        target[index] = following
    spans = tuple(replace(span, start=target[span.start], end=target[span.end]) for span in sentence.spans)
    return Sentence("".join(letter for letter, _ in keep), spans)


def _inside(spans: tuple[Span, ...], length: int, kinds: tuple[str, ...] | None = None) -> list[bool]:
    marks = [False] * length
    for span in spans:
        if kinds is None or span.slot.kind in kinds:
            marks[span.start : span.end] = [True] * (span.end - span.start)
    return marks


def without_punctuation(sentence: Sentence, language: str, rng: random.Random | None = None) -> Sentence:
    """The sentence without punctuation outside slots. In ja and zh a pause sometimes becomes a space."""
    within = _inside(sentence.spans, len(sentence.text))
    pauses = rng is not None and language in ("ja", "zh") and rng.random() < 0.2
    keep: list[tuple[str, int]] = []
    for index, letter in enumerate(sentence.text):
        if letter in _PUNCTUATION and not within[index]:
            if not (pauses and letter in _PAUSES and index + 1 < len(sentence.text)):
                continue
            letter = " "
        if letter == " " and (not keep or keep[-1][0] == " "):
            continue
        keep.append((letter, index))
    while keep and keep[-1][0] == " ":
        keep.pop()
    return _rewritten(sentence, keep)


def lower_case(sentence: Sentence, keep_names: bool) -> Sentence:
    """The sentence in lower case, except letters whose lower case is longer. keep_names: names and codes stay."""
    kept = _inside(sentence.spans, len(sentence.text), COPIED_NAMES if keep_names else ())
    letters = [
        letter if kept[index] or len(letter.lower()) != 1 else letter.lower()
        for index, letter in enumerate(sentence.text)
    ]
    return Sentence("".join(letters), sentence.spans)


def hesitant(sentence: Sentence, language: str, rng: random.Random) -> Sentence:
    """The sentence with a filler or a repeated word somewhere outside slots."""
    text = sentence.text
    within = _inside(sentence.spans, len(text))
    cjk = language in ("ja", "zh")
    starts = [0] + [
        index
        for index in range(1, len(text))
        if not within[index] and (text[index - 1] in "、，。" if cjk else text[index - 1] == " ")
    ]
    at = rng.choice(starts)
    if at and not cjk and rng.random() < 0.25:
        word = re.match(r"\w+", text[at:])
        inserted = f"{word.group()} " if word else ""
    else:
        filler = rng.choice(_FILLERS[language])
        pause = rng.choice(("、", "") if language == "ja" else ("，", "") if cjk else (", ", " "))
        inserted = filler + pause
    shift = len(inserted)
    spans = tuple(
        replace(span, start=span.start + shift, end=span.end + shift) if span.start >= at else span
        for span in sentence.spans
    )
    return Sentence(text[:at] + inserted + text[at:], spans)


def recognised(sentence: Sentence, language: str, rng: random.Random) -> Sentence:
    """The sentence in one of the styles of recognisers: bare, lower case, or cased without punctuation."""
    draw = rng.random()
    if draw < 0.85:
        sentence = without_punctuation(sentence, language, rng)
    if draw < 0.70 or draw >= 0.85:
        sentence = lower_case(sentence, keep_names=rng.random() < 0.7 or _has_inner_capitals(sentence))
    return sentence


def _has_inner_capitals(sentence: Sentence) -> bool:
    """Whether this is a name such as McKay, whose capitals cannot be restored from lower case."""
    return any(
        re.search(r"[^\W\d_][A-Z]", str(span.value))
        for span in sentence.spans
        if span.slot.kind in ("name", "product")
    )


assert set(COPIED_NAMES) <= set(COPIED_KINDS)  # noqa: S101 (a slip of the pen, found at import)
