"""The translations of one HTTP call, whichever API it came through: admitted together, stopped together.

Knows: the scheduler, what a grant allows, when a client has disconnected.
Must not know: requests and answers of any API, how an error is answered.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType

from msgspec import Struct
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from gateway import metrics
from gateway.domain.errors import DeadlineExceeded, EngineFailed, GatewayError
from gateway.domain.grants import Grant, account_of_tenant
from gateway.domain.languages import UNDETERMINED
from gateway.domain.log import Timings
from gateway.domain.ports import Engine
from gateway.protocol.limits import Limits
from gateway.server.translate.detection import Detector
from gateway.server.translate.plan import Asked, Plan, plan
from gateway.sessions.grants import check_reads, check_role, check_speaks
from gateway.tracing import spans
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import Ticket

NO_TIME = Timings(0.0, 0.0, 0.0)
"""Timings of a text that the engine does not translate."""


class Translated(Struct, frozen=True):
    """One text in one language."""

    text: str
    # That were generated.
    tokens: int
    # The output limit cut it short.
    truncated: bool
    timings: Timings


class Translator:
    """Takes calls on."""

    def __init__(
        self,
        scheduler: Scheduler,
        engine: Engine,
        limits: Limits,
        detector: Detector | None = None,
        *,
        # Most texts of one call.
        batch_texts: int = 64,
    ) -> None:
        self.scheduler = scheduler
        self.engine = engine
        self.limits = limits
        self.batch_texts = batch_texts
        self.detector = detector or Detector()

    def check_unread(self, grant: Grant, address: str) -> None:
        """Raises `Overloaded` where no call would be admitted, whatever it asks for. address: as below."""
        self.scheduler.door.check_unread(account_of_tenant(grant, address))

    def admit(self, asked: Asked, grant: Grant, address: str, *, most: int | None = None) -> Call:
        """Take a call on; the caller has to enter it, without awaiting anything before.

        Where languages are to be detected, `detector.load` comes first.
        address: whom to charge where there are no tenants. most: texts; None: `batch_texts`.
        Raises `GatewayError`.
        """
        account = account_of_tenant(grant, address)
        planned = plan(
            asked,
            scope=f"http:{account}",
            id_prefix=f"http-{secrets.token_hex(8)}",
            profile=self.engine.profile(),
            limits=self.limits,
            batch_texts=most or self.batch_texts,
            detect=self.detector.detect,
            traceparent=spans.current().traceparent,
        )
        _check(grant, planned)
        requests = [job.request for job in planned.jobs if job.request is not None]
        # Nothing may be awaited from here until the call is entered, because only it gives the places back.
        return Call(self.scheduler, planned, self.scheduler.admit("", requests, account=account))


def _check(grant: Grant, planned: Plan) -> None:
    """Raises `Forbidden`."""
    check_role(grant, "speak", "source_lang")
    for source in {job.source for job in planned.jobs} - {UNDETERMINED}:
        check_speaks(grant, source, "source_lang")
    check_reads(grant, planned.targets, originals=False)


class Call:
    """The texts of one call. A context: when it is left, what is not translated yet is stopped."""

    def __init__(self, scheduler: Scheduler, planned: Plan, tickets: list[Ticket]) -> None:
        self._scheduler = scheduler
        # By text, then by language.
        self.jobs = planned.jobs
        # A tag, or `AUTO`.
        self.source = planned.source
        # Tags, each once.
        self.targets = planned.targets
        # Options that the model cannot take.
        self.left_out = planned.left_out
        waiting = iter(tickets)
        self._tickets = [next(waiting) if job.request is not None else None for job in planned.jobs]
        self._outcomes = ["cancelled"] * len(planned.jobs)

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not in the tasks of the texts: a task that is cancelled before its first step runs no code.
        for job, ticket, outcome in zip(self.jobs, self._tickets, self._outcomes, strict=True):
            if ticket is not None:
                self._scheduler.withdraw(ticket)
                metrics.TRANSLATIONS.labels(outcome, job.target).inc()

    async def translate(self, number: int, on_text: Callable[[str], None] | None = None) -> Translated:
        """Do one job, once. number: of the job. Raises only `GatewayError`."""
        job, ticket = self.jobs[number], self._tickets[number]
        if job.error is not None:
            raise job.error
        if ticket is None:
            return Translated(job.text, 0, False, NO_TIME)
        try:
            generated = await self._scheduler.collect(ticket, on_text)
        except GatewayError as error:
            self._outcomes[number] = error.code
            if isinstance(error, EngineFailed | DeadlineExceeded):
                error.field = job.field
            raise
        self._outcomes[number] = "final"
        return Translated(generated.text, ticket.tokens, generated.truncated, ticket.timings())

    async def translate_whole(self, receive: Receive) -> list[Translated]:
        """Do every job; the first one that fails stops the others. Raises its error, or `ClientDisconnect`."""
        async with while_connected(receive), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self.translate(number)) for number in range(len(self.jobs))]
        return [task.result() for task in running]

    async def translate_all(self, receive: Receive) -> list[Translated | GatewayError]:
        """Do every job, each with its own outcome.

        Raises `ClientDisconnect`, or the error of the first job if all have failed.
        """

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
