"""Tokens that are not valid any more although their time is not over: revoked, or used up.

Knows: revocations, and which session a token that opens one session has opened. Must not know: how tokens are
verified, sessions themselves, clocks.
"""

from __future__ import annotations

from itertools import chain, product

from gateway.domain.errors import RateLimited, Unauthenticated
from gateway.domain.grants import Grant, Revocation
from gateway.domain.sessions import UsedToken

__all__ = ["SpentTokens"]

# For which an invite may be valid, and clocks may differ: then nothing that was issued before is valid.
_REMEMBERED_S = 7 * 86_400 + 3_600

# Of one tenant; revoking everything needs one.
_MOST_REVOCATIONS = 10_000

# Id of a token or an invite, subject, meeting.
_Meant = tuple[str | None, str | None, str | None]
_EVERYTHING: _Meant = (None, None, None)


class SpentTokens:
    """Revocations and used tokens. Times are in seconds since 1970."""

    def __init__(self) -> None:
        # Tenant → (token id, subject, meeting), each None for any → the newest revocation.
        self._revocations: dict[str, dict[_Meant, Revocation]] = {}
        # Tenant and id of a token → what it was used for, and until when it could be used again.
        self._used: dict[tuple[str, str], UsedToken] = {}

    def revoke(self, revocation: Revocation) -> None:
        """Raises `RateLimited` if the tenant has as many revocations as there may be."""
        meant = (revocation.token_id, revocation.subject, revocation.meeting)
        of_tenant = self._revocations.setdefault(revocation.tenant, {})
        if meant == _EVERYTHING:
            of_tenant.clear()
        if len(of_tenant) >= _MOST_REVOCATIONS and meant not in of_tenant:
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

    def use(self, grant: Grant, user: str) -> None:
        """Use a token for `user`, who may use it again. Raises `Unauthenticated` if revoked or used by another."""
        self.check(grant)
        if not grant.once:
            return
        token = (grant.tenant, grant.token_id)
        used = self._used.setdefault(token, UsedToken(*token, user, grant.expires_s or 0.0))
        if used.user != user:
            raise Unauthenticated

    def sweep(self, now_s: float) -> None:
        """Forget what has expired."""
        oldest_s = now_s - _REMEMBERED_S
        for tenant, of_tenant in list(self._revocations.items()):
            kept = {meant: each for meant, each in of_tenant.items() if each.before_s > oldest_s}
            if kept:
                self._revocations[tenant] = kept
            else:
                del self._revocations[tenant]
        # The leeway of clocks, generously.
        gone = [token for token, used in self._used.items() if used.until_s < now_s - 60]
        for token in gone:
            del self._used[token]

    def kept(self) -> tuple[tuple[Revocation, ...], tuple[UsedToken, ...]]:
        """For another process."""
        revocations = chain.from_iterable(of_tenant.values() for of_tenant in self._revocations.values())
        return tuple(revocations), tuple(self._used.values())

    def restore(self, revocations: tuple[Revocation, ...], used: tuple[UsedToken, ...]) -> None:
        """What another process kept."""
        for revocation in revocations:
            self.revoke(revocation)
        self._used |= {(each.tenant, each.token_id): each for each in used}
