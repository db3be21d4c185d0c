"""The soak's checker on transcripts of a small meeting: what it must find, and what it must let pass."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.domain.log import segment_id
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    SessionStarted,
    Timings,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from loadtest.soak.ledger import Ledger, Rules
from loadtest.soak.records import (
    Again,
    Cancelled,
    Entry,
    Flushed,
    Heard,
    Joined,
    Left,
    Record,
    Said,
    Stopped,
    decode,
    encode,
)
from loadtest.soak.report import Verdict

RULES = Rules(keep_s=20, snapshot=10, log_keep_s=120)

# Ana speaks English in the standup, Ben reads Japanese, Cleo reads English and German.
READS = {"ana": (), "ben": ("ja",), "cleo": ("en", "de"), "1.1": ("ja",)}


def joined(
    client: str,
    at: float = 0.0,
    offset: int = 0,
    recovered: bool | None = None,
    *,
    session: str = "1",
    epoch: str = "e",
    participant: str = "",
    reads: tuple[str, ...] = (),
) -> Joined:
    own = SessionStarted(
        client + session, participant or client, "standup", epoch, offset, recovered, [], [], [], Limits()
    )
    return Joined(at, client, own, reads or READS[client])


def said(at: float, utterance: str, offset: int) -> list[Record]:
    """Ana says it, and is told that it was accepted; the caption comes to her."""
    return [
        Said(at, "ana", utterance, "en"),
        accepted(at + 0.1, utterance, offset),
        caption("ana", at + 0.1, utterance, offset),
    ]


def accepted(at: float, utterance: str, offset: int) -> Heard:
    return Heard(at, "ana", UtteranceAccepted(utterance, 1, offset))


def caption(client: str, at: float, utterance: str, offset: int, by: str = "ana") -> Heard:
    return Heard(at, client, Caption(by, utterance, "Ana", "en", 1, "Hello.", True, offset))


def final(client: str, at: float, utterance: str, lang: str, offset: int, by: str = "ana") -> Heard:
    message = TranslationFinal(by, utterance, "Ana", lang, 1, "Hallo.", offset, Timings(0, 0, 0), 2)
    return Heard(at, client, message)


def failed(client: str, at: float, utterance: str, lang: str, offset: int, code: str) -> Heard:
    return Heard(at, client, TranslationFailed("ana", utterance, "Ana", lang, 1, code, "Why.", offset))


REFUSED = Heard(1, "ana", Error("overloaded", "No.", utterance="1"))


def stayed(client: str, at: float) -> list[Record]:
    return [Flushed(at + 0.1, client, at, True), Left(at + 0.2, client, True)]


def judge(
    *parts: Record | Sequence[Record], transcribed: tuple[tuple[str, str], ...] | None = None, rules: Rules = RULES
) -> Verdict:
    """The verdict; the transcript has everything that was accepted unless it is given."""
    ledger = Ledger(rules)
    records = [record for part in parts for record in (part if isinstance(part, Sequence) else [part])]
    for record in records:
        ledger.add(record)
    if transcribed is None:
        transcribed = tuple(
            dict.fromkeys(
                ("ana", each.message.id)
                for each in records
                if isinstance(each, Heard) and isinstance(each.message, UtteranceAccepted)
            )
        )
    ledger.transcript("standup", [Entry(*who, frozenset()) for who in transcribed], asked_at=0.0)
    return ledger.judge()


def everybody() -> list[Record]:
    return [joined("ana"), joined("ben"), joined("cleo")]


def everything(utterance: str, at: float, offset: int) -> list[Record]:
    """One utterance as it should go."""
    return [
        *said(at, utterance, offset),
        caption("cleo", at + 0.1, utterance, offset),
        final("ben", at + 0.5, utterance, "ja", offset + 1),
        final("cleo", at + 0.6, utterance, "de", offset + 2),
    ]


# One of which Ben has not had his translation.
SECOND = [*said(2, "2", 4), caption("cleo", 2.1, "2", 4), final("cleo", 2.6, "2", "de", 6)]


def all_stay(at: float) -> list[Record]:
    return [*stayed("ana", at), *stayed("ben", at), *stayed("cleo", at)]


def test_a_meeting_in_which_all_went_well() -> None:
    verdict = judge(everybody(), everything("1", 1, 1), everything("2", 2, 4), all_stay(10))
    assert not verdict.broken(), verdict.problems
    assert (verdict.said, verdict.accepted, verdict.clients) == (2, 2, 3)
    # For each utterance two captions and two translations.
    assert (verdict.owed, verdict.delivered, verdict.lost) == (8, 8, 0)


def in_segments(*offsets: int, accepted_at: int) -> list[Record]:
    """Ana says one thing in segments, whose captions and translations are at these offsets and behind them."""
    return [
        Said(1, "ana", "1", "en"),
        *(
            record
            for number, offset in enumerate(offsets, start=1)
            for record in (
                *([accepted(1.1, "1", accepted_at)] if number == len(offsets) else []),
                *(caption(client, 1.1, segment_id("1", number), offset) for client in ("ana", "cleo")),
                final("ben", 1.5, segment_id("1", number), "ja", offset + 1),
                final("cleo", 1.6, segment_id("1", number), "de", offset + 2),
            )
        ),
    ]


def test_every_accepted_segment_is_owed() -> None:
    records = in_segments(1, 4, 7, accepted_at=7)
    transcribed = tuple(("ana", segment_id("1", number)) for number in (1, 2, 3))
    good = judge(everybody(), records, all_stay(10), transcribed=transcribed)
    assert not good.broken(), good.problems
    assert (good.accepted, good.owed, good.delivered) == (1, 12, 12)
    assert judge(everybody(), records, all_stay(10), transcribed=transcribed[:2]).transcript_missing == 1
    # Nobody has seen the second one.
    gone = [each for each in records if not (isinstance(each, Heard) and "'1~2'" in repr(each))]
    assert judge(everybody(), gone, all_stay(10), transcribed=transcribed).lost == 4
    assert judge(everybody(), records, records[5], all_stay(10), transcribed=transcribed).duplicates == 1


@pytest.mark.parametrize(("offsets", "accepted_at"), [((1, 4, 7), 4), ((4, 1, 7), 7)])
def test_segments_are_logged_in_order(offsets: tuple[int, ...], accepted_at: int) -> None:
    verdict = judge(everybody(), in_segments(*offsets, accepted_at=accepted_at), all_stay(10))
    assert verdict.conflicts == 1


WELL = [*everybody(), *everything("1", 1, 1)]
UNSEEN = [joined("ana"), Said(1, "ana", "1", "en"), accepted(1.1, "1", 2), caption("ana", 1.1, "1", 1)]


@pytest.mark.parametrize(
    ("records", "counts"),
    [
        ([*WELL, final("ben", 2, "1", "ja", 2)], {"duplicates": 1, "out_of_order": 1}),
        # It resumes, and gets another epoch.
        ([*everybody(), joined("ben", 5, 0, recovered=True, epoch="f")], {"conflicts": 1}),
        # Another reader finds the same translation at a later offset.
        ([*WELL, joined("dora", reads=("ja",)), final("dora", 3, "1", "ja", 9)], {"twice_in_log": 1}),
        # Two clients see different things at one offset.
        ([*WELL, final("cleo", 2, "2", "de", 2)], {"conflicts": 1, "out_of_order": 1}),
        # It is accepted with another offset than its caption has.
        (UNSEEN, {"conflicts": 1}),
        ([*everybody(), Left(5, "ben", False, "The connection was lost.")], {"gave_up": 1}),
    ],
)
def test_each_broken_promise_is_counted(records: list[Record], counts: dict[str, int]) -> None:
    verdict = judge(records)
    assert verdict.broken() == counts, verdict.problems


def test_an_undelivered_translation_is_lost() -> None:
    verdict = judge(everybody(), said(1, "1", 1), caption("cleo", 1.1, "1", 1), all_stay(10))
    assert verdict.broken()
    assert (verdict.owed, verdict.delivered, verdict.lost) == (4, 2, 2)
    assert "lost: ben never got the translation (ja) of 1 by ana in standup" in verdict.problems


def test_speaker_and_readers_are_owed_captions() -> None:
    verdict = judge(
        everybody(),
        Said(1, "ana", "1", "en"),
        accepted(1.1, "1", 1),
        final("ben", 1.5, "1", "ja", 2),
        final("cleo", 1.5, "1", "de", 3),
        all_stay(10),
    )
    assert verdict.lost == 2
    assert {problem.split()[1] for problem in verdict.problems} == {"ana", "cleo"}


def test_after_leaving_nothing_is_owed() -> None:
    verdict = judge(
        everybody(),
        said(1, "1", 1),
        caption("cleo", 1.1, "1", 1),
        [Flushed(1.3, "cleo", 1.2, False), Left(1.3, "cleo", True)],
        final("ben", 1.5, "1", "ja", 2),
        stayed("ana", 10),
        stayed("ben", 10),
    )
    assert not verdict.broken(), verdict.problems


def test_before_its_ping_all_is_owed() -> None:
    verdict = judge(
        everybody(),
        said(1, "1", 1),
        final("ben", 1.5, "1", "ja", 2),
        [Flushed(2.1, "cleo", 2.0, False), Left(2.2, "cleo", True)],
        stayed("ana", 10),
        stayed("ben", 10),
    )
    # Ana had the caption at 1.1, so the gateway had given it to Cleo as well when she pinged at 2.
    assert verdict.problems == ["lost: cleo never got the caption (en) of 1 by ana in standup"]


def test_a_lost_session_shows_its_gap() -> None:
    dora = joined("dora", reads=("ja",))
    verdict = judge(
        everybody(),
        dora,
        final("dora", 1.5, "1", "ja", 2),
        final("dora", 2.5, "2", "ja", 5),
        final("ben", 2.5, "2", "ja", 5),
        final("dora", 4.5, "3", "ja", 8),
    )
    # He is not owed what came after he was lost, and before he had something newer he should have had the first.
    assert verdict.problems == ["lost: ben never got the translation (ja) of 1 by ana in standup"]


@pytest.mark.parametrize(("at", "lost"), [(60.0, 1), (119.0, 0)])
def test_a_newcomer_is_not_owed_what_expires_before_it_is_read(at: float, lost: int) -> None:
    spoken = (joined("ana"), said(1, "1", 1), stayed("ana", at + 1))
    # It is told that the caption follows.
    newcomer = (
        joined("cleo", at, offset=0),
        Flushed(at + 1, "cleo", at + 0.9, True),
        Left(at + 1.1, "cleo", True),
    )
    assert judge(*spoken, *newcomer).lost == lost


def test_a_newcomer_is_not_owed_old_translations() -> None:
    dora = joined("dora", reads=("de",))
    first = [joined("ana"), joined("ben"), dora, *said(1, "1", 1), joined("cleo", 2, 1)]
    verdict = judge(
        first,
        final("ben", 3, "1", "ja", 2),
        final("dora", 3, "1", "de", 3),
        said(4, "2", 4),
        caption("cleo", 4.1, "2", 4),
        final("ben", 4.5, "2", "ja", 5),
        final("cleo", 4.5, "2", "de", 6),
        final("dora", 4.5, "2", "de", 6),
        all_stay(10),
        rules=Rules(keep_s=20, snapshot=0, log_keep_s=120),
    )
    assert not verdict.broken(), verdict.problems


def test_catching_up_is_owed_to_nobody() -> None:
    """What was said before anybody read a language is translated into it if there is room."""
    meeting = [joined("ana"), *said(1, "1", 1), joined("dora", 5, 0, reads=("fr",)), caption("dora", 5.1, "1", 1)]
    stay = [*stayed("ana", 30), *stayed("dora", 30)]
    assert not judge(meeting, stay).broken()
    # It was, and another reader has it.
    ed: list[Record] = [joined("ed", 6, 0, reads=("fr",)), final("ed", 7, "1", "fr", 2)]
    assert judge(meeting, ed, stay).problems == [
        "lost: dora never got the translation (fr) of 1 by ana in standup"
    ]
    # It was promised to one who was there, or who could have come back, and who had not ended the session.
    there, away, gone = Flushed(2, "ed", 2, False), Flushed(0.5, "ed", 0.4, False), Left(0.5, "ed", True)
    for record, lost in ((there, 1), (away, 1), (gone, 0)):
        verdict = judge(joined("ed", reads=("fr",)), record, meeting, stay)
        assert verdict.lost == lost, (record, verdict.problems)


def test_a_resumed_session_goes_on() -> None:
    resumed: list[Record | Sequence[Record]] = [
        everybody(),
        everything("1", 1, 1),
        SECOND,
        joined("ben", 5, 2, recovered=True),
    ]
    verdict = judge(*resumed, final("ben", 5.1, "2", "ja", 5), all_stay(10))
    assert not verdict.broken(), verdict.problems
    assert (verdict.resumed, verdict.not_resumed) == (1, 0)
    # What it missed is lost when it does not follow.
    missed = judge(*resumed, all_stay(10))
    assert missed.problems == ["lost: ben never got the translation (ja) of 2 by ana in standup"]


def test_a_new_session_sees_the_newest() -> None:
    parts = [everybody(), everything("1", 1, 1), SECOND]
    shown = [joined("ben", 40, 3, recovered=False, session="2"), final("ben", 40.1, "2", "ja", 5), *all_stay(50)]
    one = Rules(keep_s=20, snapshot=1, log_keep_s=120)
    verdict = judge(*parts, shown, rules=one)
    assert not verdict.broken(), verdict.problems
    assert (verdict.resumed, verdict.not_resumed) == (0, 1)
    # He begins behind an utterance that he should have been shown.
    hidden = [joined("ben", 40, 4, recovered=False, session="2"), final("ben", 40.1, "2", "ja", 5), *all_stay(50)]
    assert judge(*parts, hidden, rules=one).problems == ["not_shown: ben was not shown 2 by ana"]
    # It is not among the newest: what Ana has said after it was in the log before she heard so.
    later: list[Record] = [Said(3, "ana", "3", "en"), accepted(45, "3", 6), caption("ana", 45, "3", 6)]
    assert "not_shown" not in str(judge(*parts, hidden[:2], later, hidden[2:], rules=one).problems)
    # Acknowledged once more by a gateway that had been frozen, it is where its caption is all the same.
    again = [accepted(45, "2", 0)]
    behind = [joined("ben", 40, 3, recovered=False, session="2"), final("ben", 40.1, "2", "ja", 5), *all_stay(50)]
    assert "not_shown" not in str(judge(*parts, again, behind, rules=one).problems)
    # He begins before it, and its translation does not come.
    silent = [joined("ben", 40, 3, recovered=False, session="2"), *all_stay(50)]
    assert judge(*parts, silent, rules=one).lost == 1
    # What has expired in the log is not shown.
    assert not judge(*parts, hidden, rules=Rules(keep_s=20, snapshot=1, log_keep_s=30)).broken()


def test_a_session_must_be_kept() -> None:
    verdict = judge(everybody(), everything("1", 1, 1), joined("ben", 10, 0, False, session="2"), all_stay(20))
    assert verdict.unrecovered == 1
    assert verdict.problems == [
        "unrecovered: ben at 10.0 s, which was silent for 8.5 s; had e up to 2, got e from 0"
    ]


def test_a_stopped_client_may_hear_old_news() -> None:
    """It was silent from when it was stopped, whatever was in its buffers."""
    meeting: list[Record] = [joined("1.1"), Stopped(10, "process 1", (1,)), final("1.1", 60, "1", "ja", 2)]
    begun = joined("1.1", 61, 0, False, session="2")
    assert judge(meeting, begun).unrecovered == 0
    assert judge(meeting[0], meeting[2], begun).unrecovered == 1
    # Once it has a session again, it is as any other.
    resumed, lost = joined("1.1", 62, 2, True), joined("1.1", 65, 0, False, session="2")
    assert judge(meeting, resumed, lost).unrecovered == 1


def test_an_expired_log_ends_a_session() -> None:
    """What lies behind its position may be gone though it was for others."""
    pong = Flushed(115, "ben", 114.9, False)
    begun = joined("ben", 120, 0, False, session="2")
    verdict = judge(everybody(), everything("1", 1, 1), pong, begun, all_stay(130))
    assert (verdict.unrecovered, verdict.not_resumed) == (0, 1)


def test_late_publications_keep_their_age() -> None:
    early = [caption("cleo", 2, "1", 1), final("cleo", 2, "1", "de", 3)]
    late = final("ben", 100, "1", "ja", 2)
    begun = joined("ben", 115, 0, False, session="2")
    assert judge(everybody(), said(1, "1", 1), early, late, begun).unrecovered == 1
    early.append(final("1.1", 2, "1", "ja", 2))
    assert judge(everybody(), joined("1.1"), said(1, "1", 1), early, late, begun).unrecovered == 0


def test_an_acknowledgement_may_repeat_later() -> None:
    again = accepted(5, "1", 3)
    verdict = judge(everybody(), everything("1", 1, 1), again, all_stay(10))
    assert not verdict.broken(), verdict.problems
    assert verdict.accepted == 1


def test_an_acknowledgement_may_repeat_early() -> None:
    """The final reached the log, and its acknowledgement was lost with the connection."""
    verdict = judge(
        everybody(),
        Said(1, "ana", "1", "en"),
        joined("ana", 2, 0, recovered=True),
        accepted(2.1, "1", 0),
        accepted(2.2, "1", 1),
        caption("ana", 2.2, "1", 1),
    )
    assert not verdict.broken(), verdict.problems


def test_dropped_duplicates_count_on_the_wire() -> None:
    verdict = judge(joined("ben"), final("ben", 1, "1", "ja", 2), Again(2, "ben", 2))
    assert (verdict.duplicates, verdict.wire_duplicates) == (0, 1)
    assert verdict.problems == ["wire_duplicates: offset 2 arrived again at ben"]


def test_only_cancelled_translations_may_fail() -> None:
    meeting = [*everybody(), *said(1, "1", 1), caption("cleo", 1.1, "1", 1)]
    ends = [failed("ben", 1.5, "1", "ja", 2, "cancelled"), failed("cleo", 1.5, "1", "de", 3, "cancelled")]
    asked = judge(meeting, Cancelled(1.2, "ana", "1"), ends, all_stay(10))
    assert not asked.broken(), asked.problems
    assert asked.failed == {"cancelled": 2}
    assert judge(meeting, ends, all_stay(10)).failed_unexpectedly == 2
    broken = [failed("ben", 1.5, "1", "ja", 2, "engine_failed"), failed("cleo", 1.5, "1", "de", 3, "cancelled")]
    assert judge(meeting, Cancelled(1.2, "ana", "1"), broken, all_stay(10)).failed_unexpectedly == 1


def test_a_final_that_was_never_answered() -> None:
    verdict = judge(everybody(), Said(1, "ana", "1", "en"), all_stay(10))
    assert verdict.problems == ["unanswered: 1 of ana"]
    refused = judge(everybody(), Said(1, "ana", "1", "en"), REFUSED, all_stay(10))
    assert not refused.broken()
    assert refused.refused == {"overloaded": 1}


def test_a_resent_final_has_a_new_speaker() -> None:
    """Its first acknowledgement was lost with the session; now it belongs to the new participant."""
    again = joined("ana", 60, recovered=False, session="2", participant="ana-2")
    verdict = judge(
        everybody(),
        Said(1, "ana", "1", "en"),
        again,
        accepted(60.1, "1", 1),
        caption("ana", 60.1, "1", 1, by="ana-2"),
        caption("cleo", 60.1, "1", 1, by="ana-2"),
        final("ben", 60.5, "1", "ja", 2, by="ana-2"),
        stayed("ana", 70),
        stayed("ben", 70),
        stayed("cleo", 70),
        transcribed=(("ana-2", "1"),),
    )
    assert verdict.problems == ["lost: cleo never got the translation (de) of 1 by ana-2 in standup"]


def test_the_transcript_has_each_accepted_utterance_once() -> None:
    meeting = [*everybody(), *everything("1", 1, 1), *everything("2", 2, 4), *all_stay(10)]
    assert not judge(meeting, transcribed=(("ana", "1"), ("ana", "2"))).broken()
    assert judge(meeting, transcribed=(("ana", "1"),)).transcript_missing == 1
    assert judge(meeting, transcribed=()).transcript_missing == 2
    assert judge(meeting, transcribed=(("ana", "1"), ("ana", "2"), ("ana", "2"))).transcript_twice == 1


def test_a_seen_outcome_stays_in_transcripts() -> None:
    for outcomes, asked_at, missing in (({"ja", "de"}, 5, 0), ({"de"}, 5, 1), (set(), 5, 2), (set(), 1.2, 0)):
        ledger = Ledger(RULES)
        for record in (*everybody(), *everything("1", 1, 1), *all_stay(10)):
            ledger.add(record)
        ledger.transcript("standup", [Entry("ana", "1", frozenset(outcomes))], asked_at)
        assert ledger.judge().outcome_missing == missing


def test_another_gateway_may_lag_a_ping() -> None:
    meeting = [*everybody(), *said(1, "1", 1), final("ben", 1.5, "1", "ja", 2)]
    leaves: list[Record] = [Flushed(2.1, "cleo", 2.0, False), Left(2.2, "cleo", True)]
    stay = [*stayed("ana", 10), *stayed("ben", 10)]
    shared = Rules(keep_s=20, snapshot=10, log_keep_s=120, apart_s=5)
    assert judge(meeting, leaves, stay).lost == 1
    assert judge(meeting, leaves, stay, rules=shared).lost == 0
    # Who stays to the end is owed everything.
    assert judge(meeting, stay, stayed("cleo", 10), rules=shared).lost == 2


def test_when_a_final_is_accepted_again() -> None:
    ledger = Ledger(RULES)
    for record in (joined("ana"), *said(1, "1", 1), Said(2, "ana", "2", "en"), accepted(9, "2", 4)):
        ledger.add(record)
    assert ledger.accepted_since(1) == 1.1
    # Also one that was said before, and is accepted only now, does not count.
    assert ledger.accepted_since(1.5) == 9
    assert ledger.accepted_since(2.5) is None


@pytest.mark.parametrize("record", [joined("ana"), *said(1, "1", 1), *stayed("ben", 2), REFUSED])
def test_a_record_survives_its_journey(record: Record) -> None:
    assert decode(encode(record)) == record
