"""One meeting on the gateway under test: somebody speaks streams, and readers write down what they are sent.

Knows: the product's client, times. Must not know: what is made of the records, other meetings.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from gateway.client import ClientSession, connect
from gateway.domain.sessions import Stability
from gateway.protocol.messages import Error, Pong, TranslationDelta, TranslationFailed, TranslationFinal
from loadtest.partials.screens import Arm, Delta, Final, Reading
from loadtest.results import LoadtestError
from loadtest.talk.streams import Stream

__all__ = ["Meeting", "joined"]

# Patience with translations that do not come; what is missing then is a finding, not an error.
_ANSWERS_S = 60.0


class _Got:
    """What one reader was sent of one utterance: messages with the loop's time, in order."""

    def __init__(self) -> None:
        self.messages: list[tuple[float, TranslationDelta | TranslationFinal | TranslationFailed]] = []
        self.ended = asyncio.Event()


class _Reader:
    """One reader's session and all that came on it."""

    def __init__(self, session: ClientSession, lang: str, stability: Stability) -> None:
        self.lang = lang
        self.stability = stability
        self._session = session
        self._got: defaultdict[str, _Got] = defaultdict(_Got)
        self._answered = asyncio.Event()

    async def listen(self) -> None:
        """Write down what comes, until cancelled."""
        now = asyncio.get_running_loop().time
        async for event in self._session:
            match event:
                case TranslationDelta(utterance=utterance):
                    self._got[utterance].messages.append((now(), event))
                case TranslationFinal(utterance=utterance) | TranslationFailed(utterance=utterance):
                    self._got[utterance].messages.append((now(), event))
                    self._got[utterance].ended.set()
                case Pong():
                    self._answered.set()

    async def ended(self, utterance: str) -> None:
        """Wait for the outcome of an utterance."""
        await self._got[utterance].ended.wait()

    async def flush(self) -> None:
        """Wait until everything that was sent so far has arrived."""
        self._answered.clear()
        await self._session.ping()
        await self._answered.wait()

    def reading(self, stream: Stream, arm: Arm, began_s: float, speed: float) -> Reading:
        """What came of one stream, in milliseconds of the speaker's time."""
        deltas: list[Delta] = []
        finals: list[Final] = []
        failed: list[str] = []
        late = 0
        arrived = [
            (at_s, number, message)
            for number, id in enumerate(_ids(stream, arm), start=1)
            for at_s, message in self._got[id].messages
        ]
        for at_s, number, message in sorted(arrived, key=lambda entry: entry[0]):
            at_ms = round((at_s - began_s) * 1000 * speed, 1)
            match message:
                case TranslationDelta():
                    deltas.append(Delta(at_ms, message.rev, message.committed, message.tentative))
                    late += bool(finals)
                case TranslationFinal():
                    revision = number if arm is Arm.NAIVE else message.rev
                    finals.append(Final(at_ms, revision, message.text, message.tokens))
                case TranslationFailed():
                    failed.append(message.code)
        return Reading(arm, stream.id, self.lang, self.stability, deltas, finals, failed, late)


class Meeting:
    """One speaker at a time, and readers of all kinds.

    late_ms: by how much a revision was sent behind its time at most, milliseconds of real time.
    errors: codes of what the gateway refused the speaker for good.
    """

    def __init__(self, speaker: ClientSession, readers: Sequence[_Reader], arm: Arm, speed: float) -> None:
        self.late_ms = 0.0
        self.errors: list[str] = []
        self._speaker = speaker
        self._readers = readers
        self._arm = arm
        self._speed = speed
        self._said: list[tuple[Stream, float]] = []

    async def say(self, stream: Stream) -> None:
        """Speak one stream in its own time, and wait for its translations."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        if self._arm is Arm.ALONE:
            # Nobody waits for the speaker here.
            began_s -= stream.final.at_ms / 1000 / self._speed
        self._said.append((stream, began_s))
        ids = _ids(stream, self._arm)
        for number, revision in enumerate((*stream.revisions, stream.final)):
            last = number == len(stream.revisions)
            if self._arm is Arm.ALONE and not last:
                continue
            due_s = began_s + revision.at_ms / 1000 / self._speed
            await asyncio.sleep(due_s - loop.time())
            self.late_ms = max(self.late_ms, (loop.time() - due_s) * 1000)
            if self._arm is Arm.OURS and not last:
                await self._speaker.partial(revision.text, ids[0])
            else:
                await self._speaker.final(revision.text, ids[number if self._arm is Arm.NAIVE else 0])
        try:
            async with asyncio.timeout(_ANSWERS_S):
                for reader in self._readers:
                    for id in ids:
                        await reader.ended(id)
        except TimeoutError:
            return

    async def readings(self) -> list[Reading]:
        """Everything that came of everything that was said; a second outcome had time to arrive."""
        try:
            async with asyncio.timeout(_ANSWERS_S):
                for reader in self._readers:
                    await reader.flush()
        except TimeoutError:
            raise LoadtestError(f"The gateway did not answer a ping within {_ANSWERS_S:g} s.") from None
        return [
            reader.reading(stream, self._arm, began_s, self._speed)
            for stream, began_s in self._said
            for reader in self._readers
        ]

    async def listen(self) -> None:
        """The speaker's own session has to be read too, until cancelled."""
        async for event in self._speaker:
            if isinstance(event, Error) and not event.retryable:
                self.errors.append(event.code)


@asynccontextmanager
async def joined(
    url: str, name: str, speaks: str, targets: Sequence[str], arm: Arm, speed: float
) -> AsyncIterator[Meeting]:
    """A meeting with everybody in it: in our arm readers of each kind in each language, else one in each.

    Everybody has left when the block ends. Raises `ClientError`, in a group.
    """
    kinds: tuple[Stability, ...] = ("live", "stable", "final") if arm is Arm.OURS else ("final",)
    async with AsyncExitStack() as stack:

        async def enter(reads: list[str], speaks: str | None, stability: Stability) -> ClientSession:
            # Found again after a loss, a session would have been shown something else.
            session = connect(url, reads=reads, speaks=speaks, meeting=name, stability=stability, reconnect=False)
            return await stack.enter_async_context(session)

        readers = [
            _Reader(await enter([target], None, kind), target, kind) for target in targets for kind in kinds
        ]
        meeting = Meeting(await enter([], speaks, "final"), readers, arm, speed)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        listening = [tasks.create_task(meeting.listen()), *(tasks.create_task(r.listen()) for r in readers)]
        yield meeting
        for task in listening:
            task.cancel()


def _ids(stream: Stream, arm: Arm) -> list[str]:
    """The utterances a stream becomes: one for each revision in the naive arm."""
    if arm is not Arm.NAIVE:
        return [stream.id]
    return [f"{stream.id}.r{number}" for number in range(1, len(stream.revisions) + 2)]
