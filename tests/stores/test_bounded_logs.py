"""Bounds of each meeting and of all together, forgetting, handing over."""

from __future__ import annotations

import logging
import sys
import tracemalloc
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.log import (
    MEETING_SHARE,
    LoggedEvent,
    Page,
    Publication,
    Said,
    Timings,
    Translated,
    Untranslated,
    Utterance,
)
from gateway.domain.sessions import KeptMeeting
from gateway.stores import bounded_logs
from gateway.stores.bounded_logs import MEETING_BYTES, BoundedLogs, publication_bytes
from tests.logs import nothing
from tests.usual import usual


class Clock:
    """Unix time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def said(text: str, *, languages: tuple[str, ...] = (), **more: object) -> Said:
    values = {"id": "1", "rev": 1, "lang": "en", "participant": "0a1b2c3d", "speaker": "Ana", "final": True}
    return Said(msgspec.convert({**values, "text": text, **more}, Utterance), languages)


SIZE = publication_bytes(Publication(1, 0, said("1")))
"""The bytes of any publication whose text has one character."""


def size(chars: int) -> int:
    """The bytes of a publication whose text has so many characters."""
    return publication_bytes(Publication(1, 0, said("x" * chars)))


def room_for(publications: int, meetings: int) -> int:
    return SIZE * publications + MEETING_BYTES * meetings


def texts(page: Page) -> list[str]:
    return [each.event.utterance.text for each in page.publications if isinstance(each.event, Said)]


@pytest.fixture
def without_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A meeting may take all there is, so that two of them are enough to see who loses what."""
    monkeypatch.setattr("gateway.domain.log.MEETING_SHARE", 1)


# Bytes of one meeting


@pytest.mark.parametrize("heard", [False, True])
def test_flooding_meeting_costs_no_other_a_publication(heard: bool) -> None:
    log = usual(BoundedLogs, max_bytes=MEETING_SHARE * room_for(4, meetings=1))
    quiet = [f"quiet {n}" for n in range(MEETING_SHARE - 1)]
    for meeting in quiet:
        for text in ("1", "2", "3", "4"):
            log.append(meeting, said(text))
    with ExitStack() as subscriptions:
        if heard:
            subscriptions.enter_context(log.subscribe("flood", nothing))
        for n in range(200):
            publication = log.append("flood", said("x" * (1 + 37 * n % 700)))
            page = log.read("flood", after=0)
            assert page.publications[-1] == publication
            assert sum(map(publication_bytes, page.publications)) + MEETING_BYTES <= room_for(4, meetings=1)
            for meeting in quiet:
                assert texts(log.read(meeting, after=0)) == ["1", "2", "3", "4"]


# Bytes of all meetings


def costly(kind: str, n: int) -> LoggedEvent:
    """No two have a string or a number in common."""
    unique = [f"{place}{n:06x}" for place in range(30)]
    participant, utterance, speaker, lang, text, more = unique[:6]
    rev = n + 1_000
    who: dict[str, Any] = {
        "participant": participant,
        "id": utterance,
        "speaker": speaker,
        "lang": lang,
        "rev": rev,
    }
    match kind:
        case "said":
            return said(text, **who, start_ms=n * 1_000 + 500, end_ms=n * 1_001 + 999)
        case "said with everything":
            glossary = [[unique[place], [[unique[place + 5], f"語{n}"]]] for place in range(5, 10)]
            return said(text, **who, context=unique[15:20], glossary=glossary, languages=tuple(unique[20:]))
        case "translated":
            timings = Timings(n / 7, n / 3, n / 2)
            return Translated(
                participant, utterance, speaker, lang, rev, f"🎤{n}", timings, n + 300, said=n + 2_000
            )
        case _:
            return Untranslated(participant, utterance, speaker, lang, rev, text, more, said=n + 2_000)


@pytest.mark.parametrize("meetings", [1, 200, 1_500])
@pytest.mark.parametrize("kind", ["said", "said with everything", "translated", "untranslated"])
def test_the_estimate_is_not_below_what_python_takes(kind: str, meetings: int) -> None:
    log = usual(BoundedLogs)

    def fill() -> None:
        for n in range(1_500):
            log.append(f"a meeting with a rather long name {n % meetings}", costly(kind, n))

    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        fill()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert log.publications == 1_500
    assert after - before < log.bytes


# Forgetting


