"""Flags of `serve`, which `doctor` takes as well.

Knows: argparse, and what each flag accepts. Must not know: what the settings are for.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gateway.cli.flags.command import Commands, add_command, count, number

_seconds = number(lambda value: 0 <= value <= 3_600, "is not between 0 and 3600 seconds")
_share = number(lambda value: 0 < value <= 1, "is not between 0 and 1")


def add_serve(commands: Commands[argparse.ArgumentParser]) -> None:
    serve = add_command(
        commands,
        "serve",
        help="start a gateway",
        description="Starts a gateway and serves until it is interrupted; accepted work is finished first.",
        epilog="""examples:
  gateway serve                              the bundled model, for this machine only
  gateway key new; gateway serve --host 0.0.0.0 --keys keys.json     for others on the network
  gateway serve --model tencent/Hunyuan-MT-7B --max-num-seqs 16
  gateway serve --config gateway.toml        settings from a file; flags win over it
  gateway serve --engine simulated           no model: repeats the words, to try out clients""",
    )
    _add_settings(serve).add_argument(
        "--traceback", "--verbose", action="store_true", help="if the gateway cannot start, show a traceback"
    )


def add_doctor(commands: Commands[argparse.ArgumentParser]) -> None:
    doctor = add_command(
        commands,
        "doctor",
        help="find out whether a gateway would start here",
        description="""\
Takes the flags of `serve`, starts nothing, and prints a line for everything that a gateway with these
settings needs of this machine: ports, keys, certificate, store, model, memory. The exit status is 1 if there is
a problem.""",
        epilog="""examples:
  gateway doctor --config gateway.toml
  gateway doctor --workers 4 --model /models/Hy-MT2-7B""",
    )
    _add_settings(doctor)


def add_config(commands: Commands[argparse.ArgumentParser]) -> None:
    config = add_command(
        commands,
        "config",
        help="check a file with settings",
        description="""\
Says whether `gateway serve --config FILE` could use this file, together with the variables GATEWAY__... that are
set, and looks at nothing else: `gateway doctor` also looks at this machine.""",
    )
    config.add_argument("action", choices=("check",), help="what to do")
    config.add_argument("file", type=Path, metavar="FILE", help="the settings, in TOML")


def add_reload(commands: Commands[argparse.ArgumentParser]) -> None:
    reload = add_command(
        commands,
        "reload",
        help="replace the workers of a running gateway",
        description="""\
Lets a gateway that was started with --workers read its settings again and replace its workers, one after
another. Each finishes what it has accepted; the engine goes on running.""",
    )
    _add_state_dir(reload)


def _add_settings(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Returns the group of those that are about everything."""
    listen = command.add_argument_group("where to listen")
    listen.add_argument("--host", help="address to listen on (default: 127.0.0.1; 0.0.0.0 for all)")
    listen.add_argument("--port", type=_port, help="port to listen on (default: 8000; 0 takes a free one)")
    listen.add_argument(
        "--tls-cert", metavar="FILE", help="serve https with this certificate, in PEM (default: no TLS)"
    )
    listen.add_argument("--tls-key", metavar="FILE", help="private key of the certificate, in PEM")
    door = command.add_argument_group("who is let in")
    door.add_argument(
        "--keys", metavar="FILE", help="keys that tokens are verified with, made by `gateway key` (default: none)"
    )
    door.add_argument(
        "--insecure-open",
        action="store_true",
        default=None,
        help="without keys, let in whoever reaches the gateway",
    )
    processes = command.add_argument_group("processes")
    processes.add_argument(
        "--workers",
        type=workers,
        metavar="N",
        help="serve with N processes that share the engine, `auto` for one a core (default: one, without a store)",
    )
    processes.add_argument(
        "--keep-engine",
        type=_seconds,
        metavar="SECONDS",
        help="for how long the engine's process waits for the next gateway when this one has ended (default: 0)",
    )
    _add_state_dir(processes)
    engine = command.add_argument_group("engine")
    engine.add_argument("--model", help="folder, or name on the Hugging Face hub (default: the bundled model)")
    engine.add_argument("--family", help="prompt family (default: recognised from the model)")
    engine.add_argument(
        "--engine", choices=("vllm", "remote", "simulated"), help="what generates translations (default: vllm)"
    )
    engine.add_argument(
        "--engine-url", metavar="URL", help="the vLLM server of a remote engine, such as http://gpu:8000"
    )
    engine.add_argument(
        "--max-num-seqs", type=count, metavar="N", help="translations generated together (default: 16)"
    )
    engine.add_argument(
        "--max-model-len",
        type=count,
        metavar="TOKENS",
        help="most tokens of prompt and output (default: the model's own)",
    )
    engine.add_argument(
        "--dtype",
        choices=("auto", "bfloat16", "float16", "float32"),
        help="type of the weights (default: auto)",
    )
    engine.add_argument(
        "--gpu-memory-utilization",
        type=_share,
        metavar="SHARE",
        help="share of the GPU's memory to use (default: 0.9)",
    )
    general = command.add_argument_group("general")
    general.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML")
    general.add_argument(
        "--store",
        metavar="URL",
        help="Redis in which several gateways keep their meetings: redis://:password@host:6379, or unix:///path "
        "(default: the memory of this process)",
    )
    general.add_argument(
        "--handover-file",
        metavar="FILE",
        help="where a stopped gateway saves its meetings for the next one (default: nowhere)",
    )
    general.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="how much to log (default: info)"
    )
    general.add_argument(
        "--log-format",
        choices=("auto", "text", "json"),
        help="lines for people or for programs (default: for people on a terminal only)",
    )
    return general


def _add_state_dir(parser: argparse._ActionsContainer) -> None:
    """The flag `--state-dir`."""
    parser.add_argument(
        "--state-dir",
        type=Path,
        metavar="FOLDER",
        help="where a gateway with workers keeps its process id and the data of its own store, and where engines "
        "wait with --keep-engine (default: ~/.local/state/translation-gateway)",
    )


def _port(text: str) -> int:
    if text.isdecimal() and int(text) <= 65_535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")


def workers(text: str) -> int:
    """The value of `--workers`. Raises `ArgumentTypeError`."""
    if text == "auto":
        return len(os.sched_getaffinity(0))
    return count(text)
