"""Folds a text to what a model knows, and puts what was taken away around the model's answer again.

Knows: how texts are typed and how recognisers write them. Must not know: prompts, models, tokenizers, what readers
see of the original, which is never folded.

An unfinished text is folded alike while it grows: what is taken from its beginning only gets longer, and how a
word is written does not change with what follows. Except the last word, which may become something else, and
capitals, which are known as such from the fourth word on. A final is folded as a whole. Only a final gets an end
mark, because with it an unfinished text would say something else.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from enum import Enum, auto

import regex
from msgspec import Struct

from gateway.text.units import SPOKEN, UNSPACED


class Fold(Enum):
    """What a family of models needs, besides NFC and plain blanks, which all get."""

    # Half-width kana and full-width Latin letters, digits and marks.
    WIDTH = auto()
    # Typographic apostrophes, quotation marks, dashes and ellipses; marks of another script; repeated ones; line
    # breaks.
    MARKS = auto()
    # What is all in capitals gets small letters.
    CAPITALS = auto()
    # A short answer without an end mark gets one, and a capital; what is a question by its last word, its mark.
    ANSWERS = auto()
    # A speaker's label (`>> NAME:`), a dash before speech, quotation marks around the whole.
    EDGES = auto()
    # Placeholders, addresses and dates: the model gets a name that it copies.
    KEPT = auto()


class Folded(Struct, frozen=True):
    """A text as a model gets it."""

    text: str
    # What stands around its translation.
    before: str = ""
    after: str = ""
    # (what the model gets, what stands for it in the original) of each part that is kept.
    kept: tuple[tuple[str, str], ...] = ()

    def begun(self, prefix: str, draft: str) -> tuple[str, str] | None:
        """The beginning of a translation as the model would have said it. None if it begins otherwise."""
        if self.before.startswith(prefix):
            begun = prefix + draft
            return "", self._named(begun[len(self.before) :]) if begun.startswith(self.before) else ""
        if not prefix.startswith(self.before):
            return None
        prefix = self._named(prefix[len(self.before) :])
        # It may end within something that is kept.
        cut = max((_overlap(prefix, original, whole=True) for _, original in self.kept), default=0)
        return prefix[: len(prefix) - cut], self._named(draft) if not cut else ""

    def _named(self, text: str) -> str:
        names = {original: name for name, original in self.kept}
        if not names:
            return text
        longest_first = sorted(names, key=len, reverse=True)
        return regex.sub("|".join(map(_bounded, longest_first)), lambda found: names[found[0]], text)


class Unfolding:
    """The answer of a model, piece by piece, as readers get it."""

    def __init__(self, folded: Folded, removed: str = "") -> None:
        """removed: characters that no answer has."""
        self._folded = folded
        self._removed = dict.fromkeys(map(ord, removed))
        self.has_said = False
        # What may be the beginning of a name that stands for something.
        self._held = ""
        # The names that have come.
        self._found: set[str] = set()

    def add(self, piece: str, *, last: bool = False) -> str:
        """The text that this piece adds. last: nothing follows."""
        text = self._held + piece.translate(self._removed)
        for name, original in self._folded.kept:
            if name in text:
                self._found.add(name)
                text = text.replace(name, original)
        held = 0 if last else max((_overlap(text, name) for name, _ in self._folded.kept), default=0)
        text, self._held = text[: len(text) - held], text[len(text) - held :]
        if text and not self.has_said:
            text, self.has_said = self._folded.before + text, True
        return text + self._folded.after if last and self.has_said else text

    @property
    def is_complete(self) -> bool:
        """Whether all that is kept has come."""
        return len(self._found) == len(self._folded.kept)


# A character that goes on with a word or a number.
_LETTER = regex.compile(r"[\p{Latin}\p{N}_]")


def _bounded(original: str) -> str:
    """A pattern that finds it, but not within a longer word or number."""
    before = rf"(?<!{_LETTER.pattern}|\p{{N}}[.,])" if _LETTER.match(original) else ""
    after = rf"(?!{_LETTER.pattern}|[.,]\p{{N}})" if _LETTER.match(original[-1]) else ""
    return before + regex.escape(original) + after


def _overlap(text: str, name: str, *, whole: bool = False) -> int:
    """How long a beginning of the name the text ends with. whole: not one in the middle of a word."""
    for size in range(min(len(name) - 1, len(text)), 0, -1):
        inside = whole and _LETTER.match(name) and _LETTER.match(text[-size - 1 : -size])
        if text.endswith(name[:size]) and not inside:
            return size
    return 0


def fold(
    text: str,
    lang: str,
    folds: frozenset[Fold] = frozenset(),
    *,
    final: bool = True,
    # How strange a word is to the model; the least strange spelling of a word in capitals is taken.
    strangeness: Callable[[str], int] | None = None,
) -> Folded:
    """The text of an utterance as a model gets it. lang: normalised tag."""
    text = plain(text)
    before = after = ""
    if Fold.WIDTH in folds:
        text = _of_usual_width(text, wide=lang in UNSPACED)
    if Fold.EDGES in folds:
        before, text, after = _edges(text, final=final)
    names: dict[str, str] = {}
    if Fold.KEPT in folds:
        text, names = _with_kept(text, final=final)
    if Fold.MARKS in folds:
        text = _with_known_marks(text, lang)
    if Fold.CAPITALS in folds:
        text = _without_shouting(text, strangeness, final=final)
    if Fold.ANSWERS in folds and final:
        text = _as_an_answer(text, lang)
    kept = []
    for (mark, original), name in zip(names.items(), _NAMES, strict=False):
        text = text.replace(mark, name)
        kept.append((name, original))
    return Folded(text, before, after, tuple(kept))


# ------------------------------------------------------------------------------------------- for all models

# Without width and without meaning for a translation. What joins letters is kept where it does so.
_INVISIBLE = regex.compile(
    r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]+"
    r"|(?<![^\x00-\u024f\s])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\u024f\s]|\Z)"
)
_LINE_ENDS = regex.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
_AROUND_LINE_ENDS = regex.compile(r" ?\n[ \n]*")
_BLANKS = regex.compile(r"(?:[\p{Zs}\t]|(?!\n)\p{Cc})+")


def plain(text: str) -> str:
    """NFC, with plain blanks, each one alone and none outside, and nothing that cannot be seen."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    return _AROUND_LINE_ENDS.sub("\n", _BLANKS.sub(" ", _LINE_ENDS.sub("\n", text))).strip()


