"""How far the model agrees with how an answer is proposed to begin, found the way speculative decoding finds it.

One request whose prompt ends with the proposed tokens, and which generates one more, is a *probe*: it tells for
every one of them what the model would have said there. What the model agrees with needs no generation.
Knows: openings, and a prompt's log-probabilities as vLLM lays them out. Must not know: how a probe is run.

The reading rule: a token of the draft must be the model's own choice, so a draft cannot change the answer. A token
of the prefix may be less likely than that choice by the tolerance. A token that reaches over the border is read as
the draft's; where the model does not choose it, the prefix is read once more, alone, with other last tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.engines.prompting.encoding import EncodedPrompt, Opening, PromptEncoder

__all__ = ["Beginning", "Probe", "PromptLogprobs", "find_beginning"]

_log = logging.getLogger(__name__)


class PromptLogprobs(Protocol):
    """vLLM's `FlatLogprobs`: one row for each token of the prompt, the rows of all in one list a column.

    The last row is that of the last token. Before the tokens that the prefix cache held there are rows that were
    never written, or one that is empty, as vLLM's first or second model runner has it.
    The row of token i begins at start_indices[i]: first token i itself, then the two likeliest in its place.
    logprobs: natural logarithms. ranks: 1 for the model's own choice; of equally likely tokens none has rank 1.
    """

    start_indices: list[int]
    end_indices: list[int]
    token_ids: list[int]
    logprobs: list[float]
    ranks: list[int | None]


class Probe(Struct, frozen=True):
    """What one probe found.

    logprobs: null where the engine gives none. cached_tokens: the prefix cache held so many tokens, and the rows
    of these and of the next one were never written. stopped: the model ends the answer behind the proposed tokens.
    said: the one token that it generated there.
    """

    logprobs: PromptLogprobs | None = None
    cached_tokens: int = 0
    stopped: bool = False
    said: int | None = None


class Beginning(Struct, frozen=True):
    """The beginning of an answer as far as it need not be generated.

    ids, text: the tokens that are known, and what they say. reused: how many of them are the request's, the others
    came with the probe. finish: set where nothing is left to generate. probes: how many were run, one generated
    token each; prompt_tokens, cached_tokens: theirs together.
    """

    ids: list[int] = []
    text: str = ""
    reused: int = 0
    finish: FinishReason | None = None
    probes: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0

    @property
    def event(self) -> TokenEvent | None:
        """What the reader of the generation is told, if anything."""
        if not (self.ids or self.text or self.finish):
            return None
        return TokenEvent(
            text=self.text,
            tokens=self.probes,
            finish=self.finish,
            prompt_tokens=self.prompt_tokens if self.finish else 0,
            cached_tokens=self.cached_tokens if self.finish else 0,
            reused=self.reused,
        )


async def find_beginning(
    request: TranslationRequest,
    prompt: EncodedPrompt,
    encoder: PromptEncoder,
    run: Callable[[list[int], bool], Awaitable[Probe]],
    *,
    greedy: bool,
) -> Beginning:
    """With how much of the request's prefix and draft its answer begins.

    run: probes these tokens; the second argument is whether the prefix cache may be read.
    greedy: how the answer is generated. Otherwise there is no one choice to hold a token against: the prefix is
    kept, the draft is left out. The same is done where the engine gives no log-probabilities.
    """
    probes = _Probes(run)
    opening, agreement = await _look(request, prompt, encoder, probes, greedy=greedy)
    count, text, finish = 0, "", None
    if agreement.tokens >= opening.cover:
        count, text = encoder.cut(prompt, opening, agreement.tokens, keep=True)
        finish = FinishReason.STOP if agreement.stopped and count == len(opening.ids) else None
    elif request.final:
        # What the model would have said without a prefix, too.
        count, text = encoder.cut(prompt, opening, agreement.own, keep=False)
    else:
        finish = FinishReason.REJECTED
    ids = opening.ids[:count]
    if finish is None and agreement.next is not None and agreement.tokens == count < prompt.max_tokens - 1:
        said = encoder.follow(prompt, ids, agreement.next)
        if said is not None:
            ids, text = [*ids, agreement.next], text + said
    return Beginning(ids, text, count, finish, probes.count, probes.prompt_tokens, probes.cached_tokens)


class _Probes:
    """Runs probes and counts what they cost."""

    def __init__(self, run: Callable[[list[int], bool], Awaitable[Probe]]) -> None:
        self._run = run
        self.count = self.prompt_tokens = self.cached_tokens = 0

    async def run(self, ids: list[int], first: int) -> Probe:
        """Probe `ids`; the rows from `first` on are written."""
        probe = await self._once(ids, read_cache=True)
        if probe.logprobs is not None and probe.cached_tokens >= first:
            probe = await self._once(ids, read_cache=False)
        return probe

    async def _once(self, ids: list[int], *, read_cache: bool) -> Probe:
        probe = await self._run(ids, read_cache)
        self.count += 1
        self.prompt_tokens += len(ids)
        self.cached_tokens += probe.cached_tokens
        return probe


class _Agreement(Struct, frozen=True):
    """tokens: how many the reading rule lets pass; own: how many of these in a row are the model's own choice.

    stopped: the model ends the answer behind all of them. next: what it says behind `tokens`, where that is known.
    """

    tokens: int = 0
    own: int = 0
    stopped: bool = False
    next: int | None = None


async def _look(
    request: TranslationRequest, prompt: EncodedPrompt, encoder: PromptEncoder, probes: _Probes, *, greedy: bool
) -> tuple[Opening, _Agreement]:
    """How the answer may begin, read to a decision, and how far the model agrees with it."""
    draft, tolerance = (request.draft, request.tolerance) if greedy else ("", None)
    while True:
        opening = encoder.opening(prompt, request.prefix, draft)
        if opening.cover >= prompt.room:
            # A model that repeats itself can make a prefix that leaves no room for an answer.
            return opening, _Agreement()
        agreement = await _agreement(prompt, opening, tolerance, probes)
        if agreement is None:
            _warn_once()
            draft, tolerance = "", None
        elif agreement.tokens < opening.cover and opening.within < opening.cover:
            draft = ""
        else:
            return opening, agreement


async def _agreement(
    prompt: EncodedPrompt, opening: Opening, tolerance: float | None, probes: _Probes
) -> _Agreement | None:
    """Null where the engine does not say. Nothing is asked where nothing needs to be looked at."""
    passed = opening.within if tolerance is None else 0
    if passed == len(opening.ids):
        return _Agreement(passed, passed)
    ids = prompt.ids + opening.ids
    probe = await probes.run(ids, len(prompt.ids) + passed)
    if probe.logprobs is None:
        return None
    tokens = own = passed
    for n in range(passed, len(opening.ids)):
        gap, chosen, choice = _row(probe, ids, len(prompt.ids) + n)
        if not chosen and not (tolerance is not None and n < opening.within and gap <= tolerance):
            return _Agreement(tokens, own, next=choice)
        own += chosen and own == n
        tokens += 1
    return _Agreement(tokens, own, probe.stopped, None if probe.stopped else probe.said)


def _row(probe: Probe, ids: list[int], position: int) -> tuple[float, bool, int | None]:
    """How much less likely the token is than the model's own choice, in nats; whether it is that; what that is.

    The choice is null where the row is not to be read, or where two tokens are equally likely.
    """
    rows = probe.logprobs
    unread = (float("inf"), False, None)
    if rows is None or position <= probe.cached_tokens:
        return unread
    row = position - len(ids) + len(rows.start_indices)
    if row < 0:
        return unread
    at = rows.start_indices[row]
    if rows.end_indices[row] < at + 2 or rows.token_ids[at] != ids[position]:
        return unread
    gap = rows.logprobs[at + 1] - rows.logprobs[at]
    tied = rows.end_indices[row] < at + 3 or rows.logprobs[at + 1] <= rows.logprobs[at + 2]
    return gap, rows.ranks[at] == 1, None if tied else rows.token_ids[at + 1]


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _log.warning("The engine gives no log-probabilities of prompts: drafts are not used, prefixes are kept.")
    _warned = True
