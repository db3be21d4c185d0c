"""The systems that are compared, and rounds in turn: each level, all systems say the same lines, forward and
backward through the systems.

Knows: which systems there are, what each is started with, the order, how many lines a round has. Must not know:
what the results look like.
"""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.config import Settings
from gateway.domain.errors import GatewayError
from gateway.engine import engine_options
from gateway.engines.prompting import model_config
from gateway.text.segments import segments
from loadtest.baselines.workers import baseline, plan
from loadtest.driving.driver import Driven, Driver, driver
from loadtest.measuring import measure
from loadtest.options import Say, check, merged, shown, with_share
from loadtest.results import LoadtestError, until_it_ends
from loadtest.systems import processes
from loadtest.systems.gateway import gateway
from loadtest.systems.prompting import gateway_settings
from loadtest.systems.server import Running, attempted, free_port, standing, together
from loadtest.systems.vllm_serve import vllm_serve
from loadtest.talk.scenario import Scenario, Shape, request_lines
from loadtest.trial.values import Address, Closed, EngineInProcess, Http, Line, Trial, WebSocketGateway

GATEWAY, DIRECT = "gateway", "asyncllm"
SERVE, SERVE_TUNED, SERVE_WORKERS = "vllm-serve", "vllm-serve-tuned", "vllm-serve-workers"

NAMES = (GATEWAY, DIRECT, SERVE, SERVE_TUNED, SERVE_WORKERS)


class Peer(Struct, frozen=True):
    """One system."""

    name: str
    # Through what the lines reach the engine.
    route: Literal["gateway", "asyncllm", "vllm-serve", "baseline"]
    # Settings of a gateway, sections nested.
    settings: dict[str, Any]
    # Arguments of `vllm_serve`.
    tuned: bool = False
    arguments: dict[str, Any] = {}
    # Where the gateway listens that shares its engine with the peer that is called directly; the same for both.
    port: int | None = None
    # For a gateway with an engine of its own; None: one process, without a store.
    workers: int | None = None
    # Which baseline; of any other route nothing.
    architecture: str = ""
    # Shape of its lines; None: the scenario's.
    shape: Shape | None = None

    @property
    def engines(self) -> int:
        return 2 if self.architecture == "two-workers" else 1


class _Variant(Struct, frozen=True, forbid_unknown_fields=True):
    """What a file of variants says of one: settings are merged into the gateway's. workers: of a gateway."""

    route: Literal["gateway", "asyncllm", "vllm-serve"] = "gateway"
    engine: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    workers: int | None = None


def named(names: Sequence[str], settings: Mapping[str, Any], workers: int) -> list[Peer]:
    """Peers of these names, the gateway among them. workers: front-end processes of `vllm-serve-workers`.

    Raises `LoadtestError` for one that cannot have the engine.
    """
    own = dict(settings)
    known = {
        GATEWAY: Peer(GATEWAY, "gateway", own),
        DIRECT: Peer(DIRECT, "asyncllm", own),
        SERVE: Peer(SERVE, "vllm-serve", own),
        SERVE_TUNED: Peer(SERVE_TUNED, "vllm-serve", own, tuned=True),
        SERVE_WORKERS: Peer(SERVE_WORKERS, "vllm-serve", own, True, {"api_server_count": workers}),
    }
    # What the others are compared with comes first.
    made = [known[name] for name in dict.fromkeys((GATEWAY, *names))]
    _check_engine(made)
    return made


def variants(file: Path, settings: Mapping[str, Any]) -> list[Peer]:
    """Further peers: `{"name": {"engine": {…}, "route": "gateway"}}`, each with other settings than the gateway.

    Raises `LoadtestError` for a file or settings that cannot be used.
    """
    try:
        told = msgspec.json.decode(file.read_bytes(), type=dict[str, _Variant])
    except OSError as error:
        raise LoadtestError(f"{file} cannot be read: {error.strerror}.") from None
    except msgspec.DecodeError as error:
        raise LoadtestError(f"{file} names no variants: {error}.") from None
    made: list[Peer] = []
    for name, variant in told.items():
        if name in NAMES:
            raise LoadtestError(f"{file}: {name!r} is the name of a peer that is not a variant.")
        if variant.workers is not None and variant.route != GATEWAY:
            raise LoadtestError(f"{file}: {name!r} is not a gateway, and only a gateway has workers.")
        own = merged(merged(settings, {"engine": variant.engine}), variant.settings)
        check(own)
        made.append(Peer(name, variant.route, own, tuned=True, workers=variant.workers))
    _check_engine(made)
    return made


