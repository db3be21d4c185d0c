"""The commands and their flags: names, values and help texts.

Knows: argparse, and what each flag accepts.
Must not know: what the commands do. This module imports nothing heavy, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import re
from math import inf
from pathlib import Path
from typing import get_args

from gateway import __version__
from gateway.cli.flags.command import Commands, Help, add_command, count, languages, number
from gateway.cli.flags.serve import add_config, add_doctor, add_reload, add_serve
from gateway.domain.languages import NAMES, normalise
from gateway.domain.roles import DEFAULT_TENANT, NAME, NAME_CHARS, Role

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_ADMIN_URL = "http://127.0.0.1:9100"

# Action → the fewest and the most names that it takes, and how they are shown.
ACTIONS = {
    "meetings": (0, 0, ""),
    "sessions": (0, 1, "[MEETING]"),
    "lanes": (0, 0, ""),
    "workers": (0, 0, ""),
    "end": (1, 1, "MEETING"),
    "disconnect": (2, 2, "MEETING PARTICIPANT"),
    "erase": (1, 1, "MEETING"),
    "drain-lane": (1, 1, "NAME"),
    "drain-worker": (1, 1, "NUMBER"),
    "webhooks": (0, 0, ""),
    "test-webhook": (1, 1, "NAME"),
    "log-level": (0, 1, "[LEVEL]"),
}

# Where keys are if nothing is said.
KEYS_FILE = Path("keys.json")

# Speaking rate of people in meetings, in words a minute.
_USUAL_PACE = 150.0

_pace = number(lambda value: 0 < value < inf, "is not a number of words")
_seconds = number(lambda value: 0 <= value < inf, "is not a number of seconds")


def parser() -> argparse.ArgumentParser:
    """The parser of the command line. It sets `command`, the command's name, and `parser`, its parser."""
    gateway = argparse.ArgumentParser(
        prog="gateway",
        description="Translates live meetings: a WebSocket gateway in front of one shared vLLM engine.",
        epilog="""start here:
  gateway serve                          serve the bundled model on http://127.0.0.1:8000
  gateway translate "Good morning" --to ja,de
  gateway chat                           type sentences, watch them being translated
  gateway speak --meeting standup        and in another terminal:
  gateway read --meeting standup ja      a meeting between the two

`gateway COMMAND --help` explains a command. Exit statuses: 0 done, 1 no gateway answers or it went away,
2 wrong usage, 3 something was not translated, 130 interrupted.""",
        formatter_class=Help,
    )
    gateway.add_argument("--version", action="version", version=f"translation-gateway {__version__}")
    gateway.set_defaults(command=None)
    commands = gateway.add_subparsers(title="commands", metavar="COMMAND")
    add_serve(commands)
    add_doctor(commands)
    add_config(commands)
    add_reload(commands)
    _add_engines(commands)
    _add_admin(commands)
    _add_translate(commands)
    _add_chat(commands)
    _add_speak(commands)
    _add_bridge(commands)
    _add_read(commands)
    _add_key(commands)
    _add_token(commands)
    _add_conformance(commands)
    add_command(commands, "version", help="print the version", description="Prints the version.")
    return gateway


def _add_engines(commands: Commands[argparse.ArgumentParser]) -> None:
    engines = add_command(
        commands,
        "engines",
        help="show how the engines of a running gateway are",
        description="Prints a line for each engine: its name, its status and, if it is not ready, why.",
    )
    engines.add_argument("--url", help=f"the gateway (default: {DEFAULT_URL})")
    engines.set_defaults(traceback=False)


