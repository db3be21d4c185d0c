"""The one report of every load test: from what was found to the files of a folder, with charts for whatever trials
there are.

`result.json.gz` holds everything but the records, with the summaries of the trials; `table.md` and `plot.png` are
made from it, and can be made again. `utterances.jsonl` holds the records, one a line, with the name and the
repetition of their trial.

Knows: which numbers people look for, how they are written, what each picture tells, which file it is in. Must not
know: how anything was measured or is drawn.
"""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from loadtest.machine import Machine
from loadtest.results import LoadtestError, Spread
from loadtest.trial import plots
from loadtest.trial.content import (
    MOST_SERIES,
    NONE,
    Chart,
    Mark,
    Series,
    Table,
    formatted,
    markdown,
    number,
    tabulated,
)
from loadtest.trial.summary import Level, Percentiles, Summary, several_gpus, summaries
from loadtest.trial.values import Closed, Finding, InMeetings, Load, Objective, Results, Sample, Trial

RESULT = "result.json.gz"
_TABLE, _PLOT, _UTTERANCES = "table.md", "plot.png", "utterances.jsonl"

# The charts of trials fill up those of the command to so many.
_MOST_CHARTS = 4

_NOT_DRAWN = (
    "matplotlib is not installed where this was written, so there is no plot; `python -m loadtest report` "
    "draws it elsewhere."
)


class Report(Results, frozen=True, kw_only=True):
    """What was found, with what was called when, and on which machine."""

    # The subcommand.
    kind: str
    command: str
    began: str
    machine: Machine
    # One for each name of a trial.
    summaries: list[Summary]


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def report(results: Results, *, kind: str, command: str, began: str, machine: Machine) -> Report:
    """The report of a command that found this."""
    told = summaries(results.trials, results.objective or Objective())
    own = {name: getattr(results, name) for name in Results.__struct_fields__}
    return Report(kind=kind, command=command, began=began, machine=machine, summaries=told, **own)


def passed(results: Results) -> bool:
    """Whether no bar was missed."""
    return all(finding.passed is not False for finding in results.findings)


# ---------------------------------------------------------------- files


def write(made: Report, folder: Path) -> str:
    """All files, into `folder`, which is made when it is missing. Returns the table."""
    folder.mkdir(parents=True, exist_ok=True)
    if made.trials:
        encode = msgspec.json.Encoder().encode
        with (folder / _UTTERANCES).open("wb") as file:
            for trial in made.trials:
                named = encode({"trial": trial.name, "repetition": trial.repetition})[:-1] + b","
                file.writelines(named + encode(record)[1:] + b"\n" for record in trial.records)
    for name, text in made.files.items():
        (folder / name).write_text(text)
    kept = replace(made, trials=[replace(trial, records=[]) for trial in made.trials])
    # Without a time in it, the same result is the same file.
    (folder / RESULT).write_bytes(gzip.compress(msgspec.json.encode(kept), mtime=0))
    return show(kept, folder)


def read(folder: Path) -> Report:
    """The result in a folder. Raises `LoadtestError` where there is none."""
    try:
        return msgspec.json.decode(gzip.decompress((folder / RESULT).read_bytes()), type=Report)
    except FileNotFoundError:
        raise LoadtestError(f"{folder} holds no {RESULT}.") from None
    except (msgspec.DecodeError, OSError, EOFError) as error:
        raise LoadtestError(f"{folder / RESULT} is not a result of this load test: {error}") from None


def show(made: Report, folder: Path) -> str:
    """`table.md` and `plot.png`; the result stays as it is. Returns the table."""
    of_trials = charts(made.summaries, made.trials, made.objective or Objective())
    every = [*made.charts, *of_trials[: max(_MOST_CHARTS - len(made.charts), 0)]]
    drawn = [chart for chart in every if any(value is not None for each in chart.series for value in each.y)]
    shown = list(parts(made))
    if drawn and plots.available():
        if told := [f"- {chart.title}: {chart.caption}" for chart in drawn if chart.caption]:
            shown += [f"In [{_PLOT}]({_PLOT}):", "\n".join(told)]
        machine = made.machine
        on = machine.gpus[0] if machine.gpus else f"{machine.cpu}, {machine.cores} cores"
        plots.picture(drawn, f"{made.kind}: {made.model} on {on}", folder / _PLOT)
    else:
        shown += [_NOT_DRAWN] if drawn else []
        # One of an earlier run.
        (folder / _PLOT).unlink(missing_ok=True)
    table = markdown(shown)
    (folder / _TABLE).write_text(table)
    return table


