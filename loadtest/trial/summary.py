"""What several repetitions of one trial amount to.

Knows: records, samples, percentiles, medians. Must not know: files, clocks, how anything was measured or looks.

Latency counts from when a line was due; in a closed loop, that is when it was sent.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from loadtest.results import Spread, nearest_rank, spread
from loadtest.trial.values import Closed, Finding, Load, Objective, Record, Sample, Trial


class Percentiles(Struct, frozen=True):
    """Milliseconds; None when there was none."""

    # How many values.
    count: int
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None


_NOTHING = Percentiles(0, None, None, None)


class Level(Struct, frozen=True):
    """Something that goes up and down, over all samples."""

    mean: float
    max: float


class Summary(Struct, frozen=True, kw_only=True):
    """All repetitions of one trial."""

    name: str
    system: str
    workload: str
    load: Load
    repetitions: int
    # Translations that were asked for.
    records: int
    failed: int
    # The most frequent reasons.
    failures: dict[str, int]
    # Translations finished a second, whenever they were asked for (see `Trial`).
    requests_per_s: Spread
    # Tokens of translations that failed count, too.
    tokens_per_s: Spread
    # Translations that were due, were finished and kept the objective, a second.
    goodput_per_s: Spread
    # Share of all translations that kept the objective; failed ones did not.
    within: float
    # Whether that suffices, and nothing else was missed.
    met: bool
    # From when the line was due, of those translations that had it.
    first_token: Percentiles
    # Between the first text and the last, for each further token; of none where translations come whole.
    per_token: Percentiles
    # From when the line was due to the last text.
    total: Percentiles
    # Finals at their readers.
    delivered: Percentiles
    # By part, as in `Trial.cpu_s`.
    cpu_s_per_1000_tokens: dict[str, Spread]
    cores: dict[str, float]
    # The most of all repetitions.
    memory_mib: float | None
    # The mean of what NVML says, of several GPUs over all of them, and the most of their memory together.
    gpu_percent: float | None
    gpu_memory_mib: float | None
    # Over the repetitions in which the server's counters moved; None where it was asked too seldom.
    running: Level | None
    waiting: Level | None
    # The worst client process.
    lag_p99_ms: float | None
    lag_max_ms: float | None
    # Outputs of the engine, as it counts them itself.
    steps: int | None = None
    # Outputs that came over 100 ms after the one before.
    long_steps: int = 0
    # What the driver said of itself when it was the limit.
    limited: str | None = None
    # From when the first revision of a line was due to the first text of any revision; of none without partials.
    first_words: Percentiles = _NOTHING
    # `Trial.with_drain` of any repetition.
    with_drain: bool = False
    # How many GPUs the engines use, where there are several; 0 otherwise.
    gpus: int = 0
    # All processes of `Trial.hosts_cpu_s` together; None unless all repetitions have some.
    host_cores: float | None = None
    # How many processes that is, and what the fullest of them uses; None unless all repetitions tell.
    hosts: int = 0
    fullest_host_cores: float | None = None
    # As `Trial.store_cpu_s`; None unless all repetitions tell.
    store_cores: float | None = None
    # From when a line was sent, the last time where it was refused before, of those that had a first token: how
    # long those wait that are accepted.
    since_sent: Percentiles = _NOTHING
    # Sent again after a refusal: so many times.
    retries: int = 0
    # `Trial.partials_translated`, the least of all repetitions.
    partials_translated: float | None = None
    # What of the objective was not kept, for people; empty where all of it was.
    missed: tuple[str, ...] = ()


_SHOWN_FAILURES = 5

# Fewer readings of a level that goes up and down say nothing.
_LEAST_READINGS = 5


def summaries(trials: Iterable[Trial], objective: Objective) -> list[Summary]:
    """One for each name, in order of appearance."""
    named: dict[str, list[Trial]] = {}
    for trial in trials:
        named.setdefault(trial.name, []).append(trial)
    return [summarise(own, objective) for own in named.values()]


def several_gpus(samples: Iterable[Sample]) -> int:
    """How many GPUs the engines use, where there are several; 0 otherwise."""
    return max((len(each.gpus) for each in samples), default=0)


def summarise(trials: Sequence[Trial], objective: Objective) -> Summary:
    """The repetitions of one trial; there is at least one, and all have the same load."""
    first = trials[0]
    closed = isinstance(first.load, Closed)
    records = [record for trial in trials for record in trial.records]

    def due_s(record: Record) -> float:
        return record.sent_s if closed else record.due_s

    def kept_objective(record: Record) -> bool:
        if not _finished(record) or record.first_s is None:
            return False
        return _ms(record.first_s - due_s(record)) <= objective.first_token_ms

    finished = [record for record in records if _finished(record)]
    failures = Counter(record.failed for record in records if record.failed is not None)
    kept = [sum(map(kept_objective, trial.records)) for trial in trials]
    within = sum(kept) / len(records) if records else 0.0
    samples = [sample for trial in trials for sample in trial.samples]
    gpu = [sample.gpu for sample in samples if sample.gpu is not None]
    memory = [trial.memory_mib for trial in trials if trial.memory_mib is not None]
    clients = [client for trial in trials for client in trial.clients]
    translated = min((each for trial in trials if (each := trial.partials_translated) is not None), default=None)
    missed = tuple(_missed(records, within, translated, objective))
    return Summary(
        name=first.name,
        system=first.system,
        workload=first.workload,
        load=first.load,
        repetitions=len(trials),
        records=len(records),
        failed=failures.total(),
        # In a fixed order, whatever that of the records.
        failures=dict(sorted(failures.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN_FAILURES]),
        requests_per_s=spread(map(requests_per_s, trials)),
        tokens_per_s=spread(map(tokens_per_s, trials)),
        goodput_per_s=spread(_per_s(trial, count) for trial, count in zip(trials, kept, strict=True)),
        within=within,
        met=bool(records) and not missed,
        first_token=_percentiles(_since(records, "first_s", due_s)),
        per_token=_percentiles(_per_token_ms(finished)),
        total=_percentiles(_since(finished, "done_s", due_s)),
        first_words=_percentiles(_first_words_ms(records)),
        delivered=_percentiles([ms for trial in trials for ms in trial.delivered.final_ms]),
        cpu_s_per_1000_tokens=_cpu(trials),
        cores=_cores(trials),
        memory_mib=max(memory, default=None),
        gpu_percent=round(statistics.fmean(gpu), 2) if gpu else None,
        gpu_memory_mib=max(
            (each.gpu_memory_mib for each in samples if each.gpu_memory_mib is not None), default=None
        ),
        running=_level(trials, "running"),
        waiting=_level(trials, "waiting"),
        lag_p99_ms=max((client.lag_p99_ms for client in clients), default=None),
        lag_max_ms=max((client.lag_max_ms for client in clients), default=None),
        steps=sum(trial.steps or 0 for trial in trials) or None,
        long_steps=sum(trial.long_steps or 0 for trial in trials),
        limited=next((trial.limited for trial in trials if trial.limited is not None), None),
        with_drain=any(trial.with_drain for trial in trials),
        host_cores=_cores_of(trials, [sum(trial.hosts_cpu_s) or None for trial in trials]),
        gpus=several_gpus(samples),
        hosts=max(len(trial.hosts_cpu_s) for trial in trials),
        fullest_host_cores=_cores_of(trials, [max(trial.hosts_cpu_s, default=None) for trial in trials]),
        store_cores=_cores_of(trials, [trial.store_cpu_s for trial in trials]),
        since_sent=_percentiles(
            _since(records, "first_s", lambda each: each.sent_s if each.again_s is None else each.again_s)
        ),
        retries=sum(each.retries for each in records),
        partials_translated=translated,
        missed=missed,
    )


def failed_found(trials: Iterable[Trial]) -> Finding:
    """How many translations failed, of which none may. Why they did is told of each trial."""
    records = [record for trial in trials for record in trial.records]
    failed = sum(record.failed is not None for record in records)
    return Finding("translations that failed", f"{failed:,} of {len(records):,}", "0", not failed)


def requests_per_s(trial: Trial) -> float:
    """Translations a second that were finished within the trial's window."""
    finished = sum(map(_finished, trial.records)) if trial.finished is None else trial.finished
    return _per_s(trial, finished)


