"""What went on during trials, second by second, as charts.

Knows: samples. Must not know: how they were taken, how anything is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loadtest.report.content import Chart, Series
from loadtest.trial.values import Sample, Trial

__all__ = ["timelines"]


def timelines(trials: Sequence[Trial]) -> Iterator[Chart]:
    """GPU or CPU, and sequences in the engine, of these trials; a panel each."""
    which = f" First repetition of each of {len(trials)} trials." if len(trials) > 1 else ""
    gpu = [_series(trial, "", 0, lambda sample: sample.gpu) for trial in trials]
    if drawn := list(filter(None, gpu)):
        yield Chart(
            title="GPU over time",
            caption="Share of the time in which the GPU was busy, as NVML tells it: itself an average over some "
            f"100 ms or more, so shorter gaps do not show.{which}",
            x_label=_SECONDS,
            y_label="GPU busy, %",
            series=drawn,
        )
    else:
        yield from _cores(trials, which)
    sequences = [
        each
        for trial in trials
        for each in (
            _series(trial, "running", 0, lambda sample: sample.running),
            _series(trial, "waiting", 1, lambda sample: sample.waiting),
        )
    ]
    if drawn := list(filter(None, sequences)):
        yield Chart(
            title="Sequences in the engine over time",
            caption=f"Running: in the batch. Waiting: not yet. As the engine counts them.{which}",
            x_label=_SECONDS,
            y_label="sequences",
            series=drawn,
        )


_SECONDS = "seconds after the trial's beginning"


def _cores(trials: Sequence[Trial], which: str) -> Iterator[Chart]:
    parts = [
        ("engine", lambda sample: sample.cores.get("engine")),
        ("serving", lambda sample: sample.cores.get("serving")),
        ("clients", lambda sample: sample.cores.get("clients")),
    ]
    series = [
        each
        for trial in trials
        for style, (part, value) in enumerate(parts)
        if (each := _series(trial, part, style, value)) is not None
        # A part that is no process of its own.
        and max(filter(None, each.y), default=0.0) > 0.005
    ]
    if series:
        yield Chart(
            title="CPU over time",
            caption="Cores in use by the engine's processes, by what answers clients (of a gateway with the "
            f"host of its engine) and by the clients of the load test.{which}",
            x_label=_SECONDS,
            y_label="cores",
            series=series,
        )


def _series(trial: Trial, name: str, style: int, value: Callable[[Sample], float | None]) -> Series | None:
    points = [(sample.at_s, found) for sample in trial.samples if (found := value(sample)) is not None]
    if len(points) < 2:
        return None
    x, y = zip(*points, strict=True)
    return Series(name or trial.name, x, y, colour=style, style=style, markers=False, panel=trial.name)