def parts(made: Report) -> Iterator[str | Table]:
    """Findings, what a command has besides, one row for each trial, and on what it was measured."""
    if made.findings:
        yield _findings_table(made.findings)
    yield from made.parts
    yield from summary_tables(made.summaries, made.objective or Objective())
    yield from _notes(made)


def _findings_table(findings: Sequence[Finding]) -> Table:
    """What was found, beside what it has to be."""
    # In words, since colour alone tells some people nothing.
    verdict = {True: "passed", False: "FAILED", None: ""}
    head = ("finding", "value", "has to be", "", "note")
    rows = [(each.name, each.value, each.bar, verdict[each.passed], each.note) for each in findings]
    return _without_empty(Table("", head, rows))


# ---------------------------------------------------------------- trials


def summary_tables(summaries: Sequence[Summary], objective: Objective) -> list[Table]:
    """Speed and latency of each trial, and what it cost; columns of which nothing is known are left out."""
    if not summaries:
        return []
    again = max(each.repetitions for each in summaries) > 1
    speed: list[tuple[str, Callable[[Summary], str]]] = [
        ("trial", _name),
        ("load", lambda each: _load_words(each.load)),
        ("requests/s", lambda each: _spread(each.requests_per_s, again)),
        ("tokens/s", lambda each: _spread(each.tokens_per_s, again)),
        ("goodput/s", lambda each: number(each.goodput_per_s.median)),
        ("kept the objective", lambda each: f"{each.within:.1%}" if each.records else NONE),
        ("first token p50 / p90 / p99, ms", lambda each: _latency(each.first_token)),
        (
            "first words on screen, since the utterance began p50 / p90 / p99, ms",
            lambda each: _latency(each.first_words),
        ),
        ("partials translated", lambda each: formatted(each.partials_translated, ".0%")),
        ("per token p50 / p90 / p99, ms", lambda each: _latency(each.per_token)),
        ("whole p50 / p90 / p99, ms", lambda each: _latency(each.total)),
        ("at readers p50 / p90 / p99, ms", lambda each: _latency(each.delivered)),
        ("translations", lambda each: f"{each.records:,}"),
        ("failed", _failed),
    ]

    def cpu(part: str) -> Callable[[Summary], str]:
        return lambda each: formatted(getattr(each.cpu_s_per_1000_tokens.get(part), "median", None), ".3f")

    def cores(part: str) -> Callable[[Summary], str]:
        return lambda each: formatted(each.cores.get(part), ".2f")

    parts = list(dict.fromkeys(part for each in summaries for part in each.cpu_s_per_1000_tokens))
    cost: list[tuple[str, Callable[[Summary], str]]] = [
        ("trial", _name),
        *((f"{part} CPU s per 1,000 tokens", cpu(part)) for part in parts),
        *((f"{part} cores", cores(part)) for part in dict.fromkeys(p for each in summaries for p in each.cores)),
        ("of serving: gateway's processes cores", _gateway_cores),
        ("of serving: engine's host process cores", _host_cores),
        ("of serving: store cores", lambda each: formatted(each.store_cores, ".2f")),
        ("GPU busy, mean %", lambda each: number(each.gpu_percent)),
        ("GPU memory, MiB", lambda each: number(each.gpu_memory_mib)),
        (
            "engine steps after over 100 ms",
            lambda each: NONE if each.steps is None else f"{each.long_steps or 0:,} of {each.steps:,}",
        ),
        ("running mean (max)", lambda each: _level(each.running)),
        ("waiting mean (max)", lambda each: _level(each.waiting)),
        ("serving memory, MiB", lambda each: number(each.memory_mib)),
        (
            "driver lag p99 (max), ms",
            lambda each: (
                NONE if each.lag_p99_ms is None else f"{number(each.lag_p99_ms)} ({number(each.lag_max_ms)})"
            ),
        ),
    ]
    gpus = max(each.gpus for each in summaries)
    several = f" The engines use {gpus} GPUs: how busy these are is the mean, their memory the sum."
    speed_table = tabulated("Speed and latency", summaries, speed, _speed_caption(objective, again, summaries))
    return [
        _without_empty(speed_table),
        _without_empty(tabulated("What it cost", summaries, cost, _COST_CAPTION + several * (gpus > 1))),
    ]


