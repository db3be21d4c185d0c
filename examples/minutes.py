"""A bot that takes the minutes: writes what is said in a meeting, in one language, into a Markdown file.

    pip install ./translation_gateway_client-1.0.0-py3-none-any.whl
    python examples/minutes.py http://127.0.0.1:8000 standup ja minutes.md

It runs until it is stopped with Ctrl-C. On a gateway with keys set GATEWAY_TOKEN; its role `read` is enough.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gateway.client import ClientError
from gateway.client.blocking import connect


def take_minutes(address: str, meeting: str, lang: str, file: Path) -> None:
    token = os.environ.get("GATEWAY_TOKEN")
    with (
        # Whole sentences are enough for minutes, so nothing has to be translated before one is complete.
        connect(address, meeting=meeting, name="Minutes", reads=[lang], stability="final", token=token) as session,
        file.open("a") as minutes,
    ):
        for line in session.finals():
            text = line.text if line.failure is None else f"(not translated: {line.failure})"
            print(f"- **{line.speaker or 'Somebody'}**: {text}", file=minutes, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: minutes.py ADDRESS MEETING LANGUAGE FILE")
    try:
        take_minutes(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    except ClientError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        pass
