"""The settings: name, type, range, default and meaning of each.

Knows: the settings that belong to the engine adapters and the protocol. Must not know: where values come from.
Ranges are part of the types: `config.validation` reads them and explains a value outside its range.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, structs

from gateway.domain.webhooks import Webhook
from gateway.engines.simulated import Script
from gateway.engines.vllm.options import VllmSettings
from gateway.protocol.limits import Limits

BUNDLED = "bundled"
"""Names the bundled model, see `gateway.bundled`."""

_Part = TypeVar("_Part", bound=Struct)


class EngineSettings(VllmSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[engine]`: the settings of vLLM, and these."""

    # `vllm` is started by the gateway, `remote` is a vLLM server that runs already: see `docs/engines.md`.
    # `simulated` is for measurements of the gateway itself.
    kind: Literal["vllm", "remote", "simulated"] = "vllm"
    # A folder, or a name that vLLM can resolve, or `bundled`.
    model: str = BUNDLED

    # The remote engine's settings.
    # Where the server is, `https://gpu.example.com:8000`.
    url: str | None = None
    # The server's API key. None: it asks for none, or the key is in `api_key_file`.
    api_key: str | None = None
    # File whose first word is the key.
    api_key_file: str | None = None
    # PEM file of the authorities that may sign the server's certificate. None: those of this machine.
    ca_file: str | None = None

    # Section `[engine.script]`: the simulated engine's times and failures.
    script: Script = Script()

    # The supervisor's settings, see `RestartPolicy`.
    # Seconds without a token, while a translation runs, after which the engine counts as dead.
    stall_s: Annotated[float, Meta(ge=1, le=3_600)] = 60.0
    # Restarts in a row before the engine counts as failed; it is tried again even then.
    max_restarts: Annotated[int, Meta(ge=0, le=1_000)] = 5
    # Longest pause before the first restart, in seconds; doubles with each restart in a row.
    restart_backoff_s: Annotated[float, Meta(ge=0, le=3_600)] = 1.0
    # Longest pause before any restart, in seconds.
    restart_backoff_max_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0

    @property
    def is_shared(self) -> bool:
        """Whether several workers have one engine together."""
        return self.kind != "simulated" or self.script.shared