# --------------------------------------------------------------------------------------- what some models need

_OTHER_WIDTH = regex.compile(r"[\uff66-\uff9f]+|[！-～｡-･￠￡￥￦ﬀ-ﬆ]+")
# As they are used in East Asia.
_WIDE = str.maketrans("!?,:;()~", "！？，：；（）～")


def _of_usual_width(text: str, *, wide: bool) -> str:
    if text.isascii():
        return text

    def usual(found: regex.Match[str]) -> str:
        known = unicodedata.normalize("NFKC", found[0])
        return known.translate(_WIDE) if wide else known

    return _OTHER_WIDTH.sub(usual, text)


# The name of a speaker: at most three words that all begin with a capital.
_NAME = r"\p{Lu}[\p{L}\p{M}'’.-]*"
_LABEL = rf">>+\s*(?:{_NAME}(?: {_NAME}){{0,2}}[:：]\s+)?"
_BEFORE = regex.compile(rf"(?:{_LABEL}|[-–—―•♪♫]\s+|[–—―♪♫])+")
_AFTER = regex.compile(r"\s*[♪♫]+\Z")
_CLOSING = {
    "“": "”",
    "„": "“”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "‘": "’",
    "‚": "‘’",
    '"': '"',
    "「": "」",
    "『": "』",
}
_QUOTES = '“”„«»‹›"「」『』'


def _edges(text: str, *, final: bool) -> tuple[str, str, str]:
    """What stands before all words, the words, and what stands behind them: of an unfinished text nothing."""
    begin = found.end() if (found := _BEFORE.match(text)) else 0
    end = found.start() if (found := _AFTER.search(text)) else len(text)
    closing = _CLOSING.get(text[begin : begin + 1], "")
    if closing:
        inside = text[begin + 1 : end]
        ends = [at for at, char in enumerate(inside) if char in closing]
        whole = bool(ends) and ends[0] == len(inside) - 1
        # Around the whole, or not closed yet; in an unfinished text it always may be around the whole.
        if whole or not ends or not final:
            core = inside[:-1] if whole else inside
            begin += 1 + len(core) - len(core.lstrip())
            end = begin + len(core.strip())
    core = text[begin:end]
    return (text[:begin], core, text[end:] if final else "") if SPOKEN.search(core) else ("", text, "")


