"""When the processor of an engine did nothing although there was something to do.

Knows: samples, and when requests were in flight. Must not know: files, clocks, how anything was sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loadtest.trial.values import Sample, Trial

__all__ = ["longest_idle_s"]

# Of one core: what an engine's process uses to look for requests.
_IDLE_CORES = 0.05

_Span = tuple[float, float]


def _engine_is_idle(sample: Sample) -> bool | None:
    """Whether the GPU, or without one the engine's share of the CPU, was idle; None where neither is known."""
    if sample.gpu is not None:
        return sample.gpu == 0
    cores = sample.cores.get("engine")
    return None if cores is None else cores < _IDLE_CORES


def longest_idle_s(trial: Trial) -> float | None:
    """The longest time during which the engine was idle while requests were in flight, or the engine said that it
    ran some. A sample speaks for the time since the one before it.

    None when it cannot be told; also when the engine never did anything in a process of its own.
    """
    idle: list[_Span] = []
    running: list[_Span] = []
    known = False
    for since_s, sample in zip([0.0, *(each.at_s for each in trial.samples)], trial.samples, strict=False):
        state = _engine_is_idle(sample)
        known = known or state is False
        if state:
            idle.append((since_s, sample.at_s))
        if sample.running:
            running.append((since_s, sample.at_s))
    if not known:
        return None
    return _longest_overlap(_merged(idle), _merged([*running, *_in_flight(trial)]))


def _in_flight(trial: Trial) -> Iterable[_Span]:
    for record in trial.records:
        if record.done_s is not None:
            yield record.sent_s, record.done_s
        elif record.failed is None:
            yield record.sent_s, max(trial.elapsed_s, record.sent_s)


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    """The same times, in order, none of which touch."""
    merged: list[_Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def _longest_overlap(left: Sequence[_Span], right: Sequence[_Span]) -> float:
    longest = 0.0
    one = other = 0
    while one < len(left) and other < len(right):
        begin = max(left[one][0], right[other][0])
        end = min(left[one][1], right[other][1])
        longest = max(longest, end - begin)
        if left[one][1] < right[other][1]:
            one += 1
        else:
            other += 1
    return longest
