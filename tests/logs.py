"""Logs that tests write to: what is said in them, and how it gets there."""

from __future__ import annotations

from gateway.domain.log import LoggedEvent, Publication, Said, Timings, Translated, Untranslated, Utterance
from gateway.domain.ports import EventLog


def utterance(text: str, id: str | None = None, **more: object) -> Utterance:
    """Everything that an utterance can have. id: the text, if it has no other."""
    fields: dict[str, object] = {
        "rev": 3,
        "lang": "en",
        "participant": "0a1b2c3d",
        "speaker": "Ana 🎤",
        "final": True,
        "start_ms": 1_000,
        "end_ms": 2_500,
        "glossary": (("ja", (("standup", "朝会"), ("sprint", "スプリント"))), ("de", ())),
        "context": ("What came before.",),
        "formality": "formal",
    }
    return Utterance(**{**fields, "id": text if id is None else id, "text": text, **more})  # type: ignore[arg-type]


def said(text: str, languages: tuple[str, ...] = ("de", "ja"), **more: object) -> Said:
    return Said(utterance(text, **more), languages)  # type: ignore[arg-type]


def translated(text: str, said: int = 1, lang: str = "ja", utterance: str = "1") -> Translated:
    timings = Timings(0.5, 80.25, 412.0)
    return Translated("0a1b2c3d", utterance, "Ana", lang, 3, text, timings, tokens=12, truncated=True, said=said)


def untranslated(message: str, said: int = 1, lang: str = "ja", utterance: str = "1") -> Untranslated:
    return Untranslated("0a1b2c3d", utterance, "Ana", lang, 3, code="engine_failed", message=message, said=said)


def nothing(_publication: Publication) -> None:
    pass


def texts(publications: list[Publication] | tuple[Publication, ...]) -> list[str]:
    return [each.event.utterance.text for each in publications if isinstance(each.event, Said)]


def offsets(publications: list[Publication] | tuple[Publication, ...]) -> list[int]:
    return [publication.offset for publication in publications]


async def append(log: EventLog, meeting: str, event: LoggedEvent) -> Publication:
    """Bring this into the log as a gateway does: what is said is promised, and then concluded."""
    if isinstance(event, Said):
        async with log.subscribe(meeting, nothing) as subscription:
            await subscription.reads(event.languages)
            accepted = await log.accept(meeting, event.utterance)
        assert not accepted.known, "the test says the same thing twice"
        [publication] = (await log.read(meeting, accepted.offset - 1, 1)).publications
        return publication
    concluded = await log.conclude(meeting, event)
    if concluded is None and not await log.claim(meeting, {event.said: [event.lang]}):
        # It has failed before: its speaker sends it again.
        [before] = (await log.read(meeting, event.said - 1, 1)).publications
        assert isinstance(before.event, Said)
        async with log.subscribe(meeting, nothing) as subscription:
            await subscription.reads([event.lang])
            await log.accept(meeting, before.event.utterance)
    concluded = concluded or await log.conclude(meeting, event)
    assert concluded is not None, "nothing was said at this offset, or it has its outcome"
    return concluded
