"""Every setting, its default and where it may come from; read by `app` and `cli` alone.

Order, the later wins: defaults here, a TOML file, environment variables (`GATEWAY__PORT`,
`GATEWAY__ENGINE__MAX_NUM_SEQS`), command line flags. Every mistake is a `StartupError` that names where it was
made: the file and the setting, the variable, or the flag.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec import inspect as shapes

from gateway.domain.errors import StartupError
from gateway.engines.prompting.families import FAMILIES
from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits

__all__ = ["BUNDLED_MODEL", "EngineSettings", "EventLogSettings", "Settings", "load"]

BUNDLED_MODEL = Path(__file__).parent / "bundled_model"

# Two underscores: Kubernetes sets GATEWAY_PORT and the like by itself for a service that is named `gateway`.
_PREFIX = "GATEWAY__"

_DTYPES = ("auto", "float32", "bfloat16", "float16")

# Flags that are not called as the last part of their setting.
_FLAGS = {"engine.kind": "--engine"}

# What one session's outbox holds besides the texts of an utterance: names, numbers, other messages.
_OUTBOX_BESIDES_BYTES = 65_536

# At most 4 bytes a character in UTF-8.
_CHAR_BYTES = 4


class EngineSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[engine]`.

    kind: `vllm`, or `simulated` for measuring the gateway itself.
    model: a folder or a name vLLM can resolve. family: prompt family; null detects it from the model.
    max_num_seqs: sequences in one batch. max_model_len: tokens of prompt and output; null takes the model's.
    dtype: `auto` chooses by the CPU's flags on a CPU. gpu_memory_utilization: share of the GPU's memory.
    kv_cache_gib: cache on a CPU, GiB. card_sampling: sample as the model card says instead of greedily.
    output_tokens_base, output_tokens_per_source_token: a translation may have base + factor × source tokens.
    extra: any further vLLM engine arguments. script: the simulated engine's times and failures.
    stall_s: seconds without a token, while something is being generated, after which the engine is taken for dead.
    max_restarts: times in a row that a dead engine is built again before it counts as failed; it is tried on and
    on nevertheless. restart_backoff_s, restart_backoff_max_s: pause before the first rebuild, and the longest.
    """

    kind: Literal["vllm", "simulated"] = "vllm"
    model: str = str(BUNDLED_MODEL)
    family: str | None = None
    max_num_seqs: int = 16
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    dtype: str = "auto"
    gpu_memory_utilization: float = 0.9
    kv_cache_gib: float = 1.0
    enforce_eager: bool | None = None
    card_sampling: bool = False
    output_tokens_base: int = 32
    output_tokens_per_source_token: float = 3.0
    extra: dict[str, Any] = {}
    script: Script = Script()
    stall_s: float = 60.0
    max_restarts: int = 5
    restart_backoff_s: float = 1.0
    restart_backoff_max_s: float = 60.0


class EventLogSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[event_log]`: what is kept of each meeting, for resuming clients, late joiners and transcripts.

    kind: `memory`. max_publications: utterances and translations kept of one meeting. keep_s: how long, seconds.
    max_bytes: of all meetings together. handover_file: where a gateway that is stopped leaves sessions and logs
    for the next one, which deletes it; null: nowhere.
    """

    kind: Literal["memory"] = "memory"
    max_publications: int = 10_000
    keep_s: float = 14_400.0
    max_bytes: int = 268_435_456
    handover_file: str | None = None


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The top level.

    host, port: where to listen; port 0 takes a free one. max_sessions: sessions held at once, connected or kept.
    max_waiting: translations that may wait for the engine before `overloaded`. outbox_bytes: unread output
    of one client before it is closed as a slow reader. drain_s: time to finish accepted work after SIGTERM.
    utterance_deadline_s: time to translate an accepted utterance, waiting and engine restarts included.
    delta_interval_s: new text of a translation is sent about so often, its first and last at once; 0: each token.
    partials_share: how much of the engine's batch best effort may take: what is still being said, and what late
    joiners are shown of earlier; with 0 nothing is translated while it is being said.
    snapshot_utterances: recent utterances that a newcomer is shown. ping_interval_s, ping_timeout_s: how often a
    connection is asked for a sign of life, and how long it has for that.
    allowed_origins: web pages that may use the gateway besides its own, `https://meet.example.com`; `*` is any.
    limits: what one session may do, see `docs/protocol.md`. log_level: `debug`, `info`, `warning`, `error`.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    max_sessions: int = 10_000
    max_waiting: int = 1_000
    outbox_bytes: int = 1_048_576
    drain_s: float = 30.0
    utterance_deadline_s: float = 300.0
    delta_interval_s: float = 0.04
    partials_share: float = 0.5
    snapshot_utterances: int = 30
    ping_interval_s: float = 20.0
    ping_timeout_s: float = 20.0
    allowed_origins: tuple[str, ...] = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    engine: EngineSettings = EngineSettings()
    event_log: EventLogSettings = EventLogSettings()
    limits: Limits = Limits()