def shared(peers: Sequence[Peer], gpu_mib: float | None) -> list[Peer]:
    """The peers, each with its share of the GPU's memory. gpu_mib: all of it; None without a GPU.

    The gateway and the engine called directly share one engine: two that were started alike differ by more than
    what the gateway costs.
    """
    names = {peer.name for peer in peers}
    port = free_port() if {GATEWAY, DIRECT} <= names else None
    engines = len(peers) - (port is not None)
    return [
        replace(
            peer,
            settings=with_share(peer.settings, engines, gpu_mib),
            port=port if peer.name in (GATEWAY, DIRECT) else None,
        )
        for peer in peers
    ]


def takes_context(settings: Mapping[str, Any]) -> bool:
    """Whether a gateway with these settings puts what was said before into its prompts, and that costs anything.

    Raises `LoadtestError` for a model that is not there.
    """
    known = gateway_settings(dict(settings))
    if known.engine.kind == "simulated":
        return False
    options = engine_options(known)
    try:
        model = model_config.read_config(options.model)
        return "context" in model_config.find_family(model or {}, options.model, options.family).options
    except GatewayError as error:
        raise LoadtestError(error.message) from None


def system(peer: Peer, say: Say) -> AbstractAsyncContextManager[Running]:
    """The peer, ready for clients."""
    match peer.route:
        case "gateway" if peer.port is not None:
            # The client that holds its engine starts it.
            url = f"http://127.0.0.1:{peer.port}"
            address = WebSocketGateway(url)
            return nullcontext(Running(peer.name, address, shown(peer.settings), metrics_url=f"{url}/metrics"))
        case "gateway":
            return gateway(peer.settings, say, name=peer.name, workers=peer.workers)
        case "asyncllm":
            # Its engine is built by the client that calls it.
            return nullcontext(Running(peer.name, EngineInProcess(peer.settings, peer.port), shown(peer.settings)))
        case "vllm-serve":
            return vllm_serve(peer.settings, say, arguments=peer.arguments, tuned=peer.tuned, name=peer.name)
        case "baseline":
            return baseline(plan(peer.architecture, peer.settings), peer.name, shown(peer.settings), say)


def _check_engine(peers: Sequence[Peer]) -> None:
    for peer in peers:
        if peer.route == "vllm-serve" and peer.settings.get("engine", {}).get("kind") == "simulated":
            raise LoadtestError(f"{peer.name} has no simulated engine; choose among {GATEWAY},{DIRECT} (--peers).")


# ---------------------------------------------------------------- the rounds


# No two levels or repetitions say the same, and none what was said while warming up: what a system keeps of
# earlier rounds is of no use to it in this one.
_SEEDS_APART, _WARM_UP_SEED = 10_000, 5_000_000

# For each one in flight: of a warm-up, which tells how fast a system is; and of a round at least, besides its last
# turn, in which fewer and fewer are in flight.
_WARM_UP_TURNS, _LEAST_WARM_UP, _LEAST_TURNS = 4, 8, 4

# To a queue in front of a worker it makes no difference how many wait, and each turn takes long.
_WARM_UP_TURNS_QUEUED, _LEAST_TURNS_QUEUED = 1, 2

# A round begins with all that are in flight at the same moment, which nothing later in it is like: that part is no
# part of the trial, unless it would be too much of it.
_BURST_S = 0.5

# A round that takes so many times as long as it should, and this much more, is given up.
_LIMIT_TIMES, _LIMIT_S = 5.0, 60.0

_GATEWAY = re.compile(rf"^{processes.BESIDE_ITS_ENGINE}\b")


class PeersPlan(Struct, frozen=True, kw_only=True):
    """What is compared, and how."""

    # The first is what the others are compared with.
    peers: tuple[Peer, ...]
    # Requests in flight, one level each.
    in_flight: tuple[int, ...]
    repetitions: int = 3
    # About how long a round takes, seconds.
    round_s: float = 6.0
    scenario: Scenario = Scenario()
    # Lines to say instead of the scenario's.
    replayed: tuple[Line, ...] = ()
    # Client processes.
    processes: int = 1
    time_limit_s: float = 3_600.0
    # Whether all say the same lines, divided as a gateway does; else each says whole ones, for its own speed.
    alike: bool = True

    def workload(self, peer: Peer) -> str:
        """For people: what this one is asked."""
        if self.replayed:
            return f"{len(self.replayed)} lines of a file, as often as needed"
        said = self.scenario
        return f"{peer.shape or said.shape} lengths, seed {said.seed}, {said.source} to {', '.join(said.targets)}"


