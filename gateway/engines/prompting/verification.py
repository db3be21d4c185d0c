"""Finds how much of the proposed beginning of an answer the model agrees with, as speculative decoding does.

A *probe* is a request whose prompt ends with the proposed tokens and that generates one more token. For each
proposed token it shows which token the model would have chosen. Tokens that the model agrees with need not be
generated.
Knows: openings, and the rows of a prompt's log-probabilities. Must not know: how a probe is run.

The acceptance rule:
- A token of the draft must be the model's own choice, so a draft cannot change the answer.
- A token of the prefix may be less likely than that choice by the tolerance.
- A token that spans prefix and draft counts as one of the draft. If the model does not choose it, the prefix is
  probed again without the draft, which gives it other last tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec import Struct

from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.engines.prompting.completions import News
from gateway.engines.prompting.encoding import EncodedPrompt, Opening, PromptEncoder

_log = logging.getLogger(__name__)


class VerifiedPrefix(Struct, frozen=True):
    """The beginning of an answer that need not be generated."""

    # Its tokens.
    ids: list[int] = []
    # Their text.
    text: str = ""
    # How many of the tokens come from the request. The others come from the probe.
    reused: int = 0
    # Set if nothing is left to generate.
    finish: FinishReason | None = None
    # Number of probes. Each generated one token.
    probes: int = 0
    # Prompt tokens of all probes.
    prompt_tokens: int = 0
    # Tokens of them that came from the prefix cache.
    cached_tokens: int = 0
    # How many tokens of the beginning, or of its end, have a known log-probability.
    rated: int = 0
    # The sum of these, in nats.
    logprob: float = 0.0

    @property
    def event(self) -> TokenEvent | None:
        """The event for the reader of the generation; None if there is nothing to report."""
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


async def verify_proposal(
    request: TranslationRequest,
    prompt: EncodedPrompt,
    encoder: PromptEncoder,
    run: Callable[[list[int], bool], Awaitable[News]],
    *,
    greedy: bool,
) -> VerifiedPrefix:
    """How much of the request's prefix and draft begins the answer.

    run: probes token ids, and tells the rows of those behind the prompt; its second argument is whether the prefix
        cache may be read.
    greedy: whether decoding is greedy. If not, or if the engine gives no log-probabilities, there is no single
        choice to compare with. The prefix is then kept and the draft left out.
    """
    probes = _Probes(run)
    opening, agreement = await _look(request, prompt, encoder, probes, greedy=greedy)
    count, text, finish = 0, "", None
    if agreement.tokens >= opening.cover:
        count, text = encoder.cut(prompt, opening, agreement.tokens, keep=True)
        finish = FinishReason.STOP if agreement.stopped and count == len(opening.ids) else None
    elif request.final:
        # Keep only the tokens that the model would choose without a prefix too.
        count, text = encoder.cut(prompt, opening, agreement.own, keep=False)
    else:
        finish = FinishReason.REJECTED
    ids = opening.ids[:count]
    logprobs = agreement.logprobs[: max(0, len(agreement.logprobs) - (agreement.tokens - count))]
    if finish is None and agreement.next is not None and agreement.tokens == count < prompt.max_tokens - 1:
        said = encoder.follow(prompt, ids, agreement.next)
        if said is not None:
            ids, text = [*ids, agreement.next], text + said
            logprobs += agreement.next_logprob
    elif finish is FinishReason.STOP:
        logprobs += agreement.next_logprob
    return VerifiedPrefix(
        *(ids, text, count, finish, probes.count, probes.prompt_tokens, probes.cached_tokens),
        rated=len(logprobs),
        logprob=sum(logprobs),
    )


class _Probes:
    def __init__(self, run: Callable[[list[int], bool], Awaitable[News]]) -> None:
        self._run = run
        self.count = self.prompt_tokens = self.cached_tokens = 0

    async def run(self, ids: list[int], first: int) -> News:
        """Probe `ids`, so that the rows from `first` on are written."""
        probe = await self._once(ids, read_cache=True)
        if probe.rows is not None and probe.cached_tokens >= first:
            probe = await self._once(ids, read_cache=False)
        return probe

    async def _once(self, ids: list[int], *, read_cache: bool) -> News:
        probe = await self._run(ids, read_cache)
        self.count += 1
        self.prompt_tokens += len(ids)
        self.cached_tokens += probe.cached_tokens
        return probe


class _Agreement(Struct, frozen=True):
    """How far the model agrees with an opening."""

    # How many tokens the acceptance rule accepts.
    tokens: int = 0
    # How many of them, from the first on, are the model's own choice.
    own: int = 0
    # Whether the model ends the answer after all of them.
    stopped: bool = False
    # The model's token after the accepted ones, if it is known.
    next: int | None = None
    # Log-probabilities of the accepted tokens, as far as they are known.
    logprobs: list[float] = []
    # That of `next`, or of the end of the answer; empty if it is not known.
    next_logprob: list[float] = []


async def _look(
    request: TranslationRequest, prompt: EncodedPrompt, encoder: PromptEncoder, probes: _Probes, *, greedy: bool
) -> tuple[Opening, _Agreement]:
    """The opening that was decided on, and how far the model agrees with it."""
    draft, tolerance = (request.draft, request.tolerance) if greedy else ("", None)
    while True:
        opening = await encoder.opening(prompt, request.prefix, draft)
        if opening.cover >= prompt.room:
            # A model that repeats itself can produce a prefix that leaves no room for an answer.
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
    """How far the model agrees; None without log-probabilities. No probe is run if nothing needs to be checked."""
    passed = opening.within if tolerance is None else 0
    if passed == len(opening.ids):
        return _Agreement(passed, passed)
    ids = prompt.ids + opening.ids
    probe = await probes.run(ids, len(prompt.ids) + passed)
    if probe.rows is None:
        return None
    tokens = own = passed
    logprobs: list[float] = []
    for n in range(passed, len(opening.ids)):
        row = _row(probe, ids, len(prompt.ids) + n)
        if not row.chosen and not (tolerance is not None and n < opening.within and row.gap <= tolerance):
            return _Agreement(
                tokens, own, next=row.choice, logprobs=logprobs, next_logprob=[row.logprob + row.gap]
            )
        own += row.chosen and own == n
        tokens += 1
        logprobs.append(row.logprob)
    said_logprob = [] if probe.logprob is None else [probe.logprob]
    stopped = probe.finish is FinishReason.STOP
    said = None if stopped else next(iter(probe.ids), None)
    return _Agreement(tokens, own, stopped, said, logprobs, said_logprob)


class _Row(NamedTuple):
    """What the model thought of one token."""

    # How much less likely the token is than the model's own choice, in nats.
    gap: float = float("inf")
    # Whether it is that choice.
    chosen: bool = False
    # The model's own choice; None if the row cannot be read or two tokens are equally likely.
    choice: int | None = None
    # Log-probability of the token.
    logprob: float = float("-inf")


def _row(probe: News, ids: list[int], position: int) -> _Row:
    """The row of one token."""
    rows = probe.rows
    unread = _Row()
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
    return _Row(gap, rows.ranks[at] == 1, None if tied else rows.token_ids[at + 1], rows.logprobs[at])


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _log.warning("The engine gives no log-probabilities of prompts: drafts are ignored, prefixes are kept.")
    _warned = True
