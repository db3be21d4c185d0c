"""Tokens: where they come from, and when the session needs a new one.

Knows: sources of tokens, what a header can carry, and the answers to `session.refresh`.
Must not know: sockets, clocks (times are arguments), what a token says.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable

from gateway.client.errors import ClientError, TokenUnavailable
from gateway.domain.errors import Unauthenticated
from gateway.protocol.messages import Error, ServerMessage, SessionRefreshed, TokenExpiring

# What `connect` takes.
TokenSource = str | Callable[[], str | Awaitable[str]]

# How often to ask for a token after one `token.expiring`.
_TRIES = 5
# Shortest time between two of these tries, and shortest time left that is worth a try.
_AGAIN_S = 1.0

_VISIBLE = re.compile(r"[!-~]+")


class Secret(str):
    """A token as any other string, but not shown where it is quoted, for example in a traceback with variables."""

    def __repr__(self) -> str:
        return "…"


def checked(token: object) -> Secret:
    """The token, if a header can carry it. Raises `ValueError` that does not quote it."""
    if not isinstance(token, str):
        raise ValueError(f"A token is a string, not {type(token).__name__}.")
    if not token:
        raise ValueError("The token is empty.")
    if not _VISIBLE.fullmatch(token):
        raise ValueError(
            "The token has characters that no header can carry; it may have only visible ASCII, and no spaces."
        )
    return Secret(token)


class Tokens:
    """Gives a token for each attempt to connect, and for each refresh. Raises `ValueError` as `checked` does."""

    def __init__(self, source: TokenSource | None) -> None:
        self._source = source if source is None or callable(source) else checked(source)

    def __repr__(self) -> str:
        return "Tokens(…)"

    @property
    def given(self) -> bool:
        """Whether there are tokens at all."""
        return self._source is not None

    @property
    def renewable(self) -> bool:
        """Whether the next token may differ from the last one."""
        return callable(self._source)

    async def ask(self) -> Secret | None:
        """A token for now. None if there are none.

        Raises `ValueError` for one that no header can carry, the source's own `ClientError`, and
        `TokenUnavailable` for any other exception of the source.
        """
        if not callable(self._source):
            return self._source
        try:
            answer = self._source()
            token = await answer if inspect.isawaitable(answer) else answer
        except ClientError:
            raise
        except Exception as error:
            # Its text is left out, because the token may be in it.
            raise TokenUnavailable(
                f"There is no token: asking for one failed ({type(error).__name__})."
            ) from error
        return checked(token)


class Refreshing:
    """The answer to `token.expiring`: when to ask for a token, and for how long to try."""

    def __init__(self, tokens: Tokens) -> None:
        # When to ask for a token and send it. None: not now.
        self.due_s: float | None = None
        self._tokens = tokens
        self._until_s = 0.0
        self._tries = 0
        self._unanswered = False

    def is_due(self, now_s: float) -> bool:
        """Whether to ask for a token now."""
        return self.due_s is not None and self.due_s <= now_s

    def note_message(self, message: ServerMessage, now_s: float) -> None:
        """Note what a message says about the session's time; other messages change nothing."""
        match message:
            case TokenExpiring(expires_in_ms=left_ms) if self._tokens.given:
                self.due_s = now_s
                self._until_s = now_s + left_ms / 1000
                self._tries = 0
            case SessionRefreshed():
                self.stop()
            case Error(utterance=None) if self._unanswered:
                self._refused(message, now_s)

    def sent(self) -> None:
        """A new token was sent."""
        self.due_s = None
        self._tries += 1
        self._unanswered = True

    def failed(self, now_s: float) -> None:
        """There was no token."""
        self._tries += 1
        self._try_again(now_s)

    def stop(self) -> None:
        """There is nothing to refresh: it was done, or the connection was lost."""
        self.due_s = None
        self._unanswered = False

    def _refused(self, error: Error, now_s: float) -> None:
        # An error does not name its message, so the first one is taken for the answer.
        self._unanswered = False
        if error.retryable or (error.code == Unauthenticated.code and self._tokens.renewable):
            self._try_again(now_s)

    def _try_again(self, now_s: float) -> None:
        """A third of the time that is left is waited: early tries leave time for later ones."""
        left_s = self._until_s - now_s
        enough = left_s > _AGAIN_S and self._tries < _TRIES
        self.due_s = now_s + max(left_s / 3, _AGAIN_S) if enough else None
