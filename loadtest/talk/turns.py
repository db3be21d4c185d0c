"""How people talk in meetings: how long they speak, who is next, after what pause, who says "yeah" meanwhile.

Knows: the figures of real meetings, and how to draw turns that have them. Must not know: texts, languages, wires.

The figures: the ICSI meetings as the MRDA corpus cuts them, 108,202 utterances in 75 meetings of about 72 hours
with six people each: 25 utterances a minute, 14 % of them backchannels, the longest of 85 words. People speak 150
words a minute. The pause between two turns is 200 ms in the median (Stivers et al. 2009; Heldner and Edlund 2010).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

PER_MINUTE = 25.0
BACKCHANNELS = 0.14
LONGEST_WORDS = 85

# Words of what is no backchannel: a logarithmic normal distribution. Its mean is what lets one person at a time,
# at 150 words a minute and with the pauses below, say 86 % of 25 utterances a minute.
_MU = 1.35
_SIGMA = 0.95
BACKCHANNEL_WORDS = (1, 1, 1, 2, 2, 3)

# Measured on what is drawn: words of an utterance, backchannels included, and of one that is none.
MEAN_WORDS = 5
_MEAN_TURN_WORDS = 6.0

# Pauses: share, from and to in seconds, and how much more frequent the short ones of this class are.
_PAUSES = ((0.5, 0.0, 0.2, 1), (0.38, 0.2, 1.0, 2), (0.12, 1.0, 4.0, 2))

# The one who has the floor goes on; the others differ in how much they say.
_GOES_ON = 0.55
_TALKATIVE = 0.8


def length(rng: random.Random) -> int:
    """Words of one utterance of a meeting, picked by chance."""
    return rng.choice(BACKCHANNEL_WORDS) if rng.random() < BACKCHANNELS else _turn(rng)


def _turn(rng: random.Random) -> int:
    while (words := round(rng.lognormvariate(_MU, _SIGMA))) > LONGEST_WORDS:
        pass
    return max(words, 1)


def pause_s(rng: random.Random) -> float:
    """What lies between two turns."""
    _, low, high, skew = rng.choices(_PAUSES, [each[0] for each in _PAUSES])[0]
    return low + (high - low) * float(rng.random() ** skew)


class Turns:
    """Who speaks in one meeting, turn after turn. One has the floor; backchannels come from the others."""

    def __init__(self, people: int, rng: random.Random) -> None:
        self._rng = rng
        self._people = list(range(people))
        rng.shuffle(self._people)
        self._weights = [_TALKATIVE**rank for rank in range(people)]
        self._holder = self._next()

    def turn(self) -> tuple[int, int]:
        """The next who has the floor, and for how many words."""
        if self._rng.random() >= _GOES_ON:
            self._holder = self._next()
        return self._holder, _turn(self._rng)

    def backchannels(self, words: int) -> Sequence[tuple[int, int]]:
        """What the others say while somebody says so many words; long turns draw more of them."""
        others = [person for person in self._people if person != self._holder]
        if not others:
            return ()
        mean = BACKCHANNELS / (1 - BACKCHANNELS) * words / _MEAN_TURN_WORDS
        many = int(mean) + (self._rng.random() < mean - int(mean))
        return [(self._rng.choice(others), self._rng.choice(BACKCHANNEL_WORDS)) for _ in range(many)]

    def _next(self) -> int:
        return self._rng.choices(self._people, self._weights)[0]
