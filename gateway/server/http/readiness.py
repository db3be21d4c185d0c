"""What all workers of a gateway are doing together, and what `/readyz` says of it.

Knows: the engine's health, numbers of translations. Must not know: processes, who asks.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.domain.engine import EngineHealth, EngineState, LaneHealth
from gateway.server.http.bodies import EngineReadiness, Readiness
from gateway.server.http.responses import json_response

# Who is let in.
Auth = Literal["token", "none", "insecure_open"]


class Whole(Struct, frozen=True, tag="whole", array_like=True):
    """All workers of a gateway, or its only process."""

    # Translations in the engine, and those that wait for their turn.
    running: int
    waiting: int
    # Whether all of it is shutting down.
    draining: bool = False
    # Whether anybody serves.
    serves: bool = True
    # Which workers do not serve now, in a sentence. Empty: none.
    absent: str = ""
    # Where there are several engines, each of them.
    lanes: tuple[LaneHealth, ...] = ()
    # Why the store takes nothing new, in a sentence. Empty: it does.
    store: str = ""


def readiness(health: EngineHealth, whole: Whole, auth: Auth) -> Readiness:
    """Whether translations are accepted now."""
    engines = [engine_readiness(lane) for lane in whole.lanes]
    load = (whole.running, whole.waiting, auth, engines or UNSET)
    match health.state:
        case EngineState.FAILED:
            return Readiness("failed", health.reason, *load)
        case _ if whole.draining or health.state is EngineState.STOPPED:
            return Readiness("draining", "The gateway is shutting down.", *load)
        case EngineState.STARTING:
            return Readiness("starting", health.reason, *load)
        case EngineState.RESTARTING:
            # New work is admitted and waits, and sessions can be resumed only here.
            return Readiness("restarting", health.reason, *load)
        case _ if not whole.serves:
            return Readiness("starting", whole.absent, *load)
        case _:
            # With a store that takes nothing new, too: texts over HTTP need none, sessions continue, and all
            # gateways have the same store, so that a proxy would have nowhere else to go.
            reasons = filter(None, (whole.store, whole.absent, health.reason))
            return Readiness("ready", " ".join(reasons), *load)


def engine_readiness(lane: LaneHealth) -> EngineReadiness:
    """How one of several engines is."""
    return EngineReadiness(
        lane.name,
        "draining" if lane.leaves else lane.state.value,
        "It finishes what it has and takes no more." if lane.leaves else lane.reason,
        running=lane.running,
        waiting=lane.waiting,
        seats=lane.max_running,
    )


def readyz(answer: Readiness, request: Request) -> Response:
    """The answer of `/readyz`. With `?status=200` only the body says if it is ready, as browsers log each 503."""
    is_ready = answer.status in ("ready", "restarting")
    always_200 = request.query_params.get("status") == "200"
    return json_response(answer, 200 if is_ready or always_200 else 503)
