"""Divides a text into segments: sentences, and where one does not end, what is as long as a segment may be.

Knows: where sentences, clauses and words end. Must not know: what is done with the segments, what a model makes of
them, whether the text will still change (`gateway.text.spoken`).

Where a sentence ends is what sentencex says (Wikimedia's, for 300 languages), with marks that it does not know,
and without the ends that it takes abbreviations and initials for. A line ends one, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

import regex
import sentencex

from gateway.text.units import SPOKEN, UNSPACED, units

# sentencex takes a time that grows with the square of what it is given.
_AT_ONCE = 2_000

# Without the blanks before it: looking for them takes a time that grows with the square of a run of blanks.
_LINE = regex.compile(r"[\n\u2028\u2029]\s*")
# Marks that sentencex does not know everywhere: Khmer, Tibetan, Armenian, Ethiopic, the double danda.
_MARKS = regex.compile(r"[។៕།։።፧।॥]+[\p{Pe}\p{Pf}\"']*\s*(?=\S)")
# Behind these a sentence goes on: an initial (`M. Dupont`), a number with a full stop, a word without vowels
# (`Dr. No`), letters with full stops between them before a small letter.
_INITIAL = regex.compile(r"(?<!\p{L})\p{Lu}\.\s*\Z")
_ORDINAL = regex.compile(r"(?<![\p{L}\p{N}])\p{N}{1,3}\.\s*\Z")
_ABBREVIATION = regex.compile(r"(?<!\p{L})[BCDFGHJKLMNPQRSTVWXZ]?[bcdfghjklmnpqrstvwxz]{1,3}\.\s*\Z")
_DOTTED = regex.compile(r"(?:\p{L}\.){2,}\s*\Z")
_GOES_ON = (_INITIAL, _ORDINAL, _ABBREVIATION)
# A quotation of which more is said: 「…。」と言いました.
_QUOTED = regex.compile(r"[」』]\s*\Z")
_QUOTING = ("と", "って", "という")

# What ends a clause.
_CLAUSE = regex.compile(r"(?:[,;:،؛、，；：—–]|(?<=\s)-)[\p{Pe}\p{Pf}\"']*\s*\Z")
# A sentence with one of these is by a recogniser, or a person, who writes marks.
_MARKED = regex.compile(r"[,;:.!?…](?=\s|\Z)|[،؛؟、，；：。！？।]")
# Letters that have capitals: what begins with one, and follows another such word, is part of a name.
_CAPITAL = regex.compile(r"\p{Lu}")
_LAST_WORD = regex.compile(r"\S+(?=\s*\Z)")
# A text is not cut between them, where no blank is: addresses, Latin words, numbers in a script without blanks.
_ASCII = regex.compile(r"[!-~]")
# Characters behind the longest segment that decide whether it may end there.
_AHEAD = 100
# A segment that is cut because it is long has at least this share of what it may have, where it can.
_LEAST = 1 / 3


def sentences(text: str, lang: str) -> list[str]:
    """The text in sentences that join to it, each with the blanks behind it; empty for an empty text."""
    return _pieces(text, [end for begin, line in _lines(text) for end in _ends(line, lang, begin)])


def segments(text: str, lang: str, longest: int) -> list[str]:
    """The text in segments that join to it: its sentences, cut where one is too long.

    longest: characters of a sentence that is not cut; twice as many where it has marks (`patience`).
    """
    return [part for sentence in sentences(text, lang) for part in _parts(sentence, lang, longest)]


def patience(sentence: str, longest: int) -> int:
    """How many characters of a sentence may be together: of a text without marks no end is to be expected."""
    return 2 * longest if _MARKED.search(sentence) else longest


def cut(text: str, lang: str, longest: int) -> int:
    """Where a text without an end is best cut so that at most `longest` characters are before it, blanks apart.

    The latest end of a clause, else of a word, but not in a number, a name, an address; failing all that, of a
    grapheme. More than `longest` are before it only where one grapheme has more.
    """
    head = text[: longest + _AHEAD]
    graphemes = set(accumulate(map(len, regex.findall(r"\X", head))))
    least, best = longest * _LEAST, (-1, 0)
    pieces = units(head, lang)
    for end, following in zip(accumulate(map(len, pieces)), pieces[1:], strict=False):
        border = end + len(following) - len(following.lstrip())
        if len(head[:end].rstrip()) > longest:
            break
        if border in graphemes:
            best = max(best, (_rank(head[:border], head[border:], lang) if end >= least else 0, border))
    if best[0] >= 0:
        return best[1]
    return max((end for end in graphemes if end <= longest), default=min(graphemes))


def _parts(sentence: str, lang: str, longest: int) -> Iterator[str]:
    longest = patience(sentence, longest)
    while len(sentence.strip()) > longest and (at := cut(sentence, lang, longest)) < len(sentence):
        yield sentence[:at]
        sentence = sentence[at:]
    yield sentence


def _rank(before: str, after: str, lang: str) -> int:
    """How well a text is cut here: 0 badly, more is better."""
    blank = before[-1].isspace()
    if not blank and lang not in UNSPACED:
        return -1
    if not blank and (_ASCII.match(before[-1]) and _ASCII.match(after[0])):
        return -1
    if _CLAUSE.search(before):
        return 3
    word = _LAST_WORD.search(before)
    name = word is not None and _CAPITAL.match(word[0]) and _CAPITAL.match(after)
    number = before.rstrip()[-1:].isnumeric() and after[:1].isnumeric()
    return 1 if name or number else 2


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Where each line begins, and the line, with what is blank behind it."""
    begin = 0
    for found in _LINE.finditer(text):
        yield begin, text[begin : found.end()]
        begin = found.end()
    yield begin, text[begin:]


def _ends(line: str, lang: str, offset: int) -> Iterator[int]:
    """Where sentences of a line end, its own end included."""
    base = lang.partition("-")[0]
    begin = 0
    while begin < len(line):
        block = line[begin : begin + _AT_ONCE]
        ends = {found["end_index"] for found in sentencex.get_sentence_boundaries(base, block)}
        ends |= {found.end() for found in _MARKS.finditer(block)}
        whole = begin + len(block) == len(line)
        # What ends with the block is read again with what follows it.
        inside = sorted(end for end in ends if end < len(block))
        stop = len(block) if whole or not inside else inside[-1]
        last = 0
        for end in [*(end for end in inside if end < stop), *([stop] if whole or inside else [])]:
            at = begin + end
            if at == len(line) or _is_end(block[last:end], line[at : at + _AHEAD]):
                yield offset + at
                last = end
        begin += stop


def _is_end(sentence: str, after: str) -> bool:
    if not _is_border(sentence[-_AHEAD:], after):
        return False
    if _QUOTED.search(sentence):
        return not after.startswith(_QUOTING)
    if _DOTTED.search(sentence):
        return not after[:1].islower()
    return not any(goes_on.search(sentence) for goes_on in _GOES_ON)


def _is_border(before: str, after: str) -> bool:
    """Whether a grapheme ends between two texts."""
    return len(before) in accumulate(map(len, regex.findall(r"\X", before + after)))


def _pieces(text: str, ends: list[int]) -> list[str]:
    """The text, cut at `ends`. Where nothing is said in a piece, it belongs to the one before, or to the next."""
    pieces: list[str] = []
    for begin, end in pairwise([0, *ends]):
        piece = text[begin:end]
        if pieces and not (SPOKEN.search(piece) and SPOKEN.search(pieces[-1])):
            pieces[-1] += piece
        elif piece:
            pieces.append(piece)
    return pieces
