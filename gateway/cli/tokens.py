"""Where the command line takes a token from: a file, stdin or the environment.

Knows: how a token lies in a file. Must not know: how flags are spelled (`cli.flags`), what a token is for.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from gateway.client import TokenUnavailable
from gateway.client.tokens import Secret, checked

TOKEN_VARIABLE = "GATEWAY_TOKEN"  # noqa: S105 -- the name of a variable


class TokenFile:
    """A file that is read at every call, because another program may renew it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self) -> Secret:
        """The token in the file. Raises `TokenUnavailable`."""
        try:
            return _token(self._path.read_bytes())
        # Its name is not shown: it may be a token that was given in place of a file.
        except OSError as error:
            raise TokenUnavailable(f"The token file cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise TokenUnavailable(f"The token file has no token: {error}") from None


Token = Secret | TokenFile


def token_of(file: str | None, variable: str | None, stdin: BinaryIO | None) -> Token | None:
    """The token that the user gave. None if there is none. Raises `TokenUnavailable`.

    file: a path, or `-` for the first line of `stdin`; it wins over the variable.
    variable: the value of `GATEWAY_TOKEN`.
    stdin: None if it is not free.
    """
    if file is None:
        try:
            return checked(variable.strip()) if variable and variable.strip() else None
        except ValueError as error:
            raise TokenUnavailable(f"{TOKEN_VARIABLE}: {error}") from None
    if file == "-":
        if stdin is None:
            raise TokenUnavailable("The token cannot be read from stdin, which is used otherwise; give a file.")
        if stdin.isatty():
            raise TokenUnavailable("Pipe the token in: a terminal would show it.")
        try:
            return _token(stdin.readline())
        except ValueError as error:
            raise TokenUnavailable(f"There is no token on stdin: {error}") from None
    source = TokenFile(Path(file))
    token = source()
    # A pipe of the shell, for example, can be read only once.
    return source if Path(file).is_file() else token


def token_now(token: Token | None) -> Secret | None:
    """The token at this moment. Raises `TokenUnavailable`."""
    return token() if isinstance(token, TokenFile) else token


def _token(content: bytes) -> Secret:
    return checked(content.decode("utf-8-sig", "replace").strip())
