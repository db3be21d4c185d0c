"""Tokens that are not valid any more although their time is not over: revoked, or used up.

Knows: revocations, and which session a token that opens one session has opened. Must not know: how tokens are
verified, sessions themselves, clocks.
"""

from __future__ import annotations

from gateway.domain.errors import Unauthenticated
from gateway.domain.grants import Grant, Revocation
from gateway.domain.sessions import UsedToken

__all__ = ["SpentTokens"]

# For which an invite may be valid, and clocks may differ: then nothing that was issued before is valid.
_REMEMBERED_S = 7 * 86_400 + 3_600


class SpentTokens:
    """Revocations and used tokens. Times are in seconds since 1970."""

    def __init__(self) -> None:
        self._revocations: list[Revocation] = []
        # Tenant and id of a token → what it was used for, and until when it could be used again.
        self._used: dict[tuple[str, str], UsedToken] = {}

    def revoke(self, revocation: Revocation) -> None:
        self._revocations.append(revocation)

    def is_revoked(self, grant: Grant) -> bool:
        return any(revocation.hits(grant) for revocation in self._revocations)

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
        self._revocations = [each for each in self._revocations if each.before_s > oldest_s]
        # The leeway of clocks, generously.
        gone = [token for token, used in self._used.items() if used.until_s < now_s - 60]
        for token in gone:
            del self._used[token]

    def kept(self) -> tuple[tuple[Revocation, ...], tuple[UsedToken, ...]]:
        """For another process."""
        return tuple(self._revocations), tuple(self._used.values())

    def restore(self, revocations: tuple[Revocation, ...], used: tuple[UsedToken, ...]) -> None:
        """What another process kept."""
        self._revocations += revocations
        self._used |= {(each.tenant, each.token_id): each for each in used}
