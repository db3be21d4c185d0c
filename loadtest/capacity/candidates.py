"""Which settings to try next, and which of those that were tried to recommend.

Knows: two settings of the engine, and what load each pair of them carried. Pure: a generator, as in `search`.
Must not know: how a capacity is found.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from msgspec import Struct

from loadtest.capacity.search import Found

__all__ = ["Candidate", "Choice", "Tried", "candidates_search", "choose"]

# Closer to the best than this counts as equally good: so much lies between two runs of the same settings.
_NEAR = 0.03


class Candidate(Struct, frozen=True):
    """max_num_batched_tokens: None is the gateway's own choice."""

    max_num_seqs: int
    max_num_batched_tokens: int | None = None

    def __str__(self) -> str:
        budget = self.max_num_batched_tokens
        return f"{self.max_num_seqs} sequences" + (f", {budget} tokens a step" if budget is not None else "")


class Tried(Struct, frozen=True):
    """failed: why a gateway with these settings could not be measured, or no further than `found` says."""

    candidate: Candidate
    found: Found | None
    failed: str | None = None

    @property
    def capacity(self) -> float:
        return (self.found.capacity or 0.0) if self.found is not None else 0.0


class Choice(Struct, frozen=True):
    """why: one sentence."""

    tried: Tried
    why: str


def candidates_search(
    seqs: Sequence[int], budgets: Sequence[int], group: int = 1
) -> Generator[list[Candidate], list[Tried] | None, list[Tried]]:
    """One setting after the other: all of `seqs` with the gateway's own token budget, then all of `budgets` with
    the best of those. Yields up to `group` candidates at a time; is sent what came of them, or None when there is
    no time left. Returns all."""
    tried: list[Tried] = []

    def ask(candidates: Sequence[Candidate]) -> Generator[list[Candidate], list[Tried] | None, bool]:
        for first in range(0, len(candidates), group):
            answer = yield list(candidates[first : first + group])
            if answer is None:
                return False
            tried.extend(answer)
        return True

    if (yield from ask([Candidate(each) for each in seqs])) and (choice := choose(tried)) is not None:
        best = choice.tried.candidate.max_num_seqs
        # A step holds a token of each sequence.
        yield from ask([Candidate(best, budget) for budget in budgets if budget >= best])
    return tried


def choose(tried: Sequence[Tried]) -> Choice | None:
    """The smallest batch that carries nearly as much as the best; then the token budget, where one is clearly
    better than the gateway's own choice. None when nothing carried anything."""
    able = [each for each in tried if each.capacity > 0]
    if not able:
        return None
    own = [each for each in able if each.candidate.max_num_batched_tokens is None] or able
    most = max(own, key=lambda each: each.capacity)
    chosen = min(
        (each for each in own if _near(each.capacity, most.capacity)), key=lambda each: each.candidate.max_num_seqs
    )
    if chosen is most:
        why = "It carries the most of those that were tried."
        if len(own) > 1 and chosen.candidate.max_num_seqs == max(each.candidate.max_num_seqs for each in own):
            why += " It is the largest of them, too: a larger one may carry more (--max-num-seqs)."
    else:
        why = (
            f"It carries {chosen.capacity:g}, within {_NEAR:.0%} of the most, {most.capacity:g} with "
            f"{most.candidate.max_num_seqs}; of two batches that carry the same, in the smaller one every token "
            "comes sooner."
        )
    size = chosen.candidate.max_num_seqs
    budgets = [each for each in able if each.candidate.max_num_seqs == size and each is not chosen]
    if budgets and not _near(chosen.capacity, (better := max(budgets, key=lambda each: each.capacity)).capacity):
        budget = better.candidate.max_num_batched_tokens
        why += f" {budget} tokens a step carry {better.capacity:g}, the gateway's own choice {chosen.capacity:g}."
        chosen = better
    return Choice(chosen, why)


def _near(capacity: float, best: float) -> bool:
    """Whether a capacity counts as good as the best."""
    return capacity >= best * (1 - _NEAR)
