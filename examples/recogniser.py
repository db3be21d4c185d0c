"""Speaks for a speech recogniser: reads its results, a line of JSON each, and says them in a meeting.

    pip install ./translation_gateway_client-1.0.0-py3-none-any.whl
    my-recogniser | python examples/recogniser.py http://127.0.0.1:8000 standup en Ana

It takes the results of every recogniser that `gateway.client.recognisers` knows, such as Vosk and WhisperLiveKit.
On a gateway with keys set GATEWAY_TOKEN; its role has to be `speak`. `gateway bridge` does the same, and more.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from gateway.client import ClientError, ClientSession, connect
from gateway.client.recognisers import Recogniser, say


async def speak(session: ClientSession) -> None:
    recogniser = Recogniser()
    while line := await asyncio.to_thread(sys.stdin.readline):
        for said in recogniser.hear(json.loads(line)):
            await say(session, said)
    for said in recogniser.rest():
        await say(session, said)
    await session.end()


async def main(address: str, meeting: str, lang: str, name: str) -> None:
    token = os.environ.get("GATEWAY_TOKEN")
    async with (
        connect(address, meeting=meeting, name=name, speaks=lang, reads=[], token=token) as session,
        asyncio.TaskGroup() as tasks,
    ):
        speaking = tasks.create_task(speak(session))
        async for _ in session:  # what is refused is logged, to stderr
            pass
        speaking.cancel()  # the session is over


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: recogniser.py ADDRESS MEETING LANGUAGE NAME")
    try:
        asyncio.run(main(*sys.argv[1:]))
    except ClientError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        pass
