"""How much of a text an engine hands on at once.

Knows: the time of a token, and how many sequences run. Must not know: which engine it is.
"""

from __future__ import annotations

# Most pieces of text a second, over all sequences. A piece costs the gateway about 50 microseconds, and one frame
# per reader. If the event loop cannot keep up, first words come late.
_MOST_PIECES_PER_S = 2_500

# Most tokens of a piece. A sequence keeps its value to its end, even if the engine becomes slower.
_MOST_TOKENS = 12


def tokens_a_piece(interval_s: float, step_s: float, running: int) -> int:
    """How many tokens of a sequence to hand on together, so that a piece comes about every `interval_s`.

    step_s: time of a token, in seconds; 0 if it is not known. running: sequences that run.
    From 1 (also if `interval_s` is 0) to 12. With many sequences the pieces are larger, so that all sequences
    together have at most 2,500 pieces a second.
    """
    if not interval_s or not step_s:
        return 1
    tokens = round(max(interval_s, running / _MOST_PIECES_PER_S) / step_s)
    return min(max(1, tokens), _MOST_TOKENS)
