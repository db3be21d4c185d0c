"""`gateway read --transcript`: prints a meeting's transcript, as text, subtitles or JSON.

Knows: how a transcript is printed.
Must not know: how flags are spelled (`cli.flags`), the formats of transcripts (the gateway writes them).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gateway.cli.meeting import MeetingOptions
from gateway.cli.terminal.drawing import escaped, printable
from gateway.cli.tokens import token_now
from gateway.client import TranscriptRefused
from gateway.client.transcript import read_transcript, transcript_url
from gateway.domain.errors import UnknownMeeting

_ANSWER_S = 30.0


def print_transcript(options: MeetingOptions, langs: Sequence[str], format: str) -> int:
    """Print the transcript. Returns the exit status. Raises `ClientError`."""
    url = transcript_url(options.url, options.meeting, format, langs)
    try:
        answer = read_transcript(url, token_now(options.token), _ANSWER_S)
    except TranscriptRefused as refused:
        if refused.code != UnknownMeeting.code:
            raise
        sentence = f"There is no transcript of {options.meeting}: nothing was said there, or it has expired."
        raise TranscriptRefused(refused.status, refused.code, sentence) from None
    lines = answer.decode("utf-8", "replace").removesuffix("\n").split("\n")
    clean = escaped if format == "json" else printable
    sys.stdout.write("".join(f"{clean(line.rstrip())}\n" for line in lines))
    return 0
