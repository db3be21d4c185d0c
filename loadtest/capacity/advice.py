"""What an operator is told: settings to paste, meetings to plan with, and why.

Knows: capacities, recorded workloads, memory. Pure. Must not know: how anything was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from loadtest.capacity.candidates import Choice, Tried
from loadtest.capacity.capacity import HEADROOM, capacity_finding, with_headroom
from loadtest.capacity.memory import Cache, Model, Need, need
from loadtest.capacity.offer import Offer, Unit
from loadtest.capacity.points import Point, numbers, too_few
from loadtest.capacity.recorded import Recorded
from loadtest.trial.values import Finding

__all__ = ["Advice", "Fit", "advise", "scale"]

# A GPU's whole memory is never there for one process.
_MOST_SHARE = 0.95

# The gateway hands the engine so many sequences more than it runs.
_LOOKAHEAD = 2


class Fit(Struct, frozen=True, kw_only=True):
    """How memory is reckoned. model: null when its size is not known. gpu_gib: memory of the GPU, null on a CPU.
    block: tokens of a block of the cache. batched_tokens: of a step, where the gateway chooses."""

    model: Model | None = None
    gpu_gib: float | None = None
    block: int = 16
    batched_tokens: int = 2_048


class Advice(Struct, frozen=True):
    """toml: to be pasted, with settings that were run, and in comments what was reckoned; empty when nothing can
    be recommended."""

    findings: list[Finding]
    toml: str


class Scale(Struct, frozen=True):
    """A recorded workload beside what was measured. pace: translations a minute of one of its meetings, for each
    of a measured meeting; null when it is not known. tokens: generated for one of its translations, for each of a
    measured translation."""

    pace: float | None
    tokens: float


def scale(recorded: Recorded, measured: Sequence[Recorded], at: Point, unit: Unit) -> Scale:
    """How a recorded workload differs from the one that the capacity was found with. measured: under any load.

    How many revisions are translated depends on the load, and with them the tokens: of all runs, the one that is
    nearest in that is compared.
    """
    tokens = 1.0
    told = [each for each in measured if each.tokens_per_translation]
    if told and recorded.tokens_per_translation:
        nearest = min(told, key=lambda each: abs(each.partials_per_final - recorded.partials_per_final))
        tokens = recorded.tokens_per_translation / nearest.tokens_per_translation
    pace: float | None = None
    per_min = recorded.translations_per_min
    if unit is Unit.MEETINGS and per_min and recorded.meetings and at.offered_per_s:
        pace = per_min / recorded.meetings / (at.offered_per_s * 60 / at.load)
    return Scale(pace, tokens)


def advise(
    choice: Choice | None,
    tried: Sequence[Tried],
    *,
    offer: Offer,
    at: Point | None,
    output_tokens_p99: float | None,
    workload: Recorded | None,
    recorded: Recorded | None,
    fit: Fit,
    workloads: Sequence[Recorded] = (),
    left_out: Sequence[str] = (),
    interrupted: bool = False,
) -> Advice:
    """Everything that is said. at: the run that confirmed the chosen capacity. workload: as the gateway counted
    what was offered then; workloads: in all runs with those settings, by load. recorded: what an operator's own
    gateway did. left_out: settings that were not tried, for want of time or because it was interrupted."""
    notes = _notes(tried, offer.unit, left_out, interrupted)
    if choice is None or at is None or choice.tried.found is None:
        objective = f"{offer.objective.first_token_ms:g} ms"
        nothing = Finding(
            "a recommendation",
            "none",
            passed=False,
            note=f"None of the settings that were tried kept {objective} even under the smallest load.",
        )
        return Advice([nothing, *notes], "")
    capacity, unit = choice.tried.capacity, offer.unit
    reckoned, memory = _memory(choice, offer, at, output_tokens_p99, workload, recorded, fit)
    found = choice.tried.found
    sure = f"{found.ended.value.capitalize()}. {too_few(at, offer)}".strip()
    candidate = choice.tried.candidate
    budget = candidate.max_num_batched_tokens
    device = "GPU" if fit.gpu_gib is not None else "machine"
    planned = with_headroom(capacity, unit)
    findings = [
        Finding("max_num_seqs", str(candidate.max_num_seqs), note=choice.why),
        Finding("max_num_batched_tokens", str(budget) if budget is not None else "the gateway's own choice"),
        *memory,
        capacity_finding(f"a {device} carries", found, unit, sure),
        Finding(f"with {HEADROOM:.0%} kept free", unit.words(planned), note="What to plan with."),
        Finding("first token there, p50 / p99", f"{numbers(at.first_p50_ms)} / {numbers(at.first_p99_ms)} ms"),
        Finding("tokens of finals there", f"{numbers(at.tokens_per_s)}/s"),
        *_revisions(workload, workloads),
        *(_own(recorded, scale(recorded, workloads, at, unit), capacity, at, unit, device) if recorded else []),
        *notes,
    ]
    said = [
        f"{unit.words(capacity)} a {device}; plan with {unit.words(planned)} ({HEADROOM:.0%} kept free):",
        f"{offer.objective.quantile * 100:g} % of the first tokens within {offer.objective.first_token_ms:g} ms;",
        f"{offer.workload}.",
        *([] if found.ended.confirmed else [f"NOT CONFIRMED: {found.ended.value}."]),
    ]
    engine = {
        "max_num_seqs": candidate.max_num_seqs,
        **({"max_num_batched_tokens": budget} if budget is not None else {}),
    }
    lines = [
        *(f"# {line}" for line in said),
        "[engine]",
        *(f"{name} = {value}" for name, value in engine.items()),
        *(f"# {name} = {value}  # reckoned, not run" for name, value in reckoned.items()),
    ]
    return Advice(findings, "\n".join(lines) + "\n")


def _revisions(workload: Recorded | None, workloads: Sequence[Recorded]) -> list[Finding]:
    """Partials are what a full engine leaves out first, and the objective does not ask for them."""
    if workload is None or not any(each.partials_per_final for each in workloads):
        return []
    note = (
        f"Under the smallest load that was tried {workloads[0].partials_per_final:.1f}: where the engine is full, "
        "fewer are translated. The objective does not count them."
    )
    return [Finding("revisions translated for each final there", f"{workload.partials_per_final:.1f}", note=note)]


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


def _memory(
    choice: Choice,
    offer: Offer,
    at: Point,
    output_tokens_p99: float | None,
    workload: Recorded | None,
    recorded: Recorded | None,
    fit: Fit,
) -> tuple[dict[str, float], list[Finding]]:
    """The setting of the cache, and what it is made of. It is reckoned: no gateway was run with it."""
    # What is longer of both: the operator's own prompts hold context and glossaries, the scenario's none.
    prompts = [each.prompt_tokens for each in (workload, recorded) if each is not None and each.prompt_tokens]
    if fit.model is None or not prompts or output_tokens_p99 is None:
        return {}, []
    channels = len(offer.scenario.targets) * (at.load if offer.unit is Unit.MEETINGS else 0)
    cache = Cache(
        sequences=choice.tried.candidate.max_num_seqs + _LOOKAHEAD,
        prompt_tokens=max(prompts),
        output_tokens=output_tokens_p99,
        kept_prompts=math.ceil(channels),
        block=fit.block,
    )
    batched = choice.tried.candidate.max_num_batched_tokens or fit.batched_tokens
    needed = need(fit.model, cache, batched_tokens=batched, gpu_gib=fit.gpu_gib)
    made_of = (
        f"{cache.tokens:,} tokens of cache are {needed.cache_gib:.2f} GiB: {cache.sequences} sequences of "
        f"{cache.prompt_tokens:.0f} prompt and {cache.output_tokens:.0f} output tokens, and the prompts of "
        f"{cache.kept_prompts} channels. Weights {needed.weights_gib:.2f} GiB"
    )
    if needed.share is None:
        gib = max(1, math.ceil(needed.cache_gib))
        return {"kv_cache_gib": float(gib)}, [Finding("kv_cache_gib, reckoned", str(gib), note=f"{made_of}.")]
    return _share(needed, made_of, fit)


def _share(needed: Need, made_of: str, fit: Fit) -> tuple[dict[str, float], list[Finding]]:
    assert needed.share is not None  # noqa: S101 -- there is a GPU
    note = f"{made_of}, reserve {needed.reserve_gib:.1f} GiB: {needed.total_gib:.1f} of {fit.gpu_gib:.0f} GiB."
    name, value = "gpu_memory_utilization, reckoned", f"{needed.share:.2f}"
    if needed.share > _MOST_SHARE:
        more = "More than there is; what was run had less, and could keep fewer prompts cached."
        return {}, [Finding(name, value, note=f"{note} {more}")]
    more = "The least that is needed. What was run had the share of your own settings, which keeps more cached."
    return {"gpu_memory_utilization": needed.share}, [Finding(name, value, note=f"{note} {more}")]


def _own(recorded: Recorded, by: Scale, capacity: float, at: Point, unit: Unit, device: str) -> list[Finding]:
    """What the capacity means for the operator's own workload."""
    told: list[Finding] = []
    how = f"A translation of yours takes {by.tokens:.2f} × the tokens of a measured one"
    if by.pace is not None:
        own = capacity / by.pace / by.tokens
        told.append(
            Finding(
                f"of your meetings a {device} carries",
                unit.words(with_headroom(own, unit)),
                note=f"{HEADROOM:.0%} kept free. {how}, a meeting {by.pace:.2f} × the translations a minute.",
            )
        )
    if recorded.translations_per_min is not None and at.offered_per_s:
        own_per_min = recorded.translations_per_min * by.tokens
        carried_per_min = at.offered_per_s * 60 * (1 - HEADROOM)
        count = math.ceil(own_per_min / carried_per_min)
        told.append(
            Finding(
                f"{device}s for the recorded load",
                str(count),
                note=f"{recorded.translations_per_min:.0f} translations a minute were recorded, on average; one "
                f"{device} carries {carried_per_min / by.tokens:.0f} of yours, {HEADROOM:.0%} kept free. {how}. "
                "Look at your busiest hour.",
            )
        )
    elif recorded.utterances_per_min is None:
        note = "One file tells no rates: give a second one of later (--metrics-again) or the gateway's address."
        told.append(Finding(f"{device}s for the recorded load", "not known", note=f"{note} {how}."))
    return told
