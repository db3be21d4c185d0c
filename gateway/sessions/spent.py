"""Tokens that are not valid any more although their time is not over: revoked.

Knows: revocations, at whichever gateway, and which tokens are used up by what they open. Must not know: how tokens
are verified, sessions themselves, clocks, who has used up what (`Register`).
"""

from __future__ import annotations

from itertools import chain, product

from gateway.domain.errors import RateLimited, Unauthenticated
from gateway.domain.grants import Grant, Revocation
from gateway.domain.register import REVOCATION_S
from gateway.domain.sessions import UsedToken

# Of one tenant; revoking everything needs one.
_MOST_REVOCATIONS = 10_000

# Id of a token or an invite, subject, meeting.
_Meant = tuple[str | None, str | None, str | None]
_EVERYTHING: _Meant = (None, None, None)


class SpentTokens:
    """Revocations. Times are in seconds since 1970."""

    def __init__(self) -> None:
        # Tenant → (token id, subject, meeting), each None for any → the newest revocation.
        self._revocations: dict[str, dict[_Meant, Revocation]] = {}

    def revoke(self, revocation: Revocation, *, known: bool = False) -> None:
        """known: another gateway has it already.

        Otherwise, and unless it is an operator's, raises `RateLimited` if the tenant has as many as there may be.
        """
        meant = (revocation.token_id, revocation.subject, revocation.meeting)
        of_tenant = self._revocations.setdefault(revocation.tenant, {})
        if meant == _EVERYTHING:
            of_tenant.clear()
        taken = known or revocation.by_operator or meant in of_tenant
        if not taken and len(of_tenant) >= _MOST_REVOCATIONS:
            raise RateLimited("This tenant has too many revocations; revoke everything.", retry_after_ms=60_000)
        earlier = of_tenant.get(meant)
        if earlier is None or earlier.before_s < revocation.before_s:
            of_tenant[meant] = revocation

    def is_revoked(self, grant: Grant) -> bool:
        of_tenant = self._revocations.get(grant.tenant)
        if not of_tenant:
            return False
        ids, subjects, meetings = (
            (None, grant.token_id, grant.invite_id),
            (None, grant.subject),
            (None, grant.meeting),
        )
        return any(
            meant in of_tenant and of_tenant[meant].hits(grant) for meant in product(ids, subjects, meetings)
        )

    def check(self, grant: Grant) -> None:
        """Raises `Unauthenticated` if it was revoked."""
        if self.is_revoked(grant):
            raise Unauthenticated

    def used(self, grant: Grant, user: str) -> UsedToken | None:
        """What is used up if `user` opens something with a token; None for one that opens as much as one likes.

        Raises `Unauthenticated` if it was revoked.
        """
        self.check(grant)
        return UsedToken(grant.tenant, grant.token_id, user, grant.expires_s or 0.0) if grant.once else None

    def sweep(self, now_s: float) -> None:
        """Forget what has expired."""
        oldest_s = now_s - REVOCATION_S
        for tenant, of_tenant in list(self._revocations.items()):
            kept = {meant: each for meant, each in of_tenant.items() if each.before_s > oldest_s}
            if kept:
                self._revocations[tenant] = kept
            else:
                del self._revocations[tenant]

    def kept(self) -> tuple[Revocation, ...]:
        """For another process."""
        return tuple(chain.from_iterable(of_tenant.values() for of_tenant in self._revocations.values()))
