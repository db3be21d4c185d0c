"""When to reconnect, and after which delay.

Knows: close codes, back-off. Must not know: clocks (times are arguments), sockets.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec import Struct

from gateway.client.errors import SessionClosed
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import Draining
from gateway.protocol.messages import Error

# A gateway that announces a restart is back sooner than one that is lost.
RESTART_CAP_S = 5.0

# How many new tokens are tried in an outage. One may expire between being made and being used; all of them do not.
_TOKENS = 4

# Close codes below 4000 after which another attempt may succeed: going away, no code, broken connection, internal
# error, restart, try again later, bad gateway.
_TEMPORARY = {1001, 1005, 1006, 1011, 1012, 1013, 1014}


def may_reconnect(code: int | None) -> bool:
    """Whether the session may be resumed after a close with this code. None: the connection broke."""
    return code is None or code in _TEMPORARY or 4000 <= code < 4500


class Reconnect(Struct, frozen=True, kw_only=True):
    """When a session reconnects. Times are in seconds.

    The delay before an attempt is random, below a bound that doubles with each attempt. Raises `ValueError`.
    """

    # The bound before the first attempt, and the highest one.
    first_s: float = 0.25
    most_s: float = 15.0
    # How long to try. 0: not at all.
    give_up_s: float = 300.0
    # Gives random numbers from 0 to 1.
    jitter: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if not (0 < self.first_s <= self.most_s and self.give_up_s >= 0):
            raise ValueError("first_s is more than 0 and at most most_s, and give_up_s is at least 0.")


class Outage:
    """The time from the loss of a connection until the session is resumed, and the attempts in between.

    earlier: attempts of the previous outage, if its connection did not last. They raise the delay, so that clients
        do not flood a gateway that accepts connections and drops them.
    """

    def __init__(self, loss: SessionClosed, began_s: float, policy: Reconnect, earlier: int = 0) -> None:
        self.loss = loss
        # Why there is no connection, in one sentence.
        self.reason = str(loss)
        # When to give up.
        self.until_s = began_s + policy.give_up_s
        self.attempt = 0
        # When the announced attempt is due. None while none is announced.
        self.attempt_at_s: float | None = None
        self._policy = policy
        self._earlier = earlier
        self._tokens_refused = 0
        self._cap_s = policy.most_s
        if loss.code == CloseCode.RESTART:
            self._expect_soon()
        self._retry_after_s = 0.0
        if loss.error is not None:
            self._apply_retry_after(loss.error)

    @property
    def attempts(self) -> int:
        """Attempts so far, for the delay of an outage that follows at once."""
        return self._earlier + self.attempt

    def may_try_another_token(self) -> bool:
        """The gateway did not accept the attempt's token. Returns whether to try a few more."""
        self._tokens_refused += 1
        return self._tokens_refused < _TOKENS

    def failed(self, reason: str, error: Error | None = None) -> None:
        """The announced attempt failed. error: the gateway's answer, if there was one."""
        self.reason = reason
        self.attempt_at_s = None
        self._retry_after_s = 0.0
        if error is not None:
            self._apply_retry_after(error)

    def announce(self, now_s: float) -> float | None:
        """The delay before the next attempt; None when it is time to give up.

        Full jitter under an exponential cap, added to the delay that the gateway asked for.
        https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        if now_s >= self.until_s:
            return None
        # The exponent is bounded, because 2.0 to the power of thousands of attempts overflows.
        cap_s = min(self._cap_s, self._policy.first_s * 2.0 ** min(self.attempts, 16))
        delay_s = min(self._retry_after_s + self._policy.jitter() * cap_s, self.until_s - now_s)
        self.attempt += 1
        self.attempt_at_s = now_s + delay_s
        return delay_s

    def gave_up(self) -> SessionClosed:
        """The exception to raise when it is time to give up."""
        return SessionClosed(self.loss.url, self.loss.code, self.loss.error, gave_up=self.reason)

    def _apply_retry_after(self, error: Error) -> None:
        self._retry_after_s = (error.retry_after_ms or 0) / 1000
        if error.code == Draining.code:
            self._expect_soon()

    def _expect_soon(self) -> None:
        self._cap_s = min(RESTART_CAP_S, self._policy.most_s)
