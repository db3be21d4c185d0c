"""The command line: commands, their flags, exit statuses.

Knows: how everything is spelled and explained. Must not know: how any of it is done; each command imports
that when it runs, so that `--help` answers at once.

Exit statuses: 0 done; 1 the gateway cannot start, is not there or went away; 2 wrong usage; 3 something was
not translated; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from gateway import __version__
from gateway.errors import StartupError
from gateway.languages import NAMES, normalise

if TYPE_CHECKING:
    from gateway.cli_translate import SessionOptions

__all__ = ["main"]

_DEFAULT_URL = "http://127.0.0.1:8000"

_INTERRUPTED = 130
_BROKEN_PIPE = 141  # 128 + SIGPIPE, as shells report it


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. Wrong usage and `--help` raise `SystemExit`, as argparse does."""
    parser = _parser()
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        # Told by the command that was given: its usage shows the flags that there are.
        getattr(args, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        status: int = args.command(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone. Python would complain once more while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception as error:
        if getattr(args, "traceback", False):
            traceback.print_exc()
        print(
            f"gateway: This is a bug ({type(error).__name__}: {error}); --traceback shows where.",
            file=sys.stderr,
        )
        return 1
    return status


# ---------------------------------------------------------------- commands


# Flags of `serve` and the settings they stand for.
_SETTINGS = {
    "host": "host",
    "port": "port",
    "model": "engine.model",
    "family": "engine.family",
    "engine": "engine.kind",
    "max_num_seqs": "engine.max_num_seqs",
    "max_model_len": "engine.max_model_len",
    "dtype": "engine.dtype",
    "gpu_memory_utilization": "engine.gpu_memory_utilization",
    "log_level": "log_level",
}


def _serve(args: argparse.Namespace) -> int:
    from gateway import app

    overrides: dict[str, object] = {
        setting: value for flag, setting in _SETTINGS.items() if (value := getattr(args, flag)) is not None
    }
    try:
        return app.serve(args.config, overrides, traceback=args.traceback)
    except StartupError as error:
        if args.traceback:
            traceback.print_exc()
        print(f"gateway: {error.message}", file=sys.stderr)
        return 1


def _translate(args: argparse.Namespace) -> int:
    text = " ".join(args.text)
    from_stdin = args.text in ([], ["-"])
    if from_stdin and (sys.stdin is None or (not args.text and sys.stdin.isatty())):
        _misused(args, "give a TEXT, or pipe lines in")
    if not from_stdin and not text.strip():
        _misused(args, "TEXT is empty")
    options = _session_options(args)

    import asyncio

    from gateway.cli_translate import lines_of, one_text, translate

    texts = lines_of(sys.stdin.fileno()) if from_stdin else one_text(text)
    work = translate(options, texts, as_json=args.json, timings=args.timings, numbered=from_stdin)
    return _explaining(args, lambda: asyncio.run(work))


def _chat(args: argparse.Namespace) -> int:
    options = _session_options(args)

    from gateway.cli_chat import chat

    return _explaining(args, lambda: chat(options))


def _version(_args: argparse.Namespace) -> int:
    print(f"translation-gateway {__version__}")
    return 0


def _session_options(args: argparse.Namespace) -> SessionOptions:
    if args.to and set(args.to) == {args.source}:
        _misused(args, f"nothing to translate: --from and --to are both {args.source}")

    from gateway.cli_translate import SessionOptions

    return SessionOptions(
        url=_DEFAULT_URL if args.url is None else args.url,
        source=args.source,
        targets=args.to,
        glossary=tuple(args.glossary),
        context=args.context,
        formality=args.formality,
        wait_s=args.wait,
    )


def _misused(args: argparse.Namespace, sentence: str) -> NoReturn:
    parser: argparse.ArgumentParser = args.parser
    parser.error(sentence)


def _explaining(args: argparse.Namespace, work: Callable[[], int]) -> int:
    """The status of work against a running gateway; what goes wrong there is told in one sentence."""
    from gateway.cli_translate import EXIT_FAILED, EXIT_UNREACHABLE, note
    from gateway.client import ClientError, EngineNotReady, GatewayUnreachable, InvalidAddress, SessionRefused

    try:
        return work()
    except InvalidAddress as error:
        _misused(args, str(error))
    except ClientError as error:
        if args.traceback:
            traceback.print_exc()
        sentence = str(error)
        if isinstance(error, GatewayUnreachable) and args.url is None:
            sentence += " For one on another port add --url, as in --url http://127.0.0.1:8080."
        elif isinstance(error, EngineNotReady) and args.wait == 0:
            sentence = f"{sentence.removesuffix('.')} (try --wait SECONDS)."
        note(sentence)
        return EXIT_FAILED if isinstance(error, SessionRefused) else EXIT_UNREACHABLE


# ---------------------------------------------------------------- flags


class _Help(argparse.RawDescriptionHelpFormatter):
    """Examples stay as they are written, and the list of commands gets room for their names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(100, shutil.get_terminal_size().columns))
        self._action_max_length = 14


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gateway",
        description="Translates live meetings: a WebSocket gateway in front of one shared vLLM engine.",
        epilog="""start here:
  gateway serve                          serve the bundled model on http://127.0.0.1:8000
  gateway translate "Good morning" --to ja,de
  gateway chat                           type sentences, watch them being translated

`gateway COMMAND --help` explains a command. Exit statuses: 0 done, 1 no gateway there or it went away,
2 wrong usage, 3 something was not translated, 130 interrupted.""",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"translation-gateway {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_serve(commands)
    _add_translate(commands)
    _add_chat(commands)
    version = commands.add_parser("version", help="print the version", description="Prints the version.")
    version.set_defaults(command=_version, parser=version)
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser(
        "serve",
        help="start a gateway",
        description="Starts a gateway and serves until it is interrupted; accepted work is finished first.",
        epilog="""examples:
  gateway serve                              the bundled model, on this machine alone
  gateway serve --host 0.0.0.0 --port 9000   for others on the network
  gateway serve --model tencent/Hunyuan-MT-7B --max-num-seqs 16
  gateway serve --config gateway.toml        settings from a file; flags win over it
  gateway serve --engine simulated           no model at all: repeats the words, to try out clients""",
        formatter_class=_Help,
    )
    listen = serve.add_argument_group("where to listen")
    listen.add_argument("--host", help="address to listen on (default: 127.0.0.1; 0.0.0.0 for all)")
    listen.add_argument("--port", type=_port, help="port to listen on (default: 8000; 0 takes a free one)")
    engine = serve.add_argument_group("engine")
    engine.add_argument("--model", help="folder, or name on the Hugging Face hub (default: the bundled model)")
    engine.add_argument("--family", help="prompt family (default: recognised from the model)")
    engine.add_argument(
        "--engine", choices=("vllm", "simulated"), help="what generates translations (default: vllm)"
    )
    engine.add_argument(
        "--max-num-seqs", type=_count, metavar="N", help="translations generated together (default: 16)"
    )
    engine.add_argument(
        "--max-model-len", type=_count, metavar="TOKENS", help="prompt and output (default: the model's own)"
    )
    engine.add_argument(
        "--dtype",
        choices=("auto", "bfloat16", "float16", "float32"),
        help="type of the weights (default: auto)",
    )
    engine.add_argument(
        "--gpu-memory-utilization", type=_share, metavar="SHARE", help="of the GPU's memory (default: 0.9)"
    )
    general = serve.add_argument_group("general")
    general.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML")
    general.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="how much to log (default: info)"
    )
    general.add_argument(
        "--traceback", "--verbose", action="store_true", help="if it cannot start, show where that came from"
    )
    serve.set_defaults(command=_serve, parser=serve)


def _add_translate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    translate = commands.add_parser(
        "translate",
        help="translate a text, or lines from a pipe",
        description="""\
Translates through a running gateway. On a terminal the translations grow as they are generated;
elsewhere each finished one is a line: language, tab, text.""",
        epilog="""examples:
  gateway translate "Good morning, everyone." --to ja,de
  gateway translate --from de --to en "Guten Morgen"
  gateway translate --to ja < minutes.txt > minutes.ja.tsv
  tail -f captions.txt | gateway translate --to es -
  gateway translate "Open a ticket." --to de --glossary ticket=Ticket --formality formal
  gateway translate "Hello" --to fr --json --timings

Exit statuses: 0 all translated, 1 no gateway there or it went away, 2 wrong usage, 3 something was refused
or not translated.""",
        formatter_class=_Help,
    )
    translate.add_argument(
        "text", nargs="*", metavar="TEXT", help="what to translate; `-` or nothing: each line of stdin"
    )
    _add_session_flags(translate)
    output = translate.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the gateway's messages, one a line")
    output.add_argument("--timings", action="store_true", help="tell on stderr how long each translation took")
    translate.set_defaults(command=_translate, parser=translate)


def _add_chat(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    chat = commands.add_parser(
        "chat",
        help="type sentences and watch them being translated",
        description="Translates what you type, sentence by sentence, through a running gateway.",
        epilog="""examples:
  gateway chat
  gateway chat --from de --to en,ja

inside:
  /from LANG     the language you type in         /to LANG,LANG  the languages you want to read
  /languages     what the gateway knows           /help          these commands
  /quit          leave, as does Ctrl-D""",
        formatter_class=_Help,
    )
    _add_session_flags(chat)
    chat.set_defaults(command=_chat, parser=chat)


def _add_session_flags(command: argparse.ArgumentParser) -> None:
    what = command.add_argument_group("what to translate")
    what.add_argument(
        "--from", dest="source", type=normalise, default="en", metavar="LANG", help="default: %(default)s"
    )
    what.add_argument(
        "--to",
        type=_languages,
        default=(),
        metavar="LANG,…",
        help="default: every other language the gateway knows",
    )
    what.add_argument(
        "--glossary",
        type=_term,
        action="append",
        default=[],
        metavar="[LANG:]TERM=TERM",
        help="how a term is to be translated, into LANG or into every language; may be repeated",
    )
    what.add_argument("--context", metavar="TEXT", help="background that helps: the topic, names")
    what.add_argument(
        "--formality",
        choices=("formal", "informal"),
        help="how to address people (default: the model decides)",
    )
    where = command.add_argument_group("where")
    where.add_argument("--url", help=f"the gateway (default: {_DEFAULT_URL})")
    where.add_argument(
        "--wait",
        type=_seconds,
        default=300.0,
        metavar="SECONDS",
        help="for an engine that is still loading (default: %(default)g)",
    )
    where.add_argument("--traceback", action="store_true", help="with an error, show where it came from")


# ---------------------------------------------------------------- values of flags


def _languages(text: str) -> tuple[str, ...]:
    if found := tuple(dict.fromkeys(normalise(tag) for tag in text.split(",") if tag.strip())):
        return found
    raise argparse.ArgumentTypeError("give languages such as ja,de")


def _term(text: str) -> tuple[str | None, str, str]:
    source, equals, target = text.partition("=")
    tag, colon, rest = source.partition(":")
    lang = normalise(tag) if colon and normalise(tag) in NAMES else None
    term = (rest if lang else source).strip()
    if not equals or not term or not target.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not TERM=TERM")
    return lang, term, target.strip()


def _port(text: str) -> int:
    if text.isdecimal() and int(text) <= 65_535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")


def _count(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 < (share := float(text)) <= 1:
            return share
    raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (seconds := float(text)) < inf:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
