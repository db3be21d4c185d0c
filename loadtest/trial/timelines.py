"""What went on during trials, second by second, as charts.

Knows: samples. Must not know: how they were taken, how anything is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loadtest.report.content import Chart, Series
from loadtest.trial.summary import several_gpus
from loadtest.trial.values import Sample, Trial

_Value = Callable[[Sample], float | None]

_SECONDS = "seconds after the trial's beginning"


def timelines(trials: Sequence[Trial]) -> Iterator[Chart]:
    """GPU or CPU, and sequences in the engine, of these trials; a panel each."""
    which = f" First repetition of each of {len(trials)} trials." if len(trials) > 1 else ""
    gpus = several_gpus(sample for trial in trials for sample in trial.samples)
    several = f" The mean of the {gpus} GPUs that the engines use." if gpus else ""
    if gpu := _series(trials, ("", lambda sample: sample.gpu)):
        yield Chart(
            title="GPU over time",
            caption="Share of the time in which the GPU was busy, as NVML tells it: itself an average over some "
            f"100 ms or more, so shorter gaps do not show.{several}{which}",
            x_label=_SECONDS,
            y_label="GPU busy, %",
            series=gpu,
        )
    elif cores := _series(
        trials,
        ("engine", lambda sample: sample.cores.get("engine")),
        ("serving", lambda sample: sample.cores.get("serving")),
        ("clients", lambda sample: sample.cores.get("clients")),
    ):
        yield Chart(
            title="CPU over time",
            caption="Cores in use by the engine's processes, by what answers clients (of a gateway with the "
            f"host of its engine) and by the clients of the load test.{which}",
            x_label=_SECONDS,
            y_label="cores",
            series=cores,
        )
    if sequences := _series(
        trials, ("running", lambda sample: sample.running), ("waiting", lambda sample: sample.waiting)
    ):
        yield Chart(
            title="Sequences in the engine over time",
            caption=f"Running: in the batch. Waiting: not yet. As the engine counts them.{which}",
            x_label=_SECONDS,
            y_label="sequences",
            series=sequences,
        )


def _series(trials: Sequence[Trial], *lines: tuple[str, _Value]) -> list[Series]:
    """So many lines in the panel of each trial; those of which nothing is known are left out."""
    series: list[Series] = []
    for trial in trials:
        for style, (name, value) in enumerate(lines):
            points = [(sample.at_s, found) for sample in trial.samples if (found := value(sample)) is not None]
            if len(points) > 1:
                x, y = zip(*points, strict=True)
                name = name or trial.name
                series.append(Series(name, x, y, colour=style, style=style, markers=False, panel=trial.name))
    return series
