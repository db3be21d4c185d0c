"""One reader's stream: what it missed, then what happens, each once and in order, at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import SlowReader
from gateway.domain.log import Page, Publication, Said, Timings, Translated, Untranslated, Utterance
from gateway.meeting.feed import Feed, Seam
from gateway.meeting.outbox import Outbox, Payload
from gateway.protocol.from_domain import publication_message
from gateway.protocol.messages import Caption, Pong, UtteranceAccepted


def said(offset: int, participant: str = "bo", text: str = "text") -> Publication:
    return Publication(offset, 0, Said(Utterance(f"u{offset}", 1, text, "en", participant, "", final=True)))


def translated(offset: int, lang: str) -> Publication:
    return Publication(offset, 0, Translated("bo", f"u{offset}", "", lang, 1, "text", Timings(0, 0, 0), 1))


def page(*publications: Publication, first: int = 1) -> Page:
    last = publications[-1].offset if publications else first - 1
    return Page("e", first, last, publications)


def everything(_: Publication) -> bool:
    return True


def feed(outbox: Outbox, after: int = 0, wants: Callable[[Publication], bool] = everything) -> Feed:
    return Feed(outbox, after, participant="ana", wants=wants)


async def received(outbox: Outbox) -> list[Any]:
    messages: list[Any] = []
    while outbox.bytes:
        messages += [payload.message for payload in await outbox.get()]
    return messages


def publish(to: Feed, publication: Publication) -> Payload:
    payload = Payload(publication_message(publication))
    to.publish(publication, payload)
    return payload


async def test_live_readers_share_the_message() -> None:
    outboxes = [Outbox(10**6), Outbox(10**6)]
    payload = Payload(publication_message(said(1)))
    for outbox in outboxes:
        reader = feed(outbox)
        await reader.replay(page())
        reader.publish(said(1), payload)
    assert [(await outbox.get())[0] for outbox in outboxes] == [payload, payload]


async def test_unwanted_publications_are_passed_and_counted() -> None:
    outbox = Outbox(10**6)
    reader = feed(outbox, wants=lambda publication: getattr(publication.event, "lang", "") == "ja")
    await reader.replay(page(said(1), translated(2, "ja"), translated(3, "de")))
    assert [message.offset for message in await received(outbox)] == [2]
    assert reader.passed == 3


async def test_own_utterances_are_acknowledged_before_their_captions() -> None:
    outbox = Outbox(10**6)
    reader = feed(outbox)
    await reader.replay(page(said(1, "ana"), said(2, "bo")))
    await reader.replay(page(first=3))
    publish(reader, said(3, "ana"))
    messages = await received(outbox)
    assert [type(message) for message in messages] == [
        UtteranceAccepted,
        Caption,
        Caption,
        UtteranceAccepted,
        Caption,
    ]
    accepted = [message for message in messages if isinstance(message, UtteranceAccepted)]
    assert accepted == [UtteranceAccepted("u1", 1, 1), UtteranceAccepted("u3", 1, 3)]


async def test_live_texts_wait_for_live_news_does_not() -> None:
    outbox = Outbox(10**6)
    reader = feed(outbox)
    reader.show(Payload(Pong("shown too early")))
    reader.send_now(Payload(Pong("news")))
    await reader.replay(page())
    reader.show(Payload(Pong("shown")))
    assert await received(outbox) == [Pong("news"), Pong("shown")]


async def test_slow_reader_is_replayed_at_its_pace() -> None:
    text = "x" * 100
    outbox = Outbox(4 * Payload(publication_message(said(1, text=text))).cost)
    reader = feed(outbox)
    pages = page(*(said(offset, text=text) for offset in range(1, 31)))
    replaying = asyncio.create_task(reader.replay(pages))
    offsets: list[int] = []
    while not replaying.done() or outbox.bytes:
        await asyncio.sleep(0)
        # Half of its bound, and the one that is put before it waits.
        assert outbox.bytes <= 3 * outbox._max_bytes // 4
        if outbox.bytes:
            offsets += [message.offset for message in await received(outbox)]
    await replaying
    assert not outbox.overflowed
    assert offsets == list(range(1, 31))


async def test_reader_behind_the_trimmed_log_is_told() -> None:
    reader = feed(Outbox(10**6))
    await reader.replay(page(said(1)))
    with pytest.raises(SlowReader):
        await reader.replay(page(said(5), first=5))
    assert not reader.live


@given(st.integers(0, 6), st.lists(st.sampled_from(["append", "ask", "answer"]), max_size=60), st.integers(1, 4))
def test_interleaving_loses_and_repeats_nothing(before: int, steps: list[str], limit: int) -> None:
    asyncio.run(_interleave(before, steps, limit))


async def _interleave(before: int, steps: list[str], limit: int) -> None:
    log = [said(offset) for offset in range(1, before + 1)]
    outbox = Outbox(10**9)
    reader = feed(outbox, after=before // 2)
    answer: Page | None = None
    for step in [*steps, *["ask", "answer"] * (len(steps) + before + 2)]:
        match step:
            case "append":
                log.append(said(len(log) + 1))
                publish(reader, log[-1])
            case "ask" if answer is None:
                behind = log[reader.position : reader.position + limit]
                answer = Page("e", 1, len(log), tuple(behind))
            case "answer" if answer is not None:
                await reader.replay(answer)
                answer = None
    assert reader.live
    assert [message.offset for message in await received(outbox)] == list(range(before // 2 + 1, len(log) + 1))


# ---------------------------------------------------------------- the seam between replay and live


def publication(offset: int) -> Publication:
    return Publication(offset, 0, Untranslated("p", f"u{offset}", "", "ja", 1, "code", "message"))


class Log:
    """Publications made one after the other; `trim` drops the oldest."""

    def __init__(self) -> None:
        self.last = 0
        self.first = 1

    def append(self) -> Publication:
        self.last += 1
        return publication(self.last)

    def read(self, after: int, limit: int) -> Page:
        begin = max(self.first, after + 1)
        offsets = range(begin, min(self.last, begin + limit - 1) + 1)
        return Page("e", self.first, self.last, tuple(map(publication, offsets)))


def offsets(publications: list[Publication]) -> list[int]:
    return [each.offset for each in publications]


def test_what_is_published_during_the_replay_follows_it() -> None:
    log, seam = Log(), Seam(1)
    made = [log.append() for _ in range(3)]
    page = log.read(seam.position, 10)
    assert seam.publish(log.append()) == []
    assert offsets(seam.replay(page)) == [2, 3]
    assert not seam.live, "only an empty page shows that nothing was missed"
    assert offsets(seam.replay(log.read(seam.position, 10))) == [4]
    assert seam.publish(log.append()) == []
    assert offsets(seam.replay(log.read(5, 10))) == [5]
    assert seam.live
    assert offsets(seam.publish(log.append())) == [6]
    assert seam.publish(made[2]) == []


def test_what_was_trimmed_before_it_was_read_is_told() -> None:
    log, seam = Log(), Seam(0)
    for _ in range(5):
        log.append()
    log.first = 3
    assert seam.replay(log.read(0, 10)) == []
    assert seam.trimmed
    assert not seam.live


def test_newcomer_misses_nothing_trimmed_before_reading() -> None:
    log, seam = Log(), Seam(0, newcomer=True)
    for _ in range(5):
        log.append()
    log.first = 3
    assert offsets(seam.replay(log.read(0, 2))) == [3, 4]
    log.first = 6
    assert seam.replay(log.read(seam.position, 2)) == []
    assert seam.trimmed, "what it has begun to read, it would miss"


def test_a_newcomer_whose_whole_log_is_gone_is_live() -> None:
    log, seam = Log(), Seam(0, newcomer=True)
    for _ in range(5):
        log.append()
    log.first = 6
    assert seam.replay(log.read(0, 2)) == []
    assert seam.live
    assert offsets(seam.publish(log.append())) == [6]


_steps = st.lists(st.sampled_from(["append", "ask", "answer"]), max_size=80)


@given(st.integers(0, 5), _steps, st.integers(1, 4), st.integers(1, 4))
def test_every_interleaving_gives_each_publication_once_in_order(
    before: int, steps: list[str], limit: int, held: int
) -> None:
    log = Log()
    for _ in range(before):
        log.append()
    after = before // 2
    seam = Seam(after, most_held=held)
    got: list[int] = []
    answer: Page | None = None
    for step in [*steps, *["ask", "answer"] * (len(steps) + before + 2)]:
        match step:
            case "append":
                got += offsets(seam.publish(log.append()))
            case "ask" if answer is None:
                answer = log.read(seam.position, limit)  # on its way while more is published
            case "answer" if answer is not None:
                got += offsets(seam.replay(answer))
                answer = None
    assert seam.live
    assert got == list(range(after + 1, log.last + 1))