def load(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """The settings in force. `overrides` has dotted keys (`engine.model`). Raises `StartupError`."""
    variables = {
        name.removeprefix(_PREFIX).lower().replace("__", "."): value
        for name, value in (environment or {}).items()
        if name.startswith(_PREFIX)
    }
    sources = [
        _Source(_read(file) if file is not None else {}, file, repr),
        _Source(_nested(variables), None, _variable),
        _Source(_nested(overrides or {}), None, _flag),
    ]
    tree: dict[str, Any] = {}
    for source in sources:
        _check_shape(source, "", _SHAPE, source.tree)
        _merge(tree, source.tree)
    try:
        settings = msgspec.convert(tree, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise StartupError(f"The settings cannot be used: {error}.") from None
    _check(settings, sources)
    return settings


# ---------------------------------------------------------------- sources


class _Source(Struct, frozen=True):
    """One place that sets something. file: null for variables and flags. spell: how it writes a setting."""

    tree: dict[str, Any]
    file: Path | None
    spell: Callable[[str], str]

    def where(self, path: str) -> str:
        """The file, or the variable or flag that sets `path`."""
        return str(self.file) if self.file is not None else self.spell(path)

    def about(self, path: str) -> str:
        """What a sentence about the value of `path` begins with."""
        return f"{self.file}: {path}" if self.file is not None else self.spell(path)

    def sets(self, path: str) -> bool:
        tree: object = self.tree
        for key in path.split("."):
            if not isinstance(tree, dict) or key not in tree:
                return False
            tree = tree[key]
        return True


def _variable(path: str) -> str:
    return _PREFIX + path.upper().replace(".", "__")


def _flag(path: str) -> str:
    return _FLAGS.get(path, f"--{path.rpartition('.')[2].replace('_', '-')}")


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise StartupError(f"There is no configuration file {file}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise StartupError(f"The configuration file {file} cannot be read: {error}.") from None


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    # The deepest first: a section that is set as if it were a setting replaces what is in it, and is refused.
    for path in sorted(flat, key=lambda path: -path.count(".")):
        section = tree
        *parents, leaf = path.split(".")
        for parent in parents:
            section = section.setdefault(parent, {})
        section[leaf] = flat[path]
    return tree


def _merge(tree: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            section = tree.get(key)
            tree[key] = section = section if isinstance(section, dict) else {}
            _merge(section, value)
        else:
            tree[key] = value


# ---------------------------------------------------------------- names and types


_SHAPE = shapes.type_info(Settings)

# What a value of a type is read as, and what is said of one that cannot be.
_SCALARS: dict[type[shapes.Type], tuple[type, str]] = {
    shapes.IntType: (int, "is no whole number"),
    shapes.FloatType: (float, "is no number"),
    shapes.BoolType: (bool, "is neither true nor false"),
    shapes.StrType: (str, "is no text"),
}


def _check_shape(source: _Source, path: str, shape: shapes.Type, value: object) -> None:
    """Raises `StartupError` where a name does not exist or a value has the wrong type."""
    match shape:
        case shapes.Metadata(type=inner):
            _check_shape(source, path, inner, value)
        case shapes.UnionType(types=inners):
            if not _reads_as(value, type(None)):
                _check_shape(source, path, next(i for i in inners if not isinstance(i, shapes.NoneType)), value)
        case shapes.StructType():
            _check_section(source, path, shape, value)
        case shapes.VarTupleType(item_type=inner) | shapes.FrozenSetType(item_type=inner):
            if not isinstance(value, list):
                raise StartupError(f"{source.about(path)}: {value!r} is no list.")
            for index, item in enumerate(value):
                _check_shape(source, f"{path}[{index}]", inner, item)
        case shapes.DictType():
            if not isinstance(value, dict):
                raise StartupError(f"{source.about(path)}: {value!r} is no section.")
        case shapes.LiteralType(values=choices):
            _check_choice(source, path, value, map(str, choices))
        case _:
            kind, complaint = _SCALARS[type(shape)]
            if not _reads_as(value, kind):
                raise StartupError(f"{source.about(path)}: {value!r} {complaint}.")


def _check_section(source: _Source, path: str, shape: shapes.StructType, value: object) -> None:
    fields = {field.name: field for field in shape.fields}
    if not isinstance(value, dict):
        if path.endswith("]"):
            raise StartupError(f"{source.about(path)}: {value!r} is no section.")
        example = source.spell(f"{path}.{next(iter(fields))}")
        raise StartupError(
            f"{source.where(path)}: {path!r} is a section, not a setting; one of its settings is {example}."
        )
    for key, inner in value.items():
        below = f"{path}.{key}" if path else key
        if key not in fields:
            _refuse_unknown(source, below, key, fields)
        _check_shape(source, below, fields[key].type, inner)
    for name, field in fields.items():
        if field.required and name not in value:
            raise StartupError(f"{source.about(path)}: it lacks {name!r}.")


def _refuse_unknown(source: _Source, path: str, key: str, siblings: Iterable[str]) -> None:
    # A table of a list, as `rules[0]`, is nobody else's place: only its own names can be meant.
    known = list(siblings) if "[" in path else _KNOWN
    same_name = [name for name in known if name.rpartition(".")[2] == key]
    meant = same_name or difflib.get_close_matches(key if "[" in path else path, known, 1)
    end = f"; did you mean {source.spell(meant[0])}?" if meant else "."
    raise StartupError(f"{source.where(path)}: there is no setting {path!r}{end}")


def _check_choice(source: _Source, path: str, value: object, choices: Iterable[str]) -> None:
    choices = sorted(choices)
    if value not in choices:
        raise StartupError(f"{source.about(path)}: {value!r} is none of {', '.join(choices)}.")


def _reads_as(value: object, kind: type | None) -> bool:
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _names(shape: shapes.Type, path: str = "") -> Iterator[str]:
    """Every section and setting below a path, dotted."""
    if isinstance(shape, shapes.StructType):
        for field in shape.fields:
            yield (below := f"{path}.{field.name}" if path else field.name)
            yield from _names(field.type, below)


_KNOWN = list(_names(_SHAPE))


# ---------------------------------------------------------------- values


def _check(settings: Settings, sources: list[_Source]) -> None:
    """Raises `StartupError` for what has the right type and cannot work."""
    engine, limits, script = settings.engine, settings.limits, settings.engine.script
    bounds: list[tuple[str, float | None, float, float | None]] = [
        ("port", settings.port, 0, 65_535),
        ("max_sessions", settings.max_sessions, 1, 10**7),
        ("max_waiting", settings.max_waiting, 0, 10**7),
        ("outbox_bytes", settings.outbox_bytes, 4_096, 2**32),
        ("drain_s", settings.drain_s, 0, 3_600),
        ("utterance_deadline_s", settings.utterance_deadline_s, 1, 86_400),
        ("delta_interval_s", settings.delta_interval_s, 0, 10),
        ("partials_share", settings.partials_share, 0, 1),
        ("snapshot_utterances", settings.snapshot_utterances, 0, 200),
        ("ping_interval_s", settings.ping_interval_s, 0.1, 3_600),
        ("ping_timeout_s", settings.ping_timeout_s, 0.1, 3_600),
        ("event_log.max_publications", settings.event_log.max_publications, 100, 10**7),
        ("event_log.keep_s", settings.event_log.keep_s, 1, 30 * 86_400),
        ("event_log.max_bytes", settings.event_log.max_bytes, 2**20, 2**40),
        ("engine.max_num_seqs", engine.max_num_seqs, 1, 4_096),
        ("engine.max_model_len", engine.max_model_len, 64, None),
        ("engine.max_num_batched_tokens", engine.max_num_batched_tokens, 1, None),
        ("engine.gpu_memory_utilization", engine.gpu_memory_utilization, 0.01, 1.0),
        ("engine.kv_cache_gib", engine.kv_cache_gib, 0.1, 4_096),
        ("engine.output_tokens_base", engine.output_tokens_base, 1, 10**6),
        ("engine.output_tokens_per_source_token", engine.output_tokens_per_source_token, 0, 1_000),
        ("engine.stall_s", engine.stall_s, 1, 3_600),
        ("engine.max_restarts", engine.max_restarts, 0, 1_000),
        ("engine.restart_backoff_s", engine.restart_backoff_s, 0, 3_600),
        ("engine.restart_backoff_max_s", engine.restart_backoff_max_s, 0, 86_400),
        ("engine.script.load_s", script.load_s, 0, 86_400),
        ("engine.script.first_token_s", script.first_token_s, 0, 86_400),
        ("engine.script.token_s", script.token_s, 0, 86_400),
        ("engine.script.max_running", script.max_running, 1, None),
    ]
    for index, rule in enumerate(script.rules):
        bounds += [
            (f"engine.script.rules[{index}].token_s", rule.token_s, 0, 86_400),
            (f"engine.script.rules[{index}].crash_after", rule.crash_after, 0, None),
            (f"engine.script.rules[{index}].crashes", rule.crashes, 0, None),
        ]
    bounds += [
        (f"limits.{name}", getattr(limits, name), 1_024 if name == "message_bytes" else 1, 2**30)
        for name in Limits.__struct_fields__
    ]
    for path, value, low, high in bounds:
        if value is None or low <= value <= (high if high is not None else value):
            continue
        source = _origin(path, sources)
        wrong = f"is below {low}" if high is None else f"is not between {low} and {high}"
        raise StartupError(f"{source.about(path) if source else path}: {value} {wrong}.")
    for path, choice, choices in (
        ("engine.dtype", engine.dtype, _DTYPES),
        ("engine.family", engine.family, FAMILIES),
    ):
        if choice is not None and (source := _origin(path, sources)) is not None:
            _check_choice(source, path, choice, choices)
    _check_together(settings, sources)


def _check_together(settings: Settings, sources: list[_Source]) -> None:
    """Bounds that depend on other settings, and what no bound says."""
    if settings.event_log.handover_file == "":
        raise StartupError(
            f"{_said('event_log.handover_file', 'empty', sources)}: leave it out to have none, or name a file."
        )
    if settings.engine.restart_backoff_max_s < settings.engine.restart_backoff_s:
        raise StartupError(
            f"{_said('engine.restart_backoff_max_s', settings.engine.restart_backoff_max_s, sources)}: "
            f"it has to be at least engine.restart_backoff_s = {settings.engine.restart_backoff_s}."
        )
    # An engine that gathers text for so long would be taken for one that hangs.
    if settings.delta_interval_s > settings.engine.stall_s / 4:
        raise StartupError(
            f"{_said('delta_interval_s', settings.delta_interval_s, sources)}: it may be a quarter of "
            f"engine.stall_s = {settings.engine.stall_s} at most."
        )
    limits = settings.limits
    # The caption of the longest text, and its final in every language, wait for one client at the same time.
    least = _OUTBOX_BESIDES_BYTES + _CHAR_BYTES * limits.text_chars * (1 + limits.languages)
    if settings.outbox_bytes < least:
        raise StartupError(
            f"{_said('outbox_bytes', settings.outbox_bytes, sources)}: one utterance of limits.text_chars = "
            f"{limits.text_chars} characters in limits.languages = {limits.languages} languages would close its "
            f"session. It has to be at least {least}."
        )
    # One session may hold half of the queue.
    least = 2 * limits.languages
    if settings.max_waiting < least:
        raise StartupError(
            f"{_said('max_waiting', settings.max_waiting, sources)}: one session may fill half of it, and an "
            f"utterance in limits.languages = {limits.languages} languages has to fit. "
            f"It has to be at least {least}."
        )


def _origin(path: str, sources: list[_Source]) -> _Source | None:
    """The source whose value of `path` is in force; null where it is the default."""
    return next((source for source in reversed(sources) if source.sets(path.partition("[")[0])), None)


def _said(path: str, value: object, sources: list[_Source]) -> str:
    source = _origin(path, sources)
    return f"{path} is {value}, {f'from {source.where(path)}' if source is not None else 'the default'}"
