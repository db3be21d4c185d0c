"""`python -m loadtest`: the subcommands and their options.

Knows: the names of the options and what a wrong one is answered with. Must not know: how anything is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TypeVar

import uvloop

from loadtest import report
from loadtest.direct import Plan, measure
from loadtest.machine import command_line
from loadtest.results import LoadtestError
from loadtest.soak import report as soak_report
from loadtest.soak.result import SoakPlan
from loadtest.soak.run import run as soak_run
from loadtest.terminal import Progress, terminal
from loadtest.workload import Workload

__all__ = ["main"]

_Result = TypeVar("_Result")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one load test; the exit status of the process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    # Ended in any way short of a kill, it takes the engine's processes and the client's along. A shell without job
    # control starts what runs in the background with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with terminal() as stream:
        progress = Progress(stream)
        try:
            # The loop that `gateway serve` runs on.
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                command = command_line("loadtest", given)
                if options.test == "soak":
                    soaked = runner.run(
                        _until_told(soak_run(_soak_plan(options), command, progress, keep=options.keep))
                    )
                else:
                    measured = runner.run(_until_told(measure(_plan(options), command, progress)))
        except LoadtestError as error:
            progress.clear()
            stream.write(f"loadtest: {error}\n")
            return 1
        except (KeyboardInterrupt, asyncio.CancelledError):
            progress.clear()
            stream.write("loadtest: interrupted; nothing was written.\n")
            return 130
        progress.clear()
    if options.test == "soak":
        soak_report.write(soaked, options.out)
        sys.stdout.write(soak_report.table(soaked))
        kept = not any(soaked.failures())
    else:
        report.write(measured, options.out)
        sys.stdout.write(report.table(measured))
        kept = all(level.direct.failed == level.websocket.failed == 0 for level in measured.levels)
    sys.stdout.write(f"\nWritten to {options.out}: result.json, table.md, plot.png\n")
    return 0 if kept else 1


async def _until_told(measuring: Coroutine[None, None, _Result]) -> _Result:
    """Run it; SIGTERM cancels it as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 -- we run in one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await measuring


def _plan(options: argparse.Namespace) -> Plan:
    return Plan(
        engine=options.engine,
        model=options.model,
        max_num_seqs=options.max_num_seqs,
        dtype=options.dtype,
        in_flight=options.in_flight,
        utterances=options.utterances,
        repetitions=options.repetitions,
        quiet_wait_s=options.quiet_wait_s,
        workload=Workload(options.seed, options.source, options.target),
        time_limit_s=options.time_limit_s,
    )


def _soak_plan(options: argparse.Namespace) -> SoakPlan:
    return SoakPlan(
        engine=options.engine,
        minutes=options.minutes,
        sessions=options.sessions,
        utterances_per_minute=options.utterances_per_minute,
        stay_minutes=options.stay_minutes,
        fault_every_s=options.fault_every_s,
        keep_s=options.keep_s,
        log_keep_s=options.log_keep_s,
        seed=options.seed,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m loadtest", description="Load tests of the gateway on this machine."
    )
    tests = parser.add_subparsers(dest="test", required=True, metavar="TEST")
    _add_direct(tests)
    _add_soak(tests)
    return parser


def _add_direct(tests: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    direct = tests.add_parser(
        "direct",
        help="the WebSocket beside the same engine called directly",
        description="Tokens/s, requests/s and time to the first token through the WebSocket, beside the same "
        "engine called directly in the same run. Closed loop.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    plan = Plan()
    add = direct.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER", help="where result.json, table.md and plot.png go")
    add("--engine", choices=("vllm", "simulated"), default=plan.engine, help="which engine")
    add("--model", help="a folder, or a name vLLM can resolve; without it the bundled model")
    add(
        "--max-num-seqs", type=_between(1, 1024), default=plan.max_num_seqs, metavar="N", help="the engine's batch"
    )
    add("--dtype", default=plan.dtype, help="number format; auto chooses by the hardware")
    add(
        "--in-flight",
        type=_numbers,
        default=",".join(map(str, plan.in_flight)),
        metavar="N,N",
        help="utterances in flight, one level each",
    )
    add(
        "--utterances",
        type=_between(1, 100_000),
        default=plan.utterances,
        metavar="N",
        help="utterances in a round; at least 16 for each in flight",
    )
    add("--repetitions", type=_between(1, 50), default=plan.repetitions, metavar="N", help="rounds of each route")
    add(
        "--quiet-wait-s",
        type=_between(0, 3_600),
        default=0,
        metavar="S",
        help="before each round wait so long for other processes to let the CPU alone",
    )
    add("--seed", type=int, default=plan.workload.seed, help="which list of utterances")
    add("--source", default=plan.workload.source, metavar="LANG", help="language that is spoken")
    add("--target", default=plan.workload.target, metavar="LANG", help="language that is read")
    add(
        "--time-limit-s", type=_between(1, 86_400), default=round(plan.time_limit_s), metavar="S", help="stop then"
    )


def _add_soak(tests: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    soaking = tests.add_parser(
        "soak",
        help="faults under load, and the proof that nothing accepted was lost",
        description="A gateway with its engine in processes of their own, meetings full of clients, and faults: "
        "lost and silent connections, clients that are stopped, an engine that is killed or hangs, restarts. A "
        "checker that knows every accepted utterance counts what each reader ended up with. Exit status 1 unless "
        "nothing was lost or came twice and everything was given back.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    plan = SoakPlan()
    add = soaking.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER", help="where result.json, table.md and plot.png go")
    add("--engine", choices=("vllm", "simulated"), default=plan.engine, help="which engine")
    add("--minutes", type=_from(0.5, 1_440), default=plan.minutes, metavar="M", help="of load; the rest is extra")
    add("--sessions", type=_between(12, 5_000), default=plan.sessions, metavar="N", help="held at the same time")
    add(
        "--utterances-per-minute",
        type=_from(1, 100_000),
        default=plan.utterances_per_minute,
        metavar="N",
        help="said in all meetings together, whether the gateway keeps up or not",
    )
    add("--stay-minutes", type=_from(0.1, 1_440), default=plan.stay_minutes, metavar="M", help="mean stay")
    add(
        "--fault-every-s",
        type=_from(0.1, 3_600),
        default=plan.fault_every_s,
        metavar="S",
        help="mean time between faults of single clients",
    )
    add("--keep-s", type=_between(5, 3_600), default=plan.keep_s, metavar="S", help="`limits.keep_s`")
    add("--log-keep-s", type=_between(30, 86_400), default=plan.log_keep_s, metavar="S", help="`event_log.keep_s`")
    add("--seed", type=int, default=plan.seed, help="who is there, what is said, what breaks when")
    add("--keep", type=Path, metavar="FOLDER", help="where every record and the gateway's logs stay")


def _numbers(text: str) -> tuple[int, ...]:
    number = _between(1, 1024)
    return tuple(dict.fromkeys(number(part) for part in text.split(",")))


def _between(low: int, high: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"has to be between {low} and {high}")
        return value

    return number


def _from(low: float, high: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"has to be between {low:g} and {high:g}")
        return value

    return number


if __name__ == "__main__":
    sys.exit(main())
