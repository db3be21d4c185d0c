"""What is asked for against what a token allows: roles, meetings, languages; and so each message of a client."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.errors import Forbidden, RateLimited, Unauthenticated
from gateway.domain.grants import OPEN, Grant, Revocation
from gateway.domain.roles import ROLES, Role
from gateway.domain.sessions import UsedToken
from gateway.protocol.messages import (
    Error,
    MeetingEnd,
    MeetingLock,
    MeetingTitle,
    ParticipantMute,
    ParticipantRemove,
    Ping,
    SessionEnd,
    SessionRefresh,
    SessionStart,
    SessionUpdate,
    UtteranceCancel,
    UtterancePartial,
    client_messages,
)
from gateway.sessions import grants as grants
from gateway.sessions.grants import (
    Revocations,
    as_host,
    check_host,
    check_meeting,
    check_reads,
    check_role,
    check_speaks,
    may_read,
)
from gateway.sessions.machine import Accept, Join, Reply, Show, Update
from tests.sessions.talk import Talk, error_of, final, only


def granted(*roles: Role, **fields: Any) -> Grant:
    return Grant(subject="ana", roles=frozenset(roles), **fields)


def test_host_is_who_has_the_secret_only_where_there_are_no_tokens() -> None:
    meeting, secret = "e5m9-8j7f-9326", "correct horse battery staple"
    host = as_host(OPEN, meeting, secret)
    check_host(host)
    assert host.is_open
    for grant, asked, key in [
        (OPEN, meeting, None),
        (OPEN, meeting, meeting),
        (OPEN, "another", secret),
        (OPEN, None, secret),
        (granted("speak", "read", any_meeting=True), meeting, secret),
    ]:
        assert as_host(grant, asked, key) is grant
        with pytest.raises(Forbidden):
            check_host(grant)
    check_host(granted("host"))


@pytest.mark.parametrize("role", sorted(ROLES - {"host"}))
def test_a_role_is_there_or_it_is_forbidden(role: Role) -> None:
    check_role(OPEN, role)
    check_role(granted(role), role)
    with pytest.raises(Forbidden, match=role) as refused:
        check_role(granted(*ROLES - {role}), role, "some.field")
    assert (refused.value.field, refused.value.code) == ("some.field", "forbidden")


@pytest.mark.parametrize(
    ("grant", "asked", "joined"),
    [
        (granted("read", meeting="m"), "m", "m"),
        (granted("read", meeting="m"), None, "m"),
        (granted("read"), None, None),
        (granted("read", any_meeting=True), "m", "m"),
        (granted("read", any_meeting=True), None, None),
        (OPEN, "m", "m"),
    ],
)
def test_the_meeting_is_the_tokens(grant: Grant, asked: str | None, joined: str | None) -> None:
    assert check_meeting(grant, asked) == joined


@pytest.mark.parametrize(
    ("grant", "asked"),
    [
        (granted("read", meeting="m"), "n"),
        (granted("read", meeting="m"), "M"),
        (granted("read", meeting="m"), "m."),
        (granted("read"), "m"),
    ],
)
def test_another_meeting_is_forbidden(grant: Grant, asked: str) -> None:
    with pytest.raises(Forbidden) as refused:
        check_meeting(grant, asked)
    assert refused.value.field == "meeting"


@pytest.mark.parametrize(
    ("grant", "reads", "originals", "field"),
    [
        (granted("read"), ["de", "fr"], True, None),
        (granted("speak"), [], False, None),
        (granted("speak"), ["de"], False, "reads"),
        (granted("speak"), [], True, "originals"),
        (granted("transcript", "admin"), ["de"], True, "reads"),
        (granted("read", langs=frozenset({"de"})), ["de"], False, None),
        (granted("read", langs=frozenset({"de"})), ["de", "fr"], False, "reads[1]"),
        (granted("read", langs=frozenset({"de"})), ["fr", "de"], False, "reads[0]"),
        (granted("read", langs=frozenset({"de"})), ["de"], True, "originals"),
        (granted("read", langs=frozenset({"de"})), [], True, "originals"),
        (granted("read", langs=frozenset()), [], False, None),
        (granted("read", langs=frozenset()), ["de"], False, "reads[0]"),
        # What may be spoken does not bound what may be read.
        (granted("read", speaks=frozenset({"fr"})), ["de"], True, None),
    ],
)
def test_what_is_read(grant: Grant, reads: list[str], originals: bool, field: str | None) -> None:
    if field is None:
        check_reads(grant, reads, originals=originals)
        return
    with pytest.raises(Forbidden) as refused:
        check_reads(grant, reads, originals=originals)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("grant", "lang", "allowed"),
    [
        (granted("speak"), "en", True),
        (granted("read", "transcript", "admin"), "en", False),
        (granted("speak", speaks=frozenset({"en"})), "en", True),
        (granted("speak", speaks=frozenset({"en"})), "de", False),
        (granted("speak", speaks=frozenset()), "en", False),
        (granted("speak", langs=frozenset({"de"})), "en", True),
    ],
)
def test_what_is_spoken(grant: Grant, lang: str, allowed: bool) -> None:
    if allowed:
        check_speaks(grant, lang, "speaks")
        return
    with pytest.raises(Forbidden) as refused:
        check_speaks(grant, lang, "speaks")
    assert refused.value.field == "speaks"


@pytest.mark.parametrize(
    ("grant", "allowed"),
    [
        (OPEN, True),
        (granted("read"), True),
        (granted("read", langs=frozenset({"de"})), True),
        (granted("read", langs=frozenset({"fr"})), False),
        (granted("speak", langs=frozenset({"de"})), False),
    ],
)
def test_whether_a_language_may_be_read(grant: Grant, allowed: bool) -> None:
    assert may_read(grant, "de") is allowed


# ---------------------------------------------------------------- each message of a session

# Message → the role that it needs, and the field that is named where it is missing.
NEEDS: list[tuple[Any, Role | None, str | None]] = [
    (SessionStart(reads=[]), None, None),
    (SessionStart(reads=["ja"]), "read", "reads"),
    (SessionStart(reads=[], originals=True), "read", "originals"),
    (SessionStart(reads=[], speaks="en"), "speak", "speaks"),
    (SessionUpdate(), None, None),
    (SessionUpdate(stability="stable"), None, None),
    (SessionUpdate(reads=["ja"]), "read", "reads"),
    (SessionUpdate(originals=True), "read", "originals"),
    (SessionUpdate(speaks="en"), "speak", "speaks"),
    (UtterancePartial("u1", 1, "hel", lang="en"), "speak", "id"),
    (final(lang="en"), "speak", "id"),
    (UtteranceCancel("said"), "speak", "id"),
    (ParticipantRemove("p"), "host", None),
    (ParticipantMute("p", True), "host", None),
    (MeetingLock(True), "host", None),
    (MeetingTitle("Weekly"), "host", None),
    (MeetingEnd(), "host", None),
    (SessionRefresh("token"), None, None),
    (Ping(), None, None),
    (SessionEnd(), None, None),
]
ROLE_SETS: list[frozenset[Role]] = [frozenset(), *(frozenset({role}) for role in sorted(ROLES)), ROLES]


class TestMessages:
    """Every message is held against the newest token."""

    # Begun with everything allowed; what is to be cancelled is said before.
    def talk(self, grant: Grant, **start: Any) -> Talk:
        talk = Talk().started(**{"reads": [], "speaks": None, **start})
        talk.send(final("said", lang="en"))
        talk.session.grant = grant
        return talk

    @pytest.mark.parametrize("roles", ROLE_SETS, ids=lambda roles: "+".join(sorted(roles)) or "none")
    @pytest.mark.parametrize(("message", "role", "field"), NEEDS, ids=lambda value: type(value).__name__)
    def test_each_message_needs_its_role(
        self, roles: frozenset[Role], message: Any, role: Role | None, field: str | None
    ) -> None:
        grant = Grant(subject="ana", roles=roles, any_meeting=True)
        talk = Talk() if isinstance(message, SessionStart) else self.talk(grant)
        talk.session.grant = grant
        before = talk.session.state
        effects = talk.send(message)
        if message == SessionStart(reads=[]) and not roles & {"speak", "read"}:
            assert error_of(effects).message == "The token has neither the role speak nor read."
            return
        if role is None or role in roles:
            assert not any(isinstance(e, Reply) and isinstance(e.message, Error) for e in effects), effects
            assert effects or isinstance(message, SessionEnd)
            return
        error = error_of(effects)
        assert (error.code, error.field) == ("forbidden", field)
        assert error.utterance == getattr(message, "id", None)
        assert (talk.session.reads, talk.session.speaks, talk.session.originals) == ((), None, False)
        assert talk.session.state is before, "the session goes on"

    def test_the_table_is_complete(self) -> None:
        assert {type(message) for message, _, _ in NEEDS} == set(client_messages())

    @pytest.mark.parametrize(
        ("message", "field"),
        [
            (SessionStart(reads=["de"], speaks="en"), None),
            (SessionStart(reads=["de-AT"], speaks="en-GB"), None),
            (SessionStart(reads=["de", "ja"], speaks="en"), "reads[1]"),
            (SessionStart(reads=["de"], speaks="ja"), "speaks"),
            (SessionStart(reads=[], originals=True), "originals"),
            (SessionUpdate(reads=["de"], speaks="en"), None),
            (SessionUpdate(reads=["ja", "de"]), "reads[0]"),
            (SessionUpdate(reads=["en"]), "reads[0]"),
            (SessionUpdate(speaks="de"), "speaks"),
            (SessionUpdate(originals=True), "originals"),
            (final(), None),
            (final(lang="en-US"), None),
            (final(lang="de"), "lang"),
            (UtterancePartial("u1", 1, "hel", lang="en"), None),
            (UtterancePartial("u1", 1, "hel", lang="ja"), "lang"),
        ],
    )
    def test_languages_are_those_of_the_token(self, message: Any, field: str | None) -> None:
        grant = replace(OPEN, subject="ana", langs=frozenset({"de"}), speaks=frozenset({"en"}))
        talk = Talk() if isinstance(message, SessionStart) else Talk().started(reads=["de"])
        talk.session.grant = grant
        effects = talk.send(message)
        if field is None:
            assert isinstance(effects[0], Join | Update | Accept | Show)
        else:
            error = error_of(effects)
            assert (error.code, error.field) == ("forbidden", field)

    def test_a_final_that_is_forbidden_was_never_said(self) -> None:
        talk = Talk().started()
        talk.session.grant = replace(OPEN, subject="ana", speaks=frozenset({"de"}))
        assert error_of(talk.send(final())).code == "forbidden"
        assert talk.session.in_flight == 0
        talk.session.grant = OPEN
        assert isinstance(talk.send(final())[0], Accept)

    def test_originals_may_be_declined_without_the_right(self) -> None:
        talk = Talk().started(originals=True)
        talk.session.grant = replace(OPEN, subject="ana", langs=frozenset({"ja"}))
        assert error_of(talk.send(SessionUpdate(speaks="de"))).field == "originals"
        assert isinstance(talk.send(SessionUpdate(originals=False))[0], Update)

    @pytest.mark.parametrize(
        ("token", "client", "name"),
        [("Ana", "Eve", "Ana"), ("Ana", None, "Ana"), (None, "Eve", "Eve"), (None, None, "")],
    )
    def test_the_tokens_name_wins(self, token: str | None, client: str | None, name: str) -> None:
        talk = Talk()
        talk.session.grant = replace(OPEN, subject="ana", name=token)
        [join] = talk.send(SessionStart(reads=[], speaks="en", name=client))
        [accept] = talk.send(final())
        assert isinstance(join, Join)
        assert isinstance(accept, Accept)
        assert (join.name, accept.utterance.speaker) == (name, name)

    @pytest.mark.parametrize(
        ("fields", "asked", "joined"),
        [
            ({"meeting": "m"}, "m", "m"),
            ({"meeting": "m"}, None, "m"),
            ({"any_meeting": True}, "n", "n"),
            ({}, None, None),
        ],
    )
    def test_the_meeting_is_the_tokens(
        self, fields: dict[str, Any], asked: str | None, joined: str | None
    ) -> None:
        talk = Talk()
        talk.session.grant = Grant(subject="ana", roles=frozenset({"read"}), **fields)
        if "any_meeting" not in fields:
            assert error_of(talk.send(SessionStart(reads=["ja"], meeting="another"))).field == "meeting"
        join = only(Join, talk.send(SessionStart(reads=["ja"], meeting=asked)))
        assert join.meeting == joined


# ---------------------------------------------------------------- tokens that were revoked


DAY_S = 86_400.0
ANA = Grant(subject="ana", token_id="t1", issued_s=100.0, expires_s=700.0)
ONCE = Grant(subject="ana", token_id="t2", issued_s=100.0, expires_s=700.0, once=True)


def revocation(**fields: Any) -> Revocation:
    return Revocation(**{"tenant": "default", "before_s": 200.0, **fields})


def test_what_is_revoked_is_neither_valid_nor_used() -> None:
    spent = Revocations()
    spent.check(ANA)
    spent.revoke(revocation(token_id="t1"))
    assert spent.is_revoked(ANA)
    assert not spent.is_revoked(ONCE)
    with pytest.raises(Unauthenticated):
        spent.check(ANA)
    spent.revoke(revocation(subject="ana"))
    with pytest.raises(Unauthenticated):
        spent.used(ONCE, "p")


def test_only_a_single_use_token_is_used_up() -> None:
    spent = Revocations()
    assert spent.used(ONCE, "p") == UsedToken("default", "t2", "p", 700.0)
    for grant in (ANA, OPEN):
        assert spent.used(grant, "p") is None


def test_revocation_outlasts_every_invite() -> None:
    spent = Revocations()
    spent.revoke(revocation(token_id="old", before_s=0.0))
    spent.revoke(revocation(token_id="t1", before_s=DAY_S))
    spent.sweep(7 * DAY_S)
    assert len(spent.kept_revocations()) == 2
    spent.sweep(7 * DAY_S + 3_600.0)
    assert [each.token_id for each in spent.kept_revocations()] == ["t1"]
    assert spent.is_revoked(ANA)


def test_newest_revocation_counts_and_number_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grants, "_MOST_REVOCATIONS", 2)
    tokens = Revocations()
    for before_s in (5.0, 9.0, 7.0):
        tokens.revoke(Revocation(tenant="acme", before_s=before_s, subject="ana"))
    assert tokens.kept_revocations() == (Revocation(tenant="acme", before_s=9.0, subject="ana"),)
    tokens.revoke(Revocation(tenant="acme", before_s=1.0, subject="bo"))
    with pytest.raises(RateLimited):
        tokens.revoke(Revocation(tenant="acme", before_s=1.0, subject="cy"))
    tokens.revoke(Revocation(tenant="acme", before_s=1.0, subject="cy"), known=True)
    # An operator can always end a meeting.
    tokens.revoke(Revocation(tenant="acme", before_s=1.0, meeting="m", by_operator=True))
    tokens.revoke(Revocation(tenant="acme", before_s=9.0, subject="bo"))
    tokens.revoke(Revocation(tenant="other", before_s=1.0, subject="cy"))
    everything = Revocation(tenant="acme", before_s=9.0)
    tokens.revoke(everything)
    assert everything in tokens.kept_revocations()
    assert len(tokens.kept_revocations()) == 2
