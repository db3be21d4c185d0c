"""One meeting on the gateway under test: one person speaks streams, and readers write down what they are sent.

Knows: the product's client, times. Must not know: what is made of the records, other meetings.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

from gateway.client import ClientSession, connect
from gateway.domain.sessions import Stability
from gateway.protocol.messages import Error, Pong, TranslationDelta, TranslationFailed, TranslationFinal
from loadtest.partials.result import Arm, Delta, Final, Reading
from loadtest.results import LoadtestError
from loadtest.talk.streams import Revision, Stream

# Patience with translations that do not come; what is missing then is a finding, not an error.
_ANSWERS_S = 60.0

_Translation = TranslationDelta | TranslationFinal | TranslationFailed


@dataclass(eq=False)
class _Reader:
    """One reader's session and all that came on it."""

    session: ClientSession
    lang: str
    stability: Stability
    # Utterance → its translations with the loop's time, in order, and whether the last one came.
    got: defaultdict[str, list[tuple[float, _Translation]]] = field(default_factory=lambda: defaultdict(list))
    ended: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    # A ping was answered.
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        """Write down what comes, until cancelled."""
        now = asyncio.get_running_loop().time
        async for event in self.session:
            match event:
                case TranslationDelta(utterance=utterance):
                    self.got[utterance].append((now(), event))
                case TranslationFinal(utterance=utterance) | TranslationFailed(utterance=utterance):
                    self.got[utterance].append((now(), event))
                    self.ended[utterance].set()
                case Pong():
                    self.answered.set()

    def reading(self, stream: Stream, arm: Arm, began_s: float, speed: float) -> Reading:
        """What came of one stream, in milliseconds of the speaker's time."""
        deltas: list[Delta] = []
        finals: list[Final] = []
        failed: list[str] = []
        late = 0
        arrived = [
            (at_s, number, message)
            for number, id in enumerate(dict.fromkeys(id for _, id in _played(stream, arm)), start=1)
            for at_s, message in self.got[id]
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


@dataclass(eq=False)
class Meeting:
    """One speaker at a time, and readers of all kinds."""

    speaker: ClientSession
    readers: Sequence[_Reader]
    arm: Arm
    speed: float
    # By how much a revision was sent behind its time at most, milliseconds of real time.
    late_ms: float = 0.0
    # Codes of what the gateway refused the speaker for good.
    _errors: set[str] = field(default_factory=set)
    # With the loop's time at which the speaker began.
    _said: list[tuple[Stream, float]] = field(default_factory=list)

    async def say(self, stream: Stream) -> None:
        """Speak one stream in its own time, and wait for its translations."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        if self.arm is Arm.ALONE:
            # No reader waits for the speaker here.
            began_s -= stream.final.at_ms / 1000 / self.speed
        self._said.append((stream, began_s))
        played = _played(stream, self.arm)
        for revision, id in played:
            due_s = began_s + revision.at_ms / 1000 / self.speed
            await asyncio.sleep(due_s - loop.time())
            self.late_ms = max(self.late_ms, (loop.time() - due_s) * 1000)
            if self.arm is Arm.OURS and revision is not stream.final:
                await self.speaker.partial(revision.text, id)
            else:
                await self.speaker.final(revision.text, id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWERS_S):
                for reader in self.readers:
                    for _, id in played:
                        await reader.ended[id].wait()

    async def readings(self) -> list[Reading]:
        """Everything that came of everything that was said; a second outcome had time to arrive.

        Raises `LoadtestError` when the gateway refused something.
        """
        if self._errors:
            raise LoadtestError(f"The gateway refused what was said: {', '.join(sorted(self._errors))}.")
        try:
            async with asyncio.timeout(_ANSWERS_S):
                for reader in self.readers:
                    await reader.session.ping()
                    await reader.answered.wait()
        except TimeoutError:
            raise LoadtestError(f"The gateway did not answer a ping within {_ANSWERS_S:g} s.") from None
        return [
            reader.reading(stream, self.arm, began_s, self.speed)
            for stream, began_s in self._said
            for reader in self.readers
        ]

    async def listen(self) -> None:
        """The speaker's own session has to be read too, until cancelled."""
        async for event in self.speaker:
            if isinstance(event, Error) and not event.retryable:
                self._errors.add(event.code)


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


def _played(stream: Stream, arm: Arm) -> list[tuple[Revision, str]]:
    """What is said of a stream, each with the id of its utterance."""
    revisions = (*stream.revisions, stream.final)
    match arm:
        case Arm.OURS:
            return [(revision, stream.id) for revision in revisions]
        case Arm.NAIVE:
            return [(revision, f"{stream.id}.r{number}") for number, revision in enumerate(revisions, start=1)]
        case Arm.ALONE:
            return [(stream.final, stream.id)]
