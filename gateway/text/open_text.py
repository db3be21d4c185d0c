"""The text of an utterance that is still being said: which segments of it are settled, and what is the rest.

Knows: every revision has all of the text so far, and recognisers change their minds, mostly about the last words.
Must not know: who said it, what becomes of the segments.

A segment is settled where further words follow it and two revisions in a row agree on it, or where so much
follows that the recogniser has moved on. What a later revision says instead is not said again: the rest is what
comes behind the place where its last words are, or the words that have taken their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from itertools import islice, pairwise, tee
from typing import NamedTuple

import regex

from gateway.text.segments import cut, joined, parts, patience, segments, sentences
from gateway.text.units import same_chars

# Words that follow a place at which a text is cut because it is long.
_FOLLOW_CUT = 3
# Characters behind the longest segment that decide where it ends.
_AHEAD = 500
# Characters of a final that are divided at once: a long one must not hold up everything else.
_AT_ONCE = 4_000
# Another revision is compared near the cut: words before it, words behind it; and in the other one, so many words
# on either side of where the cut should be. They are looked for in so many characters.
_BEFORE, _AFTER, _AROUND, _REACH = 24, 12, 60, 600
# Half of the last so many words before the cut have to be found again.
_NEAR = 8
# What it costs that a word was changed, added or left out, where each word that is the same saves 1; and that the
# text has another word before those that it began with.
_EDIT, _SKIP = 1_000, 125

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
        self._agreed = same_chars(before, text[at:])

    def ready(self, lang: str) -> str | None:
        """The next segment, with the blanks behind it, if it is settled."""
        window = self._window()
        run = next(joined(self._ended(window, lang), self._longest), "")
        if run and len(run.strip()) <= patience(run, self._longest):
            return run
        end = self._cut(next(_sentences(window, lang), ""), lang)
        follows = len(list(islice(_WORD.finditer(window, end or 0), _FOLLOW_CUT))) == _FOLLOW_CUT
        return window[:end] if end and follows and self._is_settled(window[:end]) else None

    def beginning(self, lang: str) -> str:
        """The rest, up to where its first segment ends if nothing changes."""
        run = next(joined(_sentences(self._window(), lang), self._longest), "")
        return run[: self._cut(run, lang)]

    def remaining(self, lang: str) -> list[str]:
        """The next segments of the rest, where nothing more will be said; empty: nothing is left."""
        self._at += len(self.rest) - len(self.rest.lstrip())
        at_once = max(_AT_ONCE, 4 * self._longest)
        found = segments(self.rest[:at_once], lang, self._longest, joins=True)
        # The last one may go on behind what was looked at.
        return found[:-1] if len(found) > 1 and len(self.rest) > at_once else found

    def least(self, segment: str, lang: str) -> str:
        """The shortest that it may have been when it was accepted: nothing was joined to it, no mark was in it."""
        sentence = next(iter(sentences(segment, lang)), segment)
        return next(parts(sentence, lang, self._longest))

    def take_segment(self, segment: str) -> None:
        """A segment with which the rest begins was accepted."""
        self.taken += 1
        self._at += len(segment)
        self._agreed = max(0, self._agreed - len(segment))

    def take_accepted(self, accepted: str) -> None:
        """The next segment was accepted before, perhaps with other words than the rest begins with."""
        rest = self.rest
        at = _located(accepted, "", rest)
        self.take_segment(rest if at is None else rest[:at])

    def _window(self) -> str:
        """The characters of the rest that decide where its first segment ends."""
        return self._text[self._at : self._at + _AHEAD + 2 * self._longest]

    def _ended(self, window: str, lang: str) -> Iterator[str]:
        """The sentences with which the rest begins, as far as they are settled: words follow each."""
        end = 0
        for sentence, _ in pairwise(_sentences(window, lang)):
            end += len(sentence)
            if not self._is_settled(window[:end]):
                return
            yield sentence

    def _is_settled(self, beginning: str) -> bool:
        """Whether two revisions agree on it, or so much follows that it does not matter."""
        follow = len(self._text) - self._at - len(beginning)
        return len(beginning.rstrip()) <= self._agreed or follow > self._longest

    def _cut(self, sentence: str, lang: str) -> int | None:
        """Where a sentence is cut because it is long."""
        longest = patience(sentence, self._longest)
        return cut(sentence, lang, longest) if len(sentence.strip()) > longest else None


@lru_cache(maxsize=1)
def _divided(window: str, lang: str) -> Iterator[str]:
    """Where sentences of the newest window end is looked for once: that is most of what a revision costs."""
    return tee(sentences(window, lang), 1)[0]


def _sentences(window: str, lang: str) -> Iterator[str]:
    """As `sentences`; several in a row for one window share what they have read."""
    return copy(_divided(window, lang))


class _Word(NamedTuple):
    text: str
    end: int


def _words(text: str, begin: int, end: int) -> list[_Word]:
    """The words that begin and end there."""
    found = [_Word(word[0].casefold(), word.end()) for word in _WORD.finditer(text, begin, end)]
    first = _is_inside_a_word(text, begin)
    return found[first : len(found) - _is_inside_a_word(text, end)]


def _texts(words: Sequence[_Word]) -> list[str]:
    return [word.text for word in words]


def _located(covered: str, rest: str, text: str) -> int | None:
    """Where in another revision is what followed `covered`, and was `rest`. None: it does not go as far.

    Where hardly anything of `covered` is found again, the text is of something else: 0.
    """
    if text.startswith(covered) and not _is_inside_a_word(text, len(covered)):
        return len(covered)
    known = _words(covered, max(0, len(covered) - _REACH), len(covered))
    near = known[-_BEFORE:]
    is_whole = len(covered) <= _REACH and len(known) <= _BEFORE
    following = _words(rest, 0, _REACH)[:_AFTER]
    unchanged = same_chars(covered, text)
    # Nothing has changed in length before the cut, or nothing behind it.
    for place in dict.fromkeys([len(covered), len(text) - len(rest)] if rest else [len(covered)]):
        place = min(max(0, place), len(text))
        said = _words(text, max(0, place - _REACH), min(len(text), place + _REACH))
        count = sum(word.end <= place for word in said)
        if len(covered) - _REACH <= unchanged and place == len(covered):
            # Better: as many words as there were behind what has not changed.
            count = sum(word.end < unchanged for word in said) + sum(word.end >= unchanged for word in known)
        first = max(0, count - _AROUND)
        said = said[first : count + _AROUND]
        begins = is_whole and place <= _REACH and first == 0
        mark = "" if following or not near else _mark(covered, near[-1].end)
        found = _found(_texts(near), _texts(following), text, said, count - first, begins=begins, mark=mark)
        if found.is_enough:
            is_last = found.before == len(said) and not _WORD.search(text, said[-1].end if said else 0)
            return None if found.is_short and is_last else _behind(text, said, found.before)
    # The words near the cut are others: it is where it was, if the text begins as it did.
    head = _words(text, 0, min(len(text), _REACH))[:_AFTER]
    begun = _words(covered, 0, min(len(covered), _REACH))[: 2 * _AFTER]
    if head and _found(_texts(head), [], covered, begun, len(head), begins=True).same * 2 <= len(head):
        return 0
    if len(text) < len(covered):
        return None
    before = _words(text, max(0, len(covered) - _REACH), len(covered))
    return _behind(text, before, len(before))


class _Found(NamedTuple):
    # Words before the cut, and how many words near it are the same.
    before: int
    same: int
    # Enough was found to say so.
    is_enough: bool
    # The last words before the cut are not said.
    is_short: bool


def _found(
    near: Sequence[str],
    following: Sequence[str],
    text: str,
    said: Sequence[_Word],
    expected: int,
    *,
    begins: bool,
    mark: str = "",
) -> _Found:
    """How many of the words `said` belong to `near`, where `near` and `following` are somewhere in them.

    By the least number of words that were changed, added or left out (Levenshtein), then by the most that are the
    same, then by where the mark is with which `near` ended, then by what is nearest to `expected`. What is before
    and behind costs nothing; but `begins`: `near` is all that was before the cut, and words before it were added.
    """
    words = [*near, *following]
    # For each word, the costs of every place in `said`.
    costs = [[at * _SKIP if begins else 0 for at in range(len(said) + 1)]]
    for word in words:
        above = costs[-1]
        cost = above[0] + _EDIT
        row = [cost]
        for at, other in enumerate(said):
            cost = min(above[at] + (-1 if word == other.text else _EDIT), above[at + 1] + _EDIT, cost + _EDIT)
            row.append(cost)
        costs.append(row)
    end = expected + len(following)

    def worth(place: int) -> tuple[int, int, int]:
        other = _mark(text, said[place - 1].end) if mark and place else ""
        return costs[-1][place], (other != mark) + (not other), abs(place - end)

    at = min(range(len(said) + 1), key=worth)
    index, before, same, near_same, edits, is_short = len(words), 0, 0, 0, 0, False
    while index:
        if index == len(near):
            before = at
        cost = costs[index][at]
        is_near = len(near) - _NEAR < index <= len(near) + _NEAR
        is_same = at > 0 and words[index - 1] == said[at - 1].text
        if at and cost == costs[index - 1][at - 1] + (-1 if is_same else _EDIT):
            same += is_same and is_near
            near_same += is_same and is_near and index <= len(near)
            edits += is_near and not is_same
            index, at = index - 1, at - 1
        elif cost == costs[index - 1][at] + _EDIT:
            is_short |= index == len(near)
            edits += is_near
            index -= 1
        else:
            edits += is_near
            at -= 1
    edits += at if begins else 0
    most = min(_NEAR, len(near))
    is_enough = near_same == most or same >= max(1, edits) or (most == _NEAR and 2 * near_same >= most)
    return _Found(before, same, is_enough, is_short)


def _mark(text: str, at: int) -> str:
    """The marks between a word and the next."""
    found = _BEHIND.match(text, at)
    return "" if found is None else found[0].strip()


def _behind(text: str, words: Sequence[_Word], count: int) -> int:
    """Where the text goes on behind so many words."""
    if not count or not words:
        return 0
    found = _BEHIND.match(text, words[count - 1].end)
    return words[count - 1].end if found is None else found.end()


def _is_inside_a_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and any(
        word.start() < at < word.end() for word in _WORD.finditer(text, max(0, at - 40), at + 1)
    )
