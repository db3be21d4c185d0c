"""Who is next, against a model that looks at everybody who waits."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.engine import TranslationRequest
from gateway.translation.scheduling.ticket import CATCHING_UP, FINAL, PARTIAL, SUSPECT_CRASHES, Ticket
from gateway.translation.scheduling.turn_order import TurnQueue

MEETINGS = ("m", "n", "o")
ACCOUNTS = ("a", "b")
PRIORITIES = (FINAL, PARTIAL, CATCHING_UP)
_serials = itertools.count(1)


def admitted(meeting: str = "m", priority: int = FINAL, account: str = "a") -> Ticket:
    serial = next(_serials)
    request = TranslationRequest(id=f"{meeting}{serial}", text="x", source="en", target="ja", priority=priority)
    return Ticket(serial, meeting, request, admitted_s=0.0, account=account)


def utterance(meeting: str) -> list[Ticket]:
    """In three languages."""
    tickets = [admitted(meeting) for _ in range(3)]
    for ticket in tickets:
        ticket.utterance = tickets[0].serial
    return tickets


def append_each(turns: TurnQueue, *tickets: Ticket) -> None:
    """Each is another utterance."""
    for ticket in tickets:
        turns.append([ticket])


def taken(turns: TurnQueue) -> list[Ticket]:
    """All that wait, in the order of their turns."""
    return list(iter(turns.pop, None))


@pytest.fixture
def turns() -> TurnQueue:
    return TurnQueue()


def test_nobody_waits(turns: TurnQueue) -> None:
    assert turns.pop() is None
    assert (len(turns), list(turns), turns.finals, turns.suspects) == (0, [], 0, False)
    assert not turns.next_is_best_effort()


def test_meetings_take_turns_and_a_meeting_keeps_its_order(turns: TurnQueue) -> None:
    m1, m2, m3, n1 = admitted("m"), admitted("m"), admitted("m"), admitted("n")
    append_each(turns, m1, m2, m3, n1)
    assert taken(turns) == [m1, n1, m2, m3]


def test_utterance_takes_one_turn_in_all_languages(turns: TurnQueue) -> None:
    m1, m2, n1, n2 = map(utterance, "mmnn")
    for tickets in (m1, m2, n1, n2):
        turns.append(tickets)
    assert turns.utterances_ahead(FINAL, "a", "m") == 2
    assert turns.round_of_others(FINAL, "a", "m") == 3
    assert turns.round_of_others(FINAL, "a", "o") == 6
    assert turns.round_of_others(FINAL, "b", "m") == 0
    assert taken(turns) == [*m1, *n1, *m2, *n2]


def test_http_call_has_a_turn_per_text(turns: TurnQueue) -> None:
    texts, said = [admitted("") for _ in range(3)], admitted("m")
    turns.append(texts)
    turns.append([said])
    assert taken(turns) == [texts[0], said, *texts[1:]]


def test_accounts_take_turns_within_an_utterance_too(turns: TurnQueue) -> None:
    languages, other = utterance("m"), admitted("n", account="b")
    turns.append(languages)
    turns.append([other])
    assert taken(turns) == [languages[0], other, *languages[1:]]


def test_accounts_take_turns_however_many_meetings_one_has(turns: TurnQueue) -> None:
    crowd = [admitted(meeting) for meeting in "mnopq"]
    own = [admitted("x", account="b"), admitted("x", account="b"), admitted("y", account="b")]
    append_each(turns, *crowd, *own)
    assert taken(turns) == [crowd[0], own[0], crowd[1], own[2], crowd[2], own[1], *crowd[3:]]


def test_newcomer_waits_one_turn_per_meeting(turns: TurnQueue) -> None:
    backlog = [admitted("m") for _ in range(5)]
    append_each(turns, *backlog)
    assert [turns.pop(), turns.pop()] == backlog[:2]
    late = admitted("n")
    turns.append([late])
    assert [turns.pop(), turns.pop()] == [backlog[2], late]


def test_finals_precede_partials_precede_catching_up(turns: TurnQueue) -> None:
    shown, partial, final = admitted(priority=CATCHING_UP), admitted(priority=PARTIAL), admitted(priority=FINAL)
    for ticket in (shown, partial, final):
        turns.append([ticket])
    assert not turns.next_is_best_effort()
    assert turns.pop() is final
    assert turns.next_is_best_effort()
    assert taken(turns) == [partial, shown]


def test_a_meeting_whose_turn_broke_off_is_the_next(turns: TurnQueue) -> None:
    m1, m2, n1 = admitted("m"), admitted("m"), admitted("n")
    append_each(turns, m1, m2, n1)
    assert turns.pop() is m1
    turns.put_back(m1)
    assert taken(turns) == [m1, n1, m2]


@pytest.mark.parametrize("first", ["m1", "m2"])
def test_returned_tickets_precede_new_ones(first: str, turns: TurnQueue) -> None:
    m1, m2, m3, n1 = admitted("m"), admitted("m"), admitted("m"), admitted("n")
    append_each(turns, m1, m2, m3, n1)
    assert [turns.pop(), turns.pop(), turns.pop()] == [m1, n1, m2]
    turns.append([n2 := admitted("n")])
    for ticket in (m1, m2) if first == "m1" else (m2, m1):
        turns.put_back(ticket)
    assert taken(turns) == [m1, n2, m2, m3]


def test_suspects_come_before_everything_whatever_their_meeting(turns: TurnQueue) -> None:
    partial, first, second = admitted("n", PARTIAL), admitted("m"), admitted("n")
    for ticket in (first, second, partial):
        ticket.crashes = SUSPECT_CRASHES
    turns.append([other := admitted("m")])
    for ticket in (second, partial, first):
        turns.put_back(ticket)
    assert turns.suspects
    assert turns.finals == 1, "suspects take no place of a partial"
    assert turns.ahead(FINAL) == turns.ahead_of_account(FINAL, "a") == 4
    assert turns.ahead_of_meeting(FINAL, "a", "n") == 2
    assert taken(turns) == [first, second, partial, other]
    assert not turns.suspects


class Model:
    """Nothing but who waits, and whose turn it is in each priority."""

    def __init__(self) -> None:
        self.waiting: list[Ticket] = []
        # By priority: the accounts in the order of their turns.
        self._accounts: dict[int, list[str]] = {priority: [] for priority in PRIORITIES}
        # By priority and account: its meetings in the order of theirs.
        self._meetings: dict[tuple[int, str], list[str]] = {}

    def of(self, priority: int, account: str | None = None, meeting: str | None = None) -> list[Ticket]:
        """Those above suspicion, by admission."""
        found = [t for t in self.waiting if not t.suspect and t.request.priority == priority]
        found = [t for t in found if account in (None, t.account) and meeting in (None, t.meeting)]
        return sorted(found, key=lambda ticket: ticket.serial)

    def suspects(self) -> list[Ticket]:
        return sorted((t for t in self.waiting if t.suspect), key=lambda t: (t.request.priority, t.serial))

    def append(self, ticket: Ticket) -> None:
        priority = ticket.request.priority
        if not self.of(priority, ticket.account):
            _move(self._accounts[priority], ticket.account, last=True)
        if not self.of(priority, ticket.account, ticket.meeting):
            _move(self._meetings_of(ticket), ticket.meeting, last=True)
        self.waiting.append(ticket)

    def put_back(self, ticket: Ticket) -> None:
        if not ticket.suspect:
            _move(self._accounts[ticket.request.priority], ticket.account, last=False)
            _move(self._meetings_of(ticket), ticket.meeting, last=False)
        self.waiting.append(ticket)

    def pop(self) -> Ticket | None:
        ticket = next(iter(self.suspects()), None)
        if ticket is None:
            for priority in PRIORITIES:
                if self.of(priority):
                    account = next(name for name in self._accounts[priority] if self.of(priority, name))
                    meetings = self._meetings[priority, account]
                    meeting = next(name for name in meetings if self.of(priority, account, name))
                    ticket, *others = self.of(priority, account, meeting)
                    _move(self._accounts[priority], account, last=True)
                    if not others or others[0].utterance != ticket.utterance:
                        _move(meetings, meeting, last=True)
                    break
        if ticket is not None:
            self.waiting.remove(ticket)
        return ticket

    def _meetings_of(self, ticket: Ticket) -> list[str]:
        return self._meetings.setdefault((ticket.request.priority, ticket.account), [])


def _move(order: list[str], name: str, *, last: bool) -> None:
    if name in order:
        order.remove(name)
    order.insert(len(order) if last else 0, name)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.sampled_from(ACCOUNTS),
            st.sampled_from(MEETINGS),
            st.sampled_from(PRIORITIES),
            st.integers(1, 3),
        ),
        st.tuples(st.just("pop")),
        st.tuples(st.just("pop")),
        st.tuples(st.just("put back"), st.integers(0, 50), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.integers(0, 50)),
    ),
    max_size=60,
)


@given(STEPS)
def test_queue_agrees_with_its_model(steps: list[tuple[object, ...]]) -> None:
    turns, model, running = TurnQueue(), Model(), list[Ticket]()
    for step in steps:
        match step:
            case ("append", str(account), str(meeting), int(priority), int(count)):
                tickets = [admitted(meeting, priority, account) for _ in range(count)]
                turns.append(tickets)
                for ticket in tickets:
                    model.append(ticket)
            case ("pop",):
                popped = turns.pop()
                assert popped is model.pop()
                running += [] if popped is None else [popped]
            case ("put back", int(which), int(crashes)) if running:
                ticket = running.pop(which % len(running))
                ticket.crashes += crashes
                turns.put_back(ticket)
                model.put_back(ticket)
            case ("remove", int(which)) if model.waiting:
                ticket = model.waiting.pop(which % len(model.waiting))
                turns.remove(ticket)
        assert len(turns) == len(model.waiting)
        assert bool(turns) == bool(model.waiting)
        assert set(turns) == set(model.waiting)
        assert turns.finals == len(model.of(FINAL))
        assert turns.suspects == bool(model.suspects())
        best_effort = not model.suspects() and not model.of(FINAL) and bool(model.waiting)
        assert turns.next_is_best_effort() == best_effort
        for priority in PRIORITIES:
            before = [*model.suspects(), *(t for p in PRIORITIES[: priority + 1] for t in model.of(p))]
            assert turns.ahead(priority) == len(before)
            for account in ACCOUNTS:
                theirs = [ticket.meeting for ticket in before if ticket.account == account]
                assert turns.ahead_of_account(priority, account) == len(theirs)
                for meeting in MEETINGS:
                    assert turns.ahead_of_meeting(priority, account, meeting) == theirs.count(meeting)
    assert taken(turns) == list(iter(model.pop, None))


def test_a_newcomer_that_is_a_suspect_already_comes_first(turns: TurnQueue) -> None:
    other, suspect = admitted(), admitted()
    suspect.crashes = SUSPECT_CRASHES
    turns.append([other])
    turns.append([suspect])
    assert (turns.suspects, len(turns)) == (True, 2)
    assert taken(turns) == [suspect, other]
