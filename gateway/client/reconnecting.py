"""When a lost connection is opened again, and after which delay.

Knows: close codes, back-off. Must not know: clocks (times are arguments), sockets.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.client.errors import SessionClosed
from gateway.domain.errors import CloseCode, Draining
from gateway.protocol.messages import Error

__all__ = ["BASE_S", "CAP_S", "RESTART_CAP_S", "Outage", "may_reconnect"]

BASE_S = 0.25
CAP_S = 15.0

# A gateway that says it restarts is back sooner than one that is lost.
RESTART_CAP_S = 5.0

# Of the codes below 4000 those that speak of the moment: going away, none given, broken, a bug or an unexpected
# condition, a restart, "try again later", a gateway in between that lost the one behind it.
_PASSING = {1001, 1005, 1006, 1011, 1012, 1013, 1014}


def may_reconnect(code: int | None) -> bool:
    """Whether the session may go on after a close with this code; null: the connection broke."""
    return code is None or code in _PASSING or 4000 <= code < 4500


class Outage:
    """The time from the loss of a connection until the session goes on, and the attempts made meanwhile.

    earlier: attempts of the outage before, where its end did not last; they count for the delay, so that a gateway
    that takes everybody and drops them again is not stormed. reason: why there is no connection, one sentence.
    attempt_at_s: when the announced attempt is due, null while none is announced. until_s: end of the patience.
    """

    def __init__(self, loss: SessionClosed, began_s: float, give_up_s: float, earlier: int = 0) -> None:
        self.loss = loss
        self.reason = str(loss)
        self.until_s = began_s + give_up_s
        self.attempt = 0
        self.attempt_at_s: float | None = None
        self._earlier = earlier
        self._cap_s = RESTART_CAP_S if loss.code == CloseCode.RESTART else CAP_S
        self._retry_after_s = 0.0
        if loss.error is not None:
            self._heed(loss.error)

    @property
    def attempts(self) -> int:
        """Attempts that count for the delay of an outage that follows at once."""
        return self._earlier + self.attempt

    def failed(self, reason: str, error: Error | None = None) -> None:
        """The announced attempt failed; `error` is the gateway's answer, where there was one."""
        self.reason = reason
        self.attempt_at_s = None
        self._retry_after_s = 0.0
        if error is not None:
            self._heed(error)

    def announce(self, now_s: float, jitter: Callable[[], float]) -> float | None:
        """The delay before one more attempt; null when the patience has ended.

        Full jitter on an exponential cap, on top of what the gateway asked for.
        https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        if now_s >= self.until_s:
            return None
        # The exponent is bounded: 2 to the power of thousands of attempts is no float any more.
        cap_s = min(self._cap_s, BASE_S * 2.0 ** min(self.attempts, 16))
        delay_s = min(self._retry_after_s + jitter() * cap_s, self.until_s - now_s)
        self.attempt += 1
        self.attempt_at_s = now_s + delay_s
        return delay_s

    def gave_up(self) -> SessionClosed:
        """What is raised when the patience has ended."""
        return SessionClosed(self.loss.url, self.loss.code, self.loss.error, gave_up=self.reason)

    def _heed(self, error: Error) -> None:
        self._retry_after_s = (error.retry_after_ms or 0) / 1000
        if error.code == Draining.code:
            self._cap_s = RESTART_CAP_S
