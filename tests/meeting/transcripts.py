"""Meetings as logs have them, and any meeting, for tests of transcripts and their files."""

from __future__ import annotations

from hypothesis import strategies as st

from gateway.domain.log import LoggedEvent, Publication, Said, Timings, Translated, Untranslated, Utterance
from gateway.meeting.transcript import Transcript, transcript

BEGAN_MS = 1_767_607_200_000
ANA, KENJI = "a1a1a1a1", "b2b2b2b2"
NAMES = {ANA: "Ana", KENJI: "Kenji"}


def said(
    text: str,
    *,
    by: str = ANA,
    id: str = "1",
    lang: str = "en",
    start_ms: int | None = None,
    end_ms: int | None = None,
    speaker: str | None = None,
) -> Said:
    name = NAMES[by] if speaker is None else speaker
    return Said(Utterance(id, 1, text, lang, by, name, final=True, start_ms=start_ms, end_ms=end_ms))


def translated(text: str, *, by: str = ANA, id: str = "1", lang: str = "ja") -> Translated:
    return Translated(by, id, NAMES[by], lang, 1, text, Timings(0, 1, 2), tokens=3)


def untranslated(*, by: str = ANA, id: str = "1", lang: str = "ja") -> Untranslated:
    return Untranslated(by, id, NAMES[by], lang, 1, "engine_failed", "It failed.")


def log(*events: LoggedEvent | tuple[int, LoggedEvent], first: int = 1) -> list[Publication]:
    """Events, each with its time of arrival in milliseconds where that matters."""
    timed = [event if isinstance(event, tuple) else (0, event) for event in events]
    return [Publication(n, BEGAN_MS + at_ms, event) for n, (at_ms, event) in enumerate(timed, first)]


def meeting(*events: LoggedEvent | tuple[int, LoggedEvent]) -> Transcript:
    return transcript(log(*events))


PIECES = [
    *("\n", "\r\n", "\n\n", "-->", " - -> ", "--", "<b>", "</v>", "&amp;", "&", "1\n", "WEBVTT", "NOTE x"),
    *("🙂", "👩‍👩‍👧", "שלום", "مرحبا", "字幕"),
    *("00:00:01,000 --> 00:00:02,000\n", "00:01.000 --> 00:02.000\n"),
]
TEXTS = st.lists(
    st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.sampled_from(PIECES)), max_size=6
).map("".join)
POSITIONS = st.one_of(st.none(), st.integers(0, 20_000), st.integers(0, 2**63))


@st.composite
def meetings(draw: st.DrawFn) -> Transcript:
    events: list[tuple[int, LoggedEvent]] = []
    at_ms = 0
    for n in range(draw(st.integers(0, 8))):
        at_ms += draw(st.integers(0, 20_000))
        by = draw(st.sampled_from([ANA, KENJI]))
        lang = draw(st.sampled_from(["en", "ja"]))
        times = sorted(draw(st.tuples(POSITIONS, POSITIONS)), key=lambda time: time or 0)
        utterance = said(
            draw(TEXTS),
            by=by,
            id=str(n),
            lang=lang,
            start_ms=times[0],
            end_ms=times[1],
            speaker=draw(st.one_of(st.just(NAMES[by]), TEXTS)),
        )
        events.append((at_ms, utterance))
        if draw(st.booleans()):
            other = "ja" if lang == "en" else "en"
            events.append((at_ms, translated(draw(TEXTS), by=by, id=str(n), lang=other)))
    return meeting(*events)
