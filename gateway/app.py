"""Builds the application from the settings and runs it.

Knows: which parts there are and who needs whom. Must not know: what any of them does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import WebSocketRoute

from gateway import metrics
from gateway.config import LaneSettings, Settings
from gateway.domain.engine import EngineHealth, EngineState
from gateway.domain.errors import EngineRestarting, EngineUnavailable, LogUnavailable, StartupError, error_classes
from gateway.domain.grants import tenant_of_account
from gateway.domain.ports import Engine
from gateway.domain.quotas import NO_QUOTA
from gateway.domain.sessions import Handover
from gateway.engine import engine_pool, lane_changes, pool_lane, show_engines, supervised
from gateway.engines.host.kept_hosts import KeptHosts
from gateway.engines.host.messages import Wanted
from gateway.engines.host.shared import SharedEngine
from gateway.engines.pool import Pool
from gateway.keys import keys_of
from gateway.meeting.room import Room, Rooms
from gateway.protocol.from_domain import error_message, languages_message
from gateway.protocol.messages import LanguagesChanged
from gateway.runtime import EventLoopLag, cancelled
from gateway.server import page
from gateway.server.access_log import AccessLog, Traced
from gateway.server.compat import deepl, libretranslate
from gateway.server.compat.requests import Parts
from gateway.server.connection import Core
from gateway.server.guard.audit import Audit
from gateway.server.guard.hosts import is_loopback, only_for
from gateway.server.guard.identity import Identity
from gateway.server.guard.origins import Origins, cross_origin
from gateway.server.guard.refusals import SlowRefusals
from gateway.server.http import admin, api, tokens, usage
from gateway.server.http.readiness import Whole
from gateway.server.http.usage import TenantUsage
from gateway.server.translate.call import Translator
from gateway.server.translate.detection import Detector
from gateway.server.websocket import Stream, nowhere
from gateway.sessions.sessions import Sessions
from gateway.store import Store
from gateway.stores import handover_file
from gateway.stores.audit_file import AuditFile
from gateway.tracing import otlp, spans
from gateway.translation.finals import Finals
from gateway.translation.partials import Partials
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.speech import Speech
from gateway.webhooks.deliveries import Deliveries

_log = logging.getLogger(__name__)

# For outcomes to be published and outboxes to be read, once work has ended.
_GOODBYE_S = 5.0
_SWEEP_S = 1.0

# What is being said takes at most the bytes of all logs divided by this.
_LIVE_SHARE = 4


class Workers(Protocol):
    """The workers that this process is one of, as their parent knows them."""

    engines: Mapping[str, SharedEngine]
    """Name → an engine that all workers share; the only one has no name. Empty: each worker has one of its own."""

    async def metrics(self, names: Sequence[str], /) -> bytes:
        """Those of all workers and of their engine in Prometheus text format. Never raises."""

    def whole(self) -> Whole:
        """What all of them are doing."""


class Gateway:
    """Everything that lives as long as the process.

    `build`, which makes an engine, may be given by tests; otherwise the settings say which. `workers` is given
    where this process is one of several, `kept` where engines outlive it. Raises `StartupError` when an earlier
    process's handover file or the keys cannot be used, or everybody on other machines would be let in unasked.
    """

    def __init__(
        self,
        settings: Settings,
        build: Callable[[], Engine] | None = None,
        *,
        workers: Workers | None = None,
        kept: KeptHosts | None = None,
    ) -> None:
        self.settings = settings
        otlp.start(os.environ)
        self._kept = kept
        self._keys = keys_of(settings)
        audit = Audit(AuditFile(Path(file)).write if (file := settings.auth.audit_file) is not None else None)
        self.quotas = Quotas(self._keys.quota if self._keys is not None else lambda _: NO_QUOTA)
        self.engine = self._connected_engine(build, {} if workers is None else workers.engines)
        # Those of several engines that stay.
        self.lanes = settings.engines
        self._changing_engines = asyncio.Lock()
        self._earlier: Handover | None = None
        self._changing: tuple[asyncio.Task[None], ...] = ()
        if (file := settings.event_log.handover_file) is not None:
            handover_file.check(Path(file))
            self._earlier = handover_file.read(Path(file))
        self.store = Store(
            settings, lambda account: self.quotas.quota_of(tenant_of_account(account)).log_bytes, self._earlier
        )
        self.log, self.session_store = self.store.log, self.store.session_store
        self.webhooks = Deliveries(settings.webhooks, self.store.webhooks)
        self._lag = EventLoopLag(metrics.EVENT_LOOP_LAG_S.observe)
        self.scheduler = Scheduler(
            self.engine,
            lanes=self.engine.lanes if isinstance(self.engine, Pool) else None,
            max_waiting=settings.max_waiting,
            max_queue_s=settings.max_queue_s,
            best_effort_share=settings.partials_share,
            deadline_s=settings.utterance_deadline_s,
            quotas=self.quotas,
            lag_s=lambda: self._lag.mean_s,
        )
        self.partials = Partials(
            self.scheduler,
            translates=settings.partials_share > 0,
            lag_s=lambda: max(self._lag.mean_s, self.engine.capacity().lag_s),
            max_bytes=settings.event_log.max_bytes // _LIVE_SHARE,
        )
        self.finals = Finals(
            self.scheduler,
            self.partials,
            leaves_unfinished=settings.event_log.handover_file is not None or self.store.is_shared,
            delta_interval_s=settings.delta_interval_s,
        )
        self.speech = Speech(
            self.finals,
            self.partials,
            segment_chars=settings.segment_chars,
            text_chars=settings.limits.text_chars,
            in_flight=settings.limits.utterances_in_flight,
            takes_context=self._takes_context,
        )
        self.sessions = Sessions(
            log=self.log,
            session_store=self.session_store,
            rooms=Rooms(
                partial(
                    Room,
                    log=self.log,
                    snapshot=settings.snapshot_utterances,
                    present=self.session_store.subscribe,
                    channel=self.store.channel,
                    cancel=self.finals.cancel_here,
                )
            ),
            finals=self.finals,
            speech=self.speech,
            limits=settings.limits,
            max_sessions=settings.max_sessions,
            joins_per_address=settings.max_connections_per_address,
            quotas=self.quotas,
            stands=lambda grant: self._keys is None or self._keys.stands(grant),
        )
        self.usage = TenantUsage(self.sessions, self.scheduler, self.quotas, self.log)
        identity = Identity(self._keys, self.sessions.lifetimes.revocations.check)
        origins, detector = Origins(settings.allowed_origins), Detector()
        self.stream = Stream(
            Core(
                engine=self.engine,
                scheduler=self.scheduler,
                sessions=self.sessions,
                limits=settings.limits,
                identity=identity,
                audit=audit,
                detector=detector,
            ),
            outbox_bytes=settings.outbox_bytes,
            max_sessions=settings.max_sessions,
            origins=origins,
            max_connections_per_account=settings.max_connections_per_address,
        )
        # What open sessions know that the engine can do.
        self._languages: LanguagesChanged | None = None
        self.failure: StartupError | None = None
        # Whether the handover file could not be written at the end.
        self.has_lost_handover = False
        for cls in error_classes():
            metrics.ERRORS.labels(cls.code)  # an alert on growth needs the series before the first error
        metrics.TRANSLATIONS_WAITING.set_function(lambda: self.scheduler.waiting)
        metrics.TRANSLATIONS_RUNNING.set_function(lambda: self.scheduler.running)
        self._shown = show_engines(self.engine)
        self.app = self._application(workers, identity, audit, origins, detector)

    def _connected_engine(self, build: Callable[[], Engine] | None, shared: Mapping[str, SharedEngine]) -> Engine:
        """What translates, one engine or several, and tells this gateway of its changes."""
        engine: Engine
        if self.settings.engines:
            engine = pool = engine_pool(self.settings, shared, self._kept)
            pool.on_change, pool.on_lane = self._engine_changed, self._lane_changed
        else:
            engine = shared[""] if shared else supervised(self.settings.engine, self.settings, build, self._kept)
            engine.on_change = self._engine_changed
        for name, each in shared.items():
            each.on_slots = lambda: self.scheduler.slots_changed()
            each.waiting = partial(self._wanted, name)
        return engine

    def _application(
        self, workers: Workers | None, identity: Identity, audit: Audit, origins: Origins, detector: Detector
    ) -> Starlette:
        """Every route, and what each request goes through first."""
        settings = self.settings
        # Its own address, where there is one, has the metrics; others could learn from them what is going on.
        own_address = settings.admin_port is not None or not is_loopback(settings.host) or self._keys is not None
        read = admin.own_metrics(self.engine) if workers is None else workers.metrics
        self._translator = translator = Translator(
            self.scheduler, self.engine, settings.limits, detector, segment_chars=settings.segment_chars
        )
        compatible = Parts(translator, identity, audit, origins)
        calls = api.Api(
            translator=translator,
            identity=identity,
            audit=audit,
            whole=self.whole if workers is None else workers.whole,
            auth=settings.auth.kind,
            delta_interval_s=settings.delta_interval_s,
        )
        return Starlette(
            routes=[
                WebSocketRoute("/v1/stream", self.stream.endpoint),
                *(admin.routes_elsewhere() if own_address else admin.routes(read)),
                *tokens.routes(self.sessions, identity, self._keys, audit),
                *usage.routes(identity, audit, self.usage),
                *api.routes(calls, self.log, self.session_store),
                *deepl.routes(compatible, self.usage, lambda: self.store.glossaries),
                *libretranslate.routes(compatible),
                *page.routes(demo_controls=settings.demo_controls),
                WebSocketRoute("/{nowhere:path}", nowhere),
            ],
            middleware=[
                *([Middleware(Traced)] if spans.is_on() else []),
                Middleware(AccessLog),
                Middleware(SlowRefusals),
                *only_for(settings.host, settings.allowed_hosts),
                *cross_origin(settings.allowed_origins),
            ],
            lifespan=self._lifespan,
        )

    def whole(self) -> Whole:
        """What this process is doing, where it is the only one."""
        lanes = self.engine.lane_health() if isinstance(self.engine, Pool) else ()
        running, waiting = self.scheduler.running, self.scheduler.waiting
        draining = self.scheduler.draining
        return Whole(running, waiting, draining=draining, lanes=lanes, store=self.store.fault)

    def _takes_context(self) -> bool:
        try:
            return "context" in self.engine.profile().options
        except EngineUnavailable:
            return False

    def _wanted(self, lane: str) -> Wanted:
        return Wanted(*self.scheduler.wanted(lane))

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        # The store is open. Serving begins at once: health, readiness and the page answer while the engine loads.
        async with asyncio.TaskGroup() as tasks, self.finals, self.partials, self.sessions:
            present = tasks.create_task(self._stay_present())
            await self.webhooks.open()
            telling = tasks.create_task(self.webhooks.run())
            await self._take_over()
            await self._tell_usage()
            loading = tasks.create_task(self._load())
            sweeping = tasks.create_task(self._sweep())
            self._changing = present, telling, sweeping
            with self._lag:
                yield
            sweeping.cancel()
            loading.cancel()
            if self._kept is not None and self.failure is None:
                self._kept.leaving = True
            await self.engine.stop()
            await self.log.close()
            await cancelled(present, telling)
        await self._tell_usage()
        await self.store.close()
        await asyncio.to_thread(otlp.stop)

    def _lane_changed(self) -> None:
        """One of several engines has come, gone, died or is there again."""
        self._shown = show_engines(self.engine, self._shown)
        self.scheduler.engine_changed()
        self._tell_languages()
        # What waited for a pair of languages that no lane had.
        self.finals.resume()

    def _tell_languages(self) -> None:
        """Let all sessions know what the engine can do, if that has changed since they started."""
        try:
            now = languages_message(self.engine.profile())
        except EngineUnavailable:
            return
        if self._languages is not None and now != self._languages:
            self.sessions.tell_everybody(now)
        self._languages = now

    def _engine_changed(self, health: EngineHealth) -> None:
        self.scheduler.engine_changed()
        if health.state is EngineState.READY:
            self._taken_over()
            self.sessions.engine_ready()
        elif health.state is EngineState.RESTARTING:
            self.sessions.tell_everybody(error_message(EngineRestarting(health.reason)))
        elif health.state is EngineState.FAILED:
            self.sessions.tell_everybody(error_message(EngineUnavailable(health.reason)))

    async def change_engines(self, change: Callable[[Sequence[LaneSettings]], Sequence[LaneSettings]]) -> None:
        """Start those of several engines that are new, then let those end their work and go that are left out.

        change: from those there are to those wanted. Raises `StartupError` if one cannot start; then none goes.
        """
        async with self._changing_engines:
            if not isinstance(self.engine, Pool) or not (wanted := change(self.lanes)):
                raise StartupError(
                    "one engine is made several, or several one, when the gateway is started again."
                )
            new, gone = lane_changes(self.lanes, wanted)
            await self.engine.add(
                [pool_lane(lane, supervised(lane, self.settings, kept=self._kept)) for lane in new]
            )
            self.lanes = (*self.lanes, *new)
            for name in gone:
                self.lanes = tuple(lane for lane in self.lanes if lane.name != name)
                await self.engine.drain(name)

    async def _stay_present(self) -> None:
        """Other gateways are to know that this one is there and what it uses, whatever else takes its time."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            await asyncio.gather(self.store.sweep(), self._tell_usage())

    async def _tell_usage(self) -> None:
        await self.quotas.report_usage(self.store.meter, self.scheduler.waiting_by_tenant())

    async def _sweep(self) -> None:
        """What has expired is let go of, every second."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            try:
                self.stream.close_idle()
                if self._keys is not None:
                    await self._keys.reload()
                await self.sessions.sweep()
                await self.usage.show()
            except LogUnavailable:
                pass
            except Exception:  # meetings must continue
                _log.exception("something that has expired could not be let go of")

    # ------------------------------------------------------------ restarts

    async def _take_over(self) -> None:
        """Go on where an earlier process left off."""
        if self._earlier is not None:
            await self.sessions.restore(self._earlier)
            _log.info(
                "took over %d meetings and %d sessions", len(self._earlier.meetings), len(self._earlier.sessions)
            )

    def _taken_over(self) -> None:
        """From now on the file would be out of date; before, a start that fails leaves it as it was."""
        if self._earlier is not None and (file := self.settings.event_log.handover_file) is not None:
            self._earlier = None
            try:
                handover_file.discard(Path(file))
            except OSError as error:
                _log.error("%s cannot be deleted (%s): delete it", file, error.strerror or error)

    async def _hand_over(self) -> None:
        if (file := self.settings.event_log.handover_file) is None:
            return
        await cancelled(*self._changing)  # what they change from now on would be lost
        await self._tell_usage()
        left = self.store.handover(
            self.sessions.kept_sessions(), self.sessions.lifetimes.revocations.kept_revocations()
        )
        try:
            handover_file.write(Path(file), left)
        except OSError as error:
            self.has_lost_handover = True
            _log.error("sessions and logs are lost: %s cannot be written (%s)", file, error.strerror or error)
        else:
            _log.info("left %d meetings and %d sessions in %s", len(left.meetings), len(left.sessions), file)

    async def _load(self) -> None:
        try:
            await self.engine.start()
        except StartupError as error:
            self.failure = error
        except Exception as error:
            _log.exception("the engine could not be started")
            self.failure = StartupError(f"The engine could not be started ({type(error).__name__}: {error}).")

    async def drain(self) -> None:
        """Admit nothing more, finish what was accepted within the deadline, close every session."""
        deadline_s = self.settings.drain_s
        self.stream.announce_drain(deadline_s)
        self._translator.refuse_waiting()
        try:
            if await self.scheduler.drain(deadline_s):
                _log.info("accepted work is finished")
            else:
                left = self.scheduler.running + self.scheduler.waiting
                _log.warning("the drain deadline of %g s passed with %d translations left", deadline_s, left)
        finally:
            # Cancelled by a second signal, it still says goodbye, and by a third leaves what it knows.
            try:
                await self._say_goodbye()
            finally:
                await self._hand_over()

    async def _say_goodbye(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                await self.finals.quiet()
        await self.stream.close_all(_GOODBYE_S, elsewhere=self.store.is_shared)
