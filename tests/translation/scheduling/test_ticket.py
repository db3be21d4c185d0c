"""One admitted translation: its stages, its timings, and the id that an engine knows it by."""

from __future__ import annotations

import runpy

import pytest
from msgspec.structs import replace

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import Cancelled
from gateway.domain.log import Timings
from gateway.translation.scheduling import ticket as ticket_module
from gateway.translation.scheduling.ticket import (
    CATCHING_UP,
    FINAL,
    PARTIAL,
    SUSPECT_CRASHES,
    Stage,
    Ticket,
    request_id,
)


def request(text: str, priority: int = FINAL) -> TranslationRequest:
    return TranslationRequest(id=text, text=text, source="en", target="ja", priority=priority)


def admitted(text: str = "one", priority: int = FINAL, at_s: float = 0.0) -> Ticket:
    return Ticket(1, "m", request(text, priority), at_s)


def test_while_it_waits_a_newer_request_takes_its_place() -> None:
    ticket = admitted("one")
    assert ticket.exchange(request("two"))
    assert ticket.request.text == "two"


def test_a_request_of_another_pair_does_not_take_its_place() -> None:
    ticket = admitted("one")
    assert not ticket.exchange(replace(request("two"), source="de"))
    assert ticket.request.text == "one"


@pytest.mark.parametrize("stage", [Stage.RUNNING, Stage.ENDED])
def test_once_its_turn_has_come_it_is_not_exchanged(stage: Stage) -> None:
    ticket = admitted("one")
    ticket.stage = stage
    assert not ticket.exchange(request("two"))
    assert ticket.request.text == "one"


def test_what_was_given_up_is_not_exchanged_although_it_still_waits() -> None:
    ticket = admitted("one")
    ticket.given_up = Cancelled("The test says so.")
    assert not ticket.exchange(request("two"))
    assert ticket.request.text == "one"


def test_it_is_ending_from_when_it_was_given_up() -> None:
    ticket = admitted()
    assert not ticket.ending
    ticket.stage = Stage.RUNNING
    assert not ticket.ending
    ticket.given_up = Cancelled("The test says so.")
    assert ticket.ending
    ticket.given_up, ticket.stage = None, Stage.ENDED
    assert ticket.ending


def test_it_is_a_suspect_after_so_many_crashes() -> None:
    ticket = admitted()
    for crashes in range(SUSPECT_CRASHES):
        ticket.crashes = crashes
        assert not ticket.suspect
    ticket.crashes = SUSPECT_CRASHES
    assert ticket.suspect


def test_all_but_finals_are_best_effort() -> None:
    of = {priority: admitted(priority=priority).best_effort for priority in (FINAL, PARTIAL, CATCHING_UP)}
    assert of == {FINAL: False, PARTIAL: True, CATCHING_UP: True}


def test_timings_are_milliseconds_since_its_admission() -> None:
    ticket = admitted(at_s=100.0)
    ticket.started_s, ticket.first_token_s, ticket.finished_s = 100.5, 100.75, 102.00004
    assert ticket.timings() == Timings(queue_ms=500.0, first_token_ms=750.0, total_ms=2000.0)


def test_a_stage_that_was_never_reached_took_no_time() -> None:
    ticket = admitted(at_s=100.0)
    assert ticket.timings() == Timings(0.0, 0.0, 0.0)
    ticket.started_s = 100.0
    assert ticket.timings() == Timings(0.0, 0.0, 0.0)
    ticket.finished_s = 101.0
    assert ticket.timings() == Timings(queue_ms=0.0, first_token_ms=0.0, total_ms=1000.0)


def test_no_two_requests_of_a_process_have_the_same_id() -> None:
    ids = [request_id(kind) for kind in ("final", "partial") * 100]
    assert len({each.partition("-")[2] for each in ids}) == 200
    assert ids[0].startswith("final-")


def test_requests_of_two_processes_that_share_an_engine_have_different_ids() -> None:
    # What a process does once, at its start; each of the two counts from 1.
    ids = [runpy.run_path(str(ticket_module.__file__))["request_id"]("final") for _ in range(2)]
    assert ids[0] != ids[1]
    assert [each.rpartition("-")[2] for each in ids] == ["1", "1"]


def test_what_gave_no_text_before_its_lane_died_waits_for_that_lane() -> None:
    ticket = admitted()
    ticket.lane = "a"
    ticket.crashed()
    assert (ticket.crashes, ticket.kept_to, ticket.suspect) == (1, "a", False)


def test_what_had_begun_to_give_text_may_go_on_elsewhere_until_it_is_a_suspect() -> None:
    ticket = admitted()
    ticket.lane, ticket.tokens = "a", 3
    ticket.crashed()
    assert (ticket.crashes, ticket.kept_to, ticket.suspect) == (1, None, False)
    ticket.lane = "b"
    ticket.crashed()
    assert (ticket.crashes, ticket.kept_to, ticket.suspect) == (SUSPECT_CRASHES, "b", True)
