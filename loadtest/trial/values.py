"""What every load test is made of: lines that are said, records of what became of them, trials.

Knows: names and units. Must not know: how anything is sent, measured or shown.

Times are seconds after the trial's beginning, unless they are called otherwise. All processes of a load test share
one clock, `time.monotonic`, which Linux keeps for the whole machine.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from loadtest.trial.content import Chart, Table


class Partial(Struct, frozen=True):
    """A revision of a line that is still being said."""

    due_s: float
    text: str


class Line(Struct, frozen=True):
    """One thing that is said."""

    id: str
    text: str
    source: str
    # Languages to translate it into, at least one. A system without meetings gets one request for each.
    targets: tuple[str, ...]
    # When its last word is out, and its final has to be sent.
    due_s: float = 0.0
    meeting: str = ""
    speaker: str = ""
    # Revisions that the recogniser says before, in order of time.
    partials: tuple[Partial, ...] = ()


# ---------------------------------------------------------------- how it is offered


class _Load(Struct, frozen=True, tag_field="kind", tag=str.lower):
    pass


class Closed(_Load, frozen=True):
    """A number of requests is in flight; the next is sent when one is done. `due_s` of the lines is not read."""

    in_flight: int


class Open(_Load, frozen=True):
    """Each line is sent when it is due, whatever became of those before."""

    # Requests a second that the lines amount to.
    per_s: float
    # Whether what a gateway refuses for the moment is sent again when it says, until the last line was due.
    retries: bool = False


class InMeetings(_Load, frozen=True):
    """Open loop through meetings: every speaker has a session in the line's meeting, and sends partials and finals
    when they are due; others read. Only a gateway can be loaded so."""

    # How many meetings the lines are from.
    meetings: int
    speakers: int
    # Translations of finals a second.
    per_s: float
    # Further sessions of each meeting that only read, spread over its languages.
    readers: int = 0
    # Sessions of meetings of their own in which nothing is said.
    idle: int = 0


Load = Closed | Open | InMeetings


class _Address(Struct, frozen=True, tag_field="protocol", tag=str.lower):
    pass


class WebSocketGateway(_Address, frozen=True):
    """A gateway; `url` as in `http://127.0.0.1:8000`."""

    url: str


class OpenAiServer(_Address, frozen=True):
    """`POST {url}/v1/completions`, streamed as server-sent events, over connections that are kept."""

    url: str
    # The model's name there.
    model: str
    # Settings of the gateway whose prompts, output limits and sampling are used.
    settings: dict[str, Any]


class Http(_Address, frozen=True):
    """A baseline: `POST {url}/translate` with `{"text", "source", "target"}`, one JSON answer `{"text", "tokens"}`
    once it is done."""

    url: str


class EngineInProcess(_Address, frozen=True):
    """AsyncLLM called directly: the client process builds it, from a gateway's settings."""

    settings: dict[str, Any]
    # Where a gateway is served on the same engine, by a process that the client process starts beside itself.
    # None where there is no gateway.
    port: int | None = None


Address = WebSocketGateway | OpenAiServer | Http | EngineInProcess


# ---------------------------------------------------------------- what came of it


class Record(Struct, frozen=True, omit_defaults=True):
    """One line in one language."""

    line: str
    target: str
    # When it had to be sent; in a closed loop, when it was.
    due_s: float
    # When it was sent, for the first time.
    sent_s: float
    # When its first text was there, and all of it; None where that never came.
    first_s: float | None
    done_s: float | None
    # Generated tokens, as the system counts them.
    tokens: int = 0
    # Kept where a load test compares texts.
    text: str = ""
    # An error code or a sentence.
    failed: str | None = None
    # Among lines with partials: when the first revision of this one was due; without any, its final.
    began_s: float | None = None
    # Also among these: when the first translated words of any revision were there; None where none ever came.
    shown_s: float | None = None
    # How often it was sent again after a refusal, and when for the last time; None where it never was.
    retries: int = 0
    again_s: float | None = None


class Delivered(Struct, frozen=True):
    """What arrived at all clients together."""

    # The wire's payload.
    frames: int = 0
    bytes: int = 0
    # Whole translations, one for each reader.
    finals: int = 0
    # From when a line was due to its final at a reader; at most 20,000 of them by chance, as of those below.
    final_ms: list[float] = []
    # In meetings: from when a line was due to the first text of its translation at a reader.
    text_ms: list[float] = []
    # In meetings: from when a final was sent to the gateway's word that it is accepted.
    accepted_ms: list[float] = []
    # How long it took, and the CPU time of the part `serving` meanwhile; 0 where not known.
    elapsed_s: float = 0.0
    serving_s: float = 0.0


