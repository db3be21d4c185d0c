"""What of the client needs no socket: when to reconnect, and which publications were received before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.client import connect
from gateway.client.errors import SessionClosed
from gateway.client.received import Received
from gateway.client.reconnecting import BASE_S, CAP_S, RESTART_CAP_S, Outage, may_reconnect
from gateway.domain.errors import CloseCode
from gateway.protocol.messages import Caption, Pong, Resume, UtteranceFinal
from tests.scripted_gateway import ANOTHER, STARTED, failed, refused, said, translated

# ---------------------------------------------------------------- when to reconnect


@pytest.mark.parametrize("code", [None, 1001, 1005, 1006, 1011, 1012, 1013, 4000, 4008, 4010, 4012, 4499])
def test_a_loss_that_passes(code: int | None) -> None:
    assert may_reconnect(code)


@pytest.mark.parametrize("code", [1000, 1002, 1003, 1007, 1008, 1009, 3000, 4500, 4509, 4510, 4999, 5000])
def test_an_end(code: int) -> None:
    assert not may_reconnect(code)


def test_every_close_code_of_the_gateway_is_in_its_range() -> None:
    again = {code for code in CloseCode if may_reconnect(code)}
    assert {CloseCode.INTERNAL, CloseCode.RESTART, CloseCode.SLOW_READER, CloseCode.DRAINING} <= again
    assert not again & {CloseCode.NORMAL, CloseCode.TOO_MANY_SESSIONS, CloseCode.REPLACED}


def outage(code: int | None = None, *, give_up_s: float = 1e9, earlier: int = 0) -> Outage:
    return Outage(SessionClosed("ws://x", code, None), 0.0, give_up_s, earlier)


def delays(out: Outage, count: int, jitter: float = 1.0) -> list[float | None]:
    return [out.announce(0.0, lambda: jitter) for _ in range(count)]


def test_the_cap_of_the_delay_doubles() -> None:
    assert delays(outage(), 8) == [BASE_S, 0.5, 1.0, 2.0, 4.0, 8.0, CAP_S, CAP_S]
    assert delays(outage(CloseCode.RESTART), 7)[4:] == [4.0, RESTART_CAP_S, RESTART_CAP_S]
    assert delays(outage(earlier=3), 2) == [2.0, 4.0]


@given(st.integers(0, 3_000), st.floats(0.0, 1.0))
def test_the_delay_is_bounded_and_may_be_anything_below(attempts: int, jitter: float) -> None:
    (delay_s,) = delays(outage(earlier=attempts), 1, jitter)
    assert delay_s is not None
    assert 0.0 <= delay_s == jitter * min(CAP_S, BASE_S * 2.0 ** min(attempts, 16))


def test_what_the_gateway_asks_for_is_waited_on_top() -> None:
    closed = SessionClosed("ws://x", 1012, refused("draining", "Restarting.", retry_after_ms=1_000))
    out = Outage(closed, 0.0, 1e9)
    assert delays(out, 1) == [1.0 + BASE_S]
    out.failed("No gateway answers.")
    assert delays(out, 1) == [0.5]
    out.failed("Loading.", refused("engine_unavailable", "Loading.", retry_after_ms=2_000))
    assert out.reason == "Loading."
    assert delays(out, 1, jitter=0.0) == [2.0]


def test_a_gateway_that_says_it_drains_is_back_soon() -> None:
    out = outage(earlier=9)
    assert delays(out, 1) == [CAP_S]
    out.failed("Draining.", refused("draining", "Draining."))
    assert delays(out, 1) == [RESTART_CAP_S]


def test_patience_ends() -> None:
    out = outage(give_up_s=3.0, earlier=9)
    assert out.announce(1.0, lambda: 1.0) == 2.0
    assert out.attempt_at_s == 3.0
    out.failed("No gateway answers at ws://x.")
    assert out.attempt_at_s is None
    assert out.announce(3.0, lambda: 1.0) is None
    assert str(out.gave_up()) == (
        "The connection to the gateway at ws://x was lost. It could not be resumed: No gateway answers at ws://x."
    )


# ---------------------------------------------------------------- what was received before

HELLO = UtteranceFinal("a", 1, "Hello")


def test_the_position_is_the_highest_offset_received() -> None:
    received = Received(replace(STARTED, offset=4))
    assert received.position == Resume("s1", "e1", 4)
    assert received.is_new(said(HELLO, 5))
    assert received.is_new(translated(HELLO, "ja", "はい", offset=7))
    assert received.is_new(failed(HELLO, "de", "No.", offset=8))
    assert received.is_new(Pong())
    assert received.position == Resume("s1", "e1", 8)


def test_a_partial_caption_has_no_position() -> None:
    received = Received(STARTED)
    partial = Caption("p1", "a", "", "en", 1, "Hel", False)
    assert received.is_new(partial)
    assert received.is_new(partial)
    assert received.position.offset == 0


def test_what_comes_again_is_recognised_by_its_offset() -> None:
    received = Received(STARTED)
    for offset in (1, 2, 3):
        assert received.is_new(said(HELLO, offset))
    received.restarted(replace(STARTED, recovered=True, offset=3))
    assert not received.is_new(said(HELLO, 2))
    assert not received.is_new(said(HELLO, 3))
    assert received.is_new(said(HELLO, 4))


def test_a_failure_and_a_later_translation_are_two() -> None:
    received = Received(STARTED)
    assert received.is_new(failed(HELLO, "ja", "No.", offset=1))
    assert received.is_new(translated(HELLO, "ja", "はい", offset=2))


def test_the_transcript_that_a_session_begins_with_may_lie_before_its_position() -> None:
    received = Received(replace(STARTED, offset=9))
    assert received.is_new(said(HELLO, 5))
    assert received.position.offset == 9


def test_under_another_epoch_it_is_recognised_by_its_key() -> None:
    received = Received(STARTED)
    assert received.is_new(translated(HELLO, "ja", "はい", offset=40))
    received.restarted(ANOTHER)
    assert received.position == Resume("s2", "e2", 0)
    assert not received.is_new(translated(HELLO, "ja", "はい", offset=1))
    assert received.is_new(translated(HELLO, "de", "Ja", offset=2))
    assert received.is_new(translated(UtteranceFinal("a", 2, "Hello"), "ja", "はい", offset=3))
    assert received.position == Resume("s2", "e2", 3)


def test_a_new_session_in_the_same_log_goes_on_behind_what_was_received() -> None:
    received = Received(STARTED)
    assert received.is_new(said(HELLO, 5))
    received.restarted(replace(ANOTHER, epoch="e1", offset=3))
    assert not received.is_new(said(HELLO, 5))
    assert received.is_new(said(UtteranceFinal("b", 1, "Next."), 6))
    received.restarted(replace(ANOTHER, epoch="e1", offset=20))
    assert received.position == Resume("s2", "e1", 20)


@pytest.mark.parametrize(
    ("epoch", "recovered", "offset", "fresh"),
    [("e1", True, 9, False), ("e1", False, 9, False), ("e0", False, 0, True)],
)
def test_a_session_of_an_earlier_process(epoch: str, recovered: bool, offset: int, fresh: bool) -> None:
    received = Received(replace(STARTED, recovered=recovered), Resume("s0", epoch, 9))
    assert received.position == Resume("s1", "e1", offset)
    assert received.is_new(said(HELLO, 4)) is fresh
    assert received.is_new(said(HELLO, 10))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.client.received._REMEMBERED", 2)
    received = Received(STARTED)
    for offset, id in enumerate("abc", 1):
        assert received.is_new(translated(UtteranceFinal(id, 1, "Hello"), "ja", "はい", offset=offset))
    received.restarted(ANOTHER)
    again = [translated(UtteranceFinal(id, 1, "Hello"), "ja", "はい", offset=n) for n, id in enumerate("bca", 1)]
    assert [received.is_new(message) for message in again] == [False, False, True]


async def test_a_string_is_no_list_of_languages() -> None:
    with pytest.raises(TypeError, match="list of languages"):
        async with connect("http://127.0.0.1:9", reads="ja"):
            pass
