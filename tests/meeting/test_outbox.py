"""What a lagging reader gets, and what it costs."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.meeting.outbox import Outbox, Payload
from gateway.protocol.codec import JSON, MSGPACK, Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    LanguagesChanged,
    Participant,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    Pong,
    ServerMessage,
    SessionStarted,
    Timings,
    TranslationDelta,
    TranslationFinal,
    UtteranceCancelled,
)


def delta(text: str, utterance: str = "u", lang: str = "ja", tentative: str = "") -> TranslationDelta:
    return TranslationDelta("p", utterance, lang, 1, text, tentative)


def final(text: str, utterance: str = "u", lang: str = "ja") -> TranslationFinal:
    return TranslationFinal("p", utterance, "Ana", lang, 1, text, 1, Timings(0, 0, 0), 1)


def caption(rev: int, utterance: str = "u", participant: str = "p", *, final: bool = False) -> Caption:
    return Caption(participant, utterance, "Ana", "en", rev, f"revision {rev}", final)


async def taken(outbox: Outbox) -> list[ServerMessage]:
    return [payload.message for payload in await outbox.get()]


async def test_messages_come_in_order() -> None:
    outbox = Outbox(10_000)
    outbox.put(Pong("1"))
    outbox.put(delta("a"))
    outbox.put(Pong("2"))
    assert await taken(outbox) == [Pong("1"), delta("a"), Pong("2")]


async def test_readers_who_lag_as_much_share_what_is_merged() -> None:
    readers = [Outbox(10_000) for _ in range(3)]
    sent = Payload(delta("a"))
    for payload in (sent, Payload(delta("b")), Payload(delta("c", tentative="d"))):
        for reader in readers:
            reader.put_shared(payload)
        if payload is sent:
            await readers[2].get()
    merged = [(await reader.get())[0] for reader in readers]
    assert merged[0] is merged[1]
    assert [payload.message for payload in merged] == [
        delta("abc", tentative="d"),
        delta("abc", tentative="d"),
        delta("bc", tentative="d"),
    ]


async def test_unsent_deltas_of_one_translation_merge_in_place() -> None:
    outbox = Outbox(10_000)
    outbox.put(delta("a", tentative="x"))
    outbox.put(delta("b", lang="de"))
    outbox.put(delta("c", tentative="y"))
    assert await taken(outbox) == [delta("ac", tentative="y"), delta("b", lang="de")]
    outbox.put(delta("d"))
    assert await taken(outbox) == [delta("d")]


async def test_the_final_replaces_unsent_deltas() -> None:
    outbox = Outbox(10_000)
    outbox.put(delta("a"))
    outbox.put(delta("b", utterance="v"))
    outbox.put(final("abc"))
    assert await taken(outbox) == [delta("b", utterance="v"), final("abc")]
    assert outbox.bytes == 0


async def test_newer_partial_and_final_replace_unsent_partials() -> None:
    outbox = Outbox(10_000)
    outbox.put(caption(1))
    outbox.put(caption(1, utterance="v"))
    outbox.put(caption(1, participant="q"))
    outbox.put(caption(2))
    outbox.put(caption(2, utterance="v", final=True))
    assert await taken(outbox) == [
        caption(1, participant="q"),
        caption(2),
        caption(2, utterance="v", final=True),
    ]
    assert outbox.bytes == 0


async def test_cancelled_utterance_leaves_only_its_news() -> None:
    outbox = Outbox(10_000)
    for message in (caption(1), delta("a"), delta("b", lang="de"), delta("c", utterance="v")):
        outbox.put(message)
    outbox.put(UtteranceCancelled("p", "u"))
    outbox.put(delta("d"))
    assert await taken(outbox) == [delta("c", utterance="v"), UtteranceCancelled("p", "u"), delta("d")]


async def test_a_final_caption_is_never_replaced() -> None:
    outbox = Outbox(10_000)
    outbox.put(caption(1, final=True))
    outbox.put(caption(1, final=True))
    assert await taken(outbox) == [caption(1, final=True)] * 2


async def test_only_the_newest_about_a_participant_waits() -> None:
    outbox = Outbox(10_000)
    outbox.put(ParticipantJoined("p", "Ana", None, []))
    outbox.put(ParticipantUpdated("p", "Ana", "en", []))
    outbox.put(ParticipantJoined("q", "Bo", None, []))
    outbox.put(ParticipantLeft("p", "Ana", "en", []))
    assert await taken(outbox) == [ParticipantJoined("q", "Bo", None, []), ParticipantLeft("p", "Ana", "en", [])]


async def test_only_the_newest_about_the_languages_waits() -> None:
    outbox = Outbox(10_000)
    outbox.put(LanguagesChanged(["en"], []))
    outbox.put(caption(1))
    outbox.put(LanguagesChanged(["en", "ja"], []))
    assert await taken(outbox) == [caption(1), LanguagesChanged(["en", "ja"], [])]


async def test_there_is_room_again_once_half_is_taken() -> None:
    outbox = Outbox(100_000)
    for n in range(300):
        outbox.put(Pong(str(n)))
    waiting = asyncio.ensure_future(outbox.room())
    await outbox.get()
    await asyncio.sleep(0)
    assert not waiting.done()
    while outbox.bytes > 50_000:
        await outbox.get()
    await waiting
    for n in range(300):
        outbox.put(Pong(str(n)))
    waiting = asyncio.ensure_future(outbox.room())
    outbox.close()
    await waiting


async def test_get_waits_for_a_put() -> None:
    outbox = Outbox(10_000)
    getting = asyncio.ensure_future(taken(outbox))
    await asyncio.sleep(0)
    assert not getting.done()
    outbox.put(Pong())
    assert await getting == [Pong()]


async def test_close_hands_out_the_rest_and_then_ends() -> None:
    outbox = Outbox(10_000)
    outbox.put(Pong())
    outbox.close()
    outbox.put(Pong("late"))
    assert await taken(outbox) == [Pong()]
    assert await outbox.get() == []


async def test_past_the_bound_it_overflows_once_and_holds_nothing() -> None:
    overflows: list[bool] = []
    outbox = Outbox(2_000, on_overflow=lambda: overflows.append(True))
    for n in range(50):
        outbox.put(Caption("p", f"u{n}", "Ana", "en", 1, "x" * 100, final=True))
    assert overflows == [True]
    assert (outbox.overflowed, outbox.bytes) == (True, 0)
    assert await outbox.get() == []


async def test_the_bound_holds_for_every_kind_of_message() -> None:
    outbox = Outbox(100_000)
    for n in range(10):
        outbox.put(Error("unknown_type", "x" * 10_000, utterance=f"u{n}"))
    assert outbox.overflowed


_puts = st.lists(
    st.one_of(
        st.builds(delta, st.text(max_size=3), st.sampled_from("uv"), st.sampled_from(["ja", "de"])),
        st.builds(final, st.text(max_size=3), st.sampled_from("uv"), st.sampled_from(["ja", "de"])),
        st.builds(Pong, st.text(max_size=3)),
        st.none(),  # the writer takes what is there
    ),
    max_size=40,
)


@given(_puts)
def test_merging_keeps_the_readers_text(puts: list[ServerMessage | None]) -> None:
    async def play() -> None:
        outbox = Outbox(10**9)
        sent: list[ServerMessage] = []
        for message in puts:
            if message is None:
                if outbox.bytes:
                    sent += await taken(outbox)
            else:
                outbox.put(message)
        outbox.close()
        sent += await taken(outbox)
        assert await outbox.get() == []
        assert outbox.bytes == 0
        assert shown(sent) == shown([message for message in puts if message is not None])
        assert [m for m in sent if isinstance(m, Pong)] == [m for m in puts if isinstance(m, Pong)]

    asyncio.run(play())


def shown(messages: list[ServerMessage]) -> dict[tuple[str, str], str]:
    texts: dict[tuple[str, str], str] = {}
    for message in messages:
        match message:
            case TranslationDelta(utterance=utterance, lang=lang, committed=committed):
                texts[utterance, lang] = texts.get((utterance, lang), "") + committed
            case TranslationFinal(utterance=utterance, lang=lang, text=text):
                texts[utterance, lang] = text
    return texts


@given(st.lists(st.sampled_from(["put", "turn", "full", "room"]), max_size=40))
def test_what_is_written_at_once_overtakes_nothing(steps: list[str]) -> None:
    """Whatever the connection takes when, each message is written once, in order."""

    async def play() -> None:
        written: list[ServerMessage] = []
        sent = 0
        has_room = asyncio.Event()
        has_room.set()

        def write_now(payload: Payload) -> bool:
            if has_room.is_set():
                written.append(payload.message)
            return has_room.is_set()

        outbox = Outbox(1_000_000, write_now=write_now)

        async def write() -> None:
            while payloads := await outbox.get():
                for payload in payloads:
                    while not write_now(payload):
                        await has_room.wait()

        writer = asyncio.create_task(write())
        for step in [*steps, "room"]:
            match step:
                case "put":
                    sent += 1
                    outbox.put(Pong(str(sent)))
                case "turn":
                    await asyncio.sleep(0)
                case "full":
                    has_room.clear()
                case "room":
                    has_room.set()
        outbox.close()
        await writer
        assert written == [Pong(str(n)) for n in range(1, sent + 1)]

    asyncio.run(play())


async def test_blocked_writes_are_merged_until_possible() -> None:
    written: list[ServerMessage] = []
    has_room = False

    def write_now(payload: Payload) -> bool:
        if has_room:
            written.append(payload.message)
        return has_room

    outbox = Outbox(10_000, write_now=write_now)
    taking = asyncio.create_task(taken(outbox))
    await asyncio.sleep(0)
    outbox.put(delta("a"))
    has_room = True
    outbox.put(delta("b"))
    assert await taking == [delta("ab")]
    assert not written
    taking = asyncio.create_task(taken(outbox))
    await asyncio.sleep(0)
    outbox.put(delta("c"))
    assert written == [delta("c")]
    outbox.close()
    assert await taking == []
    assert outbox.bytes == 0


@pytest.mark.parametrize("waits", [True, False], ids=["the writer waits", "the writer comes later"])
async def test_released_first_message_precedes_held_ones(waits: bool) -> None:
    written: list[ServerMessage] = []

    def write_now(payload: Payload) -> bool:
        written.append(payload.message)
        return True

    outbox = Outbox(10_000, write_now=write_now)
    outbox.put(Pong("before"))
    assert await taken(outbox) == [Pong("before")]
    taking = asyncio.create_task(taken(outbox))
    if waits:
        await asyncio.sleep(0)
    outbox.hold()
    outbox.put(Pong("early"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not taking.done()
    outbox.release(Pong("first"))
    outbox.put(Pong("last"))
    assert [*await taking, *written] == [Pong("first"), Pong("early"), Pong("last")]


async def test_outbox_closed_while_held_ends() -> None:
    outbox = Outbox(10_000)
    outbox.hold()
    outbox.put(Pong("early"))
    outbox.close()
    assert await taken(outbox) == [Pong("early")]
    assert await taken(outbox) == []


# ---------------------------------------------------------------- a message on its way to many


# Control characters are six bytes each in JSON, and nobody says them.
said = st.text(st.characters(exclude_categories=("Cc", "Cs")))


def merging(committed: str, tentative: str = "", rev: int = 1) -> TranslationDelta:
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


def test_merged_deltas_keep_committed_and_newest_tentative() -> None:
    earlier, later = Payload(merging("a", "b", rev=1)), Payload(merging("c", "d", rev=2))
    assert later.behind(earlier).message == merging("ac", "d", rev=2)
    assert (earlier.message, later.message) == (merging("a", "b", rev=1), merging("c", "d", rev=2))


def test_equally_lagging_readers_share_merged_deltas() -> None:
    later = Payload(merging("c"))
    first, second = Payload(merging("a")), Payload(merging("b"))
    merged = later.behind(first)
    assert later.behind(first) is merged
    assert later.behind(second).message == merging("bc")
    assert later.behind(first).message == merging("ac")