def _speed_caption(objective: Objective, again: bool, summaries: Sequence[Summary]) -> str:
    spread = "Medians of the repetitions, with the lowest and the highest in brackets. " if again else ""
    drained = (
        " † Too little came before the last line was sent: the rates hold the end, too, in which fewer and fewer "
        "were in flight."
    )
    # Numbers that are those of the load test itself have to be told as such.
    limited = dict.fromkeys(each.limited for each in summaries if each.limited)
    return (
        f"{spread}Requests and tokens a second: what was finished while lines were due (in a closed loop: until a "
        "client sent its last), whenever it was asked for. Latency counts from when a line was due (in a closed "
        "loop: sent), over all repetitions. Goodput: finished translations whose first token kept "
        f"{objective.first_token_ms:g} ms, of the lines that were due a second; failed ones did not "
        f"keep it.{drained * any(each.with_drain for each in summaries)}{' * ' * bool(limited)}{' '.join(limited)}"
    )


_COST_CAPTION = (
    "Serving: what answers clients, one process of vLLM's server or more, and of a gateway its process, or its "
    "workers with their store, and the one that hosts its engine; engine: what is below them; clients: the load "
    "test's own; other: the rest of the machine. Serving memory: of all its processes. NVML's utilisation is an "
    "average over some 100 ms or more, so shorter gaps do not show."
)


def _without_empty(table: Table) -> Table:
    kept = [
        column
        for column in range(len(table.head))
        if column == 0 or any(row[column] not in ("", NONE) for row in table.rows)
    ]
    head = [table.head[column] for column in kept]
    return Table(table.title, head, [[row[column] for column in kept] for row in table.rows], table.caption)


def _load_words(load: Load) -> str:
    """How the load was offered, for people."""
    match load:
        case Closed():
            return f"{load.in_flight:,} in flight"
        case InMeetings():
            more = [f"{load.readers} readers each"] * (load.readers > 0)
            more += [f"{load.idle:,} idle"] * (load.idle > 0)
            return ", ".join([f"{number(load.per_s)}/s in {load.meetings:,} meetings", *more])
        case _:
            return f"{number(load.per_s)}/s offered"


def _name(summary: Summary) -> str:
    return summary.name + " †" * summary.with_drain + " *" * (summary.limited is not None)


def _failed(summary: Summary) -> str:
    why = ", ".join(f"{count:,} × {why}" for why, count in summary.failures.items())
    return f"{summary.failed:,}: {why}" if summary.failed else "0"


def _gateway_cores(summary: Summary) -> str:
    """Without what is told apart."""
    apart = [cores for cores in (summary.host_cores, summary.store_cores) if cores is not None]
    serving = summary.cores.get("serving")
    return NONE if not apart or serving is None else f"{serving - sum(apart):.2f}"


def _host_cores(summary: Summary) -> str:
    """One process is full at one core, however many there are."""
    told = formatted(summary.host_cores, ".2f")
    if summary.hosts < 2 or summary.fullest_host_cores is None:
        return told
    return f"{told} (the fullest of {summary.hosts}: {summary.fullest_host_cores:.2f})"


def _latency(latency: Percentiles) -> str:
    if not latency.count:
        return NONE
    return " / ".join(number(ms) for ms in (latency.p50_ms, latency.p90_ms, latency.p99_ms))


def _level(level: Level | None) -> str:
    return NONE if level is None else f"{number(level.mean)} ({level.max:,.0f})"


def _spread(spread: Spread, ranged: bool) -> str:
    if not ranged:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.low)}–{number(spread.high)})"


def _objective_words(objective: Objective) -> str:
    """What a translation has to keep."""
    finals = (
        f"{objective.quantile * 100:g} % of the translations finished, with their first token within "
        f"{objective.first_token_ms:g} ms of when their line was due"
    )
    if objective.first_words_ms is None:
        return finals
    return (
        f"{finals}; as many of the first translated words on screen within {objective.first_words_ms:g} ms of "
        f"when the utterance began; {objective.partials_translated:.0%} of the partials translated of those that "
        "an idle gateway would translate"
    )


def _notes(report: Report) -> Iterator[str]:
    """How to read the tables: objective, workload, command, machine."""
    if report.objective is not None:
        yield f"Objective: {_objective_words(report.objective)}."
    workloads = list(dict.fromkeys(each.workload for each in report.summaries if each.workload))
    if workloads:
        yield "Workload: " + "; ".join(workloads) + "."
    revision = report.machine.revision or "unknown"
    yield f"`{report.command}`, {report.began}, revision {revision}; model {report.model}."
    yield f"On {report.machine.in_words()}."
    load = " ".join(f"{each:g}" for each in report.machine.load_average)
    yield f"Load average before: {load}."


# ---------------------------------------------------------------- charts of the trials

