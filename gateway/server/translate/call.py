"""The translations of one HTTP call, whichever API it came through: admitted together, stopped together.

Knows: the scheduler, what a grant allows, when a client has disconnected.
Must not know: requests and answers of any API, how an error is answered.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from types import TracebackType

from msgspec import Struct
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from gateway import metrics
from gateway.domain.errors import DeadlineExceeded, Draining, EngineFailed, GatewayError
from gateway.domain.grants import Grant, account_of_tenant
from gateway.domain.languages import UNDETERMINED
from gateway.domain.log import Timings
from gateway.domain.ports import Engine
from gateway.protocol.limits import Limits
from gateway.server.guard.fair_thread import FairThread
from gateway.server.translate.detection import Detector
from gateway.server.translate.plan import Asked, Job, Plan, plan
from gateway.sessions.grants import check_reads, check_role, check_speaks
from gateway.tracing import spans
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import Generated, Ticket

NO_TIME = Timings(0.0, 0.0, 0.0)
"""Timings of a text that the engine does not translate."""


# Characters of the texts of a call that are looked into at once: that takes no longer than to have a thread do it.
_AT_ONCE_CHARS = 2_000


class Translated(Struct, frozen=True):
    text: str
    # That were generated.
    tokens: int
    # The output limit cut it short.
    truncated: bool
    timings: Timings
    # A reader should be warned: the model is not sure, or left words as they are.
    unsure: bool = False


class Translator:
    def __init__(
        self,
        scheduler: Scheduler,
        engine: Engine,
        limits: Limits,
        detector: Detector | None = None,
        *,
        # A sentence of more characters is cut.
        segment_chars: int,
        # Most texts of one call.
        batch_texts: int = 64,
    ) -> None:
        self.scheduler = scheduler
        self.engine = engine
        self.limits = limits
        self.batch_texts = batch_texts
        self._segment_chars = segment_chars
        self.detector = detector or Detector()
        # Looks into texts: tags, terms, sentences.
        self.thread = FairThread("texts")

    def refuse_waiting(self) -> None:
        """The gateway stops: end the calls whose texts nobody has looked into yet."""
        why = "The gateway stopped before this was translated; send it again."
        self.thread.refuse_waiting(Draining(why, retry_after_ms=1_000))

    def check_unread(self, grant: Grant, address: str) -> None:
        """Raises where no call would be admitted, whatever it asks for. address: as below.

        `Forbidden`, `DailyQuotaExceeded`, `QuotaExceeded` or `Overloaded`.
        """
        check_role(grant, "speak", "source_lang")
        check_role(grant, "read", "reads")
        self.scheduler.door.check_unread(account_of_tenant(grant, address))

    async def admit(self, asked: Asked, grant: Grant, address: str, *, most: int | None = None) -> Call:
        """Take a call on; the caller has to enter it, without awaiting anything between.

        Where languages are to be detected, `detector.load` comes first.
        address: whom to charge where there are no tenants. most: texts; None: `batch_texts`.
        Raises `GatewayError`.
        """
        account = account_of_tenant(grant, address)
        planning = partial(
            plan,
            asked,
            scope=f"http:{account}",
            id_prefix=f"http-{secrets.token_hex(8)}",
            profile=self.engine.profile(),
            limits=self.limits,
            batch_texts=most or self.batch_texts,
            segment_chars=self._segment_chars,
            detect=self.detector.detect,
            traceparent=spans.current().traceparent,
        )
        is_short = sum(len(text) for _, text in asked.texts) <= _AT_ONCE_CHARS
        planned = planning() if is_short else await self.thread.run(account, planning, goes_on=bool(asked.samples))
        _check(grant, planned)
        divided = [job for job in planned.jobs if job.requests]
        # Nothing may be awaited from here until the call is entered, because only it gives the places back.
        tickets = self.scheduler.admit("", [job.requests[0] for job in divided], account=account)
        more = [request for job in divided for request in job.requests[1:]]
        others: list[Ticket] = []
        try:
            # A text has to wait as one request would, however many sentences it has.
            if more:
                others = self.scheduler.admit("", more, account=account, promised=True)
        except GatewayError:
            for ticket in tickets:
                self.scheduler.withdraw(ticket)
            raise
        first, rest = iter(tickets), iter(others)
        by_job = [
            [*islice(first, len(job.requests[:1])), *islice(rest, len(job.requests[1:]))] for job in planned.jobs
        ]
        return Call(self.scheduler, planned, by_job)


def _check(grant: Grant, planned: Plan) -> None:
    check_role(grant, "speak", "source_lang")
    for source in {job.source for job in planned.jobs} - {UNDETERMINED}:
        check_speaks(grant, source, "source_lang")
    check_reads(grant, planned.targets, originals=False)


class Call:
    """The texts of one call. A context: when it is left, what is not translated yet is stopped."""

    def __init__(self, scheduler: Scheduler, planned: Plan, tickets: list[list[Ticket]]) -> None:
        """tickets: of each job."""
        self._scheduler = scheduler
        # By text, then by language.
        self.jobs = planned.jobs
        # A tag, or `AUTO`.
        self.source = planned.source
        # Tags, each once.
        self.targets = planned.targets
        # Options that the model cannot take.
        self.left_out = planned.left_out
        self._tickets = tickets
        self._outcomes = ["cancelled"] * len(planned.jobs)

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not in the tasks of the texts: a task that is cancelled before its first step runs no code.
        for job, tickets, outcome in zip(self.jobs, self._tickets, self._outcomes, strict=True):
            for ticket in tickets:
                self._scheduler.withdraw(ticket)
            if tickets:
                metrics.TRANSLATIONS.labels(outcome, job.target).inc()

    async def translate(self, number: int, on_text: Callable[[str], None] | None = None) -> Translated:
        """Do one job, once. number: of the job. Raises only `GatewayError`."""
        job, tickets = self.jobs[number], self._tickets[number]
        if job.error is not None:
            raise job.error
        if not tickets:
            return Translated(job.text, 0, False, NO_TIME)
        try:
            parts = await self._collect(job, tickets, on_text)
        except GatewayError as error:
            self._outcomes[number] = error.code
            if isinstance(error, EngineFailed | DeadlineExceeded):
                error.field = job.field
            raise
        self._outcomes[number] = "final"
        timings = [ticket.timings() for ticket in tickets]
        return Translated(
            job.put_together([part.text for part in parts]),
            sum(ticket.tokens for ticket in tickets),
            any(part.truncated for part in parts),
            Timings(timings[0].queue_ms, timings[0].first_token_ms, max(each.total_ms for each in timings)),
            unsure=any(part.confidence is not None and part.confidence.unsure for part in parts),
        )

    async def _collect(
        self, job: Job, tickets: Sequence[Ticket], on_text: Callable[[str], None] | None
    ) -> list[Generated]:
        """The translation of each part. The first one that fails stops the others. Raises only `GatewayError`."""
        texts, ended = [""] * len(tickets), [False] * len(tickets)

        def show(number: int, text: str) -> None:
            texts[number] = text.rstrip()
            # A part that comes too early is shown when those before it are complete.
            begun = next((n for n, end in enumerate(ended) if not end), len(ended) - 1)
            if on_text is not None and (begun or texts[0]):
                on_text(job.put_together(texts[: begun + bool(texts[begun])]))

        async def collect(number: int) -> Generated:
            generated = await self._scheduler.collect(tickets[number], partial(show, number))
            ended[number] = True
            show(number, generated.text)
            return generated

        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(collect(number)) for number in range(len(tickets))]
        except BaseExceptionGroup as group:
            raise _reason(group) from None
        return [task.result() for task in running]

    async def translate_whole(self, receive: Receive) -> list[Translated]:
        """Do every job; the first one that fails stops the others. Raises its error, or `ClientDisconnect`."""
        async with while_connected(receive), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self.translate(number)) for number in range(len(self.jobs))]
        return [task.result() for task in running]

    async def translate_all(self, receive: Receive) -> list[Translated | GatewayError]:
        """Do every job, each with its own outcome. Raises `ClientDisconnect`, or the first error if all failed."""

        async def outcome(number: int) -> Translated | GatewayError:
            try:
                return await self.translate(number)
            except GatewayError as error:
                return error

        async with while_connected(receive), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(outcome(number)) for number in range(len(self.jobs))]
        outcomes = [task.result() for task in running]
        errors = [each for each in outcomes if isinstance(each, GatewayError)]
        if len(errors) == len(outcomes):
            raise errors[0]
        for error in errors:
            metrics.ERRORS.labels(error.code).inc()
        return outcomes


@asynccontextmanager
async def while_connected(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client disconnects. Raises `ClientDisconnect`, or the first error of its tasks.

    The request's body must have been read, so that the next message received is the disconnect.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_gone(receive))
            yield
            watching.cancel()
    except BaseExceptionGroup as group:
        raise _reason(group) from None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise ClientDisconnect


def _reason(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to act on: `ClientDisconnect` if there is one, else the error of the first task that failed."""
    known, rest = group.split((ClientDisconnect, GatewayError))
    if rest is not None or known is None:
        return group
    found = list(_leaves(known))
    return next((error for error in found if isinstance(error, ClientDisconnect)), found[0])


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
