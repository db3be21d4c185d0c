"""The flags of `gateway key` and `gateway token`.

Knows: argparse, and what each flag accepts. Must not know: what the commands do. Imports nothing heavy.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import get_args

from gateway.cli.flags.command import Commands, add_command, count, languages
from gateway.domain.roles import DEFAULT_TENANT, NAME, NAME_CHARS, Role

# Where keys are if nothing is said.
KEYS_FILE = Path("keys.json")


def add_key(commands: Commands[argparse.ArgumentParser]) -> None:
    """`gateway key`."""
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


def add_token(commands: Commands[argparse.ArgumentParser]) -> None:
    """`gateway token`."""
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


def _tenant(text: str) -> str:
    if re.match(NAME, text):
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} has other characters than letters, digits and . _ ~ -, or over {NAME_CHARS}"
    )
