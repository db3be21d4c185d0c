"""What an operator is told: settings to paste, meetings to plan with, and why.

Knows: capacities. Pure. Must not know: how anything was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from loadtest.capacity.candidates import Choice, Tried
from loadtest.capacity.curve import HEADROOM, capacity_finding, with_headroom
from loadtest.capacity.offer import Offer, Unit
from loadtest.capacity.points import Point, there, too_few
from loadtest.trial.values import Finding

__all__ = ["Advice", "advise"]


class Advice(Struct, frozen=True):
    findings: list[Finding]
    # To be pasted, with settings that were run; empty when nothing can be recommended.
    toml: str


def advise(
    choice: Choice | None,
    tried: Sequence[Tried],
    *,
    offer: Offer,
    points: Sequence[Point],
    at: Point | None,
    device: str,
    left_out: Sequence[str] = (),
    interrupted: bool = False,
) -> Advice:
    """Everything that is said.

    points: of all runs with the chosen settings. at: the run that confirmed the chosen capacity. device: what one
    gateway has, for people. left_out: settings that were not tried, for want of time or after an interruption.
    """
    notes, objective = _notes(tried, offer.unit, left_out, interrupted), offer.objective
    if choice is None or at is None or choice.tried.found is None:
        within = f"{objective.first_token_ms:g} ms"
        note = f"None of the settings that were tried kept {within} even under the smallest load."
        return Advice([Finding("a recommendation", "none", passed=False, note=note), *notes], "")
    capacity, unit, found = choice.tried.capacity, offer.unit, choice.tried.found
    candidate = choice.tried.candidate
    budget = candidate.max_num_batched_tokens
    planned = with_headroom(capacity, unit)
    sure = f"{found.ended.value.capitalize()}. {too_few(at, offer)}".strip()
    findings = [
        Finding("max_num_seqs", str(candidate.max_num_seqs), note=choice.why),
        Finding("max_num_batched_tokens", "the gateway's own choice" if budget is None else str(budget)),
        capacity_finding(f"a {device} carries", found, unit, sure),
        Finding(f"with {HEADROOM:.0%} kept free", unit.words(planned), note="What to plan with."),
        *there(at, points, offer),
        *notes,
    ]
    lines = [
        f"# {unit.words(capacity)} a {device}; plan with {unit.words(planned)} ({HEADROOM:.0%} kept free):",
        f"# {objective.quantile * 100:g} % of the first tokens within {objective.first_token_ms:g} ms;",
        f"# {offer.workload}.",
        *([] if found.ended.confirmed else [f"# NOT CONFIRMED: {found.ended.value}."]),
        "[engine]",
        f"max_num_seqs = {candidate.max_num_seqs}",
        *([] if budget is None else [f"max_num_batched_tokens = {budget}"]),
    ]
    return Advice(findings, "\n".join(lines) + "\n")


def _notes(tried: Sequence[Tried], unit: Unit, left_out: Sequence[str], interrupted: bool) -> list[Finding]:
    """What might have been recommended, had it been tried, or tried to the end."""
    told: list[Finding] = []
    for each in tried:
        if each.found is None:
            told.append(Finding(f"not measured: {each.candidate}", "failed", note=each.failed or ""))
        elif each.found.ended.cut_short:
            value = unit.words(each.found.capacity) if each.found.capacity is not None else "nothing"
            why = " ".join(filter(None, [f"{each.found.ended.value.capitalize()}.", each.failed]))
            told.append(Finding(f"cut short: {each.candidate}", value, note=f"{why} It may carry more, or less."))
    missing = ", ".join(left_out)
    if interrupted:
        note = f"Not tried: {missing}." if missing else ""
        told.append(Finding("the search", "interrupted", passed=False, note=note))
    elif missing:
        note = f"There was no time for {missing} (--time-limit-s)."
        told.append(Finding("the search", "incomplete", note=note))
    return told