# Copied by the model that has no other names for what it does not know.
_NAMES = ("OPS-4821", "OPS-7395", "OPS-1604", "OPS-9257", "OPS-3168", "OPS-5873")
_KEPT = regex.compile(
    r"(?:https?://|www\.)[^\s<>\"]+[^\s<>\".,;:!?)'’”»。、]"
    r"|(?<![\w.+-])[A-Za-z0-9_.+-]++@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
    r"|\{\{[^{}]*\}\}|[$#]?\{[^{}]*\}|%\([^()\s]+\)[a-z]|(?<!\d)%(?:\d+\$)?[\d.]*[sdif@](?!\w)"
    r"|\b\d{4}-\d\d-\d\d(?:T[\d:.+Z-]*\w)?\b|\b\d{1,2}([./])\d{1,2}\1\d{2,4}\b"
)
# Stand for what is kept while the rest is folded: characters of private use.
_PRIVATE = "\ue000\ue001\ue002\ue003\ue004\ue005"
_IS_PRIVATE = regex.compile(f"[{_PRIVATE}]")


# What may still become part of what is kept.
_GROWING = regex.compile(r"[^\s\p{Han}\p{Hiragana}\p{Katakana}、。「」]*\Z")


def _with_kept(text: str, *, final: bool) -> tuple[str, dict[str, str]]:
    if _IS_PRIVATE.search(text) or any(name in text for name in _NAMES):
        return text, {}
    marks: dict[str, str] = {}
    settled = (
        len(text) if final or (growing := _GROWING.search(text)) is None else min(growing.start(), len(text) - 1)
    )

    def mark(found: regex.Match[str]) -> str:
        closed = found[0].endswith("}") and not text.endswith("{", 0, found.start())
        if found.end() > settled and not closed:
            return found[0]
        if (known := marks.get(found[0])) is None and len(marks) < len(_PRIVATE):
            known = marks[found[0]] = _PRIVATE[len(marks)]
        return known or found[0]

    text = _KEPT.sub(mark, text)
    return text, {mark: original for original, mark in marks.items()}


_CJK = r"[\p{Han}\p{Hiragana}\p{Katakana}ー]"
_TYPOGRAPHIC = regex.compile(r"[^\x20-\x7e\p{L}\p{M}\p{N}]|[!?.-]{2}|[\"`]| - |(?<=[^\x00-\x7f])[.,!?:;]")
_APOSTROPHES = regex.compile(r"(?<=[\p{L}\p{N}])[’‘‛ʼ´`]")
_QUOTATION = regex.compile(rf"[{_QUOTES}‘’‚‛]")
_SPACED_DASH = r"\s+(?:--?|[–—―])\s+"
# Between numbers, each with a unit: of times, dates, amounts.
_RANGE = regex.compile(
    rf"(?<=\p{{N}}(?:\s?[%‰°$€£¥\p{{Han}}]|\s?\p{{L}}{{1,2}})?){_SPACED_DASH}(?=[$€£¥]?\s?\p{{N}})"
)
_DASH = regex.compile(
    rf"(?<=\p{{L}}){_SPACED_DASH}|(?<=\p{{N}}){_SPACED_DASH}(?![{_PRIVATE}])|(?<=\p{{L}})(?:—|―|--)(?=\p{{L}})"
)
_HYPHEN = regex.compile(r"[‐‑‒–—―−]")
_ELLIPSIS = regex.compile(r"(?:…|\.{2,}|・{2,}|。{2,})+")
_REPEATED = regex.compile(r"[!?！？]{2,}")
_ASIAN = regex.compile(rf"(?<={_CJK}|[\p{{N}}」』）])[.,!?:;](?!\p{{N}})")
_EAST = {"ja": str.maketrans(".,!?:;", "。、！？：；"), "zh": str.maketrans(".,!?:;", "。，！？：；")}
_WEST = str.maketrans("。、，！？：；「」", '.,,!?:;""')


