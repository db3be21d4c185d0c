"""One admitted translation: what was asked, how far it is, and what became of it; also in metrics and traces.

Knows: its own state, which metric counts which part of it, the events of its span.
Must not know: who else waits, the engine, who gives turns (`scheduler`).
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable
from enum import Enum
from functools import cache

from msgspec import Struct, field

from gateway import metrics
from gateway.domain.engine import Confidence, EngineProfile, FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import GatewayError
from gateway.domain.log import Timings
from gateway.tracing import spans
from gateway.tracing.spans import NOT_TRACED, Span, Value

# Priorities, lower first: finals, partials, and what a latecomer is shown of earlier utterances.
FINAL, PARTIAL, CATCHING_UP = 0, 1, 2

# A translation that ran in this many crashes may be their cause, so from then on it runs alone. If the engine dies
# again, it was the cause. A text that kills the engine thus costs three crashes, and each further one among the
# same suspects costs one more. The supervisor's default of five restarts in a row lets three such texts be found
# among all that ran together; with more of them the engine is called failed, and is tried again later.
SUSPECT_CRASHES = 2

# Several gateways may share an engine, so their request ids must differ.
_PROCESS = secrets.token_hex(4)
_serials = itertools.count(1)

# By their labels. Looking them up takes longer than counting.
_final_tokens, _partial_tokens = cache(metrics.FINAL_TOKENS.labels), cache(metrics.PARTIAL_TOKENS.labels)
_generation_s = cache(metrics.GENERATION_S.labels)


def request_id(kind: str) -> str:
    """An id for an engine that no other request has, of this gateway or another: `final-1f2e3d4c-17`."""
    return f"{kind}-{_PROCESS}-{next(_serials)}"


class Generated(Struct, frozen=True):
    """A whole translation."""

    text: str
    # The output limit cut it short.
    truncated: bool
    # There is no text, because the model would not have continued the request's prefix.
    rejected: bool = False
    # None: the model does not tell.
    confidence: Confidence | None = None


def generated_text(text: str, last: TokenEvent | None) -> Generated:
    """last: the event that ended it."""
    finish = last and last.finish
    return Generated(
        text.rstrip(),
        truncated=finish is FinishReason.LENGTH,
        rejected=finish is FinishReason.REJECTED,
        confidence=last.confidence if last else None,
    )


class Stage(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


class Ticket(Struct, eq=False):
    """One admitted translation. Its owner has it collected at most once, and withdrawn in the end."""

    # Order of admission.
    serial: int
    # What it takes turns for; empty for a request over HTTP.
    meeting: str
    request: TranslationRequest
    # Readings of the scheduler's clock; None until then. After a crash of the engine `started_s` and
    # `first_token_s` stay those of the first attempt, which readers saw.
    admitted_s: float
    # Who is charged for its place.
    account: str = ""
    started_s: float | None = None
    first_token_s: float | None = None
    finished_s: float | None = None
    # Tokens of `text`, generated or taken over from the request's prefix and draft.
    tokens: int = 0
    # Whether its tenant's quota has it counted, as far as it counts; partials cost nothing.
    charged: bool = False
    # What the last attempt has given so far; how many of its tokens were generated; and its last event.
    text: str = ""
    generated: int = 0
    last: TokenEvent | None = None
    # How often an engine died while this ran.
    crashes: int = 0
    # The only lane that it may run on, as it may be what killed it there. None: any that has its languages.
    bound_to: str | None = None
    # It has waited for that lane for as long as it may, and runs on another one, alone.
    bound_too_long: bool = False
    # It gave its place to a final.
    preempted: bool = False
    # The span of its translation, where the request is traced.
    span: Span = NOT_TRACED
    # Whether it was not promised; another request in its place has the same priority.
    best_effort: bool = False
    # The same for the languages of an utterance.
    utterance: int = 0
    # What follows is how far it is in the scheduler.
    stage: Stage = Stage.WAITING
    # The lanes for which it waits, and the one on which it runs.
    route: frozenset[str] = frozenset()
    lane: str = ""
    # Not a future: cancelling a task cancels the future it awaits, and a turn may be given just then.
    turn: asyncio.Event = field(default_factory=asyncio.Event)
    # Releases it from the lane that it is bound to; ends with the ticket.
    binding_timer: asyncio.TimerHandle | None = None
    given_up: GatewayError | None = None
    # Interrupts the task that collects it.
    interrupt: asyncio.Timeout | None = None

    def __post_init__(self) -> None:
        self.utterance = self.serial
        self.best_effort = self.request.priority > FINAL
        self.charged = not self.request.final

    @property
    def suspect(self) -> bool:
        """Whether its text may be what kills the engine."""
        return self.crashes >= SUSPECT_CRASHES

    @property
    def ending(self) -> bool:
        """Whether it has ended, or was given up and is about to."""
        return self.given_up is not None or self.stage is Stage.ENDED

    def begin_span(self) -> None:
        request = self.request
        if request.traceparent:
            about: dict[str, Value] = {"source": request.source, "target": request.target}
            self.span = spans.begin("translate", about, parent=request.traceparent)

    def begin_turn(self, lane: str, now_s: float, profile_of: Callable[[], EngineProfile | None]) -> None:
        """Its turn has come, on a lane. profile_of: tells that of the lane."""
        self.stage, self.lane = Stage.RUNNING, lane
        self.turn.set()
        if self.started_s is None:
            self.started_s = now_s
            if self.request.final:
                metrics.QUEUE_S.observe(now_s - self.admitted_s, spans.exemplar(self.span))
        if self.span is not NOT_TRACED:
            named = lane or metrics.DEFAULT_ENGINE
            self.span.event("dispatched", lane=named)
            profile = profile_of()
            self.span.set(lane=named, model="" if profile is None else _without_folders(profile.model))

    def finish(self, last: TokenEvent, now_s: float) -> None:
        self.last, self.finished_s = last, now_s
        metrics.PROMPT_TOKENS.inc(last.prompt_tokens)
        if last.cached_tokens:
            metrics.PROMPT_TOKENS_CACHED.inc(last.cached_tokens)
        if not self.request.final:
            metrics.PARTIAL_S.observe(now_s - self.admitted_s)
            return
        example = spans.exemplar(self.span)
        metrics.TRANSLATION_S.observe(now_s - self.admitted_s, example)
        self.span.set(
            prompt_tokens=last.prompt_tokens, cached_tokens=last.cached_tokens, reused_tokens=last.reused
        )
        if self.first_token_s is not None:
            metrics.FIRST_TOKEN_S.observe(self.first_token_s - self.admitted_s, example)
            # The time of a crash is not that of a token.
            if self.tokens > 1 and not self.crashes:
                metrics.TOKEN_INTERVAL_S.observe((now_s - self.first_token_s) / (self.tokens - 1))

    def count_tokens(self) -> None:
        """An attempt has ended, however it did."""
        metrics.TOKENS.inc(self.generated)
        if self.tokens > self.generated:
            metrics.TOKENS_REUSED.inc(self.tokens - self.generated)
        (_final_tokens if self.request.final else _partial_tokens)(self.request.target).inc(self.generated)

    def wait_again(self, route: frozenset[str]) -> None:
        """The engine died while it ran: it waits for these lanes."""
        metrics.TRANSLATIONS_RETRIED.inc()
        self.span.event("again", lane=self.lane or metrics.DEFAULT_ENGINE, crashes=self.crashes)
        self.stage, self.route = Stage.WAITING, route
        self.turn.clear()

    def end(self, now_s: float) -> None:
        """There will be no more of it, however it ended."""
        if self.stage is Stage.RUNNING and self.started_s is not None:
            kind = "final" if self.request.final else "partial"
            _generation_s(kind, self.request.target).inc(now_s - self.started_s)
        self.stage = Stage.ENDED
        if self.binding_timer is not None:
            self.binding_timer.cancel()
        if self.span is not NOT_TRACED:
            self.span.set(tokens=self.tokens, crashes=self.crashes)
            if self.given_up is not None:
                self.span.fail(self.given_up.code)
            self.span.end()

    def crashed(self) -> None:
        """The lane died while this ran there.

        Whatever had begun to give text before has got over what is done only once for each text, so most probably
        it was something else that killed the lane, and other lanes can have it at once. The rest waits for that
        lane: given to others, it could kill one after another.
        """
        self.crashes += 1
        if not self.tokens or self.suspect:
            self.bound_to = self.lane

    def exchange(self, request: TranslationRequest) -> bool:
        """Put another request of its priority in place of this one while it waits.

        False: its turn has come, or the other one is of another pair of languages and may need another lane.
        """
        if self.stage is not Stage.WAITING or self.ending:
            return False
        if (request.source, request.target) != (self.request.source, self.request.target):
            return False
        self.request = request
        return True

    def timings(self) -> Timings:
        """Milliseconds since its admission; 0 for a stage that was never reached."""

        def since_admission_ms(at_s: float | None) -> float:
            return 0.0 if at_s is None else round((at_s - self.admitted_s) * 1000, 1)

        return Timings(
            queue_ms=since_admission_ms(self.started_s),
            first_token_ms=since_admission_ms(self.first_token_s),
            total_ms=since_admission_ms(self.finished_s),
        )


def _without_folders(model: str) -> str:
    """The model's name without the folders that it is in, which are of this machine."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model
