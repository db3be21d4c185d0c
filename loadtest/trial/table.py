"""A report of trials as tables and sentences.

Knows: which numbers people look for, and how they are written. Must not know: files, how it was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loadtest.report.content import Table
from loadtest.report.markdown import NONE, number
from loadtest.results import Spread
from loadtest.trial.summary import Level, Percentiles, Summary
from loadtest.trial.values import Closed, Finding, InMeetings, Load, Objective, Report


def parts(
    report: Report, summaries: Sequence[Summary], extras: Sequence[str | Table] = ()
) -> Iterator[str | Table]:
    """Findings, what a command has besides, one row for each trial, and on what it was measured."""
    if report.findings:
        yield _findings_table(report.findings)
    yield from extras
    yield from summary_tables(summaries, report.objective)
    yield from _notes(report, summaries)


# ---------------------------------------------------------------- findings


def _findings_table(findings: Sequence[Finding]) -> Table:
    """What was found, beside what it has to be."""
    head = ("finding", "value", "has to be", "", "note")
    rows = [(each.name, each.value, each.bar, _verdict(each), each.note) for each in findings]
    return _without_empty(Table("", head, rows))


def _verdict(finding: Finding) -> str:
    """In words, since colour alone tells some people nothing."""
    return {True: "passed", False: "FAILED", None: ""}[finding.passed]


# ---------------------------------------------------------------- trials

_Cell = Callable[[Summary], str]

_FIRST_WORDS = "first words on screen, since the utterance began p50 / p90 / p99, ms"


def summary_tables(summaries: Sequence[Summary], objective: Objective) -> list[Table]:
    """Speed and latency of each trial, and what it cost; columns of which nothing is known are left out."""
    if not summaries:
        return []
    again = max(each.repetitions for each in summaries) > 1
    speed: list[tuple[str, _Cell]] = [
        ("trial", _name),
        ("load", lambda each: _load_words(each.load)),
        ("requests/s", lambda each: _spread(each.requests_per_s, again)),
        ("tokens/s", lambda each: _spread(each.tokens_per_s, again)),
        ("goodput/s", lambda each: number(each.goodput_per_s.median)),
        ("kept the objective", lambda each: f"{each.within:.1%}" if each.records else NONE),
        ("first token p50 / p90 / p99, ms", lambda each: _latency(each.first_token)),
        (_FIRST_WORDS, lambda each: _latency(each.first_words)),
        ("partials translated", _partials),
        ("per token p50 / p90 / p99, ms", lambda each: _latency(each.per_token)),
        ("whole p50 / p90 / p99, ms", lambda each: _latency(each.total)),
        ("at readers p50 / p90 / p99, ms", lambda each: _latency(each.delivered)),
        ("translations", lambda each: f"{each.records:,}"),
        ("failed", lambda each: _failed(each)),
    ]
    parts = list(dict.fromkeys(part for each in summaries for part in each.cpu_s_per_1000_tokens))
    cost: list[tuple[str, _Cell]] = [
        ("trial", _name),
        *((f"{part} CPU s per 1,000 tokens", _cpu(part)) for part in parts),
        *((f"{part} cores", _cores(part)) for part in dict.fromkeys(p for each in summaries for p in each.cores)),
        ("of serving: gateway's processes cores", _gateway_cores),
        ("of serving: engine's host process cores", _host_cores),
        ("of serving: store cores", lambda each: _known_cores(each.store_cores)),
        ("GPU busy, mean %", lambda each: number(each.gpu_percent)),
        ("GPU memory, MiB", lambda each: number(each.gpu_memory_mib)),
        ("engine steps after over 100 ms", _steps),
        ("running mean (max)", lambda each: _level(each.running)),
        ("waiting mean (max)", lambda each: _level(each.waiting)),
        ("serving memory, MiB", lambda each: number(each.memory_mib)),
        ("driver lag p99 (max), ms", lambda each: _lag(each)),
    ]
    return [
        _without_empty(
            Table("Speed and latency", *_columns(speed, summaries), _speed_caption(objective, again, summaries))
        ),
        _without_empty(Table("What it cost", *_columns(cost, summaries), _cost_caption(summaries))),
    ]


def _partials(summary: Summary) -> str:
    return NONE if summary.partials_translated is None else f"{summary.partials_translated:.0%}"


def _speed_caption(objective: Objective, again: bool, summaries: Sequence[Summary]) -> str:
    spread = "Medians of the repetitions, with the lowest and the highest in brackets. " if again else ""
    return (
        f"{spread}Requests and tokens a second: what was finished while lines were due (in a closed loop: until a "
        "client sent its last), whenever it was asked for. Latency counts from when a line was due (in a closed "
        "loop: sent), over all repetitions. Goodput: finished translations whose first token kept "
        f"{objective.first_token_ms:g} ms, of the lines that were due a second; failed ones did not "
        f"keep it.{_with_drain(summaries)}{_limited(summaries)}"
    )


def _with_drain(summaries: Sequence[Summary]) -> str:
    if not any(each.with_drain for each in summaries):
        return ""
    return (
        " † Too little came before the last line was sent: the rates hold the end, too, in which fewer and fewer "
        "were in flight."
    )


def _limited(summaries: Sequence[Summary]) -> str:
    """Numbers that are those of the load test itself have to be told as such."""
    said = dict.fromkeys(each.limited for each in summaries if each.limited)
    return "" if not said else " * " + " ".join(said)


_COST_CAPTION = (
    "Serving: what answers clients, one process of vLLM's server or more, and of a gateway its process, or its "
    "workers with their store, and the one that hosts its engine; engine: what is below them; clients: the load "
    "test's own; other: the rest of the machine. Serving memory: of all its processes. NVML's utilisation is an "
    "average over some 100 ms or more, so shorter gaps do not show."
)


def _cost_caption(summaries: Sequence[Summary]) -> str:
    gpus = max(each.gpus for each in summaries)
    several = (
        f" The engines use {gpus} GPUs: how busy these are is the mean, their memory the sum." if gpus > 1 else ""
    )
    return _COST_CAPTION + several


def _columns(
    columns: Sequence[tuple[str, _Cell]], summaries: Sequence[Summary]
) -> tuple[list[str], list[list[str]]]:
    return [name for name, _ in columns], [[cell(each) for _, cell in columns] for each in summaries]


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
            more = [f"{load.readers} readers each"] * (load.readers > 0) + [f"{load.idle:,} idle"] * (
                load.idle > 0
            )
            return ", ".join([f"{number(load.per_s)}/s in {load.meetings:,} meetings", *more])
        case _:
            return f"{number(load.per_s)}/s offered"


def _name(summary: Summary) -> str:
    return summary.name + " †" * summary.with_drain + " *" * (summary.limited is not None)


def _failed(summary: Summary) -> str:
    if not summary.failed:
        return "0"
    return f"{summary.failed:,}: " + ", ".join(f"{count:,} × {why}" for why, count in summary.failures.items())


def _cpu(part: str) -> _Cell:
    def cell(summary: Summary) -> str:
        spread = summary.cpu_s_per_1000_tokens.get(part)
        return NONE if spread is None else f"{spread.median:.3f}"

    return cell


def _cores(part: str) -> _Cell:
    return lambda summary: f"{summary.cores[part]:.2f}" if part in summary.cores else NONE


def _gateway_cores(summary: Summary) -> str:
    """Without what is told apart."""
    apart = [cores for cores in (summary.host_cores, summary.store_cores) if cores is not None]
    serving = summary.cores.get("serving")
    return NONE if not apart or serving is None else f"{serving - sum(apart):.2f}"


def _host_cores(summary: Summary) -> str:
    """One process is full at one core, however many there are."""
    told = _known_cores(summary.host_cores)
    if summary.hosts < 2 or summary.fullest_host_cores is None:
        return told
    return f"{told} (the fullest of {summary.hosts}: {summary.fullest_host_cores:.2f})"


def _known_cores(cores: float | None) -> str:
    return NONE if cores is None else f"{cores:.2f}"


def _latency(latency: Percentiles) -> str:
    if not latency.count:
        return NONE
    return " / ".join(number(ms) for ms in (latency.p50_ms, latency.p90_ms, latency.p99_ms))


def _steps(summary: Summary) -> str:
    return NONE if summary.steps is None else f"{summary.long_steps or 0:,} of {summary.steps:,}"


def _level(level: Level | None) -> str:
    return NONE if level is None else f"{number(level.mean)} ({level.max:,.0f})"


def _lag(summary: Summary) -> str:
    return NONE if summary.lag_p99_ms is None else f"{number(summary.lag_p99_ms)} ({number(summary.lag_max_ms)})"


def _spread(spread: Spread, ranged: bool) -> str:
    if not ranged:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.low)}–{number(spread.high)})"


# ---------------------------------------------------------------- sentences


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


def _notes(report: Report, summaries: Sequence[Summary]) -> Iterator[str]:
    """How to read the tables: objective, workload, command, machine."""
    yield f"Objective: {_objective_words(report.objective)}."
    workloads = list(dict.fromkeys(each.workload for each in summaries if each.workload))
    if workloads:
        yield "Workload: " + "; ".join(workloads) + "."
    revision = report.machine.revision or "unknown"
    yield f"`{report.command}`, {report.began}, revision {revision}; model {report.model}."
    yield f"On {report.machine.in_words()}."
    load = " ".join(f"{each:g}" for each in report.machine.load_average)
    yield f"Load average before: {load}."
