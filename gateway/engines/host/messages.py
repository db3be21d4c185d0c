"""The messages between a gateway and the process that hosts its engine: token ids in, token ids out.

Each gateway that asks the engine speaks to the host with the same messages, also where there is only one.
`GetSilence`, `State` and `Stop` are those of the process that has the host; workers also say their `Demand`.

A host that outlives gateways greets each with `Hello`, which every version understands; the rest is understood
where `PROTOCOL` is the same.

Knows: the values of the engine's ports. Must not know: sockets, processes.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.domain.engine import EngineHealth, EngineProfile
from gateway.domain.errors import EngineFailed, EngineUnavailable, GatewayError, TextTooLong
from gateway.engines.prompting.completions import News, Prompt
from gateway.engines.prompting.model import PromptedModel
from gateway.engines.simulated import SimulatedModel

# Raised with every change of a message below, or of a value in one: `tests/engines/host/test_messages.py` notices.
PROTOCOL = 8


class Hello(Struct, frozen=True):
    """The first word of a host that outlives gateways. Later versions may add fields, and change none."""

    protocol: int
    # Tells engines apart that are made of other settings, another model or another vLLM.
    made_of: str
    # Version of the gateway that has started it.
    version: str
    # Path of the Unix socket where workers reach it.
    shared_at: str
    # Whether another gateway has it; then nothing follows.
    taken: bool = False


class Wanted(Struct, frozen=True, array_like=True):
    """Sequences that a gateway runs or wants to run."""

    # Those of final utterances, which are promised.
    finals: int = 0
    # All others, which give way to the finals of every gateway.
    others: int = 0


class Generate(Struct, frozen=True, tag="generate", array_like=True):
    """Complete a prompt."""

    # Chosen by the gateway; each number is used once.
    number: int
    prompt: Prompt
    # As in `Demand`.
    waiting: Wanted = Wanted()


class Aborted(Struct, frozen=True, tag="aborted", array_like=True):
    """Stop completing this prompt; it may have ended already."""

    number: int


class GetMetrics(Struct, frozen=True, tag="get_metrics", array_like=True):
    """Send the engine's metrics; answered by `Metrics` with the same number."""

    number: int
    # Names of the samples. Empty: all.
    names: list[str]


class Demand(Struct, frozen=True, tag="demand", array_like=True):
    """How many more translations this gateway would ask for now if it had slots for them."""

    waiting: Wanted


class GetSilence(Struct, frozen=True, tag="get_silence", array_like=True):
    """Say whether the engine gives tokens; answered by `Silence`."""


class Stop(Struct, frozen=True, tag="stop", array_like=True):
    """Stop the engine and exit. Closing the socket has the same effect."""


class State(Struct, frozen=True, tag="state", array_like=True):
    """The engine's state changed."""

    health: EngineHealth
    # Path of the engine's log. None while there is none.
    log_path: str | None = None


class Started(Struct, frozen=True, tag="started", array_like=True):
    """The engine has started, or failed to start."""

    # Message of the `StartupError` if it failed. The fields below are then unset, except `trace`.
    failed: str | None = None
    # Traceback of the failure.
    trace: str = ""
    profile: EngineProfile | None = None
    # What makes prompts and texts for it; as long as its vocabulary.
    model: PromptedModel | SimulatedModel | None = None
    max_running: int = 0


class Silence(Struct, frozen=True, tag="silence", array_like=True):
    """For how long a generation of any gateway has waited while the engine gave none of them a token."""

    # Seconds; 0.0: none waits.
    silent_s: float


class Slots(Struct, frozen=True, tag="slots", array_like=True):
    """How many sequences of this gateway may run together now, and how busy the whole engine and its host are."""

    granted: int
    running: int
    waiting: int
    # See `EngineCapacity`.
    lag_s: float = 0.0


class Failed(Struct, frozen=True, array_like=True):
    """A prompt whose completion ended with an error."""

    # That of `EngineUnavailable` if the engine caused the error, of `EngineFailed` or `TextTooLong` if the text
    # did.
    code: str
    message: str
    retry_after_ms: int | None = None


class Step(Struct, frozen=True, tag="step", array_like=True):
    """What has happened to a gateway's prompts, by their numbers: in the order of these fields, and in order."""

    # They have not begun in the engine: another one runs alone, or the engine is gone.
    held: list[int]
    # They begin in the engine now. Said of those that were held, and of those that run alone; any other has begun
    # as soon as it was asked for.
    begun: list[int]
    # New output. The last one of a prompt has `finish` set.
    news: list[tuple[int, News]]
    failed: list[tuple[int, Failed]]


class Metrics(Struct, frozen=True, tag="metrics", array_like=True):
    """The engine's own metrics in Prometheus text format."""

    number: int
    page: bytes


ToHost = Generate | Aborted | GetMetrics | Demand | GetSilence | Stop
ToGateway = State | Started | Slots | Silence | Step | Metrics


# The most special first.
_FAILURES = (EngineUnavailable, TextTooLong, EngineFailed)


def failed_with(error: GatewayError) -> Failed:
    kind = next((kind for kind in _FAILURES if isinstance(error, kind)), EngineFailed)
    return Failed(kind.code, error.message, error.retry_after_ms)


def error_of(failed: Failed) -> GatewayError:
    kind = next((kind for kind in _FAILURES if kind.code == failed.code), EngineFailed)
    return kind(failed.message, retry_after_ms=failed.retry_after_ms)