class ProcessUse(Struct, frozen=True):
    """One client process, while it played."""

    # CPU time.
    cpu_s: float
    elapsed_s: float
    # How late it was: an entry for each line sent in an open loop and for each hundredth of a second of its loop.
    lag_p99_ms: float
    lag_max_ms: float


class Sample(Struct, frozen=True, omit_defaults=True):
    """The machine at one moment; None where it cannot be known."""

    at_s: float
    # How busy, percent: the mean of the GPUs that the engines use.
    gpu: float | None = None
    # Each GPU, by its number for NVIDIA's tools, where there are several.
    gpus: dict[str, float] = {}
    # Memory in use on all GPUs together.
    gpu_memory_mib: float | None = None
    # CPU cores in use since the sample before, by part as in `Trial.cpu_s`; `host` and `store`, of those of
    # `serving`, are what the process that hosts a gateway's engine and the workers' store use; `host 2` and so on
    # are those of further engines.
    cores: dict[str, float] = {}
    # Sequences, as the engine counts them.
    running: float | None = None
    waiting: float | None = None
    # Generated so far.
    tokens: float | None = None


class Trial(Struct, frozen=True, kw_only=True):
    """One measured pass.

    Times count from the beginning of its window: the time while lines were due or, in a closed loop, while as many
    requests were in flight as were to be.
    """

    # For people; the same over repetitions.
    name: str
    # `gateway`, `asyncllm`, `vllm-serve` or a baseline's name.
    system: str
    # The part of its configuration that matters.
    settings: dict[str, Any]
    # What the lines were drawn from.
    workload: str
    load: Load
    repetition: int
    began: str
    # How long the window is.
    elapsed_s: float
    # What arrived in the whole pass.
    delivered: Delivered
    # The whole pass of each client process.
    clients: list[ProcessUse]
    # CPU time within the window, by part: `serving` (what answers clients: one process, or more of vLLM's front
    # end; of a gateway its process, its workers with their store, and the one that hosts its engine), `engine`
    # (what is below them), `clients`, `other` (the rest of the machine).
    cpu_s: dict[str, float]
    # Resident, of all that serves, at the end.
    memory_mib: float | None
    # Within the window.
    samples: list[Sample]
    # Lines that were due within the window, and whatever else failed. Empty in `result.json.gz`: they are in
    # `utterances.jsonl`.
    records: list[Record]
    # Translations that were finished within the window, whenever they were asked for; None: count the records.
    finished: int | None = None
    # Tokens of these, and of translations asked for within the window in vain; None: those of the records.
    generated: int | None = None
    # Whether the window goes on to the last record, since too little of the pass came before the last line.
    with_drain: bool = False
    # The part of `serving` of each process that hosts one of a gateway's engines.
    hosts_cpu_s: list[float] = []
    # The part of `serving` of the store that workers share; None without one.
    store_cpu_s: float | None = None
    # The part of the partials that an idle gateway would have translated that was, in the whole pass; None where
    # there were none or the gateway does not tell.
    partials_translated: float | None = None
    # What part of the time its translations spent in queues, in the whole pass; None where that is not told.
    queued: float | None = None
    # How the driver held it back, a sentence; None where it did not.
    limited: str | None = None
    # Outputs of the gateway's engine, and those that came over 100 ms after the one before; None where not told.
    steps: int | None = None
    long_steps: int | None = None


class Objective(Struct, frozen=True):
    """What a translation has to keep to be of use."""

    # Milliseconds from when its line was due to its first token.
    first_token_ms: float = 300.0
    # The share of translations that has to keep it: all but one in a hundred.
    quantile: float = 0.99
    # From when the first revision of an utterance was due to its first translated words, of as many; None: however
    # long they take.
    first_words_ms: float | None = None
    # Where these are asked for, also what `Trial.partials_translated` has to be.
    partials_translated: float = 0.5


class Finding(Struct, frozen=True):
    """One statement about several trials: a bar, a limit, a recommendation."""

    name: str
    # As it is shown.
    value: str
    bar: str = ""
    # Whether the bar was reached; None where there is none.
    passed: bool | None = None
    note: str = ""


class Results(Struct, frozen=True, kw_only=True):
    """What a load test has found."""

    model: str
    # The load test's own.
    settings: dict[str, Any] = {}
    # The objective; None where nothing is held to one.
    objective: Objective | None = None
    findings: list[Finding]
    # What the command shows besides: paragraphs and tables behind the findings, charts before those of the trials.
    parts: list[str | Table] = []
    charts: list[Chart] = []
    trials: list[Trial] = []
    # Further results of one kind of load test, as plain JSON: curves, scores.
    details: dict[str, Any] = {}
    # Further files of the report: name → text.
    files: dict[str, str] = {}