def tokens_per_s(trial: Trial) -> float:
    """Tokens a second, as `Trial.generated` counts them."""
    return _per_s(trial, _tokens(trial))


def _finished(record: Record) -> bool:
    return record.failed is None and record.done_s is not None


def _missed(
    records: Sequence[Record], within: float, translated: float | None, objective: Objective
) -> Iterator[str]:
    """What of the objective was not kept. within: the part of the records whose first token was in time."""
    if within < objective.quantile:
        yield "first tokens of finals"
    if objective.first_words_ms is None:
        return
    shown = sum(ms <= objective.first_words_ms for ms in _first_words_ms(records))
    if shown < objective.quantile * len(records):
        yield "first words of what is being said"
    if translated is None or translated < objective.partials_translated:
        yield "partials translated"


def _ms(seconds: float) -> float:
    """To the microsecond: what is below is noise of the subtraction."""
    return round(seconds * 1000, 3)


def _since(records: Iterable[Record], ends: str, begins: Callable[[Record], float]) -> list[float]:
    """Milliseconds until one of a record's times, of those records that have it."""
    return [_ms(end_s - begins(each)) for each in records if (end_s := getattr(each, ends)) is not None]


def _first_words_ms(records: Iterable[Record]) -> list[float]:
    return [
        _ms(each.shown_s - each.began_s)
        for each in records
        if each.shown_s is not None and each.began_s is not None
    ]


