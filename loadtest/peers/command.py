"""`python -m loadtest peers`: its options, and its report.

Knows: the names of the options. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from gateway.engines import gpu
from gateway.engines.vllm import hardware
from loadtest import options as common
from loadtest.options import Command, Say, add_out, between, from_, merged, numbers
from loadtest.peers.comparison import comparisons, findings, table
from loadtest.peers.run import (
    DIRECT,
    GATEWAY,
    NAMES,
    SERVE,
    SERVE_TUNED,
    Peer,
    PeersPlan,
    named,
    run,
    shared,
    takes_context,
    variants,
)
from loadtest.results import LoadtestError
from loadtest.talk.scenario import read_talk
from loadtest.trial.values import Results

# In a closed loop as many wait as are asked to, in front of each peer.
_NO_REFUSAL = {"max_queue_s": 3_600.0}


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(NAMES)}")
    return names


def _add(parser: argparse.ArgumentParser) -> None:
    add_out(parser)
    common.add_engine(parser)
    common.add_workload(parser)
    add = parser.add_argument
    add("--peers", type=_names, metavar="NAME,NAME", help=f"of {', '.join(NAMES)}; without it the first four")
    add(
        "--variants",
        type=Path,
        metavar="FILE.json",
        help='further gateways with other settings: {"name": {"engine": {...}, "route": "gateway", "workers": 4}}',
    )
    add("--workers", type=between(1, 64), default=4, metavar="N", help="front-end processes of vllm-serve-workers")
    add(
        "--in-flight",
        type=numbers,
        default="25,64,256" if hardware.gpu_present() else "1,4,16",
        metavar="N,N",
        help="requests in flight, one level each",
    )
    add("--repetitions", type=between(1, 50), default=3, metavar="N", help="rounds of each system and level")
    add("--round-s", type=from_(0.1, 600), default=6.0, metavar="S", help="about how long a round takes")
    add("--utterances", type=between(1, 1_000_000), metavar="N", help="in a round, instead of --round-s")
    add(
        "--bars",
        action="store_true",
        help="the gateway has to reach what it promises on a GPU; a bar not measured is missed",
    )
    common.add_driver(parser, processes=max(1, len(os.sched_getaffinity(0)) // 4))
    common.add_objective(parser)


def _plan(options: argparse.Namespace) -> PeersPlan:
    settings = merged(_NO_REFUSAL, common.settings(options))
    simulated = settings.get("engine", {}).get("kind") == "simulated"
    names = options.peers or ((GATEWAY, DIRECT) if simulated else (GATEWAY, DIRECT, SERVE, SERVE_TUNED))
    peers: list[Peer] = named(names, settings, options.workers)
    if options.variants is not None:
        peers += variants(options.variants, settings)
    if len(peers) == 1:
        raise LoadtestError("The gateway has nothing to be compared with: name more peers, or variants.")
    memory_mib = gpu.memory_mib()
    if memory_mib is None and hardware.gpu_present() and not simulated:
        raise LoadtestError("NVIDIA's management library does not tell how much memory the GPU has.")
    peers = shared(peers, memory_mib)
    named_file = common.file(options)
    own = {
        "peers": tuple(peers),
        "scenario": common.scenario(options),
        "replayed": () if named_file is None else tuple(read_talk(named_file)),
    }
    return PeersPlan(**(common.fields_of(options, PeersPlan) | own))


def _shown(peer: Peer) -> dict[str, Any]:
    """A peer for a report."""
    settings, arguments = common.shown(peer.settings), common.shown(peer.arguments)
    told: dict[str, Any] = msgspec.to_builtins(structs.replace(peer, settings=settings, arguments=arguments))
    return told


async def _run(options: argparse.Namespace, say: Say) -> Results:
    plan = _plan(options)
    others = any(peer.route != "gateway" for peer in plan.peers)
    context = others and takes_context(plan.peers[0].settings)
    outcome = await run(plan, say)
    if not outcome.trials:
        why = " ".join(f"{name}: {reason}" for name, reason in outcome.failures.items())
        raise LoadtestError(why or "There was no time for a single round (--time-limit-s).")
    compared = comparisons(outcome)
    told = msgspec.to_builtins(plan) | {"peers": [_shown(peer) for peer in plan.peers]}
    return Results(
        model=common.model_name(plan.peers[0].settings),
        settings={**told, "replayed": len(plan.replayed)},
        objective=common.objective(options),
        findings=findings(outcome, compared, plan.in_flight, bars=options.bars, context=context),
        parts=[table(compared)] if compared else [],
        trials=outcome.trials,
        details={"comparisons": msgspec.to_builtins(compared)},
    )


PEERS = Command(
    "peers",
    "the gateway beside vLLM's own server and the engine called directly",
    "The same lines through the gateway's WebSocket, through vLLM's own server and straight into the "
    "engine, which all run at the same time and take turns: ratios of rounds of the same lines in requests/s and "
    "tokens/s, first token, CPU, whether the texts are the same. Closed loop. Exit status 1 when one of them "
    "could not be measured in every round, when a translation failed, and when a bar is missed (--bars).",
    _add,
    _run,
)
