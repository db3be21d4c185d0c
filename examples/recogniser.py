"""Speaks for a speech recogniser: reads its results, a line of JSON each, and says them in a meeting.

    my-recogniser | python examples/recogniser.py http://127.0.0.1:8000 standup en Ana

It takes the results of Vosk (`partial`, `text`, `result`) and of WhisperLiveKit's WebSocket in the mode `full`
(`lines`, `buffer_transcription`). On a gateway with keys set GATEWAY_TOKEN; its role has to be `speak`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any, NamedTuple

from gateway.client import ClientError, ClientSession, connect
from gateway.protocol.messages import Error


class Heard(NamedTuple):
    """What was heard of one utterance so far. Times are milliseconds from the beginning of the audio."""

    number: int
    text: str
    final: bool
    start_ms: int | None = None
    end_ms: int | None = None


class Vosk:
    """Partials of one utterance, then its final text."""

    def __init__(self) -> None:
        self._number = 0

    def heard(self, result: dict[str, Any]) -> list[Heard]:
        if "text" not in result:
            return [Heard(self._number, result.get("partial", ""), final=False)]
        number, self._number = self._number, self._number + 1
        words = result.get("result")
        times = (round(words[0]["start"] * 1000), round(words[-1]["end"] * 1000)) if words else ()
        return [Heard(number, result["text"], True, *times)]

    def rest(self) -> list[Heard]:
        return []


class WhisperLiveKit:
    """Every line so far, each time. The last one still grows, and the buffer belongs to it."""

    def __init__(self) -> None:
        self._finals = 0
        self._last: list[Heard] = []

    def heard(self, update: dict[str, Any]) -> list[Heard]:
        if "lines" not in update:  # `config` and `ready_to_stop`
            return []
        lines = [self._line(number, line) for number, line in enumerate(update["lines"])]
        *complete, last = lines or [Heard(0, "", final=False)]
        new = [line._replace(final=True) for line in complete[self._finals :]]
        self._finals = max(self._finals, len(complete))
        self._last = [last] if last.number >= self._finals else []
        unsure = " ".join(update.get(f"buffer_{kind}") or "" for kind in ("diarization", "transcription"))
        return [*new, *(line._replace(text=f"{line.text} {unsure}") for line in self._last)]

    def rest(self) -> list[Heard]:
        """When the audio is over, so is the last line."""
        return [line._replace(final=True) for line in self._last]

    def _line(self, number: int, line: dict[str, Any]) -> Heard:
        text = line["text"] or ""  # silence is a line without a text
        return Heard(number, text, False, _milliseconds(line.get("start")), _milliseconds(line.get("end")))


def _milliseconds(time: str | None) -> int | None:
    """`0:01:05` → 65,000."""
    if not time:
        return None
    hours, minutes, seconds = time.split(":")
    return round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)


async def say(session: ClientSession, utterances: dict[int, str], heard: list[Heard]) -> None:
    for number, text, final, start_ms, end_ms in heard:
        if not text.strip():
            continue
        send = session.final if final else session.partial
        id = utterances.get(number)
        utterances[number] = await send(text.strip(), id, start_ms=start_ms, end_ms=end_ms)


async def speak(session: ClientSession) -> None:
    recogniser: Vosk | WhisperLiveKit | None = None
    utterances: dict[int, str] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        result = json.loads(line)
        if recogniser is None:
            recogniser = Vosk() if result.keys() & {"partial", "text"} else WhisperLiveKit()
        await say(session, utterances, recogniser.heard(result))
    if recogniser is not None:
        await say(session, utterances, recogniser.rest())
    await session.end()


async def main(address: str, meeting: str, lang: str, name: str) -> None:
    token = os.environ.get("GATEWAY_TOKEN")
    async with (
        connect(address, meeting=meeting, name=name, speaks=lang, reads=[], token=token) as session,
        asyncio.TaskGroup() as tasks,
    ):
        speaking = tasks.create_task(speak(session))
        async for event in session:
            if isinstance(event, Error) and not event.retryable:
                print(event.message, file=sys.stderr)
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
