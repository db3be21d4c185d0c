"""What a client has to get through, against a gateway that is only a model: every order of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.client import outgoing as module
from gateway.client.outgoing import Entry, Outgoing
from gateway.protocol.messages import (
    Error,
    SessionEnd,
    SessionStart,
    SessionUpdate,
    UtteranceFinal,
    UtterancePartial,
)

WINDOW = 3


def outgoing(window: int = WINDOW, capacity: int = 1_000) -> Outgoing:
    return Outgoing(SessionStart(reads=["ja"], speaks="en"), window, capacity)


def final(number: int, text: str = "Yes.") -> UtteranceFinal:
    return UtteranceFinal(str(number), 1, text)


def sent(queue: Outgoing, now_s: float = 0.0) -> list[str]:
    """Send all that may be sent; ids of finals, and the kinds of other messages."""
    names = []
    while (taken := queue.next_message(now_s)) is not None:
        message = taken.message if isinstance(taken, Entry) else taken
        names.append(message.id if isinstance(message, UtteranceFinal) else type(message).__name__)
    return names


def keeping(*messages: UtteranceFinal | SessionUpdate) -> Outgoing:
    queue = outgoing()
    for message in messages:
        queue.queue_message(message)
    return queue


def sending(*messages: UtteranceFinal | SessionUpdate) -> Outgoing:
    queue = keeping(*messages)
    sent(queue)
    return queue


def refusal(id: str | None, retry_after_ms: int | None = None, code: str = "overloaded", field: str = "") -> Error:
    return Error(code, "No.", retry_after_ms is not None, retry_after_ms, id, field or None)


# ---------------------------------------------------------------- one rule at a time


def test_so_many_are_under_way_at_once() -> None:
    queue = keeping(*map(final, range(5)))
    assert sent(queue) == ["0", "1", "2"]
    assert queue.due_s() is None
    queue.accepted("1")
    assert sent(queue) == ["3"]
    assert [each.id for each in queue.finals] == ["0", "2", "3", "4"]


def test_refused_final_goes_before_newer_ones() -> None:
    queue = keeping(*map(final, range(4)))
    assert sent(queue) == ["0", "1", "2"]
    queue.refused(refusal("0", 500), 10.0)
    queue.refused(refusal("2", 100), 10.0)
    queue.accepted("1")
    assert sent(queue, 10.4) == []
    assert queue.due_s() == 10.5
    assert sent(queue, 10.5) == ["0", "2", "3"]


def test_without_a_time_to_wait_there_is_one() -> None:
    queue = sending(final(0))
    queue.refused(Error("overloaded", "Full.", True, None, "0"), 1.0)
    assert queue.due_s() == 1.5


def test_what_is_refused_for_good_is_forgotten() -> None:
    queue = sending(final(0))
    queue.refused(refusal("0", code="limit_exceeded", field="text"), 0.0)
    assert queue.finals == ()
    assert queue.next_revision("0") == 1


def test_an_error_about_nothing_of_ours_changes_nothing() -> None:
    queue = sending(final(0), SessionUpdate(speaks="de"))
    for error in (
        refusal("7"),
        refusal(None, code="unsupported_option", field="glossary"),
        refusal(None, code="invalid_value", field="nonce"),
        refusal(None, code="internal"),
    ):
        queue.refused(error, 0.0)
    queue.accepted("7")
    assert sent(queue) == []
    queue.accepted("0")
    queue.updated()
    queue.updated()
    assert queue.start.speaks == "de"


@pytest.mark.parametrize("code", ["invalid_message", "message_too_large"])
def test_a_refusal_without_a_name_blocks_nothing(code: str) -> None:
    queue = keeping(*map(final, range(3)))
    assert sent(queue) == ["0", "1", "2"]
    unnamed = refusal(None, code=code)
    assert queue.refused(unnamed, 0.0) == unnamed
    # One by one, so that it is known which of them it is.
    assert sent(queue) == ["0"]
    queue.accepted("0")
    assert sent(queue) == ["1"]
    assert queue.refused(unnamed, 0.0).utterance == "1"
    assert sent(queue) == ["2"]
    queue.accepted("2")
    for number in range(3, 6):
        queue.queue_message(final(number))
    assert sent(queue) == ["3", "4", "5"]


@pytest.mark.parametrize(
    "happens",
    [
        lambda queue: queue.connection_lost(),
        lambda queue: queue.refused(refusal("u", 100, code="rate_limited"), 0.0),
        lambda queue: queue.give_up_utterance("u"),
        lambda queue: queue.start_over(),
    ],
    ids=["lost", "refused", "cancelled", "another session"],
)
def test_the_same_partial_is_news_once(happens: Callable[[Outgoing], object]) -> None:
    queue, partial = outgoing(), UtterancePartial("u", 1, "we", "en")
    assert queue.is_news(partial)
    assert not queue.is_news(replace(partial, rev=2))
    assert queue.is_news(replace(partial, lang="de"))
    assert queue.is_news(partial)
    happens(queue)
    assert queue.is_news(partial)


def test_a_gateway_that_leaves_gets_no_more_finals() -> None:
    queue = keeping(final(0), final(1))
    assert sent(queue) == ["0", "1"]
    queue.refused(refusal("0", 0, code="draining"), 0.0)
    queue.draining()
    assert sent(queue, 99.0) == []
    assert queue.due_s() is None
    queue.connection_lost()
    assert sent(queue, 99.0) == ["0", "1"]


def test_updates_keep_their_place() -> None:
    queue = keeping(final(0), SessionUpdate(reads=["fr"], context="Sales."), final(1))
    assert sent(queue) == ["0", "SessionUpdate", "1"]
    assert queue.start == SessionStart(reads=["ja"], speaks="en")
    queue.accepted("0")
    queue.connection_lost()
    assert sent(queue) == ["SessionUpdate", "1"]
    queue.updated()
    assert queue.start == SessionStart(reads=["fr"], speaks="en", context="Sales.")
    queue.connection_lost()
    assert sent(queue) == ["1"]


def test_a_refused_update_does_not_hold() -> None:
    queue = sending(SessionUpdate(reads=["xx"]), SessionUpdate(speaks="de"))
    queue.refused(refusal(None, code="unsupported_language", field="reads[0]"), 0.0)
    queue.updated()
    assert queue.start == SessionStart(reads=["ja"], speaks="de")


def test_every_option_of_an_update_holds_once_taken() -> None:
    update = SessionUpdate(["fr"], "de", "final", {"fr": {"Haus": "maison"}}, "Sales.", "formal", True)
    names = SessionUpdate.__struct_fields__
    assert None not in [getattr(update, name) for name in names]
    queue = sending(update)
    queue.updated()
    assert [getattr(queue.start, name) for name in names] == [getattr(update, name) for name in names]


@pytest.mark.parametrize("field", ["reads[0]", "speaks", "stability", "glossary.fr", "context", "formality"])
def test_an_error_about_an_option_refuses_the_update(field: str) -> None:
    queue = sending(SessionUpdate(stability="final"))
    queue.refused(refusal(None, code="invalid_message", field=field), 0.0)
    queue.updated()
    assert queue.start.stability == "live"
    assert queue.idle


def test_an_update_that_came_too_fast_is_sent_again() -> None:
    queue = sending(SessionUpdate(speaks="de"))
    queue.refused(refusal(None, 20, code="rate_limited"), 1.0)
    assert queue.due_s() == 1.02
    assert sent(queue, 1.02) == ["SessionUpdate"]


def test_the_end_comes_last() -> None:
    queue = keeping(final(0))
    queue.end()
    assert sent(queue) == ["0"]
    assert queue.due_s() is None
    queue.refused(refusal("0", 0), 0.0)
    assert sent(queue) == ["0"]
    queue.accepted("0")
    assert queue.due_s() == 0.0
    assert sent(queue) == ["SessionEnd"]
    assert sent(queue) == []
    queue.connection_lost()
    assert sent(queue) == ["SessionEnd"]


def test_rate_limited_end_is_sent_again() -> None:
    queue = outgoing()
    queue.end()
    assert sent(queue) == ["SessionEnd"]
    queue.refused(refusal(None, 100, code="engine_restarting"), 0.0)
    assert sent(queue, 9.0) == []
    queue.refused(refusal(None, 100, code="rate_limited"), 9.0)
    assert sent(queue, 9.0) == []
    assert queue.due_s() == 9.1
    assert sent(queue, 9.1) == ["SessionEnd"]


def test_what_may_not_have_been_sent_is_sent_again() -> None:
    queue = keeping(final(0))
    queue.put_back(cast(Entry, queue.next_message(0.0)))
    assert sent(queue) == ["0"]
    queue.accepted("0")
    queue.end()
    queue.put_back(cast(SessionEnd, queue.next_message(0.0)))
    assert sent(queue) == ["SessionEnd"]


def test_what_was_not_sent_can_be_withdrawn() -> None:
    queue = outgoing(window=1)
    queue.queue_message(final(0))
    queue.queue_message(final(1))
    sent(queue)
    assert not queue.withdraw("0")
    assert not queue.withdraw("7")
    assert queue.withdraw("1")
    assert [each.id for each in queue.finals] == ["0"]
    assert queue.withdraw("0", unanswered=True)
    assert queue.finals == ()


def test_it_is_bounded() -> None:
    queue = outgoing(capacity=2)
    queue.queue_message(final(0))
    assert not queue.full
    queue.queue_message(SessionUpdate(speaks="de"))
    assert queue.full
    sent(queue)
    queue.accepted("0")
    assert not queue.full


def test_the_same_is_recognised_at_another_revision() -> None:
    queue = keeping(final(0))
    assert queue.holds_final(UtteranceFinal("0", 4, "Yes."))
    assert not queue.holds_final(final(0, "No."))
    assert not queue.holds_final(UtteranceFinal("0", 1, "Yes.", lang="de"))


def test_revisions_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REVISIONS", 2)
    queue = outgoing()
    for id in ("a", "b", "c"):
        queue.note_revision(id, queue.next_revision(id))
    assert [queue.next_revision(id) for id in ("a", "b", "c")] == [1, 2, 2]


# ---------------------------------------------------------------- every order of events


class Model:
    """A gateway as far as the queue can tell: what it received, accepted, refused, and what it answered.

    Answers are made in the order of arrival and may be lost with the connection. A repeated final is answered as
    before. `overtaken`: finals that it refused for the moment, so that newer ones may have come first.
    """

    def __init__(self, queue: Outgoing) -> None:
        self.queue = queue
        self.now_s = 0.0
        self.wire: list[UtteranceFinal] = []
        self.answers: list[Error | str] = []
        self.accepted: list[int] = []
        self.refused: list[int] = []
        self.overtaken: set[int] = set()
        self.copies: dict[int, UtteranceFinal] = {}
        self.kept = 0

    def keep(self) -> None:
        self.queue.queue_message(final(self.kept, f"text {self.kept}"))
        self.kept += 1

    def send(self) -> None:
        taken = self.queue.next_message(self.now_s)
        if isinstance(taken, Entry) and isinstance(taken.message, UtteranceFinal):
            message = taken.message
            assert self.copies.setdefault(int(message.id), message) == message, "a repetition differs"
            self.wire.append(message)

    def fail_to_send(self) -> None:
        taken = self.queue.next_message(self.now_s)
        if taken is not None:
            self.queue.put_back(taken)

    def answer(self, kind: str) -> None:
        if not self.wire:
            return
        message = self.wire.pop(0)
        number = int(message.id)
        if number in self.accepted:
            self.answers.append(message.id)
        elif number in self.refused:
            self.answers.append(refusal(message.id, code="limit_exceeded"))
        elif kind == "accept":
            self.accepted.append(number)
            self.answers.append(message.id)
        elif kind == "refuse":
            self.refused.append(number)
            self.answers.append(refusal(message.id, code="limit_exceeded"))
        else:
            self.overtaken.add(number)
            self.answers.append(refusal(message.id, 100))

    def hear(self) -> None:
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, str):
                self.queue.accepted(answer)
            else:
                self.queue.refused(answer, self.now_s)

    def drop(self, arrives: bool) -> None:
        """What is on the wire arrives or not; what was answered is never heard."""
        if arrives:
            while self.wire:
                self.answer("accept")
        self.wire.clear()
        self.answers.clear()
        self.queue.connection_lost()

    def wait(self) -> None:
        self.now_s += 0.03

    def finish(self) -> None:
        """From here on all goes well."""
        while self.queue.finals:
            before = len(self.queue.finals), self.now_s
            for _ in range(WINDOW):
                self.send()
            while self.wire:
                self.answer("accept")
            while self.answers:
                self.hear()
            self.now_s += 0.2
            assert before != (len(self.queue.finals), self.now_s)
            assert self.now_s < 1_000, "the queue is stuck"


STEPS = st.sampled_from(
    ["keep", "send", "fail_to_send", "accept", "refuse", "retry", "hear", "lose", "deliver and lose", "wait"]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(STEPS, max_size=120))
def test_every_final_is_accepted_once_or_refused_in_order(steps: list[str]) -> None:
    model = Model(outgoing())
    for step in steps:
        match step:
            case "accept" | "refuse" | "retry":
                model.answer(step)
            case "lose" | "deliver and lose":
                model.drop(step == "deliver and lose")
            case _:
                getattr(model, step)()
    model.finish()
    # Each one ended, once; one whose refusal was lost is refused again.
    assert len(model.accepted) == len(set(model.accepted))
    assert sorted([*model.accepted, *model.refused]) == list(range(model.kept))
    assert model.queue.finals == ()
    # In order, but for those that the gateway itself put off.
    in_order = [number for number in model.accepted if number not in model.overtaken]
    assert in_order == sorted(in_order)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["keep", "send", "accept", "retry", "hear", "wait"]), max_size=120))
def test_nothing_newer_is_sent_while_an_older_one_waits(steps: list[str]) -> None:
    model = Model(outgoing())
    for step in steps:
        if step in ("accept", "retry"):
            model.answer(step)
        elif step == "send":
            waiting = [each for each in model.queue._entries if not each.sent]
            before = len(model.wire)
            model.send()
            if len(model.wire) > before:
                assert model.wire[-1] == waiting[0].message
        else:
            getattr(model, step)()
