"""`gateway speak`: says each line of stdin in a meeting.

Knows: when a line is said, as a whole or word by word, and the gateway's answer to it.
Must not know: how flags are spelled (`cli.flags`), who reads it.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, TextIO

from gateway.cli.sessions import EXIT_FAILED, EXIT_UNREACHABLE, MeetingOptions, note, session_note
from gateway.cli.terminal.drawing import cells, head, printable
from gateway.cli.terminal.interrupts import Interruptible
from gateway.cli.terminal.lines import lines_of
from gateway.client import ClientSession, SessionClosed, SessionEvent
from gateway.domain.close_codes import CloseCode
from gateway.protocol.messages import Error, UtteranceAccepted

# Most lines without an answer at once; enough to keep a connection busy.
_WINDOW = 8

# How long the next prompt waits for the answer to the previous line.
_PATIENCE_S = 1.0

_COLUMNS = 72

# Escape sequences of cursor keys, from a terminal that does not edit lines itself.
_KEYS = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])")


async def speak(
    options: MeetingOptions,
    lang: str,
    stdin: TextIO,
    *,
    prompt: str | None = None,
    words_per_minute: float | None = None,
) -> int:
    """Say the lines of a file until its end, or Ctrl-C. Returns the exit status. Raises `ClientError`.

    prompt: shown before each line, on a terminal. Without it each accepted line is printed on stderr.
    """
    async with options.join_meeting(speaks=lang) as session:
        if prompt is not None:
            print(f"Speaking {lang} in {options.meeting}: each line is an utterance; Ctrl-D ends.")
        speech = Speech(session, prompt)
        return await speak_until_the_end(session, speech, speech.say(lines_of(stdin.fileno()), words_per_minute))


async def speak_until_the_end(session: ClientSession, speech: Speech, saying: Coroutine[Any, Any, None]) -> int:
    """Say everything while the answers are read; then sum up. Returns the exit status. Raises `ClientError`."""
    try:
        with Interruptible() as ctrl_c:
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(saying)
                async for event in session:
                    speech.note_event(event)
                task.cancel()
    except ExceptionGroup as failures:
        # The first error is the cause, and the caller can explain it.
        raise failures.exceptions[0] from None
    finally:
        speech.sum_up()
    if not ctrl_c.interrupted and not speech.complete:
        raise SessionClosed(session.url, CloseCode.NORMAL, None)
    return speech.status


def growing(text: str) -> list[str]:
    """The text as it grows word by word, as a person says it; the last item is the whole text."""
    ends: list[int] = []
    for word in re.finditer(r"\S+", text):
        if cells(word[0]) > len(word[0]):
            # Languages with wide characters have no spaces; two characters are about a word.
            ends.extend(range(word.start() + 2, word.end(), 2))
        ends.append(word.end())
    return [text[:end] for end in ends]


class Speech:
    """The utterances that were said, and the gateway's answers."""

    def __init__(self, session: ClientSession, prompt: str | None, *, unit: str = "line") -> None:
        self._unit = unit
        # Whether the input has ended and every line has an answer.
        self.complete = False
        self._session = session
        self._prompt = prompt
        self._prompting = False
        self._mark = ""
        self._said = 0
        self._accepted = 0
        self._refused = 0
        self._open: dict[str, str] = {}  # id, which is the number of a line → text without an answer
        self._answered = asyncio.Event()
        self._window = min(_WINDOW, session.started.limits.utterances_in_flight)
        self._begun_s = asyncio.get_running_loop().time()

    @property
    def status(self) -> int:
        """The exit status."""
        if self._refused:
            return EXIT_FAILED
        return 0 if self._accepted == self._said else EXIT_UNREACHABLE

    async def say(self, lines: AsyncIterator[str], words_per_minute: float | None) -> None:
        """Say the lines; end the session when all of them have an answer."""
        number = 0
        self._ask()
        async for line in lines:
            number += 1
            self._prompting = False
            if text := (line if self._prompt is None else _KEYS.sub("", line)).strip():
                await self._fewer_open_than(self._window)
                await self._utter(str(number), text, words_per_minute)
                if self._prompt is not None:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_PATIENCE_S):
                            await self._fewer_open_than(1)
            self._ask()
        await self.finish()

    async def finish(self) -> None:
        """End the session when everything has an answer: the gateway accepts nothing after the end."""
        await self._fewer_open_than(1)
        self.complete = True
        with suppress(SessionClosed):  # the reading task finds out why
            await self._session.end()

    def note_event(self, event: SessionEvent) -> None:
        """Note the answers to lines, and print notes about the session."""
        match event:
            case UtteranceAccepted(id=id) if id in self._open:
                text = self._open.pop(id)
                self._accepted += 1
                self._mark = " ✓"
                if self._prompt is None:
                    print(f"✓ {head(printable(text), _COLUMNS)}", file=sys.stderr, flush=True)
                self._answered.set()
            case Error(utterance=str(id), retryable=False) if id in self._open:
                self.refuse(id, event.message)
            case _ if (sentence := session_note(event)) is not None:
                self._tell(sentence)

    def sum_up(self) -> None:
        """Print how many lines were accepted and refused."""
        if self._prompting:
            print(flush=True)
            self._prompting = False
        unanswered = f", {len(self._open)} without an answer" if self._open else ""
        note(f"{self._said} said, {self._accepted} accepted, {self._refused} refused{unanswered}.")

    async def _utter(self, id: str, text: str, words_per_minute: float | None) -> None:
        try:
            await self._send(id, text, words_per_minute)
        except ValueError as error:  # too long to send
            self.begin(id, text)
            self.refuse(id, str(error))

    async def _send(self, id: str, text: str, words_per_minute: float | None) -> None:
        if words_per_minute is None:
            self.begin(id, text)
            await self._session.final(text, id)
            return
        start_ms = self._now_ms()
        for grown in growing(text)[:-1]:
            await asyncio.sleep(60 / words_per_minute)
            await self._session.partial(grown, id, start_ms=start_ms, end_ms=self._now_ms())
        await asyncio.sleep(60 / words_per_minute)
        self.begin(id, text)
        await self._session.final(text, id, start_ms=start_ms, end_ms=self._now_ms())

    def begin(self, id: str, text: str) -> None:
        """Note a final, before it is sent: the answer may arrive before the sending returns."""
        if id not in self._open:
            self._said += 1
            self._open[id] = text

    def refuse(self, id: str, sentence: str) -> None:
        """Note that a final is not taken, and print why."""
        del self._open[id]
        self._refused += 1
        self._mark = " ✗"
        self._tell(sentence if self._prompt is not None else f"{self._unit} {id}: {sentence}")
        self._answered.set()

    async def _fewer_open_than(self, count: int) -> None:
        while len(self._open) >= count:
            self._answered.clear()
            await self._answered.wait()

    def _now_ms(self) -> int:
        return round((asyncio.get_running_loop().time() - self._begun_s) * 1000)

    def _ask(self) -> None:
        if self._prompt is not None:
            mark = f" …{len(self._open)}" if self._open else self._mark
            print(f"{self._prompt}{mark}> ", end="", flush=True)
            self._prompting = True

    def _tell(self, sentence: str) -> None:
        if self._prompting:
            print(flush=True)  # text typed so far stays in the terminal's buffer
        note(sentence)
        if self._prompting:
            self._ask()
