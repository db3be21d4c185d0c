"""What a client of the soak records of the wire, which the product's client does not hand out."""

from __future__ import annotations

from gateway.protocol.codec import JSON
from gateway.protocol.limits import Limits
from gateway.protocol.messages import Caption, ServerMessage, SessionStarted, TranslationFailed
from loadtest.soak.records import Again, Record
from loadtest.soak.visitor import WireCodec


def started(*, recovered: bool | None) -> SessionStarted:
    return SessionStarted("s", "p", "standup", "e", 0, recovered, [], [], [], Limits())


def caption(offset: int | None) -> Caption:
    return Caption("p", "1", "Ana", "en", 1, "Hello.", offset is not None, offset)


def failed(offset: int) -> TranslationFailed:
    return TranslationFailed("p", "1", "Ana", "ja", 1, "cancelled", "Why.", offset)


def again(*messages: ServerMessage) -> list[int]:
    """Offsets that arrived before, as a client records them that reads these messages."""
    records: list[Record] = []
    codec = WireCodec("1.1", records.append)
    for message in messages:
        assert codec.decode_server(JSON.encode(message)) == message
    return [record.offset for record in records if isinstance(record, Again)]


def test_a_publication_that_arrives_again_is_recorded() -> None:
    assert again(started(recovered=None), caption(1), failed(2), caption(None)) == []
    assert again(started(recovered=None), caption(1), failed(2), failed(2), caption(1)) == [2, 1]


def test_a_resumed_session_goes_on_where_it_was() -> None:
    assert again(started(recovered=None), caption(1), started(recovered=True), failed(2)) == []
    assert again(started(recovered=None), caption(1), started(recovered=True), caption(1)) == [1]


def test_a_new_session_is_shown_the_newest_again() -> None:
    assert again(started(recovered=None), caption(1), started(recovered=False), caption(1)) == []