def test_silent_meeting_goes_with_its_last_subscriber() -> None:
    log = usual(BoundedLogs)
    with log.subscribe("standup", nothing) as first:
        with log.subscribe("standup", nothing) as second:
            assert second.epoch == first.epoch
        assert len(log._rings) == 1
    assert len(log._rings) == 0
    with log.subscribe("standup", nothing) as again:
        assert again.epoch != first.epoch


def test_clock_put_back_keeps_publications_in_order() -> None:
    clock = Clock()
    log = usual(BoundedLogs, wall_clock=clock)
    first = log.append("standup", said("1"))
    clock.now -= 3_600.0
    second = log.append("standup", said("2"))
    assert second.at_ms == first.at_ms


# Subscribers


def test_subscriber_ended_during_delivery_gets_nothing_more() -> None:
    log = usual(BoundedLogs)
    seen: list[Publication] = []
    second = ExitStack()

    def end_the_second(publication: Publication) -> None:
        second.close()

    with log.subscribe("standup", end_the_second):
        second.enter_context(log.subscribe("standup", seen.append))
        log.append("standup", said("1"))
        log.append("standup", said("2"))
    assert seen == []


def test_raising_subscriber_harms_nobody_and_leaks_no_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = usual(BoundedLogs)
    seen: list[Publication] = []

    def broken(publication: Publication) -> None:
        raise ValueError(f"cannot take {publication}")

    with (
        log.subscribe("standup", broken),
        log.subscribe("standup", seen.append),
        caplog.at_level(logging.DEBUG),
    ):
        assert (log.append("standup", said("a secret"))).offset == 1
    assert len(seen) == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "ValueError" in caplog.text
    assert "test_bounded_logs.py" in caplog.text
    assert "offset 1" in caplog.text
    assert "secret" not in caplog.text


# Handing over


def test_the_next_process_goes_on_where_this_one_was() -> None:
    clock = Clock()
    log = usual(BoundedLogs, wall_clock=clock)
    seen: list[Publication] = []
    with log.subscribe("silent", nothing) as silent:
        for text in ("1", "2", "3"):
            log.append("standup", said(text))
        dumped = log.dump()
    before = log.read("standup", after=0)

    log = usual(BoundedLogs, wall_clock=clock)
    log.restore(dumped)
    assert log.read("standup", after=0) == before
    assert (len(log._rings), log.publications, log.bytes) == (2, 3, room_for(3, meetings=1))
    with log.subscribe("silent", seen.append) as again, log.subscribe("standup", seen.append) as page:
        assert again == silent
        assert (page.epoch, page.first, page.last) == (before.epoch, 1, 3)
        assert (log.append("standup", said("4"))).offset == 4
        assert (log.append("silent", said("1"))).offset == 1
    assert [publication.offset for publication in seen] == [4, 1]
    assert {kept.meeting: kept.last for kept in log.dump()} == {"standup": 4, "silent": 1}


def test_expired_publications_stay_behind_position_is_kept() -> None:
    clock = Clock()
    log = usual(BoundedLogs, keep_s=60.0, wall_clock=clock)
    log.append("over", said("1"))
    log.append("running", said("1"))
    clock.now += 30.0
    log.append("running", said("2"))
    dumped = log.dump()
    clock.now += 31.0
    log = usual(BoundedLogs, keep_s=60.0, wall_clock=clock)
    log.restore(dumped)
    assert {(kept.meeting, kept.first, kept.last) for kept in log.dump()} == {("over", 2, 1), ("running", 2, 2)}
    assert {kept.epoch for kept in log.dump()} == {kept.epoch for kept in dumped}
    assert (log.read("over", after=0)).last == 1
    assert texts(log.read("running", after=0)) == ["2"]
    assert log.publications == 1
    assert log.sweep() == 0
    assert len(log._rings) == 1, "nobody came back to the other"


@pytest.mark.usefixtures("without_shares")
def test_narrower_log_takes_over_the_newest() -> None:
    clock = Clock()
    log = usual(BoundedLogs, wall_clock=clock)
    for text in ("1", "2", "3"):
        for meeting in ("retro", "standup"):
            clock.now += 1.0
            log.append(meeting, said(text))
    dumped = tuple(reversed(log.dump()))
    log = usual(BoundedLogs, max_publications=2, max_bytes=room_for(3, meetings=2), wall_clock=clock)
    log.restore(dumped)
    assert texts(log.read("retro", after=0)) == ["3"]
    assert texts(log.read("standup", after=0)) == ["2", "3"]
    assert (log.publications, log.bytes) == (3, room_for(3, meetings=2))
    assert (log.append("retro", said("4"))).offset == 4


