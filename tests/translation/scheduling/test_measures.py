"""What is counted of a translation: of finals and partials apart, and nothing twice."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import Histogram

from gateway import metrics
from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import DeadlineExceeded
from gateway.tracing.spans import begin
from gateway.translation.scheduling import measures
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import Ticket
from tests.tracing.recorder import recording
from tests.translation.engines import SteppedEngine
from tests.usual import usual

LAST = TokenEvent("!", 1, finish=FinishReason.STOP)


def ticket(*, final: bool = True, crashes: int = 0) -> Ticket:
    """Admitted at 10 s, begun at 11, its first token at 12, all 5 of them at 16."""
    request = TranslationRequest(id="r1", text="x", source="en", target="ja", final=final)
    found = Ticket(1, "m", request, 10.0)
    found.started_s, found.first_token_s, found.finished_s = 11.0, 12.0, 16.0
    found.tokens, found.crashes = 5, crashes
    return found


def total(histogram: Histogram) -> float:
    return sum(
        sample.value for family in histogram.collect() for sample in family.samples if sample.name.endswith("_sum")
    )


@pytest.mark.parametrize(
    ("of", "queue_s", "first_token_s", "interval_s", "final_s", "partial_s"),
    [
        (ticket(), 1.0, 2.0, 1.0, 6.0, 0.0),
        (ticket(crashes=1), 1.0, 2.0, 0.0, 6.0, 0.0),
        (ticket(final=False), 0.0, 0.0, 0.0, 0.0, 6.0),
    ],
    ids=["final", "final after a crash", "partial"],
)
def test_each_time_is_counted_for_what_it_is_of(
    of: Ticket, queue_s: float, first_token_s: float, interval_s: float, final_s: float, partial_s: float
) -> None:
    counted = (
        metrics.QUEUE_S,
        metrics.FIRST_TOKEN_S,
        metrics.TOKEN_INTERVAL_S,
        metrics.TRANSLATION_S,
        metrics.PARTIAL_S,
    )
    before = [total(each) for each in counted]
    measures.started(of, lambda: None, is_first=True)
    measures.finished(of, LAST)
    more = [total(each) - earlier for each, earlier in zip(counted, before, strict=True)]
    assert more == pytest.approx([queue_s, first_token_s, interval_s, final_s, partial_s])


async def test_a_span_tells_of_each_turn_and_that_it_began_again_after_the_engine_died() -> None:
    engine = SteppedEngine()
    scheduler = usual(Scheduler, engine, max_waiting=10)
    with recording() as spans:
        parent = begin("utterance")
        asked = TranslationRequest(id="r1", text="x", source="en", target="ja", traceparent=parent.traceparent)
        (traced,) = scheduler.admit("m", [asked])
        collecting = asyncio.create_task(scheduler.collect(traced))
        while not engine.begun:
            await asyncio.sleep(0)
        engine.die()
        while scheduler.running:
            await asyncio.sleep(0)
        engine.revive()
        engine.let("r1")
        scheduler.engine_changed()
        await collecting
        _, span = spans
        assert (span.name, span.parent, span.is_over, span.code) == ("translate", parent.traceparent, True, "")
        assert span.events == ["dispatched", "first token", "again", "dispatched"]
        assert (span.fields["crashes"], span.fields["tokens"], span.fields["target"]) == (1, 2, "ja")


async def test_a_span_of_what_is_given_up_says_why() -> None:
    scheduler = usual(Scheduler, SteppedEngine(), max_waiting=10)
    with recording() as spans:
        parent = begin("utterance")
        asked = TranslationRequest(id="r1", text="x", source="en", target="ja", traceparent=parent.traceparent)
        (traced,) = scheduler.admit("m", [asked])
        scheduler.give_up(traced, DeadlineExceeded("Too late."))
        assert (spans[1].code, spans[1].is_over) == ("deadline_exceeded", True)
