"""Encodes and decodes messages: JSON in text frames, msgpack in binary frames.

Knows: encodings, and how a decoding failure becomes an error that names the field.
Must not know: what the messages mean or in which order they may come.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from gateway.domain.errors import InvalidMessage, MessageTooLarge, ProtocolError, UnknownType
from gateway.protocol.messages import ClientMessage, ServerMessage, UtteranceFinal

_PATH = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_ECHO_CHARS = 64
_MISSING = re.compile(r"missing required field `(?P<name>[^`]+)`")


_Message = TypeVar("_Message", bound=msgspec.Struct)
_Refusal = TypeVar("_Refusal", bound=ProtocolError)


class _Peek(msgspec.Struct):
    """The type and the utterance id of an invalid message, for the error."""

    type: str = ""
    id: str | None = None


class Codec:
    """One subprotocol: `encode` and `decode`, and whether its frames are text or binary."""

    def __init__(self, subprotocol: str, format_name: str, encoding: Any, *, binary: bool) -> None:
        """encoding: msgspec's module for the format."""
        self.subprotocol = subprotocol
        self.binary = binary
        self._format = format_name
        self._encode: Callable[[Any], bytes] = encoding.encode
        self._client = encoding.Decoder(ClientMessage)
        self._server = encoding.Decoder(ServerMessage)
        self._peek = encoding.Decoder(_Peek)
        self._plain: Callable[[str | bytes], Any] = encoding.decode

    def __repr__(self) -> str:
        return f"Codec({self.subprotocol!r})"

    def encode(self, message: ServerMessage | ClientMessage) -> str | bytes:
        """The frame for a message: `str` for a text frame, `bytes` for a binary one."""
        data = self.encode_bytes(message)
        return data if self.binary else data.decode()

    def encode_bytes(self, message: ServerMessage | ClientMessage) -> bytes:
        """The content of the frame for a message."""
        return self._encode(message)

    def decode(self, frame: str | bytes, *, max_bytes: int) -> ClientMessage:
        """The message in a frame from a client.

        Raises `MessageTooLarge`, `UnknownType`, or `InvalidMessage` with `field` and `utterance` where known.
        """
        size = len(frame) if isinstance(frame, bytes) else len(frame.encode("utf-8", "surrogatepass"))
        if size > max_bytes:
            raise self._about(frame, MessageTooLarge(f"The message has {size} bytes; the limit is {max_bytes}."))
        if isinstance(frame, bytes) != self.binary:
            wanted = "binary" if self.binary else "text"
            raise InvalidMessage(f"{self.subprotocol} uses {wanted} frames.")
        return self._decoded(frame)

    def _decoded(self, frame: str | bytes) -> ClientMessage:
        """Raises `UnknownType` or `InvalidMessage`."""
        try:
            message: ClientMessage = self._client.decode(frame)
        except msgspec.ValidationError as error:
            try:
                return self._with_integers(frame, error)
            except msgspec.ValidationError as last:
                raise self._explain(frame, last) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            if isinstance(frame, str) and (repaired := _repaired(frame)) != frame:
                return self._decoded(repaired)
            invalid = InvalidMessage(f"The message is not valid {self._format}: {error}.")
            raise self._about(frame, invalid) from None
        return message

    def _with_integers(self, frame: str | bytes, error: msgspec.ValidationError) -> ClientMessage:
        """The message with integers where whole numbers came as floats, as of languages with one kind of number.

        error: why it is no message as it is. Raises `ValidationError`.
        """
        if not lacks_integer(error):
            raise error
        try:
            given = whole_numbers(self._plain(frame))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise error from None
        message: ClientMessage = msgspec.convert(given, ClientMessage)
        return message

    def decode_server(self, frame: str | bytes) -> ServerMessage:
        """The message in a frame from a gateway, for clients.

        Raises `UnknownType` for a message of a newer gateway, which the caller skips, and `InvalidMessage`.
        """
        try:
            message: ServerMessage = self._server.decode(frame)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            if isinstance(error, msgspec.ValidationError):
                explained = self._explain(frame, error)
                if isinstance(explained, UnknownType):
                    raise explained from None
            raise InvalidMessage(f"The gateway sent what this client cannot read: {error}.") from None
        return message

    def _explain(self, frame: str | bytes, error: msgspec.ValidationError) -> InvalidMessage | UnknownType:
        text = str(error)
        if text.startswith("Invalid value") and text.endswith("- at `$.type`"):
            unknown = f"There is no message type {self._peek_at(frame).type[:_ECHO_CHARS]!r}."
            return self._about(frame, UnknownType(unknown, field="type"))
        field, sentence = where_and_why(error)
        return self._about(frame, InvalidMessage(f"{sentence}.", field=field))

    def _about(self, frame: str | bytes, error: _Refusal) -> _Refusal:
        """The error, with what can be told of the message."""
        peek = self._peek_at(frame)
        # The error repeats only a bounded part: it must not be larger than the message that caused it.
        if peek.id is not None and len(peek.id) <= _ECHO_CHARS:
            error.utterance, error.of_final = peek.id, peek.type == UtteranceFinal.__struct_config__.tag
        return error

    def _peek_at(self, frame: str | bytes) -> _Peek:
        try:
            peek: _Peek = self._peek.decode(frame)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return _Peek()
        return peek