def _add_translate(commands: Commands[argparse.ArgumentParser]) -> None:
    translate = add_command(
        commands,
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

Exit statuses: 0 all translated, 1 no gateway answers or it went away, 2 wrong usage, 3 something was refused
or not translated.""",
    )
    translate.add_argument(
        "text", nargs="*", metavar="TEXT", help="text to translate; `-` or nothing: each line of stdin"
    )
    _add_session_flags(translate)
    output = translate.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the gateway's messages, one a line")
    output.add_argument("--timings", action="store_true", help="show on stderr how long each translation took")


def _add_chat(commands: Commands[argparse.ArgumentParser]) -> None:
    chat = add_command(
        commands,
        "chat",
        help="type sentences and watch them being translated",
        description="Translates what you type, sentence by sentence, through a running gateway.",
        epilog="""examples:
  gateway chat
  gateway chat --from de --to en,ja

commands in the chat:
  /from LANG     the language you type in         /to LANG,LANG  the languages you want to read
  /languages     the gateway's languages          /help          these commands
  /quit          leave (so does Ctrl-D)""",
    )
    _add_session_flags(chat)


def _add_speak(commands: Commands[argparse.ArgumentParser]) -> None:
    speak = add_command(
        commands,
        "speak",
        help="speak in a meeting: each line is an utterance",
        description="""\
Says each line of stdin in a meeting. Readers (`gateway read`) see it in their languages. Ctrl-D ends the command
after everything is accepted and translated; Ctrl-C ends it at once.""",
        epilog="""examples:
  gateway speak --meeting standup --name Ana
  gateway speak --meeting standup --lang de --name Ben < minutes.txt
  gateway speak --meeting standup --words-per-minute       each line word by word, as people talk
  gateway speak --meeting standup --words-per-minute 200 < minutes.txt

Exit statuses: 0 every line was accepted, 1 no gateway answers, it went away, or a line had no answer,
2 wrong usage, 3 the meeting, the language or a line was refused.""",
    )
    who = speak.add_argument_group("who speaks")
    _add_speaker_flags(who)
    who.add_argument(
        "--words-per-minute",
        type=_pace,
        nargs="?",
        const=_USUAL_PACE,
        metavar="N",
        help="say each line word by word, at this rate, or at %(const)g (default: whole lines, at once)",
    )
    _add_where_flags(speak.add_argument_group("where"))


def _add_bridge(commands: Commands[argparse.ArgumentParser]) -> None:
    bridge = add_command(
        commands,
        "bridge",
        help="speak in a meeting for a speech recogniser",
        description="""\
Says in a meeting what a speech recogniser hears, while it still changes its mind. It knows what Vosk,
pocketsphinx, WhisperLiveKit, WhisperLive, whisper_streaming and browsers say. Their results are lines on stdin;
or, with --recogniser, stdin is the audio for a recogniser that is a WebSocket server. Ends with stdin, or at
Ctrl-C.""",
        epilog="""examples:
  gateway bridge --meeting standup --name Ana < results.jsonl
  my-recogniser | gateway bridge --meeting standup --name Ana
  arecord -q -f S16_LE -r 16000 -t raw | gateway bridge --meeting standup \\
      --recogniser ws://127.0.0.1:2700 --sample-rate 16000        a Vosk server
  arecord -q -f S16_LE -r 16000 -t raw | gateway bridge --meeting standup \\
      --recogniser ws://127.0.0.1:9000/asr                        WhisperLiveKit, with --pcm-input

Exit statuses: 0 everything that was said was accepted, 1 no gateway or no recogniser answers, or it went away,
2 wrong usage, 3 the meeting, the language or something said was refused.""",
    )
    _add_speaker_flags(bridge.add_argument_group("who speaks"))
    what = bridge.add_argument_group("who recognises it")
    what.add_argument(
        "--recogniser",
        metavar="URL",
        help="WebSocket of a recogniser, which gets stdin as audio (default: stdin has its results)",
    )
    what.add_argument(
        "--sample-rate",
        type=count,
        metavar="HZ",
        help="tell the recogniser the rate of the audio, as a Vosk server wants it (default: nothing is told)",
    )
    _add_where_flags(bridge.add_argument_group("where"))


def _add_read(commands: Commands[argparse.ArgumentParser]) -> None:
    read = add_command(
        commands,
        "read",
        help="read a meeting in your languages, as it is spoken",
        description="""\
Shows what is said in a meeting, in the given languages, until Ctrl-C. On a terminal unfinished lines grow
below the finished ones. Elsewhere each finished text is a line: language, tab, speaker, tab, text.""",
        epilog="""examples:
  gateway read --meeting standup ja
  gateway read --meeting standup ja de
  gateway read --meeting standup --stability stable ja       only words that stay
  gateway read --meeting standup ja > captions.tsv
  gateway read --meeting standup --json ja | jq .
  gateway read --meeting standup --transcript srt ja > standup.srt

Exit statuses: 0 ended by Ctrl-C, or the transcript was printed, 1 no gateway answers or it went away,
2 wrong usage, 3 the meeting or a language was refused.""",
    )
    read.add_argument(
        "langs", nargs="*", type=languages, metavar="LANG", help="a language to read; or several: ja de, or ja,de"
    )
    what = read.add_argument_group("what to read")
    _add_meeting_flags(what, "reader")
    what.add_argument("--lang", type=languages, default=(), metavar="LANG,…", help="the same as LANG")
    what.add_argument(
        "--stability",
        choices=("live", "stable", "final"),
        default="live",
        help="what to show of an utterance that is still being said. live: the earliest translation, whose dim "
        "end may change; stable: only words that stay; final: nothing (default: %(default)s)",
    )
    what.add_argument("--originals", action="store_true", help="also show what is said, in its own language")
    output = read.add_argument_group("output").add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print the gateway's messages, one a line")
    output.add_argument(
        "--transcript",
        choices=("srt", "vtt", "txt", "json"),
        help="print the transcript so far in this format, and exit",
    )
    _add_where_flags(read.add_argument_group("where"))


def _add_session_flags(command: argparse.ArgumentParser) -> None:
    what = command.add_argument_group("what to translate")
    what.add_argument(
        "--from", dest="source", type=normalise, default="en", metavar="LANG", help="default: %(default)s"
    )
    what.add_argument(
        "--to",
        type=languages,
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
        help="how to translate a term, into LANG or into every language; may be repeated",
    )
    what.add_argument("--context", metavar="TEXT", help="helpful background: the topic, names")
    what.add_argument(
        "--formality",
        choices=("formal", "informal"),
        help="how to address people (default: the model decides)",
    )
    _add_record_flag(what)
    _add_where_flags(command.add_argument_group("where"))


def _add_speaker_flags(group: argparse._ArgumentGroup) -> None:
    _add_meeting_flags(group, "speaker")
    group.add_argument("--lang", type=normalise, default="en", help="the language spoken (default: %(default)s)")


def _add_meeting_flags(group: argparse._ArgumentGroup, role: str) -> None:
    group.add_argument("--meeting", type=_meeting, required=True, help="the meeting's id, such as standup")
    group.add_argument("--name", help=f"name of the {role}, for the others (default: none)")
    _add_record_flag(group)


def _add_record_flag(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--no-record",
        dest="record",
        action="store_const",
        const=False,
        help="nothing is kept of what is said: no transcript, nothing for latecomers. The first to join decides",
    )


def _add_where_flags(where: argparse._ArgumentGroup) -> None:
    where.add_argument("--url", help=f"the gateway (default: {DEFAULT_URL})")
    # There is no flag for the token itself: lists of processes show flags to everybody.
    where.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with a token, read again whenever one is needed; `-`: first line of stdin, where that is free "
        "(default: the variable GATEWAY_TOKEN)",
    )
    where.add_argument(
        "--wait",
        type=_seconds,
        default=300.0,
        metavar="SECONDS",
        help="how long to wait for an engine that is loading, and for a lost connection (default: %(default)g)",
    )
    where.add_argument("--traceback", action="store_true", help="with an error, show a traceback")


def _add_admin(commands: Commands[argparse.ArgumentParser]) -> None:
    admin = add_command(
        commands,
        "admin",
        help="see and change what a running gateway is doing",
        description="""\
Asks a running gateway at its admin address, with an operator's key. What is listed has a line each, with tabs
between.""",
        epilog="""examples:
  gateway admin meetings
  gateway admin sessions standup               who is in a meeting
  gateway admin end standup                    all its sessions end, and tokens for it are not valid any more
  gateway admin disconnect standup 1f0c9a7b    the same for one participant, as `sessions` shows it
  gateway admin erase standup                  nothing is kept of what was said
  gateway admin lanes                          each engine
  gateway admin drain-lane finnish             it finishes what it has, and goes
  gateway admin workers
  gateway admin drain-worker 2                 another process takes its place first
  gateway admin webhooks                       what waits for each, and how the last try ended
  gateway admin test-webhook backend           send it an event of no meeting, now
  gateway admin log-level debug

Exit statuses: 0 done, 1 no gateway answers, 2 wrong usage, 3 it was refused.""",
    )
    admin.add_argument("action", choices=tuple(ACTIONS), metavar="ACTION", help=", ".join(ACTIONS))
    admin.add_argument("names", nargs="*", metavar="NAME", help="what it is about")
    admin.add_argument("--tenant", help=f"whose meeting it is (default: {DEFAULT_TENANT}; lists: every tenant's)")
    admin.add_argument(
        "--url", help=f"the gateway's admin address (default: GATEWAY_ADMIN_URL, else {DEFAULT_ADMIN_URL})"
    )
    # There is no flag for the key itself: lists of processes show flags to everybody.
    admin.add_argument("--key-file", metavar="FILE", help="file with the key (default: GATEWAY_ADMIN_KEY)")
    admin.add_argument("--json", action="store_true", help="print the answer as it is")
    admin.set_defaults(traceback=False)


def _add_conformance(commands: Commands[argparse.ArgumentParser]) -> None:
    conformance = add_command(
        commands,
        "conformance",
        help="test a client of your own",
        description="""\
Plays the gateway to a client in any language, one transcript of the protocol after the other, and says what
the client did differently. DRIVER is a program that does with the client what it is told on stdin; a new one is
started for each transcript. docs/write-a-client.md says what it has to do.""",
        epilog="""examples:
  gateway conformance -- node driver.mjs
  gateway conformance --only lost-connection -- ./driver --verbose""",
    )
    conformance.add_argument("driver", nargs="*", metavar="DRIVER", help="the program and its arguments, after --")
    conformance.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="play this transcript (repeatable)"
    )
    conformance.add_argument(
        "--wait",
        type=count,
        default=15,
        metavar="SECONDS",
        help="how long to wait for one thing to happen (default: 15)",
    )
    conformance.add_argument("--list", action="store_true", help="print the transcripts and what each is about")
    conformance.add_argument(
        "--json", action="store_true", help="print the transcripts as JSON, for a runner of your own"
    )


def _add_key(commands: Commands[argparse.ArgumentParser]) -> None:
    key = add_command(
        commands,
        "key",
        help="make and remove the keys of a gateway",
        description="""\
Makes, lists and removes keys in a key file. A gateway that was started with this file
(`gateway serve --keys FILE`) notices within a second.

A signing key signs tokens: its secret is shared with whoever issues them. An API key is a password of a
tenant's backend, which asks the gateway for tokens with it, and uses the API. It is printed once; the file has
a hash. An admin key is an operator's, for `gateway admin`: its file is the gateway's setting admin_keys_file.""",
        epilog="""examples:
  gateway key new                            a signing key for every tenant, in keys.json
  gateway key new --tenant acme              one for tokens of acme only
  gateway key api --tenant acme              an API key for acme's backend
  gateway key admin --keys admin.json        one for an operator of the gateway
  gateway key list
  gateway key remove 0a1b2c3d4e5f            what was signed with it, or the API key, is refused""",
    )
    key.add_argument("action", choices=("new", "api", "admin", "list", "remove"), help="what to do")
    key.add_argument("id", nargs="?", metavar="ID", help="the key to remove, as `list` shows it")
    _add_keys_file(key)
    key.add_argument(
        "--tenant",
        type=_tenant,
        help=f"whose key it is (default: a signing key is for every tenant, an API key for {DEFAULT_TENANT!r})",
    )


def _add_token(commands: Commands[argparse.ArgumentParser]) -> None:
    token = add_command(
        commands,
        "token",
        help="issue a token or an invite",
        description="""\
Signs a token with a key of the key file and prints it. A token opens a session within ten minutes at most. An
invite is a link that lets people in for a day, a week at most: everybody who has it, or the first (--once).""",
        epilog="""examples:
  gateway token --meeting standup --sub ana                     may speak and read
  gateway token --meeting standup --sub wall --role read --max-s 14400
  gateway token --meeting standup --invite --url https://translate.example.com
  GATEWAY_TOKEN=$(gateway token --meeting standup --sub ana) gateway speak --meeting standup""",
    )
    _add_keys_file(token)
    token.add_argument(
        "--tenant", type=_tenant, default=DEFAULT_TENANT, help="whose meeting it is (default: %(default)s)"
    )
    token.add_argument(
        "--meeting", type=_tenant, help="the one meeting that it is for (default: only private ones)"
    )
    token.add_argument("--sub", help="who it is for, in your own words (default: the name, or `operator`)")
    token.add_argument("--name", help="the participant's name (default: they choose)")
    token.add_argument(
        "--role",
        action="append",
        choices=get_args(Role),
        help="what it allows; may be repeated (default: speak and read)",
    )
    token.add_argument(
        "--langs", type=languages, metavar="LANG,…", help="languages that may be read (default: all)"
    )
    token.add_argument(
        "--speaks", type=languages, metavar="LANG,…", help="languages that may be spoken (default: all)"
    )
    token.add_argument(
        "--max-s", type=count, metavar="SECONDS", help="how long a session may last (default: until it expires)"
    )
    token.add_argument(
        "--once", action="store_true", help="it opens one session only, an invite lets one guest in"
    )
    token.add_argument(
        "--no-record",
        dest="record",
        action="store_const",
        const=False,
        help="nothing is kept of the meeting that is begun with it; it opens no other",
    )
    token.add_argument(
        "--expires", type=count, metavar="SECONDS", help="how long it is valid (default: 600; an invite: 86400)"
    )
    token.add_argument("--invite", action="store_true", help="an invite instead of a token")
    token.add_argument("--url", help="with --invite: the gateway's page, to print the whole link")
    token.add_argument(
        "--audience", default="translation-gateway", help="the gateway's auth.audience (default: %(default)s)"
    )


def _add_keys_file(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keys", type=Path, default=KEYS_FILE, metavar="FILE", help="the key file (default: %(default)s)"
    )


# ---------------------------------------------------------------- values of flags


def _term(text: str) -> tuple[str | None, str, str]:
    source, equals, target = text.partition("=")
    tag, colon, rest = source.partition(":")
    lang = normalise(tag) if colon and normalise(tag) in NAMES else None
    term = (rest if lang else source).strip()
    if not equals or not term or not target.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not TERM=TERM")
    return lang, term, target.strip()


def _meeting(text: str) -> str:
    from gateway.protocol.checks import is_meeting_id

    if is_meeting_id(text):
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a meeting id (letters, digits and . _ ~ -, but not only dots)"
    )


def _tenant(text: str) -> str:
    if re.match(NAME, text):
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} has other characters than letters, digits and . _ ~ -, or over {NAME_CHARS}"
    )