class LaneSettings(EngineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[[engines]]`: one of several engines. It has every setting of `[engine]`, and these."""

    # What it is called in metrics, in `/readyz` and in the log.
    name: str
    # The pairs of languages that it translates, of those that its model can: `en-ja`, `*-de`, `en-*`, or `*`.
    pairs: tuple[str, ...] = ("*",)


class EventLogSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[event_log]`: what is kept of each meeting, for resumed sessions, latecomers and transcripts."""

    # Utterances and translations kept of one meeting.
    max_publications: Annotated[int, Meta(ge=100, le=10**7)] = 10_000
    # Seconds for which they are kept.
    keep_s: Annotated[float, Meta(ge=1, le=30 * 86_400)] = 14_400.0
    # Whether a meeting is recorded where no participant decides: see `docs/operations.md`.
    record: bool = True
    # Seconds for which a meeting that is not recorded keeps what was said, so that connections that were lost can
    # go on.
    unrecorded_s: Annotated[float, Meta(ge=1, le=600)] = 30.0
    # Bytes of all meetings' logs together.
    max_bytes: Annotated[int, Meta(ge=2**20, le=2**40)] = 268_435_456
    # File where a stopped gateway saves sessions and logs for the next one, which deletes it. None: not saved.
    handover_file: str | None = None


class StoreSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[store]`: where meetings are kept, see `docs/scaling.md`."""

    # Address of a Redis that several gateways share, `redis://:password@host:6379`, `rediss://` for TLS, or
    # `unix:///path`. Several, separated by spaces, share the meetings. None: the memory of this process.
    url: str | None = None
    # What all its keys begin with, so that others can use it too.
    prefix: str = "gateway:"
    # File with the keys that encrypt what people said before it goes to the store, in Base64, the newest first.
    # None: the store can read it.
    key_file: str | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        """Each address; none for the memory of this process."""
        return tuple((self.url or "").split())


class AuthSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[auth]`: who is let in, see `docs/security.md`. Without keys, everybody who reaches it."""

    # File with signing keys and API keys, made by `gateway key`.
    keys_file: str | None = None
    # Address of the public keys (JWKS) of an identity provider whose tokens are accepted; https.
    jwks_url: str | None = None
    # The `iss` of that provider's tokens.
    jwks_issuer: str | None = None
    # The `aud` of all tokens.
    audience: str = "translation-gateway"
    # File that the audit log is appended to: who did what. None: there is none.
    audit_file: str | None = None
    # Whether to serve everybody without keys on an address that other machines reach.
    insecure_open: bool = False

    @property
    def kind(self) -> Literal["token", "none", "insecure_open"]:
        """Who is let in."""
        if self.keys_file is not None or self.jwks_url is not None:
            return "token"
        return "insecure_open" if self.insecure_open else "none"


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The top level."""

    # Address to listen on.
    host: str = "127.0.0.1"
    # Port to listen on; 0 takes a free one.
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8000
    # PEM files of the certificate, with its chain, and of its private key. None: no TLS.
    tls_cert: str | None = None
    tls_key: str | None = None
    # Address of `/metrics`, where `admin_port` is set.
    admin_host: str = "127.0.0.1"
    # Port of `/metrics`; 0 takes a free one. None: the gateway's own, on loopback and where tokens are not needed.
    admin_port: Annotated[int, Meta(ge=0, le=65_535)] | None = None
    # File with operators' keys, made by `gateway key admin`: `admin_port` then has the administration as well.
    # None: there is none.
    admin_keys_file: str | None = None
    # Sessions held at once, connected or kept.
    max_sessions: Annotated[int, Meta(ge=1, le=10**7)] = 10_000
    # Translations that may wait for the engine before `overloaded`.
    max_waiting: Annotated[int, Meta(ge=0, le=10**7)] = 1_000
    # Seconds that a translation may have to wait for the engine, as far as can be told, before `overloaded`.
    max_queue_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 1.0
    # Bytes of unread output of one client before it is closed as a slow reader.
    outbox_bytes: Annotated[int, Meta(ge=4_096, le=2**32)] = 1_048_576
    # Seconds to finish accepted work after SIGTERM.
    drain_s: Annotated[float, Meta(ge=0, le=3_600)] = 30.0
    # Seconds for which the engine's process waits for the next gateway when this one has ended, killed or not.
    # 0: it ends with the gateway.
    keep_engine_s: Annotated[float, Meta(ge=0, le=3_600)] = 0.0
    # Seconds to translate an accepted utterance, waiting and engine restarts included.
    utterance_deadline_s: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    # Seconds between two sends of a translation's new text; the first and the last text at once. 0: every token.
    delta_interval_s: Annotated[float, Meta(ge=0, le=10)] = 0.04
    # Share of the engine's batch for best-effort work: unfinished utterances, and earlier utterances for
    # latecomers. With 0 nothing is translated while it is being said.
    partials_share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    # Characters of what is said without an end mark that are translated together, twice as many where a sentence
    # has marks inside; what is longer is cut at a clause or a word.
    segment_chars: Annotated[int, Meta(ge=20, le=10_000)] = 120
    # Recent utterances that a latecomer sees.
    snapshot_utterances: Annotated[int, Meta(ge=0, le=200)] = 30
    # Seconds between two pings of a connection.
    ping_interval_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 20.0
    # Seconds to answer a ping before the connection counts as lost.
    ping_timeout_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 20.0
    # Origins whose pages may open the WebSocket and read what `/v1` answers, besides the gateway's own, such as
    # `https://meet.example.com`; `*` for any.
    allowed_origins: tuple[str, ...] = ()
    # Names under which the gateway is reached, besides `localhost` and IP addresses: `translate.example.com`,
    # `*.example.com` for subdomains, `*` for any.
    allowed_hosts: tuple[str, ...] = ()
    # Reverse proxies whose `X-Forwarded-For` names the client: addresses and networks, such as `10.0.0.0/8`.
    trusted_proxies: tuple[str, ...] = ()
    # Open connections of one address, those of trusted proxies excepted.
    max_connections_per_address: Annotated[int, Meta(ge=1, le=10**7)] = 1_000
    # Whether the page offers sample sentences, and to whoever opened a meeting and is alone in it the sample
    # meeting and simulated speakers.
    demo_controls: bool = True
    # The least severe messages that are logged.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    # Lines for people, or one JSON object a line. `auto`: lines for people on a terminal, else objects.
    log_format: Literal["auto", "text", "json"] = "auto"
    # Section `[auth]`.
    auth: AuthSettings = AuthSettings()
    # Section `[engine]`.
    engine: EngineSettings = EngineSettings()
    # Sections `[[engines]]`: several engines, instead of the one of `[engine]`.
    engines: tuple[LaneSettings, ...] = ()
    # Sections `[[webhooks]]`: who is told of meetings.
    webhooks: tuple[Webhook, ...] = ()
    # Section `[store]`.
    store: StoreSettings = StoreSettings()
    # Section `[event_log]`.
    event_log: EventLogSettings = EventLogSettings()
    # Section `[limits]`: what one session may do, see `docs/protocol.md`.
    limits: Limits = Limits()


def engines_of(settings: Settings) -> tuple[EngineSettings, ...]:
    """Every engine that there is."""
    return settings.engines or (settings.engine,)


def part(kind: type[_Part], *settings: Struct) -> _Part:
    """The settings of one part of the gateway: each field of `kind`, from the first of `settings` that has it."""
    values: dict[str, Any] = {}
    for section in reversed(settings):
        values |= structs.asdict(section)
    missing = set(kind.__struct_fields__) - values.keys()
    if missing:
        raise AttributeError(f"no settings for {', '.join(sorted(missing))} of {kind.__name__}")
    return kind(**{field: values[field] for field in kind.__struct_fields__})
