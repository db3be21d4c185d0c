"""Divides a text into segments: sentences, and where one does not end, what is as long as a segment may be.

Knows: where sentences, clauses and words end. Must not know: what is done with the segments, what a model makes of
them, whether the text will still change (`gateway.text.open_text`).

Where a sentence ends is what sentencex says (Wikimedia's, for 300 languages), with marks that it does not know,
and without the ends that it takes abbreviations and initials for. A line ends one, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, islice

import regex
import sentencex

from gateway.text.units import SPOKEN, UNSPACED, units

# sentencex takes a time that grows with the square of what it is given.
_AT_ONCE = 2_000

# Without the blanks before it: looking for them takes a time that grows with the square of a run of blanks.
_LINE = regex.compile(r"[\n\u2028\u2029](?:\s(?![\p{M}\u200c\u200d]))*")
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
# Two characters between which a grapheme ends, whatever is around them.
_APART = regex.compile(r"[\p{GCB=Other}\n]\p{GCB=Other}")
# A text is not cut between them, where no blank is: addresses, Latin words, numbers in a script without blanks.
_ASCII = regex.compile(r"[!-~]")
# Characters behind the longest segment that decide whether it may end there.
_AHEAD = 100
# Characters before a place that decide whether a sentence or a clause ends there.
_NEAR = 40
# So many sentences in a row that have fewer bytes than this each, blanks apart, are very short: a list, a count.
# Bytes, because a letter of Japanese says more than one of English: はい。 has 9, and a text of n bytes never
# becomes more than n / 8 segments.
_ROW, _SHORT = 4, 8
# A segment that is cut because it is long has at least this share of what it may have, where it can.
_LEAST = 1 / 3


def sentences(text: str, lang: str) -> Iterator[str]:
    """The text in sentences that join to it, each with the blanks behind it; nothing for an empty text.

    Reads no further than the sentences that are asked for.
    """
    return _pieces(text, chain.from_iterable(_ends(line, lang, begin) for begin, line in _lines(text)))


def segments(text: str, lang: str, longest: int, *, joins: bool = False) -> list[str]:
    """The text in segments that join to it: its sentences, cut where one is too long.

    longest: characters of a sentence that is not cut; twice as many where it has marks (`patience`).
    joins: very short sentences in a row become one segment (`joined`).
    """
    pieces = sentences(text, lang)
    return [
        part
        for piece in (joined(pieces, longest) if joins else pieces)
        for part in parts(piece, lang, patience(piece, longest))
    ]


def joined(pieces: Iterable[str], longest: int) -> Iterator[str]:
    """The sentences, but those that are very short, and several in a row, together, up to `longest` characters."""
    pieces = iter(pieces)
    ahead: deque[str] = deque(islice(pieces, 1))
    while ahead:
        run = ahead.popleft()
        if _bytes(run) < _ROW * _SHORT:
            ahead.extend(islice(pieces, _ROW - 1 - len(ahead)))
            if len(ahead) == _ROW - 1 and _bytes(run + "".join(ahead)) < _ROW * _SHORT:
                while ahead and _bytes(ahead[0]) < _ROW * _SHORT and len((run + ahead[0]).strip()) <= longest:
                    run += ahead.popleft()
                    ahead.extend(islice(pieces, not ahead))
        yield run
        ahead.extend(islice(pieces, not ahead))


def _bytes(text: str) -> int:
    return len("".join(text.split()).encode(errors="replace"))


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


def parts(text: str, lang: str, longest: int) -> Iterator[str]:
    """The text in parts that join to it, cut wherever it has more than `longest` characters, blanks apart."""
    while len(text.strip()) > longest and (at := cut(text, lang, longest)) < len(text):
        yield text[:at]
        text = text[at:]
    yield text


def _rank(before: str, after: str, lang: str) -> int:
    """How well a text is cut here: 0 badly, more is better."""
    blank = before[-1].isspace()
    if not blank and lang not in UNSPACED:
        return -1
    if not blank and (_ASCII.match(before[-1]) and _ASCII.match(after[0])):
        return -1
    if _CLAUSE.search(before[-_NEAR:]):
        return 3
    words = before.rsplit(maxsplit=1)
    name = words and _CAPITAL.match(words[-1]) and _CAPITAL.match(after)
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
            if at == len(line) or _is_end(block[max(last, end - _AHEAD) : end], line[at : at + _AHEAD]):
                yield offset + at
                last = end
        begin += stop


def _is_end(sentence: str, after: str) -> bool:
    if not _is_border(sentence, after):
        return False
    sentence = sentence.rstrip()[-_NEAR:]
    if _QUOTED.search(sentence):
        return not after.startswith(_QUOTING)
    if _DOTTED.search(sentence):
        return not after[:1].islower()
    return not any(goes_on.search(sentence) for goes_on in _GOES_ON)


def _is_border(before: str, after: str) -> bool:
    """Whether a grapheme ends between two texts."""
    if _APART.match(before[-1:] + after[:1]):
        return True
    return len(before) in accumulate(map(len, regex.findall(r"\X", before + after)))


def _pieces(text: str, ends: Iterable[int]) -> Iterator[str]:
    """The text, cut at `ends`. Where nothing is said in a piece, it belongs to the one before, or to the next."""
    begin = before = 0
    is_spoken = False
    for end in ends:
        is_said = SPOKEN.search(text, before, end) is not None
        if is_spoken and is_said:
            yield text[begin:before]
            begin = before
        is_spoken = is_spoken or is_said
        before = end
    if begin < before:
        yield text[begin:before]
