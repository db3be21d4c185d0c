"""How many of an engine's seats each of several gateways may use: a max-min fair division.

A seat is a place among the sequences that the engine runs together.
Knows: numbers. Must not know: gateways, engines, time.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["fair_shares", "grants"]


def fair_shares(demands: Sequence[int], seats: int) -> list[int]:
    """Seats for each demand: nobody gets more than they want, and more only if nobody with less wants more.

    Whoever wants something gets at least one, so that with more of them than seats the sum is above `seats`;
    otherwise it never is. Of what cannot be divided, the first get more.
    """
    shares = [0] * len(demands)
    # The least demanding first: what they leave is divided among the others.
    wanting = sorted((demand, -index) for index, demand in enumerate(demands) if demand > 0)
    left = seats
    for served, (demand, minus_index) in enumerate(wanting):
        share = max(1, min(demand, left // (len(wanting) - served)))
        shares[-minus_index] = share
        left = max(0, left - share)
    return shares


def grants(demands: Sequence[int], seats: int) -> list[int]:
    """What each may use now: its fair share, and what it would get beyond its demand if it wanted more at once.

    So a gateway that has been idle can begin without asking. The seats in use, at most the demand of each, are
    never more than those of `fair_shares`.
    """
    shares = fair_shares(demands, seats)
    granted = []
    for index, (demand, share) in enumerate(zip(demands, shares, strict=True)):
        if share < demand:
            granted.append(share)
        else:
            wanting_all = [*demands[:index], max(demand, seats), *demands[index + 1 :]]
            granted.append(max(share, fair_shares(wanting_all, seats)[index]))
    return granted