# How the names of trials end: `, 5 in flight`, `: 5 at a time`, ` at 5/s`, `, 5 meetings, confirmation`.
_LOAD = re.compile(r"[ ,:]*(\b(at|in) )?[\d.e+]+(/s| meetings?| in flight| at a time| a second)\b.*")

_SECONDS = "seconds after the trial's beginning"
_IN_FLIGHT, _OFFERED = "requests in flight", "offered, requests/s"


def charts(summaries: Sequence[Summary], trials: Sequence[Trial], objective: Objective) -> list[Chart]:
    """In the order of what they tell; none is empty."""
    # A trial of which nothing was asked has nothing to show.
    found = groups(summary for summary in summaries if summary.records)
    rates = [group for group in found if not group.closed and len(group.summaries) > 1]
    closed = [group for group in found if group.closed]
    first = {trial.name: trial for trial in reversed(trials)}
    return [
        *(_against_rate(rates, objective) if rates else ()),
        *(_against_in_flight(closed[:MOST_SERIES]) if closed else ()),
        *_timelines([first[summary.name] for summary in _chosen(found) if summary.name in first]),
    ]


def _chosen(found: Sequence[Group]) -> list[Summary]:
    """The knee of an open loop and the highest load of each group; fewer where that is too many."""
    highest = [group.summaries[-1] for group in found][:MOST_SERIES]
    knees = [group.knee for group in found if not group.closed and group.knee is not None]
    room = MOST_SERIES // 2 - len(highest)
    extra = [knee for knee in knees if knee not in highest][: max(room, 0)]
    names = {each.name for each in (*highest, *extra)}
    return [summary for group in found for summary in group.summaries if summary.name in names]


# ---------------------------------------------------------------- open loop


def _against_rate(found: Sequence[Group], objective: Objective) -> Iterator[Chart]:
    """Latency and goodput by how much was offered, for groups of several rates."""
    goal = Mark(f"objective {objective.first_token_ms:g} ms", objective.first_token_ms)
    alone = len(found) == 1
    knees = [
        Mark(f"kept to {knee.offered_per_s:.3g}/s", knee.offered_per_s or 0.0, "x")
        for group in found
        if alone and (knee := group.knee) is not None and knee is not group.summaries[-1]
    ]
    lost = sum(each.failed for group in found for each in group.summaries)
    yield Chart(
        title="First token against offered rate",
        caption="Latency from when a line was due, over all repetitions."
        + (f" {lost:,} translations failed and have no latency." if lost else ""),
        x_label=_OFFERED,
        y_label="first token, ms",
        series=_percentile_lines(found),
        marks=(goal, *knees),
        log_y=True,
    )
    goodput = [
        _spread_line("goodput" if alone else group.label, group, lambda each: each.goodput_per_s, number)
        for number, group in enumerate(found[:MOST_SERIES])
    ]
    finished = [_spread_line("finished", found[0], lambda each: each.requests_per_s, 1, style=1)] if alone else []
    yield Chart(
        title="Goodput against offered rate",
        caption="Finished translations a second, of which those count whose first token came within "
        f"{objective.first_token_ms:g} ms of when its line was due. On the thin diagonal everything that was "
        "offered would be of use. Whiskers: lowest and highest of the repetitions.",
        x_label=_OFFERED,
        y_label="translations/s",
        series=[*goodput, *finished],
        marks=[Mark("offered", axis="both")],
    )


def _percentile_lines(found: Sequence[Group]) -> list[Series]:
    """All three for one group, else the last."""
    kinds: list[tuple[str, Callable[[Percentiles], float | None], int]] = [
        ("p50", lambda each: each.p50_ms, 1),
        ("p90", lambda each: each.p90_ms, 2),
        ("p99", lambda each: each.p99_ms, 0),
    ]
    if len(found) == 1:
        [group] = found
        return [_line(name, group, of, kind, style) for kind, (name, of, style) in enumerate(kinds)]
    name, of, _ = kinds[2]
    return [_line(f"{group.label} {name}", group, of, number) for number, group in enumerate(found[:MOST_SERIES])]


def _line(
    name: str, group: Group, value: Callable[[Percentiles], float | None], colour: int, style: int = 0
) -> Series:
    firsts = [value(each.first_token) for each in group.summaries]
    return Series(name, group.loads, firsts, colour=colour, style=style)


def _spread_line(
    name: str, group: Group, value: Callable[[Summary], Spread], colour: int, style: int = 0
) -> Series:
    spreads = [value(each) for each in group.summaries]
    return Series(
        name,
        group.loads,
        [spread.median for spread in spreads],
        low=[spread.low for spread in spreads],
        high=[spread.high for spread in spreads],
        colour=colour,
        style=style,
    )


