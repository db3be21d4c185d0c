"""A message on its way to many: what it weighs, that it is encoded once, and how deltas become one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.meeting.payload import Payload
from gateway.protocol.codec import JSON, MSGPACK, Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    LanguagesChanged,
    Participant,
    Pong,
    SessionStarted,
    TranslationDelta,
)

# Control characters are six bytes each in JSON, and nobody says them.
said = st.text(st.characters(exclude_categories=("Cc", "Cs")))


def delta(committed: str, tentative: str = "", rev: int = 1) -> TranslationDelta:
    return TranslationDelta("p", "u", "ja", rev, committed, tentative)


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=["json", "msgpack"])
@given(said, said)
@example("\N{GRINNING FACE}" * 2_000, "")
def test_no_frame_is_longer_than_it_costs(codec: Codec, text: str, name: str) -> None:
    payload = Payload(Caption("p" * 8, "u" * 64, name, "zh-hant", 2**40, text, True, offset=2**40, at_ms=2**40))
    frame = payload.frame(codec)
    assert len(frame.encode() if isinstance(frame, str) else frame) <= payload.cost


def test_a_long_list_of_participants_has_its_price() -> None:
    def started(count: int) -> Payload:
        reads = ["zh-hant"] * 8
        participants = [Participant(f"{n:08}", "ü" * 80, "zh-hant", reads) for n in range(count)]
        return Payload(
            SessionStarted("s" * 32, "p" * 8, "m" * 64, "e" * 32, 0, None, reads, participants, [], Limits())
        )

    many, few = started(100), started(0)
    assert many.cost - few.cost >= len(many.frame(JSON)) - len(few.frame(JSON))


def test_no_list_of_languages_is_longer_than_it_costs() -> None:
    tags = [f"zh-{n:04}" for n in range(40)]
    payload = Payload(
        LanguagesChanged(tags, ["context", "formality", "glossary"], {tag: tags[:20] for tag in tags})
    )
    assert len(payload.frame(JSON)) <= payload.cost


def test_it_is_encoded_once_for_each_encoding() -> None:
    payload = Payload(Pong("x"))
    frames = [payload.frame(codec) for codec in (JSON, MSGPACK, JSON, MSGPACK)]
    assert frames[0] is frames[2]
    assert frames[1] is frames[3]
    assert isinstance(frames[0], str)
    assert isinstance(frames[1], bytes)
    assert [JSON.decode_server(frames[0]), MSGPACK.decode_server(frames[1])] == [Pong("x"), Pong("x")]


def test_deltas_in_one_have_all_that_was_committed_and_the_newest_rest() -> None:
    earlier, later = Payload(delta("a", "b", rev=1)), Payload(delta("c", "d", rev=2))
    assert later.behind(earlier).message == delta("ac", "d", rev=2)
    assert (earlier.message, later.message) == (delta("a", "b", rev=1), delta("c", "d", rev=2))


def test_whoever_lags_as_much_shares_the_one_and_nobody_else() -> None:
    later = Payload(delta("c"))
    first, second = Payload(delta("a")), Payload(delta("b"))
    merged = later.behind(first)
    assert later.behind(first) is merged
    assert later.behind(second).message == delta("bc")
    assert later.behind(first).message == delta("ac")
