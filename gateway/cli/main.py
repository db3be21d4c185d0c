"""The command line: runs a command, explains its errors and returns its exit status.

Knows: which flags go together, and the arguments of each command.
Must not know: how flags are spelled (`cli.flags`), how a command works. Commands are imported only when they run,
so that `--help` answers at once.

Exit statuses: 0 done; 1 the gateway cannot start, does not answer or went away; 2 wrong usage; 3 something was
not translated; 130 interrupted; 141 the reader of the output stopped.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from gateway import __version__
from gateway.cli.flags.parser import ACTIONS, DEFAULT_ADMIN_URL, DEFAULT_URL, parser
from gateway.domain.errors import StartupError

if TYPE_CHECKING:
    from gateway.cli.jobs import TextOptions
    from gateway.cli.sessions import MeetingOptions, SessionOptions

# What to do where no gateway answers at an address that --url has not named.
_ELSEWHERE = (
    " Name the address of one that runs elsewhere, as in --url http://127.0.0.1:8080, or start one with "
    "`gateway serve`."
)
_ELSEWHERE_ADMIN = (
    " Name the gateway's admin address (its settings admin_host and admin_port), as in "
    "--url http://127.0.0.1:9100, or in GATEWAY_ADMIN_URL."
)

_INTERRUPTED = 130
_BROKEN_PIPE = 141  # 128 + SIGPIPE, as shells report it


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns its exit status. Wrong usage and `--help` raise `SystemExit`, as argparse does."""
    # The commands print what is refused themselves.
    logging.getLogger("gateway.client").setLevel(logging.CRITICAL)
    gateway = parser()
    args, unknown = gateway.parse_known_args(argv)
    if unknown:
        # The command's own parser reports it, because its usage shows the right flags.
        getattr(args, "parser", gateway).error(f"unrecognized arguments: {' '.join(unknown)}")
    if args.command is None:
        gateway.print_help(sys.stderr)
        return 2
    try:
        status = _COMMANDS[args.command](args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone. Without this, Python would complain when it flushes at exit.
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


# Flag of `serve` and `doctor` → setting.
_SETTINGS = {
    "host": "host",
    "port": "port",
    "tls_cert": "tls_cert",
    "tls_key": "tls_key",
    "keys": "auth.keys_file",
    "insecure_open": "auth.insecure_open",
    "model": "engine.model",
    "family": "engine.family",
    "engine": "engine.kind",
    "engine_url": "engine.url",
    "max_num_seqs": "engine.max_num_seqs",
    "max_model_len": "engine.max_model_len",
    "dtype": "engine.dtype",
    "gpu_memory_utilization": "engine.gpu_memory_utilization",
    "store": "store.url",
    "handover_file": "event_log.handover_file",
    "keep_engine": "keep_engine_s",
    "log_level": "log_level",
    "log_format": "log_format",
}


def _serve(args: argparse.Namespace) -> int:
    overrides = _overrides(args)
    if args.workers is not None:
        from gateway.workers import serving as workers

        count, state_dir = args.workers, args.state_dir
        return _starting(
            args, lambda: workers.serve(args.config, overrides, count, state_dir, traceback=args.traceback)
        )

    from gateway import serving

    return _starting(args, lambda: serving.serve(args.config, overrides, args.state_dir, traceback=args.traceback))


def _doctor(args: argparse.Namespace) -> int:
    overrides = _overrides(args)

    from gateway.cli.doctor import print_findings

    return print_findings(args.config, overrides, args.workers, args.state_dir)


def _config(args: argparse.Namespace) -> int:
    from gateway.cli.doctor import print_whether_settings_are_right

    return print_whether_settings_are_right(args.file)


def _overrides(args: argparse.Namespace) -> dict[str, object]:
    """The settings that flags have set."""
    return {setting: value for flag, setting in _SETTINGS.items() if (value := getattr(args, flag)) is not None}


def _reload(args: argparse.Namespace) -> int:
    from gateway.workers import serving

    return _starting(args, lambda: serving.reload(args.state_dir))


def _engines(args: argparse.Namespace) -> int:
    from gateway.cli.over_http import print_engines

    return _explaining(args, None, lambda: print_engines(DEFAULT_URL if args.url is None else args.url))


def _admin(args: argparse.Namespace) -> int:
    fewest, most, shown = ACTIONS[args.action]
    if not fewest <= len(args.names) <= most:
        _misused(args, f"give {args.action} {shown}" if shown else f"{args.action} takes no NAME")

    from gateway.cli.over_http import administer
    from gateway.cli.tokens import token_now, token_of
    from gateway.client import TokenUnavailable

    try:
        key = token_now(token_of(args.key_file, os.environ.get("GATEWAY_ADMIN_KEY"), None))
    except TokenUnavailable as error:
        _misused(args, str(error))
    if key is None:
        _misused(args, "give an operator's key: set GATEWAY_ADMIN_KEY or --key-file")
    url = args.url or os.environ.get("GATEWAY_ADMIN_URL") or DEFAULT_ADMIN_URL
    work = partial(administer, args.action, args.names, url=url, key=key, tenant=args.tenant, as_json=args.json)
    return _explaining(args, None, work)


def _starting(args: argparse.Namespace, work: Callable[[], int]) -> int:
    """Run `work`. Returns its exit status, and prints one sentence for a `StartupError`."""
    try:
        return work()
    except StartupError as error:
        if getattr(args, "traceback", False):
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
    options = _text_options(args, stdin_is_free=not from_stdin)

    from gateway.cli.terminal.interrupts import run
    from gateway.cli.terminal.lines import lines_of
    from gateway.cli.translate import one_text, translate

    texts = lines_of(sys.stdin.fileno()) if from_stdin else one_text(text)
    work = translate(options, texts, as_json=args.json, timings=args.timings, numbered=from_stdin)
    return _explaining(args, options, lambda: run(work))


def _chat(args: argparse.Namespace) -> int:
    options = _text_options(args, stdin_is_free=False)

    from gateway.cli.chat import chat

    return _explaining(args, options, lambda: chat(options))


def _speak(args: argparse.Namespace) -> int:
    if sys.stdin is None:
        _misused(args, "there is no stdin to read lines from")
    options = _meeting_options(args, stdin_is_free=False)

    from gateway.cli.speak import speak
    from gateway.cli.terminal.interrupts import run

    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    work = speak(
        options,
        args.lang,
        sys.stdin,
        prompt=args.lang if interactive else None,
        words_per_minute=args.words_per_minute,
    )
    return _explaining(args, options, lambda: run(work))


def _bridge(args: argparse.Namespace) -> int:
    if args.recogniser is None and (sys.stdin is None or sys.stdin.isatty()):
        _misused(args, "pipe the results of a recogniser in, or give --recogniser")
    if args.recogniser is None and args.sample_rate is not None:
        _misused(args, "--sample-rate goes with --recogniser")
    options = _meeting_options(args, stdin_is_free=False)

    from gateway.cli.bridge import bridge
    from gateway.cli.terminal.interrupts import run

    stdin_fd = None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.fileno()
    work = bridge(options, args.lang, stdin_fd, url=args.recogniser, sample_rate=args.sample_rate)
    return _explaining(args, options, lambda: run(work))


def _read(args: argparse.Namespace) -> int:
    langs = tuple(dict.fromkeys(lang for langs in (*args.langs, args.lang) for lang in langs))
    if not langs and args.transcript is None:
        _misused(args, "give a language to read, such as ja")
    options = _meeting_options(args, stdin_is_free=True)

    from gateway.cli.over_http import print_transcript
    from gateway.cli.read import read
    from gateway.cli.terminal.interrupts import run

    if args.transcript is not None:
        return _explaining(args, options, lambda: print_transcript(options, langs, args.transcript))
    reading = read(options, langs, stability=args.stability, originals=args.originals, as_json=args.json)
    return _explaining(args, options, lambda: run(reading))


def _key(args: argparse.Namespace) -> int:
    if (args.action == "remove") != (args.id is not None):
        _misused(args, "give the ID of the key to remove" if args.id is None else f"{args.action} takes no ID")

    from gateway.cli import keys

    actions: dict[str, Callable[[], int]] = {
        "new": lambda: keys.new_signing_key(args.keys, args.tenant),
        "api": lambda: keys.new_api_key(args.keys, args.tenant),
        "admin": lambda: keys.new_admin_key(args.keys),
        "list": lambda: keys.list_keys(args.keys),
        "remove": lambda: keys.remove_key(args.keys, args.id),
    }
    return _starting(args, actions[args.action])


def _issue(args: argparse.Namespace) -> int:
    if args.url is not None and not args.invite:
        _misused(args, "--url goes with --invite: a token is never part of a link")

    from gateway.cli.keys import print_token
    from gateway.domain.grants import Grant

    grant = Grant(
        tenant=args.tenant,
        subject=args.sub or args.name or "operator",
        roles=frozenset(args.role or ("speak", "read")),
        meeting=args.meeting,
        langs=None if args.langs is None else frozenset(args.langs),
        speaks=None if args.speaks is None else frozenset(args.speaks),
        name=args.name,
        max_s=args.max_s,
        once=args.once,
        record=args.record,
    )
    for_s = args.expires or (86_400 if args.invite else 600)
    return _starting(
        args,
        lambda: print_token(
            args.keys, grant, for_s=for_s, invite=args.invite, url=args.url, audience=args.audience
        ),
    )


def _conformance(args: argparse.Namespace) -> int:
    if not args.driver and not args.list and not args.json:
        _misused(args, "give the program that drives the client, after --")

    from gateway.conformance.play import list_transcripts, run_conformance

    if args.list or args.json:
        return list_transcripts(as_json=args.json)
    return run_conformance(args.driver, args.only, wait_s=args.wait)


def _version(_args: argparse.Namespace) -> int:
    print(f"translation-gateway {__version__}")
    return 0


def _text_options(args: argparse.Namespace, *, stdin_is_free: bool) -> TextOptions:
    if args.to and set(args.to) == {args.source}:
        _misused(args, f"nothing to translate: --from and --to are both {args.source}")

    from gateway.cli.jobs import TextOptions

    return TextOptions(
        source=args.source,
        targets=args.to,
        glossary=tuple(args.glossary),
        context=args.context,
        formality=args.formality,
        **_common_options(args, stdin_is_free=stdin_is_free),
    )


def _meeting_options(args: argparse.Namespace, *, stdin_is_free: bool) -> MeetingOptions:
    from gateway.cli.sessions import MeetingOptions

    options = _common_options(args, stdin_is_free=stdin_is_free)
    return MeetingOptions(meeting=args.meeting, name=args.name, **options)


def _common_options(args: argparse.Namespace, *, stdin_is_free: bool) -> dict[str, Any]:
    """What flags say of every session."""
    from gateway.cli.tokens import TOKEN_VARIABLE, token_of
    from gateway.client import TokenUnavailable

    stdin = sys.stdin.buffer if stdin_is_free and sys.stdin is not None else None
    try:
        token = token_of(args.token_file, os.environ.get(TOKEN_VARIABLE), stdin)
    except TokenUnavailable as error:
        _misused(args, str(error))
    url = DEFAULT_URL if args.url is None else args.url
    return {"url": url, "wait_s": args.wait, "token": token, "record": args.record}


def _misused(args: argparse.Namespace, sentence: str) -> NoReturn:
    parser: argparse.ArgumentParser = args.parser
    parser.error(sentence)


def _explaining(args: argparse.Namespace, options: SessionOptions | None, work: Callable[[], int]) -> int:
    """Run `work` against a gateway. Returns its exit status, and prints one sentence for an error."""
    from gateway.cli.sessions import EXIT_FAILED, EXIT_UNREACHABLE, TOKEN_NEEDED, TOKEN_REFUSED, note
    from gateway.client import (
        ClientError,
        EngineNotReady,
        GatewayUnreachable,
        InvalidAddress,
        SessionRefused,
        TranscriptRefused,
    )
    from gateway.domain.errors import Unauthenticated

    try:
        return work()
    except InvalidAddress as error:
        _misused(args, str(error))
    except ClientError as error:
        if args.traceback:
            traceback.print_exc()
        sentence = str(error)
        if isinstance(error, GatewayUnreachable) and args.url is None:
            sentence += _ELSEWHERE_ADMIN if args.command == "admin" else _ELSEWHERE
        elif isinstance(error, EngineNotReady) and args.wait == 0:
            sentence = f"{sentence.removesuffix('.')} (try --wait SECONDS)."
        elif isinstance(error, SessionRefused) and error.error.code == Unauthenticated.code:
            sentence = TOKEN_NEEDED if options is None or options.token is None else TOKEN_REFUSED
        note(sentence)
        return EXIT_FAILED if isinstance(error, SessionRefused | TranscriptRefused) else EXIT_UNREACHABLE


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "serve": _serve,
    "doctor": _doctor,
    "config": _config,
    "reload": _reload,
    "engines": _engines,
    "admin": _admin,
    "translate": _translate,
    "chat": _chat,
    "speak": _speak,
    "bridge": _bridge,
    "read": _read,
    "key": _key,
    "token": _issue,
    "conformance": _conformance,
    "version": _version,
}
