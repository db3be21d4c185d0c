"""The text of an utterance that is still being said: which segments of it are settled, and what is the rest.

Knows: every revision has all of the text so far, and recognisers change their minds, mostly about the last words.
Must not know: who said it, what becomes of the segments.

A segment is settled where further words follow it and two revisions in a row agree on it, or where so much
follows that the recogniser has moved on. What a later revision says instead is not said again: the rest is what
comes behind the place where its last words are, or the words that have taken their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import regex

from gateway.text.segments import cut, patience, segments, sentences

# Words that follow an end mark, and that follow a place at which a text is cut because it is long.
_FOLLOW_END, _FOLLOW_CUT = 1, 3
# Characters behind the longest segment that decide where it ends.
_AHEAD = 500
# Characters of a final that are divided at once: a long one must not hold up everything else.
_AT_ONCE = 4_000
# Words before and behind the cut that are compared with another revision.
_WINDOW = 48
# Of the last so many words before the cut, half have to be found again; or as many of the first.
_NEAR = 8

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(rf"(?V1)(?=[{_UNSPACED}])\X|[[\p{{L}}\p{{N}}\p{{M}}]--[{_UNSPACED}]]+")
# What is between two words and belongs to the one before.
_BEHIND = regex.compile(r"(?V1)[\p{P}--[\p{Ps}\p{Pi}¿¡]]*\s*")


class OpenText:
    """The text of one utterance. longest: characters of a segment that does not end."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        # Segments that were taken.
        self.taken = 0
        # The newest revision, and where its rest begins.
        self._text = ""
        self._at = 0
        # Characters of the rest on which two revisions in a row agree.
        self._agreed = 0

    def __len__(self) -> int:
        """Characters that are held."""
        return len(self._text)

    @property
    def rest(self) -> str:
        """What is behind the segments that were taken, in the newest revision."""
        return self._text[self._at :]

    @property
    def share(self) -> float:
        """Which part of the newest revision is before the rest, from 0 to 1."""
        return self._at / len(self._text) if self._text else 0.0

    def revise(self, text: str) -> None:
        """The newest revision: all of the text so far. One that says what the last one said changes nothing."""
        if text == self._text:
            return
        before = self.rest
        at = _located(self._text[: self._at], before, text)
        if at is None:
            # It says less than was settled. The next one is compared with what was settled, not with this one.
            self._text, self._agreed = self._text[: self._at], 0
            return
        self._text, self._at = text, at
        self._agreed = _same(before, text[at:])

    def ready(self, lang: str) -> str | None:
        """The next segment, with the blanks behind it, if it is settled."""
        rest = self.rest
        end, is_marked = self._end(rest, lang)
        following = rest[end:]
        if len(_WORD.findall(following)) < (_FOLLOW_END if is_marked else _FOLLOW_CUT):
            return None
        if len(rest[:end].rstrip()) > self._agreed and len(following) <= self._longest:
            return None
        return rest[:end]

    def beginning(self, lang: str) -> str:
        """The rest, up to where its first segment ends if nothing changes."""
        rest = self.rest
        return rest[: self._end(rest, lang)[0]]

    def remaining(self, lang: str) -> list[str]:
        """The next segments of the rest, where nothing more will be said; empty: nothing is left."""
        self._at += len(self.rest) - len(self.rest.lstrip())
        parts = segments(self.rest[:_AT_ONCE], lang, self._longest)
        # The last one may go on behind what was looked at.
        return parts[:-1] if len(parts) > 1 and len(self.rest) > _AT_ONCE else parts

    def take(self, segment: str) -> None:
        """A segment with which the rest begins was accepted."""
        self.taken += 1
        self._at += len(segment)
        self._agreed = max(0, self._agreed - len(segment))

    def take_as(self, accepted: str) -> None:
        """The next segment was accepted before, perhaps with other words than the rest begins with."""
        rest = self.rest
        at = _located(accepted, "", rest)
        self.take(rest if at is None else rest[:at])

    def _end(self, rest: str, lang: str) -> tuple[int, bool]:
        """Where the first segment ends, and whether a mark says so."""
        pieces = sentences(rest[: _AHEAD + 2 * self._longest], lang)
        first = pieces[0] if pieces else ""
        if len(first.strip()) > (longest := patience(first, self._longest)):
            return cut(first, lang, longest), False
        return len(first), len(pieces) > 1


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How much of their beginnings is the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class _Word(NamedTuple):
    text: str
    end: int


def _words(text: str) -> list[_Word]:
    return [_Word(found[0].casefold(), found.end()) for found in _WORD.finditer(text)]


def _located(covered: str, rest: str, text: str) -> int | None:
    """Where in another revision is what followed `covered`, and was `rest`. None: it does not go as far."""
    if text.startswith(covered) and not _is_inside_a_word(text, len(covered)):
        return len(covered)
    known, said = _words(covered), _words(text)
    same = _same([word.text for word in known], [word.text for word in said])
    if same == len(known):
        return _behind(text, said, same)
    if same == len(said):
        return None
    near = known[-_WINDOW:]
    following = [word.text for word in _words(rest)[:_WINDOW]]
    # Where the window is in the other revision, if nothing was added or left out; it may have moved by as much.
    expected = min(len(known), len(said)) - len(near)
    first = max(0, expected - _WINDOW)
    among = [word.text for word in said[first : expected + 3 * _WINDOW]]
    is_whole = first == 0 == expected
    index, found = _aligned([word.text for word in near], following, among, expected - first, is_whole=is_whole)
    if 2 * found >= min(_NEAR, len(near)):
        return _behind(text, said, first + index)
    if len(said) < len(known):
        # Shorter, and of the same utterance; or what is said begins again.
        return None if 2 * same >= min(_NEAR, len(said)) else 0
    return _behind(text, said, first + index)


def _aligned(
    near: Sequence[str], following: Sequence[str], said: Sequence[str], expected: int, *, is_whole: bool
) -> tuple[int, int]:
    """How many words of `said` belong to `near`, where `near` and `following` are somewhere in it.

    Also how many of the last words of `near` were found. By the least number of words that were changed, added or
    left out (Levenshtein); what is before and behind costs nothing, unless `is_whole`: then it begins there. Of
    places that cost the same, it is the one nearest to `expected`.
    """
    words = [*near, *following]
    # For each word, the costs of every place in `said`.
    costs = [[at if is_whole else 0 for at in range(len(said) + 1)]]
    for word in words:
        above = costs[-1]
        row = [above[0] + 1]
        for at, other in enumerate(said):
            row.append(min(above[at] + (word != other), above[at + 1] + 1, row[at] + 1))
        costs.append(row)
    end = expected + len(words)
    at = min(range(len(said) + 1), key=lambda place: (costs[-1][place], abs(place - end)))
    row_index, index, found = len(words), at, 0
    while row_index:
        if row_index == len(near):
            index = at
        cost = costs[row_index][at]
        is_same = at > 0 and words[row_index - 1] == said[at - 1]
        if at and cost == costs[row_index - 1][at - 1] + (not is_same):
            found += is_same and len(near) - _NEAR < row_index <= len(near)
            row_index, at = row_index - 1, at - 1
        elif cost == costs[row_index - 1][at] + 1:
            row_index -= 1
        else:
            at -= 1
    return index, found


def _behind(text: str, words: Sequence[_Word], count: int) -> int:
    """Where the text goes on behind so many words."""
    if not count:
        return 0
    found = _BEHIND.match(text, words[count - 1].end)
    return words[count - 1].end if found is None else found.end()


def _is_inside_a_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and any(
        word.start() < at < word.end() for word in _WORD.finditer(text, max(0, at - 40))
    )
