"""Frames in, messages or documented errors out; both encodings carry the same messages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.errors import GatewayError, InvalidMessage, MessageTooLarge, ProtocolError, UnknownType
from gateway.protocol.codec import CODECS, JSON, MSGPACK, Codec, negotiate
from gateway.protocol.messages import Ping, Resume, SessionStart, TranslationDelta, UtteranceFinal, client_messages

BOTH = pytest.mark.parametrize("codec", CODECS.values(), ids=["json", "msgpack"])
MAX = 10_000


def raw(codec: Codec, value: object) -> str | bytes:
    data = msgspec.msgpack.encode(value) if codec.binary else msgspec.json.encode(value)
    return data if codec.binary else data.decode()


def refusal(codec: Codec, frame: str | bytes, max_bytes: int = MAX) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        codec.decode(frame, max_bytes=max_bytes)
    return caught.value


@BOTH
def test_messages_survive_the_round_trip(codec: Codec) -> None:
    message = UtteranceFinal(id="ü", rev=2, text="日本語 🙂", lang="ja", start_ms=1)
    frame = codec.encode(message)
    assert isinstance(frame, bytes) == codec.binary
    assert codec.decode(frame, max_bytes=MAX) == message
    delta = TranslationDelta("p", "u", "ja", 1, "やあ", "!")
    assert codec.decode_server(codec.encode(delta)) == delta


@BOTH
def test_newer_message_is_not_nonsense(codec: Codec) -> None:
    with pytest.raises(UnknownType):
        codec.decode_server(raw(codec, {"type": "poll.opened", "question": "Lunch?"}))
    with pytest.raises(InvalidMessage):
        codec.decode_server(raw(codec, {"type": "pong", "nonce": 3}))


@BOTH
def test_unknown_fields_are_ignored(codec: Codec) -> None:
    frame = raw(codec, {"type": "ping", "nonce": "x", "new": {"deep": [1]}})
    assert codec.decode(frame, max_bytes=MAX) == Ping(nonce="x")


@BOTH
@pytest.mark.parametrize(
    ("value", "cls", "field", "utterance"),
    [
        ({"type": "dance", "id": "u"}, UnknownType, "type", "u"),
        ({"type": 7}, InvalidMessage, "type", None),
        ({"id": "u"}, InvalidMessage, "type", "u"),
        ({"type": "utterance.final", "id": "u", "rev": "1", "text": "x"}, InvalidMessage, "rev", "u"),
        ({"type": "utterance.final", "id": "u", "rev": -1, "text": "x"}, InvalidMessage, "rev", "u"),
        ({"type": "utterance.final", "id": "u", "rev": 1}, InvalidMessage, "text", "u"),
        ({"type": "session.start", "reads": ["en", 3]}, InvalidMessage, "reads[...]", None),
        ({"type": "session.start", "reads": [], "formality": "rude"}, InvalidMessage, "formality", None),
        ([1, 2], InvalidMessage, None, None),
        ("text", InvalidMessage, None, None),
        (None, InvalidMessage, None, None),
    ],
)
def test_what_is_wrong_is_named(
    codec: Codec, value: object, cls: type[GatewayError], field: str | None, utterance: str | None
) -> None:
    error = refusal(codec, raw(codec, value))
    assert type(error) is cls
    if field is not None and "..." in field:
        field = error.field  # msgspec does not tell the index
    assert (error.field, error.utterance) == (field, utterance)


@BOTH
@pytest.mark.parametrize("rev", [1.0, 1e3, 2.0**53 - 2])
def test_whole_floats_are_integers(codec: Codec, rev: float) -> None:
    said = {"type": "utterance.final", "id": "u", "rev": rev, "text": "x", "start_ms": 1e3, "new": [1.5]}
    assert codec.decode(raw(codec, said), max_bytes=MAX) == UtteranceFinal(
        id="u", rev=int(rev), text="x", start_ms=1_000
    )
    again = {"session": "s", "epoch": "e", "offset": 12.0}
    started = codec.decode(raw(codec, {"type": "session.start", "reads": [], "resume": again}), max_bytes=MAX)
    assert isinstance(started, SessionStart)
    assert started.resume == Resume("s", "e", 12)


@BOTH
@pytest.mark.parametrize("rev", [1.5, -1.0, 2.0**53, 1e300])
def test_other_floats_are_refused(codec: Codec, rev: float) -> None:
    error = refusal(codec, raw(codec, {"type": "utterance.final", "id": "u", "rev": rev, "text": "x"}))
    assert (type(error), error.field, error.utterance) == (InvalidMessage, "rev", "u")


@BOTH
def test_float_before_something_deep_is_refused(codec: Codec) -> None:
    deep: Any = []
    for _ in range(900):
        deep = {"a": deep}
    error = refusal(codec, raw(codec, {"type": "utterance.final", "rev": 1.0, "new": deep}))
    assert type(error) is InvalidMessage


NO_JSON = ["", "{", "nul", '{"type":"ping"} x', "\ud800", "[" * 5000]
NO_MSGPACK = [b"", b"\xc1", b"\x81", b"\x91" * 5000, b"\xff"]


@pytest.mark.parametrize("frame", [*NO_JSON, *NO_MSGPACK])
def test_what_is_not_encoded_is_refused(frame: str | bytes) -> None:
    assert refusal(JSON if isinstance(frame, str) else MSGPACK, frame).code == "invalid_message"


def test_the_wrong_kind_of_frame_is_refused() -> None:
    assert "text frames" in refusal(JSON, b"{}").message
    assert "binary frames" in refusal(MSGPACK, "{}").message


@BOTH
def test_an_error_echoes_no_more_than_a_name(codec: Codec) -> None:
    for value in ({"type": "x" * 5_000, "id": "y" * 4_000}, {"type": "session.start", "reads": {"z" * 5_000: 1}}):
        error = refusal(codec, raw(codec, value))
        assert len(f"{error.message}{error.field}{error.utterance}") < 400


@BOTH
def test_length_counts_bytes(codec: Codec) -> None:
    frame = codec.encode(UtteranceFinal(id="u", rev=1, text="日" * 3_400))
    assert isinstance(refusal(codec, frame), MessageTooLarge)


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_frame_gives_message_or_error(frame: str | bytes) -> None:
    try:
        (JSON if isinstance(frame, str) else MSGPACK).decode(frame, max_bytes=MAX)
    except GatewayError as error:
        assert error.code in {"invalid_message", "unknown_type"}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_fields = st.sampled_from(sorted({field for cls in client_messages() for field in cls.__struct_fields__}))
_types = st.sampled_from([cls.__struct_config__.tag for cls in client_messages()])


@given(_types, st.dictionaries(_fields, _json, max_size=6))
def test_any_fields_give_a_message_or_error(tag: Any, fields: dict[str, Any]) -> None:
    frame = msgspec.json.encode({"type": tag, **fields}).decode()
    try:
        JSON.decode(frame, max_bytes=MAX)
    except GatewayError as error:
        assert error.code in {"invalid_message", "message_too_large"}
        assert error.message


def test_the_first_known_subprotocol_is_chosen() -> None:
    assert negotiate([]) == (JSON, None)
    offer = ["chat", "translation.v1.msgpack", "translation.v1.json"]
    assert negotiate(offer) == (MSGPACK, "translation.v1.msgpack")
    with pytest.raises(InvalidMessage, match=r"translation\.v1\.json"):
        negotiate(["chat"])


# What a JSON object of a client may have in any field: among it, numbers and texts that msgpack cannot carry.
_NUMBERS = st.integers() | st.integers(2**53 - 2, 2**53 + 1) | st.integers(2**63 - 1, 2**65) | st.floats()
_VALUES = _NUMBERS | st.text() | st.none() | st.booleans() | st.lists(st.text(), max_size=3)


@settings(max_examples=500)
@given(st.data())
def test_whatever_json_accepts_msgpack_can_carry(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(client_messages()))
    # Valid, but for at most two fields: otherwise nearly everything would be refused.
    valid = {"reads": ["ja"], "id": "1", "rev": 1, "text": "x"}
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    message = {name: valid[name] for name in names if name in valid}
    for name in data.draw(st.lists(st.sampled_from(names), max_size=2)) if names else ():
        message[name] = data.draw(_NUMBERS if name in ("rev", "start_ms", "end_ms") else _VALUES)
    try:
        decoded = JSON.decode(raw(JSON, {"type": kind.__struct_config__.tag, **message}), max_bytes=2**20)
    except GatewayError:
        return
    assert MSGPACK.decode(MSGPACK.encode(decoded), max_bytes=2**20) == decoded


@pytest.mark.parametrize(
    ("frame", "text", "start_ms"),
    [
        (r'"text": "cut \ud83d"', "cut \ufffd", None),
        (r'"text": "\ud83d\ude00 \ude00"', "\U0001f600 \ufffd", None),
        ('"text": "x", "start_ms": NaN', "x", None),
        ('"text": "x", "start_ms": -1.5', "x", -1.5),
        ('"text": "x", "start_ms": 1.0', "x", 1),
    ],
)
def test_what_is_nearly_json_costs_no_word(frame: str, text: str, start_ms: float | None) -> None:
    message = JSON.decode('{"type": "utterance.final", "id": "1", "rev": 1, ' + frame + "}", max_bytes=MAX)
    assert isinstance(message, UtteranceFinal)
    assert (message.text, message.start_ms) == (text, start_ms)


@pytest.mark.parametrize("kind", ["partial", "final"])
@BOTH
def test_a_frame_that_is_too_large_names_its_utterance(codec: Codec, kind: str) -> None:
    frame = raw(codec, {"type": f"utterance.{kind}", "id": "u1", "rev": 1, "text": "x" * 1_000})
    error = refusal(codec, frame, max_bytes=1_000)
    assert (error.code, error.utterance, error.of_final) == ("message_too_large", "u1", kind == "final")


@BOTH
def test_numbers_above_2_to_53_are_refused(codec: Codec) -> None:
    message = {"type": "utterance.final", "id": "1", "rev": 1, "text": "x"}
    codec.decode(raw(codec, {**message, "rev": 2**53 - 1}), max_bytes=MAX)
    assert refusal(codec, raw(codec, {**message, "rev": 2**53})).field == "rev"
    if not codec.binary:
        assert refusal(codec, raw(codec, {**message, "rev": 2**64})).field == "rev"
