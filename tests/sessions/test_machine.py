"""The session's state table: transcripts of what a client sends and what must come of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.engine import EngineProfile
from gateway.domain.errors import GatewayError, InvalidMessage, Overloaded, error_classes
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Error,
    MeetingEnd,
    MeetingLock,
    MeetingTitle,
    ParticipantMute,
    ParticipantRemove,
    Ping,
    Pong,
    Resume,
    SessionEnd,
    SessionRefresh,
    SessionStart,
    SessionUpdate,
    SessionUpdated,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.sessions.machine import (
    Accept,
    Acknowledge,
    Cancel,
    Close,
    EndMeeting,
    Entitle,
    Join,
    Lock,
    Mute,
    Refresh,
    Remove,
    Reply,
    Show,
    State,
    Update,
    Withdraw,
)
from tests.sessions.talk import LIMITS, PROFILE, Talk, error_of, final, only

ALL_OPTIONS = EngineProfile(
    model="m",
    family="f",
    languages=("en", "ja", "de"),
    options=frozenset({"glossary", "context", "formality"}),
)


class TestBeforeTheStart:
    @pytest.mark.parametrize(
        "message", [Ping(), final(), SessionUpdate(), UtteranceCancel(id="u"), UtterancePartial("u", 1, "x")]
    )
    def test_premature_message_is_an_error_session_survives(self, message: Any) -> None:
        talk = Talk()
        assert error_of(talk.send(message)).code == "session_not_started"
        talk.started()

    def test_start_joins_with_normalised_languages(self) -> None:
        talk = Talk()
        assert talk.send(SessionStart(reads=["ja-JP", "de", "ja"], speaks="en-US", name="Ana")) == [
            Join(None, "Ana", "en", ("ja", "de"))
        ]
        assert talk.session.speaks == "en"

    def test_a_bad_start_can_be_mended(self) -> None:
        talk = Talk()
        error = error_of(talk.send(SessionStart(reads=["ja", "tlh"])))
        assert (error.code, error.field) == ("unsupported_language", "reads[1]")
        assert "en, ja, de" in error.message
        talk.started()

    def test_resumed_session_keeps_untranslated_languages(self) -> None:
        resume = Resume("s", "e", 0)
        talk = Talk().started(reads=["tlh"], speaks="tlh", resume=resume)
        assert talk.session.reads == ("tlh",)
        assert isinstance(talk.send(SessionUpdate(reads=["ja", "tlh"]))[0], Update)
        assert isinstance(talk.send(SessionUpdate(reads=["ja"]))[0], Update)
        assert error_of(talk.send(SessionUpdate(reads=["tlh"]))).code == "unsupported_language"
        # Whoever tries to resume and is refused gets no more than others.
        refused = Talk()
        assert error_of(refused.send(SessionStart(reads=["no language"], resume=resume))).code == "invalid_value"
        assert error_of(refused.send(SessionStart(reads=["tlh"]))).code == "unsupported_language"

    @pytest.mark.parametrize(
        ("meeting", "code"),
        [
            *((text, "invalid_value") for text in ("", "..", "a/b", "a b", "wöchentlich", "a\n")),
            ("x" * 65, "limit_exceeded"),
        ],
    )
    def test_invalid_meeting_id_is_refused(self, meeting: str, code: str) -> None:
        error = error_of(Talk().send(SessionStart(reads=["ja"], meeting=meeting)))
        assert (error.code, error.field) == (code, "meeting")

    def test_resume_is_passed_on_and_bounded(self) -> None:
        resume = Resume("s" * 32, "epoch", 7)
        join = only(Join, Talk().send(SessionStart(reads=["ja"], resume=resume)))
        assert join.resume == resume
        error = error_of(Talk().send(SessionStart(reads=["ja"], resume=Resume("s" * 65, "epoch", 7))))
        assert (error.code, error.field) == ("limit_exceeded", "resume.session")

    def test_failed_start_may_be_sent_again(self) -> None:
        talk = Talk().started()
        talk.session.not_joined()
        assert error_of(talk.send(Ping())).code == "session_not_started"
        talk.started()

    def test_loading_engine_asks_for_a_retry(self) -> None:
        talk = Talk(profile=None)
        error = error_of(talk.send(SessionStart(reads=["ja"])))
        assert (error.code, error.retryable) == ("engine_unavailable", True)
        assert error.retry_after_ms
        talk.profile = PROFILE
        talk.started()

    def test_end_before_start_closes(self) -> None:
        assert Talk().send(SessionEnd()) == [Close(CloseCode.NORMAL)]


class TestUtterances:
    def test_a_final_is_accepted_with_the_session_language(self) -> None:
        effect = only(Accept, Talk().started(name="Ana").send(final(start_ms=5, end_ms=9)))
        utterance = effect.utterance
        assert (utterance.id, utterance.lang, utterance.speaker) == ("u1", "en", "Ana")
        assert (utterance.start_ms, utterance.end_ms, utterance.final) == (5, 9, True)

    def test_a_partial_is_shown(self) -> None:
        effect = only(Show, Talk().started(name="Ana").send(UtterancePartial("u1", 1, "hel")))
        shown = effect.utterance
        assert (shown.id, shown.speaker, shown.lang, shown.rev) == ("u1", "Ana", "en", 1)
        assert (shown.text, shown.final) == ("hel", False)

    @pytest.mark.parametrize(
        ("message", "code", "field"),
        [
            (final(utterance_id="u1~2"), "invalid_value", "id"),
            (UtterancePartial("u1", 1, "  \n"), "invalid_value", "text"),
            (final(utterance_id=""), "invalid_value", "id"),
            (final(utterance_id="i" * 65), "limit_exceeded", "id"),
            (final(lang="xx"), "unsupported_language", "lang"),
            (UtteranceCancel(id="never"), "unknown_utterance", "id"),
            (Ping(nonce="n" * 65), "limit_exceeded", "nonce"),
            (SessionStart(reads=[]), "session_already_started", None),
            (SessionUpdate(reads=["en", "ja", "de"]), "limit_exceeded", "reads"),
        ],
    )
    def test_bad_values_name_the_field(self, message: Any, code: str, field: str | None) -> None:
        error = error_of(Talk().started().send(message))
        assert (error.code, error.field) == (code, field)

    def test_resent_final_is_only_acknowledged(self) -> None:
        talk = Talk().started()
        talk.send(final(rev=3))
        assert talk.send(final(rev=3)) == [Acknowledge("u1", 3)]
        talk.session.settled("u1")
        assert talk.send(final(rev=3)) == [Acknowledge("u1", 3)]

    def test_another_text_under_the_same_id_is_refused(self) -> None:
        talk = Talk().started()
        talk.send(final())
        assert error_of(talk.send(final(text="other", rev=2))).code == "utterance_finished"

    def test_old_revisions_are_dropped(self) -> None:
        talk = Talk().started()
        talk.send(UtterancePartial("u1", 2, "hel"))
        assert error_of(talk.send(UtterancePartial("u1", 2, "he"))).code == "stale_revision"
        assert error_of(talk.send(final(rev=1))[:1]).code == "stale_revision"
        assert isinstance(talk.send(final(rev=2))[0], Accept)
        assert error_of(talk.send(UtterancePartial("u1", 9, "late"))).code == "stale_revision"

    def test_the_number_in_flight_is_bounded_until_one_settles(self) -> None:
        talk = Talk().started()
        for n in range(3):
            assert isinstance(talk.send(final(f"u{n}"))[0], Accept)
        error = error_of(talk.send(final("u3")))
        assert (error.code, error.retryable, error.utterance) == ("too_many_in_flight", True, "u3")
        assert talk.session.settled("u0") == []
        assert isinstance(talk.send(final("u3"))[0], Accept)

    def test_a_refused_utterance_may_be_sent_again(self) -> None:
        talk = Talk().started()
        accept = only(Accept, talk.send(final()))
        assert talk.session.refused(accept) == []
        assert talk.session.in_flight == 0
        assert talk.send(final()) == [accept]

    @pytest.mark.parametrize(
        "message",
        [
            final(text=" ", rev=2),
            final(lang="xx", rev=2),
            final(rev=0),
            UtteranceCancel(id="u1"),
        ],
        ids=["no text", "language", "old", "cancel"],
    )
    def test_what_will_not_be_final_is_withdrawn_once(self, message: Any) -> None:
        talk = Talk().started()
        talk.send(UtterancePartial("u1", 1, "hel"))
        assert talk.send(message)[-1] == Withdraw("u1")
        assert not any(isinstance(effect, Withdraw) for effect in talk.send(message))

    def test_a_final_without_text_is_a_cancel(self) -> None:
        talk = Talk().started()
        talk.send(UtterancePartial("u1", 1, "hel"))
        reply, withdraw = talk.send(final(text="\n", rev=2))
        assert (error_of([reply]).code, error_of([reply]).utterance, withdraw) == (
            "cancelled",
            "u1",
            Withdraw("u1"),
        )
        assert error_of(talk.send(final("u2", text=""))).code == "cancelled"
        talk.send(final("u3"))
        assert error_of(talk.send(final("u3", text="", rev=2))).code == "invalid_value"

    @pytest.mark.parametrize(
        ("error", "wait_s"), [(Overloaded("Busy.", retry_after_ms=2_000), 12.0), (GatewayError("A bug."), 0.0)]
    )
    def test_what_was_refused_later_goes_with_its_refusal(self, error: GatewayError, wait_s: float) -> None:
        talk = Talk().started()
        talk.send(UtterancePartial("u1", 1, "hel"))
        accept = only(Accept, talk.send(final(rev=2)))
        talk.session.refused(accept)
        assert talk.session.give_up("u1", error) == [Withdraw("u1", wait_s)]
        assert isinstance(talk.send(final(rev=2))[0], Accept)
        assert talk.session.give_up("u1", error) == []

    def test_unreadable_final_is_refused_like_others(self) -> None:
        talk = Talk(Limits(messages_burst=2)).started()
        talk.send(UtterancePartial("u1", 1, "hel"))
        unreadable = InvalidMessage("Not that.", utterance="u1")
        assert len(talk.session.unreadable(unreadable, 1.0)) == 1  # a partial perhaps
        unreadable.of_final = True
        assert talk.session.unreadable(unreadable, 2.0)[1:] == [Withdraw("u1")]
        talk.send(UtterancePartial("u1", 1, "hel"))
        limited = [effect for _ in range(3) for effect in talk.session.unreadable(unreadable, 2.0)][-1]
        assert error_of([limited]).utterance == "u1"

    def test_what_another_process_was_told_may_be_withdrawn(self) -> None:
        talk = Talk().started()
        talk.session.recalled()
        assert talk.send(UtteranceCancel("u1")) == [Withdraw("u1")]
        assert talk.send(final(lang="xx"))[1:] == [Withdraw("u1")]

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ((1.0, 2.0), (1, 2)),
            ((0.4, 1.6), (0, 2)),
            ((None, 7), (None, 7)),
            ((5, 5), (5, 5)),
            ((-1, 5), (None, None)),
            ((9, 5), (None, None)),
            ((0, 2**53), (None, None)),
            ((float("nan"), 5), (None, None)),
            ((None, float("inf")), (None, None)),
        ],
    )
    def test_times_cost_no_word(self, given: tuple[float | None, float | None], kept: tuple[Any, Any]) -> None:
        talk = Talk().started()
        accept, *told = talk.send(final(start_ms=given[0], end_ms=given[1]))
        assert isinstance(accept, Accept)
        assert (accept.utterance.start_ms, accept.utterance.end_ms) == kept
        assert not any(isinstance(time_ms, float) for time_ms in kept)
        if kept == (None, None):
            error = error_of(told)
            assert (error.code, error.utterance, error.field) == ("unsupported_option", None, "start_ms")
        else:
            assert told == []
        assert len(talk.send(final("u2", start_ms=9, end_ms=5))) == (1 if told else 2)  # said once

    def test_memory_of_finals_is_bounded(self) -> None:
        talk = Talk(Limits(messages_burst=10**6)).started()
        for n in range(1_001):
            talk.send(final(f"u{n}"))
            talk.session.settled(f"u{n}")
        assert isinstance(talk.send(final("u0"))[0], Accept)  # forgotten
        assert isinstance(talk.send(final("u1000"))[0], Acknowledge)

    def test_what_is_in_flight_is_never_forgotten(self) -> None:
        talk = Talk(Limits(messages_burst=10**6)).started()
        talk.send(final("u1"))
        for n in range(1_001):
            talk.send(UtterancePartial(f"p{n}", 1, "x"))
        assert isinstance(talk.send(final("u1"))[0], Acknowledge)

    def test_failed_utterance_may_be_sent_again(self) -> None:
        talk = Talk().started()
        talk.send(final())
        assert talk.session.settled("u1", failed=True) == []
        assert error_of(talk.send(final(text="another text"))).code == "utterance_finished"
        accept = only(Accept, talk.send(final()))
        assert accept.again, "what is in the log already is not logged once more"
        assert talk.send(final()) == [Acknowledge("u1", 1)]
        assert talk.session.settled("u1") == []
        assert talk.send(final()) == [Acknowledge("u1", 1)]

    def test_a_refused_second_attempt_is_still_a_second_attempt(self) -> None:
        talk = Talk().started()
        talk.send(final())
        talk.session.settled("u1", failed=True)
        accept = only(Accept, talk.send(final()))
        talk.session.refused(accept)
        assert talk.send(final()) == [accept]


class TestResuming:
    def resumed(self, earlier: Talk) -> Talk:
        talk = Talk().started()
        talk.session.inherit(earlier.session)
        return talk

    def test_what_was_accepted_is_recognised(self) -> None:
        earlier = Talk().started()
        earlier.send(final("u1"))
        earlier.session.disconnected()
        talk = self.resumed(earlier)
        assert talk.send(final("u1")) == [Acknowledge("u1", 1)]
        assert talk.session.in_flight == 1
        assert talk.session.settled("u1") == []
        assert talk.session.in_flight == 0

    def test_what_another_process_logged_is_recognised(self) -> None:
        accept = only(Accept, Talk().started().send(final("u1", "said before")))
        talk = Talk().started()
        talk.session.recall(accept.utterance, failed=False, in_flight=True)
        assert talk.session.in_flight == 1
        assert talk.send(final("u1", "said before")) == [Acknowledge("u1", 1)]
        assert error_of(talk.send(final("u1", "never said"))).code == "utterance_finished"

    def test_what_failed_in_another_process_may_be_sent_again(self) -> None:
        accept = only(Accept, Talk().started().send(final("u1")))
        talk = Talk().started()
        talk.session.recall(accept.utterance, failed=True, in_flight=False)
        again = only(Accept, talk.send(final("u1")))
        assert again.again

    def test_failed_update_changes_nothing(self) -> None:
        talk = Talk().started()
        talk.send(SessionUpdate(reads=["de"]))
        talk.session.not_updated(Update("en", ("ja",)))
        assert (talk.session.speaks, talk.session.reads) == ("en", ("ja",))


class TestDetectedLanguages:
    def langs(self, effects: list[Any]) -> list[tuple[type, str, bool]]:
        return [
            (type(each), each.utterance.lang, each.utterance.detected)
            for each in effects
            if isinstance(each, Show | Accept)
        ]

    def test_a_session_that_detects_tells_no_language(self) -> None:
        join = only(Join, Talk().send(SessionStart(reads=["ja"], speaks="Auto")))
        assert join.speaks is None
        talk = Talk().started(speaks="auto")
        assert self.langs(talk.send(final("u1", "de: hallo"))) == [(Accept, "de", True)]
        assert self.langs(talk.send(final("u2", "42"))) == [(Accept, "de", True)]
        assert self.langs(talk.send(final("u3", "de: hallo", lang="ja"))) == [(Accept, "ja", False)]
        assert self.langs(talk.send(UtterancePartial("u4", 1, "42"))) == [(Show, "ja", True)]

    def test_an_utterance_may_be_detected_alone(self) -> None:
        talk = Talk().started()
        assert self.langs(talk.send(final("u1", "de: hallo", lang="auto"))) == [(Accept, "de", True)]
        assert self.langs(talk.send(final("u2", "de: hallo"))) == [(Accept, "en", False)]

    def test_session_detects_from_the_told_language(self) -> None:
        talk = Talk().started(speaks="de")
        assert self.langs(talk.send(UtterancePartial("u1", 1, "42", lang="auto"))) == [(Show, "de", True)]
        talk.send(SessionUpdate(speaks="auto"))
        assert self.langs(talk.send(UtterancePartial("u2", 1, "42"))) == [(Show, "de", True)]

    def test_final_in_another_language_is_shown_first(self) -> None:
        talk = Talk().started(speaks="auto")
        assert self.langs(talk.send(UtterancePartial("u1", 1, "en: so"))) == [(Show, "en", True)]
        show, accept = talk.send(final("u1", "de: so", rev=2))
        assert self.langs([show, accept]) == [(Show, "de", True), (Accept, "de", True)]
        assert isinstance(show, Show)
        assert not show.utterance.final
        assert isinstance(accept, Accept)
        assert accept.utterance.final

    def test_resent_final_keeps_its_language(self) -> None:
        talk = Talk().started(speaks="auto")
        talk.send(final("u1", "ja: a"))
        accept = only(Accept, talk.send(final("u2", "42")))
        talk.session.refused(accept)
        talk.session.settled("u1")
        talk.send(final("u3", "de: b"))
        assert self.langs(talk.send(final("u2", "42"))) == [(Accept, "ja", True)]

    def test_an_utterance_that_is_given_up_is_forgotten(self) -> None:
        talk = Talk().started(speaks="auto")
        talk.send(UtterancePartial("u1", 1, "ja: a"))
        talk.send(UtteranceCancel("u1"))
        assert self.langs(talk.send(UtterancePartial("u1", 1, "de: b"))) == [(Show, "de", True)]

    def test_an_update_begins_and_ends_it(self) -> None:
        talk = Talk().started()
        update, reply = talk.send(SessionUpdate(speaks="auto"))
        assert update == Update(None, ("ja",))
        assert reply == Reply(SessionUpdated(["ja"], "auto", "live"))
        assert talk.send(SessionUpdate(reads=["de"]))[-1] == Reply(SessionUpdated(["de"], "auto", "live"))
        talk.session.not_updated(Update(None, ("ja",)))
        assert self.langs(talk.send(final("u1", "de: a"))) == [(Accept, "de", True)]
        assert talk.send(SessionUpdate(speaks="en"))[-1] == Reply(SessionUpdated(["ja"], "en", "live"))
        talk.session.not_updated(Update(None, ("ja",)))
        assert self.langs(talk.send(final("u2", "ja: a"))) == [(Accept, "ja", True)]

    def test_only_what_is_translated_and_allowed_is_found(self) -> None:
        pairs = frozenset({("en", "ja"), ("ja", "en")})
        talk = Talk(profile=EngineProfile(model="m", family="f", languages=("en", "ja", "de"), pairs=pairs))
        talk.started(speaks="auto")
        assert self.langs(talk.send(final("u1", "de: a"))) == [(Accept, "und", True)]
        talk.session.settled("u1")
        assert self.langs(talk.send(final("u0", "en: a"))) == [(Accept, "en", True)]
        talk.session.grant = replace(talk.session.grant, speaks=frozenset({"ja", "de"}))
        assert self.langs(talk.send(final("u2", "en: a"))) == [(Accept, "ja", True)]  # nothing else may be spoken
        talk.session.grant = replace(talk.session.grant, speaks=frozenset({"de"}))
        assert error_of(talk.send(final("u3", "de: a"))).code == "unsupported_language"
        assert error_of(talk.send(SessionUpdate(speaks="auto"))).code == "unsupported_language"
        talk.session.grant = replace(talk.session.grant, roles=frozenset({"read"}))
        assert error_of(talk.send(SessionUpdate(speaks="auto"))).code == "forbidden"

    def test_language_survives_reconnects_and_restarts(self) -> None:
        earlier = Talk().started(speaks="auto")
        accept = only(Accept, earlier.send(final("u1", "de: a")))
        for another in (True, False):
            talk = Talk().started(speaks="auto")
            if another:
                talk.session.recall(accept.utterance, failed=False, in_flight=False)
            else:
                talk.session.inherit(earlier.session)
            assert self.langs(talk.send(final("u2", "42"))) == [(Accept, "de", True)]


class TestOptions:
    def test_options_reach_the_utterance(self) -> None:
        talk = Talk(profile=ALL_OPTIONS).started(
            glossary={"ja": {"launch": "ローンチ"}}, context="A weekly call.", formality="formal"
        )
        talk.send(final("u1", "first"))
        effect = only(Accept, talk.send(final("u2", "second")))
        options = effect.utterance.options_for("ja")
        assert options.glossary == (("launch", "ローンチ"),)
        assert options.context == ("A weekly call.", "first")
        assert options.formality == "formal"
        assert effect.utterance.options_for("de").glossary == ()

    def test_unsupported_option_is_noted_session_survives(self) -> None:
        effects = Talk().send(SessionStart(reads=["ja"], context="Weekly.", formality="informal"))
        assert isinstance(effects[0], Join)
        assert [error_of([effect]).field for effect in effects[1:]] == ["context", "formality"]
        assert {error_of([effect]).code for effect in effects[1:]} == {"unsupported_option"}

    def test_context_is_dropped_in_blocks(self) -> None:
        talk = Talk(Limits(utterances_in_flight=100), ALL_OPTIONS).started()
        lengths = []
        for n in range(12):
            effect = only(Accept, talk.send(final(f"u{n}", f"text {n}")))
            lengths.append(len(effect.utterance.context))
        assert lengths == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7]

    def test_a_refused_utterance_costs_no_context(self) -> None:
        talk = Talk(Limits(utterances_in_flight=100), ALL_OPTIONS).started()
        for n in range(7):
            talk.send(final(f"u{n}", f"text {n}"))
        refused = only(Accept, talk.send(final("refused", "refused")))
        talk.session.refused(refused)
        effect = only(Accept, talk.send(final("next", "next")))
        assert effect.utterance.context == tuple(f"text {n}" for n in range(7))

    def test_update_holds_from_the_next_utterance(self) -> None:
        talk = Talk(profile=ALL_OPTIONS).started()
        assert talk.send(SessionUpdate(reads=["de"], speaks="ja", formality="informal")) == [
            Update("ja", ("de",)),
            Reply(SessionUpdated(["de"], "ja", "live")),
        ]
        effect = only(Accept, talk.send(final()))
        assert (effect.utterance.lang, effect.utterance.formality) == ("ja", "informal")
        assert talk.session.reads == ("de",)

    def test_a_bad_update_changes_nothing(self) -> None:
        talk = Talk().started()
        assert error_of(talk.send(SessionUpdate(speaks="de", reads=["xx"]))).field == "reads[0]"
        assert (talk.session.speaks, talk.session.reads) == ("en", ("ja",))


class TestTheEnd:
    def test_end_with_nothing_in_flight_closes(self) -> None:
        talk = Talk().started()
        assert talk.send(SessionEnd()) == [Close(CloseCode.NORMAL)]
        assert talk.session.state is State.CLOSED
        assert talk.send(Ping()) == []

    def test_end_waits_for_what_is_in_flight(self) -> None:
        talk = Talk().started()
        talk.send(final("u1"))
        talk.send(final("u2"))
        assert talk.send(SessionEnd()) == []
        assert error_of(talk.send(final("u3"))).code == "session_ending"
        assert talk.send(Ping(nonce="x")) == [Reply(Pong(nonce="x"))]
        assert talk.send(UtteranceCancel(id="u2")) == [Cancel("u2")]
        assert talk.session.settled("u1") == []
        assert talk.session.settled("u2") == [Close(CloseCode.NORMAL)]

    def test_after_a_disconnect_nothing_happens(self) -> None:
        talk = Talk().started()
        talk.send(final())
        talk.session.disconnected()
        assert talk.session.settled("u1") == []
        assert talk.send(Ping()) == []


class TestTheEndOfTheTokensTime:
    @pytest.mark.parametrize("refused", [False, True])
    def test_what_is_in_flight_is_waited_for(self, refused: bool) -> None:
        talk = Talk().started()
        accept = only(Accept, talk.send(final()))
        assert talk.session.expire() == []
        assert talk.session.expire() == [], "every second"
        for message in (final("u2"), SessionUpdate(reads=[]), SessionRefresh("t"), SessionEnd()):
            error = error_of(talk.send(message))
            assert (error.code, error.utterance) == ("token_expired", getattr(message, "id", None))
        assert talk.send(Ping("x")) == [Reply(Pong("x"))]
        assert talk.send(UtteranceCancel("u1")) == [Cancel("u1")]
        close = only(Close, talk.session.refused(accept) if refused else talk.session.settled("u1"))
        assert close.reason is not None
        assert (close.reason.code, close.reason.utterance) == ("token_expired", None)

    def test_expiry_is_ignored_before_start_and_after_end(self) -> None:
        assert Talk().session.expire() == []
        gone = Talk().started()
        gone.session.disconnected()
        assert gone.session.expire() == []
        ending = Talk().started()
        ending.send(final())
        ending.send(SessionEnd())
        assert ending.session.expire() == []
        assert ending.session.settled("u1") == [Close(CloseCode.NORMAL)]


class TestRate:
    def test_the_burst_passes_and_the_next_waits(self) -> None:
        talk = Talk(Limits(messages_per_s=10, messages_burst=3)).started()
        assert [type(e) for _ in range(2) for e in talk.send(Ping())] == [Reply, Reply]
        error = error_of(talk.send(Ping()))
        assert (error.code, error.retry_after_ms) == ("rate_limited", 100)
        talk.now_s += 0.1
        assert talk.send(Ping()) == [Reply(Pong())]

    def test_an_update_counts_as_ten(self) -> None:
        talk = Talk(Limits(messages_per_s=10, messages_burst=12)).started()
        assert isinstance(talk.send(SessionUpdate())[0], Update)
        assert error_of(talk.send(SessionUpdate())).retry_after_ms == 900
        assert talk.send(Ping()) == [Reply(Pong())]

    def test_frames_that_are_no_messages_count_as_well(self) -> None:
        talk = Talk(Limits(messages_per_s=10, messages_burst=2)).started()
        nonsense = InvalidMessage("no message")
        assert error_of(talk.session.unreadable(nonsense, 0.0)).code == "invalid_message"
        assert error_of(talk.session.unreadable(nonsense, 0.0)).code == "rate_limited"
        talk.session.disconnected()
        assert talk.session.unreadable(nonsense, 0.0) == []

    def test_a_new_token_counts_as_ten(self) -> None:
        talk = Talk(Limits(messages_per_s=10, messages_burst=12)).started()
        assert talk.send(SessionRefresh("t")) == [refresh := Refresh("t")]
        assert repr(refresh) == "Refresh(token=…)", "it is not shown"
        assert error_of(talk.send(SessionRefresh("t"))).retry_after_ms == 900


# ------------------------------------------------------------ any sequence of messages

_text = st.text(max_size=60)
_lang = st.sampled_from(["en", "ja", "de", "fr", "xx", "en-US", "auto", ""])
_id = st.sampled_from(["a", "b", "c", "d", "", "x" * 70])
_options: dict[str, Any] = {
    "glossary": st.none() | st.dictionaries(_lang, st.dictionaries(_text, _text, max_size=3), max_size=2),
    "context": st.none() | _text,
    "formality": st.none() | st.sampled_from(["formal", "informal"]),
}
_utterance: dict[str, Any] = {
    "id": _id,
    "rev": st.integers(0, 5),
    "text": _text,
    "lang": st.none() | _lang,
    "start_ms": st.none() | st.integers(0, 99),
    "end_ms": st.none() | st.integers(0, 99),
}
_messages = st.one_of(
    st.builds(
        SessionStart,
        reads=st.lists(_lang, max_size=3),
        speaks=st.none() | _lang,
        name=st.none() | _text,
        meeting=st.none() | _text,
        **_options,
    ),
    st.builds(SessionUpdate, reads=st.none() | st.lists(_lang, max_size=3), speaks=st.none() | _lang, **_options),
    st.builds(UtterancePartial, **_utterance),
    st.builds(UtteranceFinal, **_utterance),
    st.builds(UtteranceCancel, id=_id),
    st.builds(SessionRefresh, token=_text),
    st.builds(Ping, nonce=_text),
    st.builds(SessionEnd),
)
_steps = st.lists(
    st.tuples(_messages, st.sampled_from(["settle", "refuse", "nothing"]), st.floats(0, 0.2)), max_size=40
)
_CODES = {cls.code for cls in error_classes()}


@settings(max_examples=300)
@given(_steps, st.booleans())
def test_any_sequence_gives_a_legal_transcript(steps: list[tuple[Any, str, float]], options: bool) -> None:
    talk = Talk(profile=ALL_OPTIONS if options else PROFILE)
    accepted: list[str] = []
    joined = closed = False
    for message, outcome, gap_s in [(SessionStart(reads=["ja"], speaks="en"), "nothing", 0.0), *steps]:
        talk.now_s += gap_s
        effects = talk.send(message)
        if accepted and outcome == "settle":
            effects += talk.session.settled(accepted.pop())
        for effect in effects:
            assert not closed, "nothing follows a close"
            match effect:
                case Join():
                    assert not joined
                    joined = True
                case Accept(utterance=utterance) as accept:
                    assert joined
                    assert utterance.lang in PROFILE.languages
                    assert utterance.text.strip()
                    if outcome == "refuse":
                        assert talk.session.refused(accept) == []
                    else:
                        accepted.append(utterance.id)
                case Acknowledge() | Cancel() | Refresh() | Show() | Update():
                    assert joined
                case Reply(message=reply):
                    if isinstance(reply, Error):
                        assert reply.code in _CODES
                        assert reply.message
                        assert reply.retry_after_ms is None or reply.retryable
                case Close(code=code):
                    assert code is CloseCode.NORMAL
                    closed = True
        assert talk.session.in_flight <= LIMITS.utterances_in_flight
        assert talk.session.in_flight == len(accepted)


class TestOfAHost:
    KEY, MEETING = "correct horse battery staple", "e5m9-8j7f-9326"

    def test_what_a_host_asks_for(self) -> None:
        talk = Talk().started(meeting=self.MEETING, host=self.KEY)
        talk.session.participant = "ana"
        assert talk.send(ParticipantRemove("bo")) == [Remove("bo")]
        assert talk.send(ParticipantMute("bo", True)) == [Mute("bo", True)]
        assert talk.send(MeetingLock(True)) == [Lock(True)]
        assert talk.send(MeetingTitle(" Week\u202ely\n\t1 ")) == [Entitle("Week ly 1")]
        assert error_of(talk.send(MeetingTitle("a" * (LIMITS.name_chars + 1)))).field == "title"
        assert talk.send(MeetingEnd()) == [EndMeeting()]
        for message in (ParticipantRemove("ana"), ParticipantMute("ana", True)):
            error = error_of(talk.send(message))
            assert (error.code, error.field) == ("invalid_value", "participant")

    @pytest.mark.parametrize(
        "message",
        [ParticipantRemove("bo"), ParticipantMute("bo", True), MeetingLock(True), MeetingTitle(""), MeetingEnd()],
    )
    def test_others_may_not(self, message: Any) -> None:
        for fields in ({"host": "a guess"}, {}):
            talk = Talk().started(meeting=self.MEETING, **fields)
            assert error_of(talk.send(message)).code == "forbidden"
            assert talk.session.state is State.OPEN
