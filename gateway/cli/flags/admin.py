"""The flags of `gateway admin`.

Knows: argparse, and what each action takes. Must not know: what an action does. Imports nothing heavy.
"""

from __future__ import annotations

import argparse

from gateway.cli.flags.command import Commands, add_command
from gateway.domain.roles import DEFAULT_TENANT

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


def add_admin(commands: Commands[argparse.ArgumentParser]) -> None:
    """`gateway admin`."""
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