def _with_known_marks(text: str, lang: str) -> str:
    wide = lang in UNSPACED
    if not wide and not _TYPOGRAPHIC.search(text):
        return text
    text = _APOSTROPHES.sub("'", text)
    text = _QUOTATION.sub("", text)
    text = _ELLIPSIS.sub(" ", text)
    text = _RANGE.sub("-", text)
    text = _DASH.sub(("、" if lang == "ja" else "，") if wide else ", ", text)
    text = _HYPHEN.sub("-", text)
    # Who shouts says no more than who does not.
    stop = "。" if wide else "."
    text = _REPEATED.sub(lambda found: next((mark for mark in found[0] if mark in "?？"), stop), text)
    if not wide:
        text = text.translate(_WEST)
    elif (east := _EAST.get(lang.partition("-")[0])) is not None:
        text = _ASIAN.sub(lambda found: found[0].translate(east), text)
    return regex.sub(r"\s+", " ", text).strip()


_WORD = regex.compile(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*")
_WITHOUT_CASE = regex.compile(r"\p{Lo}")
_BEGINNING = regex.compile(r"(?:\A|[.!?]\s+)[¿¡]*\p{Ll}")


# Words that tell whether an unfinished text is in capitals.
_TELLING_WORDS = 3


def _without_shouting(text: str, strangeness: Callable[[str], int] | None, *, final: bool) -> str:
    told = text
    if not final:
        words = list(_WORD.finditer(text))
        told = text[: words[_TELLING_WORDS - 1].end()] if len(words) > _TELLING_WORDS else ""
        # Single letters tell nothing.
        told = told if any(len(word[0]) > 1 for word in words[:_TELLING_WORDS]) else ""
    if told.upper() != told or told.lower() == told or _WITHOUT_CASE.search(told):
        return text

    def spelled(found: regex.Match[str]) -> str:
        word = found[0]
        if word.upper() != word:
            return word
        if strangeness is None:
            return word.lower()
        spellings = (word.lower(), word.capitalize(), word)
        return min(spellings, key=lambda spelling: strangeness(spelling))

    return _BEGINNING.sub(lambda found: found[0].upper(), _WORD.sub(spelled, text))


# Words, or in a script without blanks characters, of what counts as a short answer.
_SHORT_WORDS, _SHORT_CHARS = 3, 8
_ASKING = {
    "en": "what why when where who how which really",
    "de": "was warum wieso wann wo wer wie welche wirklich",
    "fr": "quoi pourquoi quand où qui comment lequel vraiment",
    "es": "qué cuándo dónde quién cómo cuál",
}
# What ends a question, however long it is: か behind a verb or a copula, unlike that of 静か and いつか.
_ASKED = {
    "ja": regex.compile(
        r"(?:です|ます|でした|ました|ません|でしょう|(?<!ほ)の|(?<!は)る|ない|たい|しい|いい"
        r"|[っいしえけきれげべめせねりみちじぎて見来出寝着得似居](?<!あし)た|(?<!な)んだ|いだ"
        r"|\p{Han}[くすむぶぐ]|[待持立勝打]つ|(?:買|会|言|思|使|習|歌|払|違)う|(?<!\A)[おこごそとのぼもよょろ]う)か\Z"
    ),
    "zh": regex.compile(r"吗\Z"),
}


def _as_an_answer(text: str, lang: str) -> str:
    if not text[-1:].isalnum():
        return text
    if lang in UNSPACED:
        if (asked := _ASKED.get(lang)) is not None and asked.search(text):
            return f"{text}？"
        return f"{text}。" if len(text) <= _SHORT_CHARS else text
    words = text.split()
    if len(words) > _SHORT_WORDS:
        return text
    asks = words[0].lower() in _ASKING.get(lang, "").split()
    return f"{text[0].upper()}{text[1:]}{'?' if asks else '.'}"


# ----------------------------------------------------------------------------------------------- answers


def is_doubtful_copy(source: str, answer: str) -> bool:
    """Whether an answer repeats a text that is not one that may stay as it is: names, numbers, addresses."""
    said = _letters(source)
    return bool(said) and said == _letters(answer) and not _may_stay(source)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


# Words of a name.
_NAME_WORDS = 4
_HAN = regex.compile(r"\p{Han}{1,6}")


def _may_stay(source: str) -> bool:
    words = [word for word in regex.findall(r"[\p{L}\p{M}\p{N}]+", _KEPT.sub(" ", plain(source)))]
    shouted = len(words) > 1 and source.upper() == source
    return len(words) <= _NAME_WORDS and all(
        not word.isalpha() or _HAN.fullmatch(word) or (word[0].isupper() and not shouted) for word in words
    )
