"""Tokens on the command line: from a file, stdin or the environment, and never on the screen."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.cli.jobs import TextOptions
from gateway.cli.main import main
from gateway.cli.sessions import MeetingOptions
from gateway.cli.tokens import TokenFile, token_now, token_of
from gateway.client import TokenUnavailable
from gateway.protocol.messages import SessionRefresh, SessionStart, TokenExpiring, UtteranceFinal
from tests.cli.commands import echo, on_a_terminal, run, run_against
from tests.cli.meetings import command, interrupted, started
from tests.scripted_gateway import Peer, accepted, refused, scripted_gateway, translated

SECRET = "eyJhbGciOi.J9.secret"
UNAUTHENTICATED = refused("unauthenticated", "This gateway needs a valid token.")
NEEDED = "gateway: This gateway needs a token: set GATEWAY_TOKEN or --token-file.\n"
NOT_ACCEPTED = "gateway: The gateway did not accept the token.\n"

# Commands and what they read from stdin.
SESSIONS: list[tuple[Sequence[str], str]] = [
    (["translate", "hi", "--to", "ja"], ""),
    (["translate", "--to", "ja"], "hi\n"),
    (["chat", "--to", "ja"], "hi\n"),
    (["speak", "--meeting", "standup"], "hi\n"),
    (["read", "--meeting", "standup", "ja"], ""),
]
NAMES = ["translate", "translate lines", "chat", "speak", "read"]


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{SECRET}\n")
    return path


def bearer(peer: Peer) -> str | None:
    assert peer.connection.request is not None
    return peer.connection.request.headers.get("Authorization")


def renew(path: Path, token: str) -> None:
    path.write_text(token)


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


# ---------------------------------------------------------------- where it comes from


def test_a_file_is_read_again_each_time(token_file: Path) -> None:
    token = token_of(str(token_file), "from the environment", None)
    assert token_now(token) == SECRET
    token_file.write_bytes(b"\xef\xbb\xbf t2\r\n")
    assert token_now(token) == "t2"
    token_file.unlink()
    with pytest.raises(TokenUnavailable, match=r"^The token file cannot be read: No such file or directory\.$"):
        token_now(token)


def test_a_pipe_of_the_shell_is_read_once() -> None:
    theirs, ours = os.pipe()
    os.write(ours, b"t1\n")
    os.close(ours)
    try:
        token = token_of(f"/dev/fd/{theirs}", None, None)
    finally:
        os.close(theirs)
    assert [token_now(token), token_now(token)] == ["t1", "t1"]


@pytest.mark.parametrize(
    ("file", "variable", "stdin", "token"),
    [
        (None, None, None, None),
        (None, "", None, None),
        (None, " \n", None, None),
        (None, " t1\n", None, "t1"),
        ("-", "t1", b"t2\nhello\n", "t2"),
    ],
)
def test_a_token_may_come_from_elsewhere(
    file: str | None, variable: str | None, stdin: bytes | None, token: str | None
) -> None:
    assert token_now(token_of(file, variable, None if stdin is None else io.BytesIO(stdin))) == token


@pytest.mark.parametrize(
    ("file", "variable", "stdin", "why"),
    [
        (None, "a b", None, "GATEWAY_TOKEN: The token has characters that no header can carry"),
        ("-", None, None, "stdin, which is used otherwise"),
        ("-", None, Terminal(b"t1\n"), "a terminal would show it"),
        ("-", None, io.BytesIO(b""), "no token on stdin: The token is empty"),
        ("/", None, None, "The token file cannot be read: Is a directory"),
        ("/dev/null", None, None, "The token file has no token: The token is empty"),
    ],
)
def test_what_is_no_token_is_explained(
    file: str | None, variable: str | None, stdin: io.BytesIO | None, why: str
) -> None:
    with pytest.raises(TokenUnavailable, match=why):
        token_of(file, variable, stdin)


def test_wrong_token_file_is_not_quoted(token_file: Path) -> None:
    token_file.write_text(f"{SECRET} {SECRET}")
    with pytest.raises(TokenUnavailable, match="has no token: The token has characters") as caught:
        TokenFile(token_file)()
    assert SECRET not in str(caught.value)


def test_options_do_not_show_the_token(token_file: Path) -> None:
    for token in (token_of(None, SECRET, None), token_of(str(token_file), None, None)):
        assert SECRET not in repr(TextOptions(url="ws://a", wait_s=0, source="en", token=token))
        assert SECRET not in repr(MeetingOptions(url="ws://a", wait_s=0, meeting="standup", token=token))


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["translate", "hi"], "GATEWAY_TOKEN: The token has characters"),
        (["translate", "hi", "--token-file", "no/such/file"], "The token file cannot be read: No such file"),
        (["speak", "--meeting", "m", "--token-file", "-"], "stdin, which is used otherwise; give a file"),
        (["chat", "--token-file", "-"], "stdin, which is used otherwise; give a file"),
        (["translate", "-", "--token-file", "-"], "stdin, which is used otherwise; give a file"),
        (["translate", "hi", "--token-file", SECRET], "The token file cannot be read: No such file"),
        (["translate", "hi", "--token", SECRET], "The token file cannot be read: No such file"),
        (["translate", "hi", "--token-file", SECRET * 500], "The token file cannot be read: File name too long"),
    ],
)
def test_wrong_usage(
    argv: list[str], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", f"{SECRET}\n{SECRET}")
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    err = capsys.readouterr().err
    assert why in err
    assert SECRET not in err


# ---------------------------------------------------------------- with a gateway


@pytest.mark.parametrize(("argv", "stdin"), SESSIONS, ids=NAMES)
async def test_a_token_is_sent_or_asked_for(argv: Sequence[str], stdin: str, token_file: Path) -> None:
    seen: list[str | None] = []

    async def script(peer: Peer) -> None:
        seen.append(bearer(peer))
        assert (await peer.expect(SessionStart)).token is None
        await peer.leave(4501, UNAUTHENTICATED)

    async with scripted_gateway(script) as url:
        none = await run(*argv, "--url", url, stdin=stdin, GATEWAY_TOKEN="")
        variable = await run(*argv, "--url", url, "--traceback", stdin=stdin, GATEWAY_TOKEN=SECRET)
        file = await run(*argv, "--url", url, "--token-file", str(token_file), stdin=stdin, GATEWAY_TOKEN="t2")
    assert none == (3, "", NEEDED)
    assert file == (3, "", NOT_ACCEPTED)
    assert (variable.status, variable.out) == (3, "")
    assert variable.err.endswith(NOT_ACCEPTED)
    assert "Traceback" in variable.err
    assert SECRET not in variable.err
    assert seen == [None, f"Bearer {SECRET}", f"Bearer {SECRET}"]


async def test_a_token_may_be_piped_in_where_stdin_is_free() -> None:
    seen: list[str | None] = []

    async def script(peer: Peer) -> None:
        seen.append(bearer(peer))
        await echo(peer)

    ran = await run_against(script, "translate", "hi", "--to", "ja", "--token-file", "-", stdin=f"{SECRET}\n")
    assert ran == (0, "ja\tja: hi\n", "")
    assert seen == [f"Bearer {SECRET}"]


async def test_nobody_types_a_token_where_it_is_shown() -> None:
    async with on_a_terminal("read", "--meeting", "m", "ja", "--token-file", "-", columns=200) as terminal:
        assert "Pipe the token in: a terminal would show it." in await terminal.rest()
        assert await terminal.process.wait() == 2


async def test_renewed_token_file_is_used(token_file: Path) -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            await peer.take()
            renew(token_file, "t2")
            await peer.say(TokenExpiring(60_000))
            assert await peer.expect(SessionRefresh) == SessionRefresh("t2")
            renew(token_file, "t3")
            await peer.leave(4401, refused("token_expired", "The session's time is over."))
            return
        assert bearer(peer) == "Bearer t3"
        start = await peer.start()
        assert start.resume is not None
        await peer.say(translated(UtteranceFinal("1", 1, "hi"), "ja", "はい"))
        await peer.end()

    ran = await run_against(script, "translate", "hi", "--to", "ja", "--token-file", str(token_file))
    assert ran == (
        0,
        "ja\tはい\n",
        "gateway: The gateway closed the session: The session's time is over. Trying to reach it again.\n"
        "gateway: The gateway is back; continuing.\n",
    )


@pytest.mark.parametrize(("argv", "stdin"), [SESSIONS[0], SESSIONS[3]], ids=["translate", "speak"])
async def test_refused_refresh_is_only_a_note(argv: Sequence[str], stdin: str) -> None:
    async def script(peer: Peer) -> None:
        start = await peer.start(started())
        final = await peer.expect(UtteranceFinal)
        await peer.say(TokenExpiring(60_000))
        await peer.expect(SessionRefresh)
        await peer.say(UNAUTHENTICATED, accepted(final))
        await peer.say(*(translated(final, lang, "OK") for lang in start.reads))
        await peer.end()

    ran = await run_against(script, *argv, stdin=stdin, GATEWAY_TOKEN=SECRET)
    assert ran.status == 0
    assert ran.err.startswith(NOT_ACCEPTED)


async def test_a_chat_goes_on_after_a_refused_refresh() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        final = await peer.take()
        await peer.say(TokenExpiring(60_000))
        await peer.expect(SessionRefresh)
        await peer.say(UNAUTHENTICATED, translated(final, "ja", "OK"))
        await peer.connection.wait_closed()

    ran = await run_against(script, "chat", "--to", "ja", stdin="hi\n", GATEWAY_TOKEN=SECRET)
    assert ran == (0, "ja\tOK\n", NOT_ACCEPTED)


async def test_the_messages_of_a_reader_have_no_token() -> None:
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(started(), TokenExpiring(60_000))
        while not isinstance(await peer.receive(), SessionRefresh):
            pass
        asked.set()
        await peer.connection.wait_closed()

    async with (
        scripted_gateway(script) as url,
        command("read", "--meeting", "standup", "--json", "ja", "--url", url, "--token-file", "-") as process,
    ):
        assert process.stdin is not None
        process.stdin.write(f"{SECRET}\n".encode())
        await asked.wait()
        ran = await interrupted(process)
    assert ran.status == 0
    assert '{"type":"token.expiring","expires_in_ms":60000}\n' in ran.out
    assert SECRET not in ran.out + ran.err
