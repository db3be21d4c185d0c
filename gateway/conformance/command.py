"""`gateway conformance`: plays every transcript to a client, and reports.

Knows: the report and the exit status.
Must not know: how flags are spelled (`cli.flags`), how a transcript is played.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import msgspec

from gateway.conformance.driver import DriverFailed
from gateway.conformance.play import Deviation, play
from gateway.conformance.transcripts import transcripts

_FAILED = 3


def list_transcripts(*, as_json: bool) -> int:
    """Print what a client must be able to do, by transcript, or all that happens in each."""
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(transcripts())).decode())
        return 0
    for transcript in transcripts():
        print(f"{transcript.name}: {transcript.about}")
    return 0


def run_conformance(command: Sequence[str], only: Sequence[str], *, wait_s: float) -> int:
    """Play the transcripts and print a line for each.

    command: the program that drives the client, with its arguments. only: names of transcripts; all if there are
    none. wait_s: longest wait for one thing to happen. Returns the exit status.
    """
    unknown = set(only) - {transcript.name for transcript in transcripts()}
    if unknown:
        print(f"gateway: There is no transcript {', '.join(sorted(unknown))}.", file=sys.stderr)
        return 2
    try:
        return asyncio.run(_run(command, only, wait_s))
    except OSError as error:
        print(f"gateway: {command[0]} cannot be started: {error.strerror}.", file=sys.stderr)
        return 1


async def _run(command: Sequence[str], only: Sequence[str], wait_s: float) -> int:
    chosen = [transcript for transcript in transcripts() if not only or transcript.name in only]
    failed = 0
    for transcript in chosen:
        try:
            await play(transcript, command, wait_s=wait_s)
        except (Deviation, DriverFailed) as deviation:
            failed += 1
            print(f"FAIL  {transcript.name}\n      {transcript.about}\n      {deviation}", flush=True)
        else:
            print(f"ok    {transcript.name}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} transcripts were kept to.")
    return _FAILED if failed else 0