class Outcome(Struct):
    # In the order in which they ended, without their texts.
    trials: list[Trial]
    # (in flight, peer) → part of the translations of the first repetition that were the same as the first peer's.
    same_text: dict[tuple[int, str], float]
    # Peer → why it takes part no more.
    failures: dict[str, str]
    # Why there are not all rounds, if there are not.
    cut_short: str = ""


async def run(plan: PeersPlan, say: Say, groups: Sequence[Sequence[Peer]] = ()) -> Outcome:
    """All rounds that there is time for, until it is interrupted.

    groups: of the plan's peers, those that run at the same time; without them all do. A system that cannot go on
    is left out from then on.
    Raises `CancelledError` when the interruption comes before the first round is over.
    """
    rounds = _Rounds(plan, say)
    outcome = rounds.outcome

    async def play() -> None:
        for group in groups or [plan.peers]:
            await rounds.play(group)

    outcome.cut_short = await until_it_ends(play(), plan.time_limit_s, lambda: bool(outcome.trials))
    return outcome


class _Rounds:
    def __init__(self, plan: PeersPlan, say: Say) -> None:
        self.outcome = Outcome([], {}, {})
        self._plan = plan
        self._say = say
        self._peers = {peer.name: peer for peer in plan.peers}
        # The clients that hold an engine, by the systems that are on it.
        self._engines: dict[str, Driver] = {}

    async def play(self, peers: Sequence[Peer]) -> None:
        """All levels of systems that run at the same time."""
        names = [peer.name for peer in peers]
        async with together(*(attempted(system(peer, self._say)) for peer in peers)) as started:
            running = standing(names, started, self._fails).values()
            # The client that calls an engine directly holds it, and perhaps has a gateway on it beside itself: it
            # comes before the gateway's clients, and stays for every level.
            served = [each for each in running if each.pid is None and isinstance(each.address, WebSocketGateway)]
            async with self._drivers([each for each in running if each not in served]) as others:
                hosts: dict[Address, Driver] = {}
                for each, own in others:
                    if isinstance(each.address, EngineInProcess):
                        self._engines[each.name] = own
                        hosts[WebSocketGateway(f"http://127.0.0.1:{each.address.port}")] = own
                known = [each for each in served if each.address in hosts]
                for each in served:
                    if each not in known:
                        self._fails(each.name, "What was to hold its engine could not start.")
                self._engines |= {each.name: hosts[each.address] for each in known}
                # With their processes, which are below the client process that holds their engine.
                pids = [hosts[each.address].pids[0] for each in known]
                whole = [
                    dataclasses.replace(each, pid=next(iter(processes.named_below(pid, _GATEWAY)), None), host=pid)
                    for each, pid in zip(known, pids, strict=True)
                ]
                async with self._drivers(whole) as gateways:
                    pairs = sorted((*gateways, *others), key=lambda pair: names.index(pair[0].name))
                    for in_flight in self._plan.in_flight:
                        await self._level(in_flight, [pair for pair in pairs if self._takes_part(pair[0])])

    @asynccontextmanager
    async def _drivers(self, running: Sequence[Running]) -> AsyncIterator[list[tuple[Running, Driver]]]:
        """The systems to which clients could connect, with these clients."""
        most = Closed(max(self._plan.in_flight))
        opening = (
            attempted(driver(each.address, most, processes=self._plan.processes, say=self._say))
            for each in running
        )
        async with together(*opening) as opened:
            drivers = standing([each.name for each in running], opened, self._fails)
            yield [(each, drivers[each.name]) for each in running if each.name in drivers]

    async def _level(self, in_flight: int, pairs: Sequence[tuple[Running, Driver]]) -> None:
        load = Closed(in_flight)
        per_s = {each.name: await self._warm_up(each, own, in_flight) for each, own in pairs}
        for repetition in range(1, self._plan.repetitions + 1):
            trials: list[Trial] = []
            for each, own in pairs if repetition % 2 else reversed(pairs):
                if self._takes_part(each):
                    lines = self._lines(each, in_flight, repetition, self._count(each, in_flight, per_s))
                    limit_s = _LIMIT_TIMES * len(lines) / per_s[each.name] + _LIMIT_S
                    trials += await self._round(each, own, lines, load, repetition, limit_s)
            if repetition == 1:
                self._compare_texts(in_flight, trials)

    async def _warm_up(self, running: Running, own: Driver, in_flight: int) -> float:
        """How many lines a second it translates, roughly; a small number where it does not."""
        turns = _WARM_UP_TURNS_QUEUED if isinstance(running.address, Http) else _WARM_UP_TURNS
        lines = self._lines(running, in_flight, 0, max(turns * in_flight, _LEAST_WARM_UP))
        stage = f"{_title(running, in_flight)}, warming up"
        try:
            await self._forget(running)
            limit_s = _LIMIT_TIMES * self._plan.round_s + _LIMIT_S
            driven = await own.play(lines, load=Closed(in_flight), limit_s=limit_s, stage=stage)
        except LoadtestError as error:
            self._fails(running.name, str(error))
            return 1.0
        return _steady_per_s(driven, in_flight)

    async def _round(
        self, running: Running, own: Driver, lines: list[Line], load: Closed, repetition: int, limit_s: float
    ) -> list[Trial]:
        """One trial, or none where the system could not go on."""
        try:
            await self._forget(running)
            trial = await measure(
                running,
                own,
                lines,
                load,
                name=_title(running, load.in_flight),
                repetition=repetition,
                workload=self._plan.workload(self._peers[running.name]),
                say=self._say,
                limit_s=limit_s,
                keep_text=repetition == 1,
                discard_s=_BURST_S if self._plan.alike and self._plan.round_s > 4 * _BURST_S else 0.0,
                allow_bottleneck=True,
            )
        except LoadtestError as error:
            self._fails(running.name, str(error))
            return []
        self.outcome.trials.append(replace(trial, records=[replace(each, text="") for each in trial.records]))
        return [trial]

    async def _forget(self, running: Running) -> None:
        """The engine keeps nothing of what another system on it has said: they say the same lines."""
        if (holder := self._engines.get(running.name)) is not None:
            await holder.reset_prefix_cache()

    def _count(self, running: Running, in_flight: int, per_s: dict[str, float]) -> int:
        """Lines of a round: as many as take so long for the system or, where all say the same, for one of middling
        speed, and those of the last turn, in which fewer and fewer are in flight."""
        speeds = [speed for name, speed in per_s.items() if name not in self.outcome.failures]
        speed = (statistics.median(speeds) if speeds else 0.0) if self._plan.alike else per_s[running.name]
        turns = _LEAST_TURNS_QUEUED if isinstance(running.address, Http) else _LEAST_TURNS
        return max(math.ceil(self._plan.round_s * speed), turns * in_flight) + in_flight

    def _lines(self, running: Running, in_flight: int, repetition: int, count: int) -> list[Line]:
        """Lines of one repetition; repetition 0 warms up."""
        begin = _SEEDS_APART * repetition + in_flight if repetition else _WARM_UP_SEED + in_flight
        if file := self._plan.replayed:
            lines = [
                replace(file[number % len(file)], due_s=0.0, partials=()) for number in range(begin, begin + count)
            ]
        else:
            said, shape = self._plan.scenario, self._peers[running.name].shape
            lines = request_lines(replace(said, seed=said.seed + begin, shape=shape or said.shape), count)
        if not self._plan.alike:
            return lines
        # A gateway translates each segment by itself: so that the others do the same work, that is what is said.
        parts = [
            replace(line, text=text.strip())
            for line in lines
            for text in segments(line.text, line.source, Settings().segment_chars)
        ]
        return [replace(part, id=str(number)) for number, part in enumerate(parts[:count])]

    def _compare_texts(self, in_flight: int, trials: Sequence[Trial]) -> None:
        first = self._plan.peers[0].name
        texts = {
            trial.system: {(each.line, each.target): each.text for each in trial.records if each.failed is None}
            for trial in trials
        }
        own = texts.pop(first, {})
        for name, theirs in texts.items():
            if both := own.keys() & theirs.keys():
                same = sum(own[key] == theirs[key] for key in both) / len(both)
                self.outcome.same_text[in_flight, name] = round(same, 4)

    def _fails(self, name: str, why: str) -> None:
        self.outcome.failures[name] = why
        self._say(f"going on without {name}: {why}")

    def _takes_part(self, running: Running) -> bool:
        return running.name not in self.outcome.failures


def _steady_per_s(driven: Driven, in_flight: int) -> float:
    """Lines a second while so many were in flight: neither in the first turn nor in the last."""
    done_s = sorted(each.done_s for each in driven.records if each.done_s is not None)
    steady_s = done_s[in_flight - 1 : len(done_s) - in_flight]
    if len(steady_s) < 2:
        return max(len(done_s), 1) / max(driven.elapsed_s, 1e-3)
    return (len(steady_s) - 1) / max(steady_s[-1] - steady_s[0], 1e-3)


def _title(running: Running, in_flight: int) -> str:
    return f"{running.name}, {in_flight} in flight"
