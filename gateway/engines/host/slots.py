"""How many of an engine's slots each of several gateways may use: a max-min fair division, finals first.

A slot is a place among the sequences that the engine runs together.
Knows: numbers. Must not know: gateways, engines, time.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Wanted(Struct, frozen=True, array_like=True):
    """Sequences that a gateway runs or wants to run."""

    # Those of final utterances, which are promised.
    finals: int = 0
    # All others, which give way to the finals of every gateway.
    others: int = 0


def fair_shares(demands: Sequence[int], slots: int) -> list[int]:
    """Slots for each demand: none gets more than it wants, nor more than another that wants more than it has.

    Of what cannot be divided, the first get more.
    """
    shares = [0] * len(demands)
    # The least demanding first: what they leave is divided among the others.
    order = sorted(range(len(demands)), key=lambda index: (demands[index], -index))
    left = max(0, slots)
    for served, index in enumerate(order):
        shares[index] = share = min(demands[index], left // (len(order) - served))
        left -= share
    return shares


def grants(wanted: Sequence[Wanted], slots: int) -> list[int]:
    """How many sequences each gateway may run now, at least one.

    Finals are served first; what they leave is for the others. A gateway that has all it wants may use what it
    would get if it wanted more, so that one that has been idle can begin without asking. What is in use, at most
    what each wants, is never more than there is; but one that would get nothing may use one.
    """
    finals = fair_shares([each.finals for each in wanted], slots)
    left = slots - sum(finals)
    demands = [each.others for each in wanted]
    others = fair_shares(demands, left)
    granted = []
    for i, each in enumerate(wanted):
        served, share = finals[i], others[i]
        if served + share == each.finals + each.others:
            share = max(share, fair_shares([*demands[:i], slots, *demands[i + 1 :]], left)[i])
        granted.append(max(1, served + share))
    return granted
