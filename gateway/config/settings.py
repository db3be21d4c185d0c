"""The settings: name, type, range, default and meaning of each, beside one another.

Knows: what the engine adapters and the protocol have of their own to set. Must not know: where values come from.
Ranges are types here: `validation` reads them and says in a sentence what is outside of one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, structs

from gateway.engines.simulated import Script
from gateway.engines.vllm.options import VllmSettings
from gateway.protocol.limits import Limits

__all__ = ["BUNDLED_MODEL", "EngineSettings", "EventLogSettings", "Settings", "part"]

BUNDLED_MODEL = Path(__file__).parents[1] / "bundled_model"

_Part = TypeVar("_Part", bound=Struct)


class EngineSettings(VllmSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[engine]`: the settings of vLLM, and these."""

    # `simulated` is for measuring the gateway itself.
    kind: Literal["vllm", "simulated"] = "vllm"
    # A folder, or a name that vLLM can resolve.
    model: str = str(BUNDLED_MODEL)
    # Section `[engine.script]`: the simulated engine's times and failures.
    script: Script = Script()

    # The supervisor's, as `RestartPolicy` explains them.
    # Seconds without a token, while something is being generated, after which the engine is taken for dead.
    stall_s: Annotated[float, Meta(ge=1, le=3_600)] = 60.0
    # Times in a row that a dead engine is built again before it counts as failed; it is tried again even then.
    max_restarts: Annotated[int, Meta(ge=0, le=1_000)] = 5
    # Longest pause before the first rebuild, seconds.
    restart_backoff_s: Annotated[float, Meta(ge=0, le=3_600)] = 1.0
    # Longest pause before any rebuild, seconds.
    restart_backoff_max_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0


class EventLogSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[event_log]`: what is kept of each meeting, for resuming clients, late joiners and transcripts."""

    # Where the log is: in this process.
    kind: Literal["memory"] = "memory"
    # Utterances and translations kept of one meeting.
    max_publications: Annotated[int, Meta(ge=100, le=10**7)] = 10_000
    # How long they are kept, seconds.
    keep_s: Annotated[float, Meta(ge=1, le=30 * 86_400)] = 14_400.0
    # Size of all meetings' logs together.
    max_bytes: Annotated[int, Meta(ge=2**20, le=2**40)] = 268_435_456
    # Where a gateway that is stopped leaves sessions and logs for the next one, which deletes it; None: nowhere.
    handover_file: str | None = None


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The top level."""

    # Address to listen on.
    host: str = "127.0.0.1"
    # Port to listen on; 0 takes a free one.
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8000
    # Sessions held at once, connected or kept.
    max_sessions: Annotated[int, Meta(ge=1, le=10**7)] = 10_000
    # Translations that may wait for the engine before `overloaded`.
    max_waiting: Annotated[int, Meta(ge=0, le=10**7)] = 1_000
    # Unread output of one client before it is closed as a slow reader.
    outbox_bytes: Annotated[int, Meta(ge=4_096, le=2**32)] = 1_048_576
    # Time to finish accepted work after SIGTERM.
    drain_s: Annotated[float, Meta(ge=0, le=3_600)] = 30.0
    # Time to translate an accepted utterance, waiting and engine restarts included.
    utterance_deadline_s: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    # New text of a translation is sent about so often, its first and last at once; 0: each token.
    delta_interval_s: Annotated[float, Meta(ge=0, le=10)] = 0.04
    # How much of the engine's batch best effort may take: what is still being said, and what late joiners are
    # shown of earlier. With 0 nothing is translated while it is being said.
    partials_share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    # Recent utterances that a newcomer is shown.
    snapshot_utterances: Annotated[int, Meta(ge=0, le=200)] = 30
    # How often a connection is asked for a sign of life.
    ping_interval_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 20.0
    # How long it has for that.
    ping_timeout_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 20.0
    # Web pages that may use the gateway besides its own, as `https://meet.example.com`; `*` is any.
    allowed_origins: tuple[str, ...] = ()
    # The least severe messages that are logged.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    # Section `[engine]`.
    engine: EngineSettings = EngineSettings()
    # Section `[event_log]`.
    event_log: EventLogSettings = EventLogSettings()
    # Section `[limits]`: what one session may do, see `docs/protocol.md`.
    limits: Limits = Limits()


def part(kind: type[_Part], *settings: Struct) -> _Part:
    """The settings that one part of the gateway takes: each field of `kind` from the first that has its name."""
    values: dict[str, Any] = {}
    for section in reversed(settings):
        values |= structs.asdict(section)
    missing = set(kind.__struct_fields__) - values.keys()
    if missing:
        raise AttributeError(f"no settings for {', '.join(sorted(missing))} of {kind.__name__}")
    return kind(**{field: values[field] for field in kind.__struct_fields__})
