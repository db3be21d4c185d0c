"""Meetings played by a client process: its WebSockets, what it makes of messages, meetings on a gateway."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from gateway.config import Settings
from gateway.domain.log import segment_id
from gateway.protocol.messages import (
    Caption,
    Error,
    ServerMessage,
    SessionStart,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from gateway.protocol.messages import Timings as Taken
from loadtest.driving import meetings, wire
from loadtest.driving.exchange import Share
from loadtest.driving.meetings import Meetings, Spoken, Texts
from loadtest.driving.requests import Tally
from loadtest.driving.wire import Wire, open_wire
from loadtest.results import LoadtestError
from loadtest.trial.values import Delivered, InMeetings, Line, Partial, Record, WebSocketGateway
from tests.gateways import Running, running
from tests.keys import Keyring

ALONE = Share(0, 1, "alone")


# ---------------------------------------------------------------- the wire

Serve = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def server(speak: Serve) -> AsyncIterator[str]:
    """A WebSocket server that does this with each connection; its address."""
    protocols = [Subprotocol("translation.v1.json")]
    async with serve(speak, "127.0.0.1", 0, subprotocols=protocols, compression=None) as listening:
        yield f"http://127.0.0.1:{next(iter(listening.sockets)).getsockname()[1]}"


class Received:
    """What came over a wire."""

    def __init__(self, wire: Wire) -> None:
        self.texts: asyncio.Queue[bytes] = asyncio.Queue()
        self.ended: asyncio.Queue[str] = asyncio.Queue()
        wire.take = self.texts.put_nowait
        wire.ended = self.ended.put_nowait


@asynccontextmanager
async def wired(speak: Serve) -> AsyncIterator[tuple[Wire, Received]]:
    async with server(speak) as url:
        wire = await open_wire(url)
        yield wire, Received(wire)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 300_000])
async def test_messages_of_any_size_are_echoed(size: int) -> None:
    async def echo(connection: ServerConnection) -> None:
        async for message in connection:
            await connection.send(message)

    async with wired(echo) as (wire, received):
        sent = [b"x" * size, "größer".encode(), b"y" * size]
        for text in sent:
            wire.send(text)
        assert [await received.texts.get() for _ in sent] == sent
        wire.close()


async def test_messages_in_pieces_are_whole() -> None:
    async def in_pieces(connection: ServerConnection) -> None:
        await connection.send("at once")
        for byte in b"\x81\x05hello\x81\x02" + b"yo":
            connection.transport.write(bytes([byte]))
            await asyncio.sleep(0)
        await connection.wait_closed()

    async with wired(in_pieces) as (wire, received):
        texts = [await received.texts.get() for _ in range(2)]
        assert texts[-1] in (b"hello", b"yo")
        wire.close()


async def test_a_ping_is_answered() -> None:
    answered = asyncio.Event()

    async def ping(connection: ServerConnection) -> None:
        await (await connection.ping(b"still there?"))
        answered.set()

    async with server(ping) as url:
        wire = await open_wire(url)
        await answered.wait()
        wire.close()


async def vanish(connection: ServerConnection) -> None:
    connection.transport.abort()


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (lambda connection: connection.close(4008, "too slow"), "closed with 4008: too slow"),
        (vanish, "the connection was lost"),
        (lambda connection: connection.send(b"\x00"), "a frame of a kind that no gateway sends (0x82)"),
    ],
)
async def test_the_end_is_told_once_with_its_reason(end: Serve, told: str) -> None:
    async def speak(connection: ServerConnection) -> None:
        await connection.recv()
        await end(connection)
        await connection.wait_closed()

    async with wired(speak) as (wire, received):
        wire.send(b"now")
        assert await received.ended.get() == wire.lost == told
        wire.send(b"into the void")
        assert received.ended.empty()


async def test_a_closed_wire_says_only_goodbye() -> None:
    codes: asyncio.Queue[int | None] = asyncio.Queue()

    async def listen(connection: ServerConnection) -> None:
        await connection.wait_closed()
        codes.put_nowait(connection.close_code)

    async with wired(listen) as (wire, received):
        wire.close()
        assert await codes.get() == 1000
        assert received.ended.empty()


async def test_what_is_no_gateway_is_told() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(InvalidStatus):
            await open_wire(f"http://127.0.0.1:{port}")
    with pytest.raises(ConnectionRefusedError):
        await open_wire(f"http://127.0.0.1:{port}")
    with pytest.raises(LoadtestError, match="without TLS"):
        await open_wire("https://127.0.0.1")


# ---------------------------------------------------------------- what becomes of lines

ONE = Line("one", "Hello.", "en", ("de", "ja"), 1.0, "m", "Ann", (Partial(0.5, "Hel"),))
TWO = Line("two", "Bye.", "en", ("de",), 2.0, "n", "Bob")


class Pass:
    """A pass that began ten seconds ago, and messages in it."""

    def __init__(self, lines: Sequence[Line] = (ONE, TWO), own: Sequence[str] = ("m", "n")) -> None:
        self.tally = Tally(time.monotonic() - 10, keep_text=True, processes=1)
        self.spoken = Spoken(self.tally, lines, own)
        self._texts: defaultdict[str, Texts] = defaultdict(self.spoken.texts)

    def hear(self, message: ServerMessage, keeps: Sequence[str] = ("de", "ja"), session: str = "") -> None:
        self.spoken.arrived(msgspec.json.encode(message), keeps, self._texts[session])

    def say(self, line: Line, segments: int = 1) -> None:
        """Its final is sent, and accepted in so many segments."""
        self.spoken.said(line, None)
        for number in range(1, segments + 1):
            id = segment_id(self.spoken.id(line), number)
            if number == segments:
                self.hear(UtteranceAccepted(self.spoken.id(line), 2, number))
            self.hear(Caption("p", id, "A", "en", 2, "Hello.", True, number))

    def delta(self, line: Line, rev: int, lang: str = "de", text: str = "Ha") -> TranslationDelta:
        return TranslationDelta("p", self.spoken.id(line), lang, rev, text)

    def final(self, line: Line, rev: int = 2, lang: str = "de", number: int = 1) -> TranslationFinal:
        id = segment_id(self.spoken.id(line), number)
        return TranslationFinal("p", id, "A", lang, rev, "Hallo.", 3, Taken(0, 1, 2), 7)

    @property
    def records(self) -> dict[tuple[str, str], Record]:
        return {(record.line, record.target): record for record in self.tally.records}

    def delivered(self) -> Delivered:
        """What was, once the pass is over."""
        self.spoken.count_finals()
        return self.tally.delivered()


def test_a_line_has_records_per_language() -> None:
    played = Pass()
    played.say(ONE)
    played.hear(played.delta(ONE, rev=2))
    played.hear(played.delta(ONE, rev=2, text="llo."))
    played.hear(played.final(ONE))
    played.hear(played.final(ONE, lang="ja"))
    german, japanese = played.records["one", "de"], played.records["one", "ja"]
    assert (german.text, german.tokens, german.due_s) == ("Hallo.", 7, 1.0)
    assert german.sent_s <= (german.first_s or 0) < (german.done_s or 0)
    assert japanese.first_s == japanese.done_s
    assert played.delivered().finals == 2
    assert played.delivered().frames == 4 + 2


def test_a_partials_text_is_not_the_finals() -> None:
    played = Pass()
    played.hear(played.delta(ONE, rev=1))
    played.say(ONE)
    played.hear(played.delta(ONE, rev=2, text=""))
    played.hear(played.final(ONE))
    assert played.records["one", "de"].first_s == played.records["one", "de"].done_s


def test_first_words_may_be_a_partials() -> None:
    played = Pass()
    played.hear(played.delta(ONE, rev=1, text=""))
    before_s = played.tally.now_s()
    played.hear(played.delta(ONE, rev=1))
    shown_s = played.tally.now_s()
    played.say(ONE)
    played.say(TWO)
    played.hear(played.delta(ONE, rev=2))
    for final in (played.final(ONE), played.final(ONE, lang="ja"), played.final(TWO)):
        played.hear(final)
    german, japanese, bye = (played.records[key] for key in (("one", "de"), ("one", "ja"), ("two", "de")))
    assert german.began_s == 0.5
    assert before_s - 1e-6 <= (german.shown_s or 0) <= shown_s + 1e-6 < (german.first_s or 0)
    # Nothing came before the final, or there was nothing before it.
    assert (japanese.began_s, japanese.shown_s) == (0.5, japanese.done_s)
    assert (bye.began_s, bye.shown_s) == (bye.due_s, bye.done_s)


def test_without_partials_no_first_words() -> None:
    played = Pass((TWO,))
    played.say(TWO)
    played.hear(played.final(TWO))
    record = played.records["two", "de"]
    assert (record.began_s, record.shown_s) == (None, None)
    assert b"shown_s" not in msgspec.json.encode(record)


def test_who_keeps_no_records_is_counted() -> None:
    played = Pass()
    played.say(ONE)
    played.hear(played.delta(ONE, rev=2), keeps=())
    played.hear(played.final(ONE), keeps=())
    assert not played.records
    delivered = played.delivered()
    assert (delivered.frames, delivered.finals, len(delivered.final_ms)) == (2 + 2, 1, 1)
    assert delivered.final_ms[0] == pytest.approx(9_000, rel=0.1)


def test_each_session_counts_a_finals_first_text() -> None:
    played = Pass()
    played.hear(played.delta(ONE, rev=1))
    played.hear(played.delta(ONE, rev=2, text=""))
    assert not played.delivered().text_ms
    for session in ("a", "b"):
        played.hear(played.delta(ONE, rev=2), keeps=(), session=session)
        played.hear(played.delta(ONE, rev=2, text="llo."), keeps=(), session=session)
        played.hear(played.final(ONE), keeps=(), session=session)
        # Where nothing came before, the final is the first text.
        played.hear(played.final(ONE, lang="ja"), keeps=(), session=session)
    assert played.delivered().text_ms == pytest.approx([9_000] * 4, rel=0.1)


def test_a_final_is_accepted_once() -> None:
    played = Pass()
    played.spoken.said(ONE, None)
    for _ in range(2):
        played.hear(UtteranceAccepted(played.spoken.id(ONE), 2, 1))
    played.hear(UtteranceAccepted(played.spoken.id(TWO), 1, 2))
    [accepted_ms] = played.delivered().accepted_ms
    assert 0 <= accepted_ms < 9_000


def test_all_segments_complete_a_line() -> None:
    played = Pass()
    # The first is settled while the line is being said.
    played.hear(played.delta(ONE, rev=1))
    played.hear(played.final(ONE, rev=1))
    played.say(ONE, segments=3)
    played.hear(played.final(ONE, rev=1, lang="ja"))
    before_s = played.tally.now_s()
    played.hear(played.final(ONE, number=3))
    first_s = played.tally.now_s()
    played.hear(played.final(ONE, number=3, lang="ja"))
    assert not played.records
    played.hear(played.final(ONE, number=2))
    played.hear(
        TranslationFailed("p", played.spoken.id(ONE) + "~2", "A", "ja", 2, "engine_failed", "It broke.", 3)
    )
    german, japanese = played.records["one", "de"], played.records["one", "ja"]
    assert (german.text, german.tokens, german.failed) == ("Hallo. Hallo. Hallo.", 21, None)
    # Text that came before the final was accepted is not the final's first text.
    assert before_s - 1e-6 <= (german.first_s or 0) <= first_s + 1e-6 < (german.done_s or 0)
    assert (japanese.failed, japanese.text) == ("engine_failed", "")
    assert played.delivered().finals == 1


def test_the_segment_count_may_come_last() -> None:
    played = Pass((TWO,))
    played.spoken.said(TWO, None)
    played.hear(played.final(TWO, number=1))
    played.hear(played.final(TWO, number=2))
    assert not played.records
    ended_s = played.tally.now_s()
    played.say(TWO, segments=2)
    assert (played.records["two", "de"].done_s or 99) <= ended_s + 1e-6


def test_other_passes_are_only_counted() -> None:
    played = Pass()
    foreign = replace(played.final(ONE), utterance="foreign")
    played.hear(foreign)
    played.hear(replace(foreign, utterance="0-0"))
    assert not played.records
    assert played.delivered().finals == 0
    assert played.delivered().frames == 2


def test_failures_have_their_code() -> None:
    played = Pass()
    played.say(ONE)
    played.hear(TranslationFailed("p", played.spoken.id(ONE), "A", "de", 2, "engine_failed", "It broke.", 3))
    played.hear(Error("overloaded", "Full.", utterance=played.spoken.id(ONE)))
    assert {target: record.failed for (_, target), record in played.records.items()} == {
        "de": "engine_failed",
        "ja": "overloaded",
    }
    assert played.records["one", "ja"].done_s is None


def test_a_partial_may_be_refused() -> None:
    played = Pass()
    played.hear(Error("overloaded", "Full.", utterance=played.spoken.id(ONE)))
    played.hear(Error("draining", "Leaving."))
    assert not played.records


def test_a_lost_session_fails_its_records() -> None:
    played = Pass()
    played.say(ONE)
    played.spoken.lost("Ann of m", "m", ("de",), "closed with 4008")
    assert {key: record.failed for key, record in played.records.items()} == {
        ("session Ann of m", ""): "closed with 4008",
        ("one", "de"): "closed with 4008",
    }
    played.spoken.said(TWO, "closed with 4008")
    assert played.records["two", "de"].failed == "closed with 4008"


def test_a_lost_speaker_fails_untold_lines() -> None:
    played = Pass()
    played.spoken.said(ONE, None)
    played.hear(played.final(ONE, lang="ja"))
    played.spoken.lost("Ann of m", "m", (), "closed with 4008")
    assert [record.failed for record in played.tally.records] == ["closed with 4008"] * 3


async def test_a_pass_waits_for_its_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Pass((TWO,))
    waiting = asyncio.ensure_future(played.spoken.over({("n", "de"): 2}))
    played.say(TWO)
    played.hear(played.final(TWO))
    await asyncio.sleep(0.15)
    assert not waiting.done()
    played.hear(played.final(TWO), keeps=())
    await waiting
    monkeypatch.setattr("loadtest.driving.meetings._QUIET_S", 0.1)
    await played.spoken.over({("n", "de"): 3})


# ---------------------------------------------------------------- meetings on a gateway


def said(meeting: str, *times_s: float, speakers: int = 3, targets: tuple[str, ...] = ("de", "ja")) -> list[Line]:
    """Lines of a meeting, whose speakers take turns."""
    return [
        Line(
            f"{meeting} {number}",
            f"Number {number} is said here.",
            "en",
            targets,
            due_s,
            meeting,
            f"speaker {number % speakers}",
            (Partial(due_s / 2, f"Number {number} is"),),
        )
        for number, due_s in enumerate(times_s)
    ]


def address(gateway: Running) -> WebSocketGateway:
    return WebSocketGateway(f"http://127.0.0.1:{gateway.port}")


async def play(client: Meetings, lines: Sequence[Line], *, limit_s: float = 120.0) -> Tally:
    await client.prepare(lines)
    return await play_prepared(client, limit_s=limit_s)


async def play_prepared(client: Meetings, *, begin_s: float | None = None, limit_s: float = 120.0) -> Tally:
    tally = Tally(begin_s or time.monotonic() + 0.02, keep_text=True, processes=1)
    async with asyncio.timeout(limit_s):
        await client.play(tally)
    return tally


async def test_every_participant_hears_everything() -> None:
    lines = sorted([*said("m", 0.1, 0.2, 0.3), *said("n", 0.15, 0.25)], key=lambda line: line.due_s)
    load = InMeetings(meetings=2, speakers=5, per_s=1, readers=4, idle=3)
    async with running() as gateway, meetings.client(address(gateway), load, ALONE) as client:
        assert gateway.gateway.stream.open_sessions == 3
        tally = await play(client, lines)
        assert gateway.gateway.stream.open_sessions == 3 + 5 + 2 * 4
    records = {(record.line, record.target): record for record in tally.records}
    assert set(records) == {(line.id, target) for line in lines for target in line.targets}
    for record in tally.records:
        assert record.failed is None
        assert 0 <= record.due_s <= record.sent_s + 0.002
        assert record.sent_s <= (record.first_s or 0) <= (record.done_s or 0)
    assert records["m 1", "ja"].text == "[ja] Number 1 is said here."
    # Three speakers of m and two of n, and four readers of each, each of whom reads one language.
    assert tally.delivered().finals == 3 * (3 + 4) + 2 * (2 + 4)
    assert tally.failed == 0


async def test_passes_share_sessions() -> None:
    lines = said("m", 0.05, 0.1)
    async with running() as gateway, meetings.client(address(gateway), InMeetings(1, 2, 1), ALONE) as client:
        first = await play(client, lines)
        again = await play(client, lines)
        assert gateway.gateway.stream.open_sessions == 2
        more = await play(client, said("m", 0.05, 0.1, 0.15))
        assert gateway.gateway.stream.open_sessions == 3
    assert len(first.records) == len(again.records) == 4
    assert len(more.records) == 6
    assert not any(record.failed for record in (*first.records, *again.records, *more.records))


async def test_whole_meetings_and_readers_are_shared_out() -> None:
    lines = [*said("a", 0.1, 0.2), *said("b", 0.1), *said("c", 0.1)]
    load = InMeetings(meetings=3, speakers=4, per_s=1, readers=3, idle=5)
    async with (
        running() as gateway,
        meetings.client(address(gateway), load, Share(0, 2, "both")) as one,
        meetings.client(address(gateway), load, Share(1, 2, "both")) as other,
    ):
        own = [{line.meeting for line in await client.prepare(lines)} for client in (one, other)]
        assert own == [{"a", "c"}, {"b"}]
        assert gateway.gateway.stream.open_sessions == 5 + 4 + 3 * 3
        begin_s = time.monotonic() + 0.05
        tallies = await asyncio.gather(*(play_prepared(each, begin_s=begin_s) for each in (one, other)))
    assert [len(tally.records) for tally in tallies] == [6, 2]
    # Both languages are read in each meeting: by two speakers, or by the only one; and by three readers.
    assert sum(tally.delivered().finals for tally in tallies) == 4 * (2 + 3)


async def test_a_meeting_keeps_its_process() -> None:
    load = InMeetings(meetings=2, speakers=2, per_s=1, readers=1)
    async with (
        running() as gateway,
        meetings.client(address(gateway), load, Share(0, 2, "both")) as one,
        meetings.client(address(gateway), load, Share(1, 2, "both")) as other,
    ):
        for client in (one, other):
            await client.prepare([*said("a", 0.1), *said("b", 0.1)])
        assert [await client.prepare(said("b", 0.1)) for client in (one, other)] == [[], said("b", 0.1)]
        assert gateway.gateway.stream.open_sessions == 4


async def test_an_unread_language_is_told_early() -> None:
    async with running() as gateway, meetings.client(address(gateway), InMeetings(1, 1, 1), ALONE) as client:
        await play(client, said("m", 0.05, speakers=1, targets=("de",)))
        with pytest.raises(LoadtestError, match="has read ja from the first pass on"):
            await client.prepare(said("m", 0.05, speakers=1, targets=("de", "ja")))


async def test_a_session_closed_is_a_failed_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadtest.driving.meetings._QUIET_S", 0.1)
    async with (
        running() as gateway,
        meetings.client(address(gateway), InMeetings(1, 2, 1, idle=1), ALONE) as client,
    ):
        await client.prepare(said("m", 0.05, 0.1))
        await gateway.gateway.stream.close_all(1.0)
        tally = await play_prepared(client)
    lost = [record for record in tally.records if record.line.startswith("session ")]
    assert {record.line for record in lost} == {
        "session idle session 0",
        "session speaker 0 of m",
        "session speaker 1 of m",
    }
    assert len(tally.records) == 3 + 4
    assert all((record.failed or "").startswith("closed with 1012") for record in tally.records)


@pytest.mark.parametrize("processes", [1, 2])
async def test_an_empty_pass_names_lost_sessions(processes: int) -> None:
    load = InMeetings(0, 0, 0.0, idle=5)
    async with running() as gateway, AsyncExitStack() as stack:
        shares = [Share(index, processes, "both") for index in range(processes)]
        clients = [
            await stack.enter_async_context(meetings.client(address(gateway), load, share)) for share in shares
        ]
        assert not [record for client in clients for record in (await play(client, [])).records]
        await gateway.gateway.stream.close_all(1.0)
        records = [record for client in clients for record in (await play(client, [])).records]
    assert sorted(record.line for record in records) == [f"session idle session {number}" for number in range(5)]
    assert all((record.failed or "").startswith("closed with 1012") for record in records)


async def test_a_failed_translation_ends_the_pass() -> None:
    [line] = said("m", 0.05, speakers=1)
    failing = replace(line, text="FAIL here please", partials=())
    async with running() as gateway, meetings.client(address(gateway), InMeetings(1, 1, 1), ALONE) as client:
        tally = await play(client, [failing])
    assert {record.failed for record in tally.records} == {"engine_failed"}


async def test_names_of_any_length_can_be_replayed() -> None:
    line = replace(said("m", 0.05)[0], meeting="weekly " * 20, speaker="Ann " * 50)
    async with running() as gateway, meetings.client(address(gateway), InMeetings(1, 1, 1), ALONE) as client:
        tally = await play(client, [line])
    assert [record.failed for record in tally.records] == [None, None]


async def test_a_missing_gateway_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_TRIES", 3)
    monkeypatch.setattr(wire, "_PAUSE_S", 0.01)
    async with running() as gateway:
        gone = address(gateway)
    with pytest.raises(LoadtestError, match="opens no further session"):
        async with meetings.client(gone, InMeetings(0, 0, 0.0, idle=1), ALONE):
            pass


async def test_a_full_gateway_is_quoted() -> None:
    async with running(Settings(max_sessions=3)) as gateway:
        with pytest.raises(LoadtestError, match="This gateway holds 3 sessions already"):
            async with meetings.client(address(gateway), InMeetings(0, 0, 0.0, idle=4), ALONE):
                pass


async def test_a_refused_session_is_not_retried() -> None:
    line = replace(said("m", 0.05, speakers=1)[0], targets=("xx",))
    async with running() as gateway, meetings.client(address(gateway), InMeetings(1, 1, 1), ALONE) as client:
        with pytest.raises(LoadtestError, match=r"refuses a session: .*xx"):
            await client.prepare([line])


async def test_sessions_open_with_a_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys, opened = Keyring(tmp_path), asyncio.Queue[Wire]()
    wanted: list[wire.Wanted] = [(SessionStart(reads=["ja"]), opened.put_nowait)]
    async with running(keys.settings()) as gateway:
        url = f"http://127.0.0.1:{gateway.port}"
        monkeypatch.delenv("GATEWAY_TOKEN", raising=False)
        with pytest.raises(LoadtestError, match="needs a valid token"):
            await wire.open_all(url, wanted)
        monkeypatch.setenv("GATEWAY_TOKEN", keys.api_key)
        await wire.open_all(url, wanted)
        opened.get_nowait().close()


def test_too_many_connections_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (1_024, 5_000))
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: asked.append(limits))
    wire.allow_files(4_000)
    assert asked == [(5_000, 5_000)]
    with pytest.raises(LoadtestError, match="no 10000 connections"):
        wire.allow_files(10_000)
