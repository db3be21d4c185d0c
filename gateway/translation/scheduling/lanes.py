"""The lanes of the engine: what this gateway runs on each, and which of them can run a text.

A lane is an engine with its own health, slots and languages; a single engine is one lane.
Knows: what runs where. Must not know: who waits and who is next (`lines`), tasks, clocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from gateway.domain.engine import EngineProfile, EngineState, TranslationRequest
from gateway.domain.errors import Draining, EngineFailed, EngineUnavailable, GatewayError
from gateway.domain.pairs import Pair
from gateway.domain.ports import Engine
from gateway.protocol.checks import check_pair
from gateway.translation.scheduling.ticket import SUSPECT_CRASHES, Ticket

# By how much of its slots a lane may be fuller than the emptiest and still be preferred for what it has cached.
# A prompt that is not cached costs one step; a batch that is fuller by more than this costs every step.
AFFINITY_BOUND = 0.25


class LaneLoad(Struct, frozen=True):
    """How full a lane is."""

    name: str
    # Sequences that it runs together.
    slots: int
    # Sequences that it has.
    running: int

    @property
    def fullness(self) -> float:
        """Above 1, something waits inside."""
        return self.running / max(1, self.slots)


def choose(loads: Iterable[LaneLoad], preferred: str | None = None) -> str | None:
    """The preferred lane, unless it is full or fuller than the emptiest by too much; then the emptiest.

    Of lanes that are as full, the one with the most free slots: where others use the same lanes, that is the one
    which they use least. None if there is no lane.
    """
    lanes = list(loads)
    if not lanes:
        return None
    emptiest = min(lanes, key=lambda lane: (lane.fullness, lane.running - lane.slots))
    for lane in lanes:
        has_room = lane.running < lane.slots or emptiest.fullness >= 1
        if lane.name == preferred and has_room and lane.fullness <= emptiest.fullness + AFFINITY_BOUND:
            return lane.name
    return emptiest.name


# Names of lanes that can run the same texts.
Route = frozenset[str]

# Meetings of which it is remembered which lane has their prompts cached.
_MOST_REMEMBERED = 10_000

_OVER = (EngineState.FAILED, EngineState.STOPPED)


class Lane:
    """What this gateway runs on one lane."""

    def __init__(self, name: str, engine: Engine, *, lookahead: int, best_effort_share: float) -> None:
        self.name = name
        # To it alone.
        self.route = Route({name})
        self.engine = engine
        self.running: set[Ticket] = set()
        self.best_effort_running = 0
        # Nothing more is begun on it; it goes once nothing runs.
        self.leaves = False
        self._lookahead = lookahead
        self._best_effort_share = best_effort_share

    @property
    def state(self) -> EngineState:
        return self.engine.health().state

    @property
    def slots(self) -> int:
        """Sequences that it runs together."""
        return self.engine.capacity().max_running

    @property
    def load(self) -> LaneLoad:
        return LaneLoad(self.name, self.slots, len(self.running))

    @property
    def suspect_runs(self) -> bool:
        """Whether a suspect runs, alone, as each does."""
        return len(self.running) == 1 and next(iter(self.running)).suspect

    @property
    def overflow(self) -> int:
        """How many wait inside the engine: they were handed to it beyond what it runs together."""
        return max(0, len(self.running) - self.slots)

    def free(self, *, quarantined: bool, best_effort: bool = False) -> int:
        """How many turns may be given now.

        quarantined: a suspect waits for it, which is to run alone. best_effort: at most one, for what was not
        promised, if it would run at once and leaves finals their share.

        Suspects come first: the sooner the text that kills the engine is found, the better for everybody. Each
        runs alone, and again only if it is not known to have begun, at the pace of a lone sequence: all of them
        are through within seconds.
        """
        if self.leaves or self.state is not EngineState.READY:
            return 0
        if quarantined:
            return 0 if self.running else 1
        if self.suspect_runs:
            return 0
        most, running = self.slots, len(self.running)
        if best_effort:
            share = max(1, int(most * self._best_effort_share))
            return int(running < most and self.best_effort_running < share)
        return max(0, most + self._lookahead - running)

    def add(self, ticket: Ticket) -> None:
        self.running.add(ticket)
        self.best_effort_running += ticket.best_effort

    def remove(self, ticket: Ticket) -> None:
        self.running.remove(ticket)
        self.best_effort_running -= ticket.best_effort

    def partials(self) -> list[Ticket]:
        """Those that give up their place to finals."""
        return [ticket for ticket in self.running if not ticket.request.final]

    def profile(self) -> EngineProfile | None:
        try:
            return self.engine.profile()
        except EngineUnavailable:
            return None


class Lanes:
    """All lanes. `refresh` looks at which there are and what each can do."""

    def __init__(
        self,
        engine: Engine,
        lanes: Callable[[], Mapping[str, Engine]],
        *,
        # As in `Scheduler`.
        lookahead: int,
        best_effort_share: float,
    ) -> None:
        self._engine = engine
        self._named = lanes
        self._lookahead = lookahead
        self._best_effort_share = best_effort_share
        self._lanes: dict[str, Lane] = {}
        # Pair → the lanes that have it; forgotten when something changes.
        self._of_pair: dict[Pair, tuple[Lane, ...]] = {}
        # Names → those lanes; forgotten likewise.
        self._some: dict[Route, list[Lane]] = {}
        # Meeting → the lane that has its prompts cached, the least recently used first. All its languages go
        # there: a text that kills a lane would do so in each of them.
        self._cached: OrderedDict[str, str] = OrderedDict()
        self.refresh()

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def __getitem__(self, name: str) -> Lane:
        return self._lanes[name]

    @property
    def running(self) -> int:
        return sum(len(lane.running) for lane in self)

    def refresh(self) -> None:
        """Lanes may have come or gone, or their health has changed."""
        named = self._named()
        for name, engine in named.items():
            lane = self._lanes.get(name)
            # Another one of the same name has to wait until the first has ended what it runs.
            if lane is None or (lane.engine is not engine and not lane.running):
                self._lanes[name] = Lane(
                    name, engine, lookahead=self._lookahead, best_effort_share=self._best_effort_share
                )
        for lane in list(self):
            lane.leaves = named.get(lane.name) is not lane.engine
            if lane.leaves and not lane.running:
                del self._lanes[lane.name]
        self._of_pair.clear()
        self._some.clear()

    def remove(self, ticket: Ticket) -> None:
        """It does not run any more; a lane that leaves goes with its last one."""
        lane = self._lanes[ticket.lane]
        lane.remove(ticket)
        if lane.leaves and not lane.running:
            self.refresh()

    def some(self, names: Route) -> list[Lane]:
        """Those with these names that are there, in the order of the settings; not to be changed."""
        if (lanes := self._some.get(names)) is None:
            lanes = self._some[names] = [lane for lane in self if lane.name in names]
        return lanes

    def route(self, source: str, target: str, text: str = "") -> Route:
        """The lanes that have this pair, or will again, and take this text. Empty: `refusal` says why."""
        having = [lane for lane in self._having(source, target) if lane.state not in _OVER]
        if len(having) == 1:
            return having[0].route
        return Route(lane.name for lane in _taking(having, text))

    def route_for(self, newcomer: Ticket, suspected_on: str | None = None) -> Route:
        """The lanes for which a newcomer waits. Raises `EngineUnavailable` or `UnsupportedLanguage` for none.

        suspected_on: the lane that died on an earlier revision of this. If it has these languages, the newcomer is
        kept to it.
        """
        request = newcomer.request
        if suspected_on is not None and any(
            lane.name == suspected_on for lane in self._having(request.source, request.target)
        ):
            newcomer.bound_to, newcomer.crashes = suspected_on, 1
        if route := self.route_of(newcomer):
            return route
        refusal = self.refusal(request.source, request.target)
        if refusal is None or isinstance(refusal, EngineFailed):
            raise EngineUnavailable("The engine of these languages has failed.", retry_after_ms=2_000)
        raise refusal

    def route_of(self, ticket: Ticket) -> Route:
        """The lanes for which a ticket is to wait; none if no lane will run it."""
        route = self.route(ticket.request.source, ticket.request.target, ticket.request.text)
        if ticket.bound_to is None or not route:
            return route
        others = route - {ticket.bound_to}
        if ticket.bound_to not in route or (
            ticket.bound_too_long and others and self._lanes[ticket.bound_to].state is not EngineState.READY
        ):
            route = others
            # It may be what ended that lane for good, so it runs on another one, alone.
            ticket.crashes = max(ticket.crashes, SUSPECT_CRASHES)
            ticket.bound_to = self.choose(self.some(route), ticket.request).name
        return Route({ticket.bound_to})

    def refusal(self, source: str, target: str) -> GatewayError | None:
        """Why no lane can translate this pair, while others may be translated; None if one can, or will soon."""
        if self.route(source, target):
            return None
        if self._engine.health().state not in (EngineState.READY, EngineState.RESTARTING):
            return None
        if self._having(source, target):
            return failed()
        try:
            check_pair(source, target, self._engine.profile())
        except GatewayError as error:
            return error
        return failed()  # its lane leaves

    def choose(self, lanes: Iterable[Lane], request: TranslationRequest) -> Lane:
        """The best of these lanes for a text, remembered for what comes next of its meeting. lanes: not empty."""
        if len(self._lanes) == 1:
            return next(iter(lanes))
        scope = request.cache_scope
        chosen = choose((lane.load for lane in lanes), self._cached.get(scope))
        assert chosen is not None  # noqa: S101 -- there is one
        self._cached[scope] = chosen
        self._cached.move_to_end(scope)
        if len(self._cached) > _MOST_REMEMBERED:
            self._cached.popitem(last=False)
        return self._lanes[chosen]

    def _having(self, source: str, target: str) -> tuple[Lane, ...]:
        pair = (source, target)
        if pair not in self._of_pair:
            self._of_pair[pair] = tuple(
                lane
                for lane in self
                if not lane.leaves and (profile := lane.profile()) is not None and profile.translates(*pair)
            )
        return self._of_pair[pair]


def _taking(lanes: list[Lane], text: str) -> list[Lane]:
    """Those of the lanes that are sure to take a text of this length, and those that take the longest.

    How many tokens it has differs by model, and only engines know. It is at most its bytes, and one. Hardly any
    text has one for each two bytes: if none of the sure ones is ready, one that is ready will do.
    """
    limits = [0 if (profile := lane.profile()) is None else profile.max_text_tokens for lane in lanes]
    if len(set(limits)) < 2:
        return lanes
    most = len(text.encode("utf-8", "replace")) + 1
    needed = min(max(limits), most)
    sure = [lane for lane, limit in zip(lanes, limits, strict=True) if limit >= needed]
    if any(lane.state is EngineState.READY for lane in sure):
        return sure
    return [
        lane
        for lane, limit in zip(lanes, limits, strict=True)
        if lane in sure or (lane.state is EngineState.READY and 2 * limit >= most)
    ]


def stopped() -> EngineUnavailable:
    return EngineUnavailable("The engine was stopped before this was translated.", retry_after_ms=2_000)


def failed() -> EngineFailed:
    return EngineFailed("The engine failed repeatedly; this was not translated.")


def drained() -> Draining:
    return Draining("The gateway stopped before this was translated; send it again.", retry_after_ms=1_000)
