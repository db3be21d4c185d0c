"""What is said, of different lengths, and what a recogniser says meanwhile: growing, sometimes wrong revisions,
then its last word.

Knows: the corpus of the bundled model, how fast people speak, how recognisers err. Pure: the same seed gives the
same streams, and a shorter list is the beginning of a longer one. Must not know: engines, sockets, clocks.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Sequence
from enum import Enum
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from demo_model import LANGUAGES
from demo_model.corpus.prefixes import word_ends
from demo_model.corpus.sets import SetKind, load_sets
from loadtest.results import LoadtestError, joined

# Sentences in an utterance → its share. Load that is all of one length measures another system: every sequence of
# a batch then starts and ends together, which real talk never does.
SENTENCES = {1: 0.5, 2: 0.25, 3: 0.15, 4: 0.1}


def known_languages(*languages: str) -> None:
    """Raises `LoadtestError` for one that the corpus lacks."""
    if unknown := [language for language in languages if language not in LANGUAGES]:
        raise LoadtestError(f"The corpus has no {unknown[0]!r}; it has {', '.join(LANGUAGES)}.")


def utterances(seed: int, source: str, count: int) -> list[str]:
    """The first `count` texts to say: one to four corpus sentences each, lengths as in `SENTENCES`.

    A shorter list is the beginning of a longer one. Raises `LoadtestError` for a language the corpus lacks.
    """
    known_languages(source)
    rng, sentences = random.Random(f"lengths/{seed}"), random.Random(f"loadtest/{seed}")
    said: list[str] = []
    for _ in range(count):
        parts = rng.choices(list(SENTENCES), list(SENTENCES.values()))[0]
        drawn = sentences.choices(load_sets(SetKind.PATTERN), k=parts)
        said.append(joined([each.written[source].text for each in drawn], source))
    return said


# ---------------------------------------------------------------- growing revisions


# 150 words a minute, the pace of a presentation. A Chinese word has about 1.6 characters, and what `word_ends`
# gives there are characters.
_WORDS_PER_MINUTE = 150.0
_CHINESE_PER_MINUTE = 250.0
_PACE_JITTER = 0.4

# Between two revisions, and from the last one to the last word.
_REVISION_MS = (200, 400)
_LAST_WORD_MS = (300, 600)

# Shares of revisions: whose newest word is misheard, and in which a word further back changes.
_NEWEST_WRONG = 0.15
_EARLIER_WRONG = 0.04

# Utterances that are not a sentence: yes, okay, one moment. Their share is that of the ICSI meetings.
_SHORT = 0.14
_SHORT_WORDS = 3

_CJK = ("ja", "zh")
_MARKS = '.,?!;:¿¡"«»…'
_CJK_MARKS = "。、，？！；："
_LATIN = re.compile(r"[0-9A-Za-zÀ-ÖØ-öø-ɏ]+(?:-[0-9A-Za-zÀ-ÖØ-öø-ɏ]+)*")


class Style(Enum):
    """How a recogniser writes.

    WRITTEN: cased and punctuated all along. BARE: small letters without punctuation, its last word too.
    POLISHED: bare until the last word, which is cased and punctuated.
    """

    WRITTEN = "written"
    BARE = "bare"
    POLISHED = "polished"


class Origin(Enum):
    """Where a stream comes from."""

    CORPUS = "corpus"
    HANDWRITTEN = "handwritten"


class Revision(Struct, frozen=True):
    """The whole text so far, `at_ms` after the speaker began."""

    at_ms: int
    text: str


class Stream(Struct, frozen=True):
    """One utterance as a recogniser sends it."""

    id: str
    lang: str
    style: Style
    origin: Origin
    revisions: tuple[Revision, ...]
    final: Revision


def corpus_streams(seed: int, lang: str, count: int) -> list[Stream]:
    """The first `count` streams in `lang`, from sentences of the corpus."""
    rng = random.Random(f"partials/{seed}/{lang}")
    sentences = random.Random(f"partials/{seed}")
    sets = load_sets(SetKind.PATTERN)
    short = [each for each in load_sets(SetKind.WRITTEN) if len(each.written["en"].text.split()) <= _SHORT_WORDS]
    others = vocabulary(seed, lang)
    streams: list[Stream] = []
    for number in range(1, count + 1):
        if rng.random() < _SHORT:
            parts = [sentences.choice(short)]
        else:
            many = rng.choices(list(SENTENCES), list(SENTENCES.values()))[0]
            parts = sentences.choices(sets, k=many)
        text = joined([each.written[lang].text for each in parts], lang)
        style = rng.choice(list(Style))
        revisions, end_ms = heard(text if style is Style.WRITTEN else bare(text, lang), lang, others, rng)
        final = bare(text, lang) if style is Style.BARE else text
        streams.append(
            Stream(
                id=f"{lang}-c{number:03}",
                lang=lang,
                style=style,
                origin=Origin.CORPUS,
                revisions=tuple(revisions),
                final=Revision(end_ms + rng.randint(*_LAST_WORD_MS), final),
            )
        )
    return streams


def bare(text: str, lang: str) -> str:
    """Small letters and no punctuation but inside numbers, times and codes. `McKay` and `BUG-13` stay."""
    if lang in _CJK:
        letters = "".join(letter for letter in text if letter not in _CJK_MARKS)
        return _LATIN.sub(lambda word: _small(word[0]), letters)
    words = (word.strip(_MARKS) for word in text.split())
    return " ".join(_small(word) for word in words if word)


def spoken_words(text: str, lang: str) -> list[str]:
    """What is said in one go, with the spaces before it, as `word_ends` has it. The parts make up `text`, but for
    spaces at its end."""
    ends = [len(text[:end].rstrip()) for end in word_ends(text, lang)]
    return [text[start:end] for start, end in pairwise([0, *ends])]


def _small(word: str) -> str:
    # A recogniser that writes small letters knows how codes are written, or could not be read at all.
    return word if any(letter.isupper() for letter in word[1:]) else word.lower()


@cache
def vocabulary(seed: int, lang: str) -> list[str]:
    """Words that can be heard in place of others, each once, in order; the same for the same seed."""
    drawn = random.Random(f"partials/{seed}/misheard").choices(load_sets(SetKind.PATTERN), k=60)
    texts = [bare(each.written[lang].text, lang) for each in drawn]
    words = {word.strip() for text in texts for word in spoken_words(text, lang)}
    return sorted(words)


def heard(text: str, lang: str, others: Sequence[str], rng: random.Random) -> tuple[list[Revision], int]:
    """What a recogniser makes of `text` while it is said at the pace of speech: its revisions, one every 200 to
    400 ms, some with words misheard; and when the last one came, ms after the speaker began.

    others: words that are heard in place of others, see `vocabulary`; more than one.
    """
    words = spoken_words(text, lang)
    word_ms = 60_000 / (_CHINESE_PER_MINUTE if lang == "zh" else _WORDS_PER_MINUTE)
    jitter = (1 - _PACE_JITTER, 1 + _PACE_JITTER)
    said_ms = list(accumulate(word_ms * rng.uniform(*jitter) for _ in words))
    # Place → what was heard there, and in how many revisions more.
    wrong: dict[int, tuple[str, int]] = {}
    revisions: list[Revision] = []
    at_ms = count = 0
    while count < len(words):
        at_ms += rng.randint(*_REVISION_MS)
        count = sum(end_ms <= at_ms for end_ms in said_ms)
        if not count:
            continue
        wrong = {place: (word, left - 1) for place, (word, left) in wrong.items() if left > 1}
        draw, newest = rng.random(), count - 1
        if draw < _NEWEST_WRONG:
            wrong.setdefault(newest, (_another(words[newest], others, rng), rng.choice((1, 2))))
        elif draw > 1 - _EARLIER_WRONG and count > 3:
            place = newest - rng.choice((2, 3))
            wrong.setdefault(place, (_another(words[place], others, rng), rng.choice((1, 2))))
        now = "".join(wrong[place][0] if place in wrong else words[place] for place in range(count))
        revisions.append(Revision(at_ms, now))
    return revisions, at_ms


def _another(word: str, others: Sequence[str], rng: random.Random) -> str:
    """Another word, with the spaces that stand before this one."""
    space = word[: len(word) - len(word.lstrip())]
    while (other := rng.choice(others)) == word.strip():
        pass
    return space + other


# ---------------------------------------------------------------- streams that are written by hand


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    lang: str
    style: Style
    revisions: list[tuple[int, str]]
    final: tuple[int, str]


def handwritten_streams(lang: str) -> list[Stream]:
    """Handwritten streams in one language, in the file's order."""
    text = Path(__file__).with_name("handwritten.toml").read_text(encoding="utf-8")
    return [
        Stream(
            id=f"{entry.lang}-{entry.id}",
            lang=entry.lang,
            style=entry.style,
            origin=Origin.HANDWRITTEN,
            revisions=tuple(Revision(*revision) for revision in entry.revisions),
            final=Revision(*entry.final),
        )
        for entry in msgspec.convert(tomllib.loads(text)["stream"], list[_Entry])
        if entry.lang == lang
    ]