def test_a_log_in_use_cannot_be_restored() -> None:
    log = usual(BoundedLogs)
    log.append("standup", said("1"))
    with pytest.raises(RuntimeError):
        log.restore(log.dump())
    assert log.publications == 1


# All bounds together, against a model that looks at everything every time


@dataclass
class Model:
    """One meeting as it must be."""

    account: str = ""
    first: int = 1
    last: int = 0
    newest: int = 0
    subscribers: int = 0
    times: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def bytes(self) -> int:
        return sum(self.sizes) + (MEETING_BYTES if self.sizes else 0)


class Models:
    def __init__(self, max_publications: int, keep_ms: int, room: int) -> None:
        self.meetings: dict[str, Model] = {}
        self._bounds = max_publications, keep_ms, room
        self._appended = 0

    def bytes(self) -> int:
        return sum(each.bytes() for each in self.meetings.values())

    def append(self, name: str, chars: int, now_ms: int) -> None:
        max_publications, _, room = self._bounds
        self.expire(name, now_ms)
        model = self.meetings.setdefault(name, Model())
        model.last += 1
        self._appended += 1
        model.newest = self._appended
        model.times.append(now_ms)
        model.sizes.append(size(chars))
        while len(model.times) > max_publications:
            self._trim(model)
        while len(model.times) > 1 and MEETING_SHARE * model.bytes() > room:
            self._trim(model)
        while self.bytes() > room:
            droppable = [each for each in self.meetings.values() if len(each.times) > (each is model)]
            if not droppable:
                break
            account = min({each.account for each in droppable}, key=lambda name: (-self.held(name), name))
            theirs = [each for each in droppable if each.account == account]
            self._trim(min(theirs, key=lambda each: (each.subscribers > 0, each.newest)))
        self.forget()

    def held(self, account: str) -> int:
        return sum(each.bytes() for each in self.meetings.values() if each.account == account)

    def expire(self, name: str, now_ms: int) -> None:
        model = self.meetings.get(name, Model())
        while model.times and model.times[0] < now_ms - self._bounds[1]:
            self._trim(model)
        self.forget()

    def forget(self) -> None:
        self.meetings = {n: each for n, each in self.meetings.items() if each.times or each.subscribers}

    def _trim(self, model: Model) -> None:
        del model.times[0], model.sizes[0]
        model.first += 1


STEPS = st.one_of(
    st.tuples(st.just("append"), st.sampled_from("abcde"), st.sampled_from([1, 300, 3_000])),
    st.tuples(st.sampled_from(["subscribe", "leave", "read"]), st.sampled_from("abcde"), st.just(0)),
    st.tuples(st.sampled_from(["wait", "sweep"]), st.just(""), st.just(0)),
)
"""(what, in which meeting, characters)"""


@settings(deadline=None, max_examples=300)
@given(steps=st.lists(STEPS, max_size=120), room=st.integers(0, 50))
def test_it_holds_what_the_bounds_say_whatever_happened(steps: list[tuple[str, str, int]], room: int) -> None:
    """Some publications are larger than a share, so that five meetings can be too much for the log."""
    clock = Clock()
    max_bytes = room_for(room, meetings=8)
    log = usual(BoundedLogs, max_publications=4, keep_s=3.0, max_bytes=max_bytes, wall_clock=clock)
    models = Models(max_publications=4, keep_ms=3_000, room=max_bytes)

    def take_steps() -> None:
        with ExitStack() as stack:
            subscribed: dict[str, list[ExitStack]] = {name: [] for name in "abcde"}
            for step, name, chars in steps:
                match step:
                    case "append":
                        models.append(name, chars, int(clock.now * 1_000))
                        publication = log.append(name, said("x" * chars))
                        assert publication.offset == models.meetings[name].last
                    case "subscribe":
                        models.expire(name, int(clock.now * 1_000))
                        account = "x" if name in "ab" else "y"
                        models.meetings.setdefault(name, Model(account)).subscribers += 1
                        subscribed[name].append(stack.enter_context(ExitStack()))
                        page = subscribed[name][-1].enter_context(log.subscribe(name, nothing, account=account))
                        assert page.last == models.meetings[name].last
                    case "leave" if subscribed[name]:
                        models.meetings[name].subscribers -= 1
                        models.forget()
                        subscribed[name].pop().close()
                    case "read":
                        models.expire(name, int(clock.now * 1_000))
                        model = models.meetings.get(name, Model())
                        page = log.read(name, after=0)
                        held = [publication.offset for publication in page.publications]
                        assert (page.first, page.last, held) == (
                            model.first,
                            model.last,
                            [*range(model.first, model.last + 1)],
                        )
                    case "wait":
                        clock.now += 1.0
                    case "sweep":
                        for each in "abcde":
                            models.expire(each, int(clock.now * 1_000))
                        log.sweep()
                held_by_models = {n: (each.first, each.last) for n, each in models.meetings.items()}
                assert {kept.meeting: (kept.first, kept.last) for kept in log.dump()} == held_by_models
                assert log.bytes == models.bytes()
                assert len(log._rings) == len(models.meetings)
                assert log.publications == sum(len(each.times) for each in models.meetings.values())

    take_steps()