def _per_token_ms(records: Iterable[Record]) -> list[float]:
    paces = [
        _ms((each.done_s - each.first_s) / (each.tokens - 1))
        for each in records
        if each.first_s is not None and each.done_s is not None and each.tokens > 1
    ]
    # A system that answers with whole translations has no pace.
    return paces if any(paces) else []


# ---------------------------------------------------------------- arithmetic


def _percentiles(values: Sequence[float]) -> Percentiles:
    if not values:
        return _NOTHING
    ordered = sorted(values)
    p50, p90, p99 = (nearest_rank(ordered, quantile) for quantile in (0.5, 0.9, 0.99))
    return Percentiles(len(ordered), p50, p90, p99)


def _per_s(trial: Trial, count: float) -> float:
    return count / trial.elapsed_s if trial.elapsed_s > 0 else 0.0


def _tokens(trial: Trial) -> int:
    return sum(record.tokens for record in trial.records) if trial.generated is None else trial.generated


def _cpu(trials: Sequence[Trial]) -> dict[str, Spread]:
    counted = [(trial, tokens) for trial in trials if (tokens := _tokens(trial))]
    return {
        part: spread(trial.cpu_s.get(part, 0.0) / tokens * 1000 for trial, tokens in counted)
        for part in dict.fromkeys(part for trial, _ in counted for part in trial.cpu_s)
    }


def _cores(trials: Sequence[Trial]) -> dict[str, float]:
    parts = dict.fromkeys(part for trial in trials for part in trial.cpu_s)
    known = {part: _cores_of(trials, [trial.cpu_s.get(part, 0.0) for trial in trials]) for part in parts}
    return {part: cores for part, cores in known.items() if cores is not None}


def _cores_of(trials: Sequence[Trial], cpu_s: Sequence[float | None]) -> float | None:
    """Cores of one process in all trials; None unless all of them tell."""
    elapsed_s = sum(trial.elapsed_s for trial in trials)
    used_s = [each for each in cpu_s if each is not None]
    return round(sum(used_s) / elapsed_s, 3) if len(used_s) == len(trials) and elapsed_s > 0 else None


def _level(trials: Iterable[Trial], name: str) -> Level | None:
    """None where there are too few readings, or none that was of what the server did."""

    def counts(trial: Trial) -> bool:
        """Whether what the server says is of this trial: its tokens grew, if it counts them and there were any."""
        told = [sample.tokens for sample in trial.samples if sample.tokens is not None]
        return not told or not _tokens(trial) or max(told) > min(told)

    values: list[float] = [
        value
        for trial in trials
        if counts(trial)
        for sample in trial.samples
        if (value := getattr(sample, name)) is not None
    ]
    return Level(round(statistics.fmean(values), 2), max(values)) if len(values) >= _LEAST_READINGS else None
