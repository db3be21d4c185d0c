"""What every load test is made of: lines that are said, records of what became of them, trials.

Knows: names and units. Must not know: how anything is sent, measured or shown.

Times are seconds after the trial's beginning, unless they are called otherwise. All processes of a load test share
one clock, `time.monotonic`, which Linux keeps for the whole machine.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from loadtest.machine import Machine

__all__ = [
    "Address",
    "Closed",
    "Delivered",
    "EngineInProcess",
    "Finding",
    "Http",
    "InMeetings",
    "Line",
    "Load",
    "Objective",
    "Open",
    "OpenAiServer",
    "Partial",
    "ProcessUse",
    "Record",
    "Report",
    "Sample",
    "Trial",
    "WebSocketGateway",
]


# ---------------------------------------------------------------- what is said


class Partial(Struct, frozen=True):
    """A revision of a line that is still being said."""

    due_s: float
    text: str


class Line(Struct, frozen=True):
    """One thing that is said. due_s: when its last word is out, and its final has to be sent.

    targets: languages into which it is to be translated, at least one; a system without meetings gets one request
    for each. partials: what the recogniser says before, in order of time.
    """

    id: str
    text: str
    source: str
    targets: tuple[str, ...]
    due_s: float = 0.0
    meeting: str = ""
    speaker: str = ""
    partials: tuple[Partial, ...] = ()


# ---------------------------------------------------------------- how it is offered


class _Load(Struct, frozen=True, tag_field="kind", tag=str.lower):
    pass


class Closed(_Load, frozen=True):
    """So many requests are in flight; the next is sent when one is done. `due_s` of the lines is not read."""

    in_flight: int


class Open(_Load, frozen=True):
    """Each line is sent when it is due, whatever became of those before.

    per_s: requests a second that the lines amount to.
    """

    per_s: float


class InMeetings(_Load, frozen=True):
    """Open loop through meetings: every speaker has a session in the line's meeting, and sends partials and finals
    when they are due; others read. Only a gateway can be loaded so.

    meetings, speakers: of the lines, all together. readers: further sessions of each meeting that only read,
    spread over its languages. idle: sessions of meetings of their own in which nothing is said. per_s:
    translations of finals a second.
    """

    meetings: int
    speakers: int
    per_s: float
    readers: int = 0
    idle: int = 0


Load = Closed | Open | InMeetings


class _Address(Struct, frozen=True, tag_field="protocol", tag=str.lower):
    pass


class WebSocketGateway(_Address, frozen=True):
    """A gateway; `url` as in `http://127.0.0.1:8000`."""

    url: str


class OpenAiServer(_Address, frozen=True):
    """`POST {url}/v1/completions`, streamed as server-sent events, over connections that are kept.

    model: its name there. settings: those of the gateway whose prompts, output limits and sampling are used.
    """

    url: str
    model: str
    settings: dict[str, Any]


class Http(_Address, frozen=True):
    """A baseline: `POST {url}/translate` with `{"text", "source", "target"}`, one JSON answer
    `{"text", "tokens", "first_token_s", "queue_s", "total_s"}` once it is done."""

    url: str


class EngineInProcess(_Address, frozen=True):
    """AsyncLLM called directly: the client process builds it, from a gateway's settings.

    port: where a gateway is served on the same engine, by a process that the client process starts beside itself;
    null: there is none.
    """

    settings: dict[str, Any]
    port: int | None = None


Address = WebSocketGateway | OpenAiServer | Http | EngineInProcess


# ---------------------------------------------------------------- what came of it


class Record(Struct, frozen=True, omit_defaults=True):
    """One line in one language. due_s: when it had to be sent; in a closed loop, when it was.

    first_s: its first text was there; done_s: all of it; null where that never came. tokens: generated ones, as
    the system counts them. text: kept where a load test compares. failed: an error code or a sentence.

    Among lines with partials also began_s: when the first revision of this one was due, which of a line without
    any is its final; shown_s: the first translated words of any revision were there, null where none ever came.
    """

    line: str
    target: str
    due_s: float
    sent_s: float
    first_s: float | None
    done_s: float | None
    tokens: int = 0
    chars: int = 0
    text: str = ""
    failed: str | None = None
    began_s: float | None = None
    shown_s: float | None = None


class Delivered(Struct, frozen=True):
    """What arrived at all clients together. frames, bytes: of the wire's payload. finals: whole translations, one
    for each reader. final_ms: from when a line was due to its final at a reader, at most 20,000 of them by chance.

    elapsed_s, serving_s: how long it took, and the CPU time of the part `serving` meanwhile; 0 where not known.
    """

    frames: int = 0
    bytes: int = 0
    finals: int = 0
    final_ms: list[float] = []
    elapsed_s: float = 0.0
    serving_s: float = 0.0


class ProcessUse(Struct, frozen=True):
    """One client process. cpu_s: CPU time while it played. lag_ms: by how much it was late, one entry for each
    line sent in an open loop and for each hundredth of a second of its event loop: p50, p99 and the worst."""

    cpu_s: float
    elapsed_s: float
    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float


class Sample(Struct, frozen=True, omit_defaults=True):
    """The machine at one moment; null where it cannot be known. gpu: busy, percent. cores: CPU cores in use since
    the sample before, by part; host_cores: of `serving`, those of the process that hosts a gateway's engine.
    running, waiting: sequences, as the engine counts them. tokens: generated so far."""

    at_s: float
    gpu: float | None = None
    gpu_memory_mib: float | None = None
    cores: dict[str, float] = {}
    running: float | None = None
    waiting: float | None = None
    tokens: float | None = None
    host_cores: float | None = None


class Trial(Struct, frozen=True, kw_only=True):
    """One measured pass. name: for people, the same over repetitions. system: `gateway`, `asyncllm`, `vllm-serve`
    or a baseline's. settings: what of its configuration matters. workload: of what the lines were drawn.

    Times count from where the window begins; elapsed_s is how long it is: while lines were due or, in a closed
    loop, while as many were in flight as were to be. finished, generated: translations that were finished within
    it, whenever they were asked for, and the tokens of these and of those that were asked for within it in vain;
    null: those of the records. records: of lines that were due within it, and whatever else failed. cpu_s and
    samples are within it, delivered and clients of the whole pass. with_drain: the window goes on to the last
    record, since too little of the pass came before the last line.

    cpu_s: CPU time by part: `serving` (what answers clients: one process, or more of vLLM's front end; of a
    gateway its process and the one that hosts its engine), `engine` (what is below them), `clients`, `other` (the
    rest of the machine). host_cpu_s: of `serving`, that of the process that hosts a gateway's engine; null where
    that is no process of its own. memory_mib: resident, of all that serves, at the end. records: empty in
    `result.json`; they are in `utterances.jsonl`.
    """

    name: str
    system: str
    settings: dict[str, Any]
    workload: str
    load: Load
    repetition: int
    began: str
    elapsed_s: float
    delivered: Delivered
    clients: list[ProcessUse]
    cpu_s: dict[str, float]
    memory_mib: float | None
    samples: list[Sample]
    records: list[Record]
    finished: int | None = None
    generated: int | None = None
    with_drain: bool = False
    host_cpu_s: float | None = None


class Objective(Struct, frozen=True):
    """What a translation has to keep to be of use; counted from when its line was due. quantile: how many of them
    have to (0.99: all but one in a hundred)."""

    first_token_ms: float = 300.0
    quantile: float = 0.99


class Finding(Struct, frozen=True):
    """One statement about several trials: a bar, a limit, a recommendation. value: as it is shown. passed: null
    where there is no bar."""

    name: str
    value: str
    bar: str = ""
    passed: bool | None = None
    note: str = ""


class Report(Struct, frozen=True, kw_only=True):
    """Everything that `result.json` holds, of any load test. kind: the subcommand. settings: of the load test
    itself. details: what one kind has besides, as plain JSON: curves, tables."""

    kind: str
    command: str
    began: str
    model: str
    machine: Machine
    settings: dict[str, Any]
    objective: Objective
    findings: list[Finding]
    trials: list[Trial]
    details: dict[str, Any] = {}