def test_meetings_that_come_and_go_leave_nothing_behind() -> None:
    clock = Clock()
    log = usual(BoundedLogs, max_publications=2, keep_s=60, wall_clock=clock)
    for n in range(1_000):
        with log.subscribe(f"private {n}", nothing):
            pass
        with log.subscribe(f"short {n}", nothing, account=f"account {n % 300}"):
            log.append(f"short {n}", said("1"))
        clock.now += 1
        log.append("standup", said("1"))
        log.sweep()
    assert len(log._rings) == 61
    assert _tracked(vars(log)) < 1_000


def _tracked(value: object) -> int:
    """How many things are held, down to the last."""
    if isinstance(value, bounded_logs._Order):
        value = vars(value)
    if isinstance(value, dict):
        return sum(1 + _tracked(each) for each in value.values())
    return len(value) if isinstance(value, list | set) else 0


def test_restored_accounts_are_within_their_bounds() -> None:
    earlier = usual(BoundedLogs)
    with ExitStack() as subscriptions:
        for account in ("a", "b", "empty"):
            subscriptions.enter_context(earlier.subscribe(account, nothing, account=account))
        for text in "123":
            earlier.append("a", said(text))
            earlier.append("b", said(text))
        kept = earlier.dump()
    log = usual(BoundedLogs, account_bytes=lambda _: room_for(2, meetings=1))
    log.restore(kept)
    for account in "ab":
        assert texts(log.read(account, after=0)) == ["2", "3"]


def test_bounded_account_loses_its_own_oldest_meetings() -> None:
    bounds = {"bounded": room_for(4, meetings=2)}
    log = usual(BoundedLogs, account_bytes=bounds.get)
    with (
        log.subscribe("first", nothing, account="bounded"),
        log.subscribe("second", nothing, account="bounded"),
        log.subscribe("other", nothing, account="free"),
    ):
        for meeting in ("first", "other", "second"):
            for text in "123":
                log.append(meeting, said(text))
        assert texts(log.read("first", after=0)) == ["3"]
        assert texts(log.read("second", after=0)) == ["1", "2", "3"]
        assert texts(log.read("other", after=0)) == ["1", "2", "3"]
        assert log.bytes_by_account() == {"bounded": room_for(4, 2), "free": room_for(3, 1)}
        bounds["bounded"] = 0
        log.append("second", said("4"))
        assert texts(log.read("first", after=0)) == []
        assert texts(log.read("second", after=0)) == ["4"], "the newest is never dropped"
        assert texts(log.read("other", after=0)) == ["1", "2", "3"]


def test_kept_meeting_with_wrong_offsets_is_refused() -> None:
    one, two, four = (Publication(offset, 0, said("x")) for offset in (1, 2, 4))
    wrong = [
        (1, 2, (one,)),
        (2, 3, (one, two)),
        (1, 3, (one, two, four)),
        (0, -1, ()),
        (5, 3, ()),
        (1, 10**15, ()),
    ]
    for first, last, publications in wrong:
        with pytest.raises(ValueError, match="publications"):
            KeptMeeting("standup", "0a1b2c3d", first, last, publications)
    assert KeptMeeting("standup", "0a1b2c3d", 3, 2, ()).last == 2


def bytes_of(text: str, **more: Any) -> int:
    return publication_bytes(Publication(1, 0, said(text, **more)))


def test_the_widest_characters_are_counted_in_full() -> None:
    text = "🎤" * 10_000
    # From then on, the text holds what it was encoded to.
    msgspec.json.encode(text)
    assert sys.getsizeof(text) > 8 * 10_000
    assert bytes_of(text) > sys.getsizeof(text)
    assert bytes_of("x", context=(text,)) > sys.getsizeof(text)
    assert bytes_of("x", glossary=(("ja", (("x", text),)),)) > sys.getsizeof(text)
    assert bytes_of("x", languages=(text,)) > sys.getsizeof(text)