JSON = Codec("translation.v1.json", "JSON", msgspec.json, binary=False)
MSGPACK = Codec("translation.v1.msgpack", "msgpack", msgspec.msgpack, binary=True)
CODECS = {codec.subprotocol: codec for codec in (JSON, MSGPACK)}


def _repaired(frame: str) -> str:
    """A frame that is not JSON, as the JSON that was meant: what languages write that are not strict.

    Halves of characters, as of a text that was cut by its UTF-16 units, become U+FFFD, and NaN
    null. The frame itself if it is something else.
    """
    try:
        text = json.dumps(json.loads(frame, parse_constant=lambda _: None), ensure_ascii=False)
    except (ValueError, RecursionError):
        return frame
    return whole_characters(text)


def lacks_integer(error: msgspec.ValidationError) -> bool:
    """Whether a value is wrong because a float is where an integer has to be."""
    return re.match(r"Expected `int( \| null)?`, got `float`", str(error)) is not None


def whole_numbers(value: Any) -> Any:
    """The value with integers for whole floats, also within objects."""
    match value:
        case dict():
            return {name: whole_numbers(each) for name, each in value.items()}
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def whole_characters(text: str) -> str:
    """The text with U+FFFD in place of halves of characters, which no frame can carry."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def well_formed(message: _Message) -> _Message:
    """The message with whole characters in all of its texts."""
    try:
        msgspec.json.encode(message)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(message), ensure_ascii=False)
        return msgspec.json.decode(whole_characters(text), type=type(message))
    return message


def where_and_why(error: msgspec.ValidationError) -> tuple[str | None, str]:
    """The field that msgspec complains about, as a path (`reads[0]`), and the complaint without it."""
    text = str(error)
    at = _PATH.search(text)
    path = at.group("path") if at else ""
    if missing := _MISSING.search(text):
        path = f"{path}.{missing.group('name')}" if path else missing.group("name")
    return path[:_ECHO_CHARS] or None, (text[: at.start()] if at else text)[:200]


def negotiate(offered: Iterable[str]) -> tuple[Codec, str | None]:
    """The codec for the subprotocols that a client offers, and the subprotocol to answer with.

    The client's order is its preference. The answer is None if it offers none; the codec is then JSON. Raises
    `InvalidMessage` if it offers only unknown ones: a browser drops a connection whose server selects none.
    """
    names = list(offered)
    for name in names:
        if name in CODECS:
            return CODECS[name], name
    if names:
        raise InvalidMessage(f"None of {names} is spoken here; offer one of {list(CODECS)}.")
    return JSON, None
