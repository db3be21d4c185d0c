"""What gateways share of sessions: which of them a revocation ends, and which revocations are the same."""

from __future__ import annotations

from gateway.domain.grants import OPEN, Grant, Revocation
from gateway.domain.session_store import ends, what_is_revoked
from gateway.domain.sessions import SessionRecord


def record(participant: str, grant: Grant, meeting: str = "acme/m") -> SessionRecord:
    return SessionRecord(participant, meeting, False, "", None, (), grant=grant)


def test_revocation_ends_sessions() -> None:
    token = Grant(tenant="acme", subject="ana", meeting="m")
    sessions = [record("p", token), record("q", OPEN), record("r", OPEN, "m"), record("s", token, "acme/n")]

    def ended(revocation: Revocation) -> str:
        return "".join(each.participant for each in sessions if ends(revocation, each))

    revoked = Revocation(tenant="acme", before_s=1.0, meeting="m")
    assert ended(revoked) == "ps"  # by their tokens
    by_operator = Revocation(tenant="acme", before_s=1.0, meeting="m", by_operator=True)
    assert ended(by_operator) == "pq"
    one = Revocation(tenant="acme", before_s=1.0, meeting="m", subject="", by_operator=True, participant="q")
    assert ended(one) == "q"
    assert ended(Revocation(tenant="default", before_s=1.0, meeting="m", by_operator=True)) == "r"


def test_those_of_two_participants_are_two() -> None:
    first, second = (
        Revocation(tenant="acme", before_s=1.0, meeting="m", subject="", by_operator=True, participant=each)
        for each in ("p", "q")
    )
    assert what_is_revoked(first) != what_is_revoked(second)
    assert what_is_revoked(first) == what_is_revoked(first)
    plain = Revocation(tenant="acme", before_s=1.0, meeting="m", subject="")
    assert what_is_revoked(plain) == ("acme", None, "", "m")