def _against_in_flight(found: Sequence[Group]) -> Iterator[Chart]:
    """Requests a second and first token by how many are in flight."""
    yield Chart(
        title="Requests a second against requests in flight",
        caption="Closed loop: the next request is sent when one is done. Medians; whiskers: lowest and highest "
        "repetition.",
        x_label=_IN_FLIGHT,
        y_label="requests/s",
        series=[
            _spread_line(group.label, group, lambda each: each.requests_per_s, number)
            for number, group in enumerate(found)
        ],
    )
    yield Chart(
        title="First token (p99) against requests in flight",
        caption="Closed loop: 99 % of the first tokens came within this time after their request was sent, over "
        "all repetitions.",
        x_label=_IN_FLIGHT,
        y_label="first token p99, ms",
        series=[_line(group.label, group, lambda each: each.p99_ms, number) for number, group in enumerate(found)],
        log_y=True,
    )


class Group(Struct, frozen=True):
    """One curve."""

    # For people, its own among groups of one kind of load.
    label: str
    closed: bool
    # By rising load, one each.
    summaries: list[Summary]

    @property
    def loads(self) -> list[float]:
        """Requests in flight, or offered a second."""
        return [_amount(each) for each in self.summaries]

    @property
    def knee(self) -> Summary | None:
        """The highest load up to which every one kept the objective."""
        kept: Summary | None = None
        for summary in self.summaries:
            if not summary.met:
                break
            kept = summary
        return kept


def groups(summaries: Iterable[Summary]) -> list[Group]:
    """By what stands in the name of a trial before its load, in order of appearance.

    Of a load that was tried several times under different names, the trial with the most translations counts.
    """
    found: dict[tuple[bool, str], dict[float, Summary]] = {}
    for summary in summaries:
        label = _LOAD.sub("", summary.name) or summary.system
        own = found.setdefault((isinstance(summary.load, Closed), label), {})
        known = own.get(_amount(summary))
        if known is None or known.records < summary.records:
            own[_amount(summary)] = summary
    return [Group(label, closed, sorted(own.values(), key=_amount)) for (closed, label), own in found.items()]


def _amount(summary: Summary) -> float:
    return float(summary.load.in_flight if isinstance(summary.load, Closed) else summary.load.per_s)


def _timelines(trials: Sequence[Trial]) -> Iterator[Chart]:
    """GPU or CPU, and sequences in the engine, of these trials; a panel each."""
    which = f" First repetition of each of {len(trials)} trials." if len(trials) > 1 else ""
    gpus = several_gpus(sample for trial in trials for sample in trial.samples)
    several = f" The mean of the {gpus} GPUs that the engines use." if gpus else ""
    gpu = (
        *("GPU over time", "GPU busy, %"),
        "Share of the time in which the GPU was busy, as NVML tells it: itself an average over some 100 ms or "
        f"more, so shorter gaps do not show.{several}",
        _series(trials, ("", lambda sample: sample.gpu)),
    )
    cores = (
        *("CPU over time", "cores"),
        "Cores in use by the engine's processes, by what answers clients (of a gateway with the host of its "
        "engine) and by the clients of the load test.",
        _series(
            trials,
            ("engine", lambda sample: sample.cores.get("engine")),
            ("serving", lambda sample: sample.cores.get("serving")),
            ("clients", lambda sample: sample.cores.get("clients")),
        ),
    )
    sequences = (
        *("Sequences in the engine over time", "sequences"),
        "Running: in the batch. Waiting: not yet. As the engine counts them.",
        _series(trials, ("running", lambda sample: sample.running), ("waiting", lambda sample: sample.waiting)),
    )
    for title, y_label, caption, series in (gpu if gpu[-1] else cores, sequences):
        if series:
            yield Chart(title=title, caption=caption + which, x_label=_SECONDS, y_label=y_label, series=series)


def _series(trials: Sequence[Trial], *lines: tuple[str, Callable[[Sample], float | None]]) -> list[Series]:
    """These lines in the panel of each trial; a line without values is left out."""
    series: list[Series] = []
    for trial in trials:
        for style, (name, value) in enumerate(lines):
            points = [(sample.at_s, found) for sample in trial.samples if (found := value(sample)) is not None]
            if len(points) > 1:
                x, y = zip(*points, strict=True)
                name = name or trial.name
                series.append(Series(name, x, y, colour=style, style=style, markers=False, panel=trial.name))
    return series
