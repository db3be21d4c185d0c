"""The one report of every load test: from what was found to the files of a folder, with charts for whatever trials
there are.

`result.json.gz` holds everything but the records, with the summaries of the trials. `utterances.jsonl` holds the
records, one a line, with the name and the repetition of their trial.

Knows: which numbers people look for, how they are written, what each picture tells, which file it is in. Must not
know: how anything was measured or is drawn.
"""

from __future__ import annotations

import gzip
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from loadtest.machine import Machine
from loadtest.results import Spread
from loadtest.trial import plots
from loadtest.trial.content import NONE, Chart, Series, Table, formatted, markdown, number, tabulated
from loadtest.trial.summary import Level, Percentiles, Summary, summaries
from loadtest.trial.values import Closed, Finding, InMeetings, Load, Objective, Results

RESULT = "result.json.gz"
_TABLE, _PLOT, _UTTERANCES = "table.md", "plot.png", "utterances.jsonl"

_NOT_DRAWN = "matplotlib is not installed where this was written, so there is no plot."


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
    every = [*made.charts, *charts(made.summaries)]
    drawn = [chart for chart in every if any(value is not None for each in chart.series for value in each.y)]
    shown = list(parts(made))
    if drawn and plots.available():
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
        # Rounded down: what a few missed is not shown as if none had.
        ("kept the objective", lambda each: f"{math.floor(each.within * 1_000) / 10}%" if each.records else NONE),
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
        ("sent again", lambda each: f"{each.retries:,}" if each.retries else NONE),
        (
            "first token of what was accepted, since it was sent p50 / p90 / p99, ms",
            lambda each: _latency(each.since_sent) if each.retries else NONE,
        ),
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
            lambda each: NONE if each.steps is None else f"{each.long_steps:,} of {each.steps:,}",
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

_OFFERED, _IN_FLIGHT = "offered, requests/s", "requests in flight"


def charts(summaries: Sequence[Summary]) -> list[Chart]:
    """Speed and first token by load: of open loops under several loads, and of closed loops."""

    def p99_ms(summary: Summary) -> float | None:
        return summary.first_token.p99_ms

    # A trial of which nothing was asked has nothing to show.
    asked = [each for each in summaries if each.records]
    opened = {name: own for name, own in groups(asked, closed=False).items() if len(own) > 1}
    closed = groups(asked, closed=True)
    return [
        *_chart("First token (p99)", _OFFERED, "ms", opened, p99_ms, log_y=True),
        *_chart("Goodput", _OFFERED, "translations/s", opened, lambda each: each.goodput_per_s.median),
        *_chart("Requests a second", _IN_FLIGHT, "requests/s", closed, lambda each: each.requests_per_s.median),
        *_chart("First token (p99)", _IN_FLIGHT, "ms", closed, p99_ms, log_y=True),
    ]


def _chart(
    title: str,
    x_label: str,
    y_label: str,
    curves: Mapping[str, Mapping[float, Summary]],
    value: Callable[[Summary], float | None],
    *,
    log_y: bool = False,
) -> Iterator[Chart]:
    series = [Series(name, list(own), [value(each) for each in own.values()]) for name, own in curves.items()]
    if series:
        yield Chart(title=title, x_label=x_label, y_label=y_label, series=series, log_y=log_y)


def groups(summaries: Iterable[Summary], *, closed: bool) -> dict[str, dict[float, Summary]]:
    """By what stands in the name of a trial before its load, in order of appearance, then by rising load.

    Of a load that was tried several times under different names, the trial with the most translations counts.
    """
    found: dict[str, dict[float, Summary]] = {}
    for summary in summaries:
        load = summary.load
        if isinstance(load, Closed) is closed:
            own = found.setdefault(_LOAD.sub("", summary.name) or summary.system, {})
            amount = float(load.in_flight if isinstance(load, Closed) else load.per_s)
            if amount not in own or own[amount].records < summary.records:
                own[amount] = summary
    return {name: dict(sorted(own.items())) for name, own in found.items()}
