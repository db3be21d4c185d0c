"""Commands that ask a gateway over HTTP: what they print, and the statuses that they end with."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.config import EngineSettings, LaneSettings, Settings
from gateway.domain.engine import EngineState
from gateway.domain.webhooks import Webhook
from gateway.engines.simulated import Script
from gateway.protocol.messages import SessionStart, SessionStarted
from tests.administration import Operator, administered
from tests.gateways import running
from tests.webhooks.receiver import receiver


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    operator = Operator(tmp_path)
    monkeypatch.setenv("GATEWAY_ADMIN_KEY", operator.key)
    return operator


async def admin(*argv: str) -> int:
    return await asyncio.to_thread(main, ["admin", *argv])


async def test_a_meeting_is_found_ended_and_erased(
    operator: Operator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with administered(operator) as (gateway, client), gateway.peer() as ana, gateway.peer() as bo:
        monkeypatch.setenv("GATEWAY_ADMIN_URL", str(client.base_url))
        participants = []
        for peer, name in ((ana, "Ana"), (bo, "B\to")):
            await peer.send(SessionStart(meeting="standup", name=name, reads=["ja", "de"]))
            participants.append((await peer.until(SessionStarted))[-1].participant)
        assert await admin("meetings") == 0
        assert capsys.readouterr().out.splitlines() == [
            "tenant\tmeeting\tconnected\taway\tpublications\tbytes\tnewest_at",
            "default\tstandup\t2\t0\t0\t0\t-",
        ]
        assert await admin("sessions", "standup") == 0
        lines = capsys.readouterr().out.splitlines()
        assert f"default\tstandup\t{participants[0]}\tAna\t-\tja,de\tno\t-" in lines
        assert all(line.count("\t") == 7 for line in lines)
        assert await admin("disconnect", "standup", participants[1]) == 0
        assert await admin("disconnect", "standup", participants[1]) == 3
        out, err = capsys.readouterr()
        assert (out, err) == ("1 sessions ended\n", "gateway: There is no such participant in this meeting.\n")
        assert await admin("erase", "standup") == 0
        assert await admin("end", "standup") == 0
        assert await admin("sessions", "--tenant", "acme") == 0
        assert await admin("end", "nosuch") == 3
        out, err = capsys.readouterr()
        assert out == "erased\n1 sessions ended\n0 sessions ended\n"
        assert err.splitlines() == [
            "gateway: There are no sessions.",
            "gateway: Nobody was in the meeting 'nosuch' of tenant default.",
        ]


async def test_processes_and_the_log_level(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.getLevelName(logging.getLogger("gateway").getEffectiveLevel()).lower()
    async with administered(operator) as (_, client):
        where = ("--url", str(client.base_url))
        assert await admin("workers", *where) == 0
        assert await admin("log-level", *where) == 0
        assert await admin("lanes", "--json", *where) == 0
        head, workers, level, lanes = capsys.readouterr().out.splitlines()
        assert head == "number\tpid\tstatus\trunning\twaiting"
        assert (workers.split("\t")[0], level, lanes[:10]) == ("-", before, '{"lanes":[')
        assert await admin("drain-worker", "1", *where) == 3
        assert await admin("drain-lane", "default", *where) == 3
        assert await admin("log-level", "loud", *where) == 3
        assert len(capsys.readouterr().err.splitlines()) == 3


async def test_webhooks(operator: Operator, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"whsec_{'A' * 32}")
    answers = [500, 204]
    with receiver(lambda _: answers.pop(0)) as other:
        webhook = Webhook(name="backend", url=other.url, secret_file=str(tmp_path / "secret"))
        async with administered(operator, Settings(webhooks=(webhook,))) as (_, client):
            where = ("--url", str(client.base_url))
            assert await admin("webhooks", *where) == 0
            assert await admin("test-webhook", "backend", *where) == 3
            assert await admin("test-webhook", "backend", *where) == 0
    out, err = capsys.readouterr()
    host = other.url.split("/")[2]
    assert out.splitlines()[1:] == [f"backend\t{host}\t0\t-\t-\t-\tno", "It answered with status 204."]
    assert err == "gateway: It answered with status 500.\n"


async def test_unknown_key_is_refused(
    operator: Operator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with administered(operator) as (_, client):
        monkeypatch.setenv("GATEWAY_ADMIN_KEY", "ga_of_nobody")
        assert await admin("meetings", "--url", str(client.base_url)) == 3
    assert "needs an operator's key" in capsys.readouterr().err


# ---------------------------------------------------------------- engines


def lane(name: str, pair: str) -> LaneSettings:
    return LaneSettings(name=name, kind="simulated", pairs=(pair,), script=Script())


async def engines(url: str) -> int:
    return await asyncio.to_thread(main, ["engines", "--url", url])


async def test_each_engine_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(engines=(lane("one", "en-ja"), lane("two", "en-de")))
    async with running(settings) as gateway:
        while gateway.gateway.engine.health().state is not EngineState.READY:
            await asyncio.sleep(0.001)
        assert await engines(f"http://127.0.0.1:{gateway.port}") == 0
        assert capsys.readouterr().out == "one\tready\ntwo\tready\n"


async def test_engine_that_loads_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = Settings(engine=EngineSettings(kind="simulated"))
    async with running(settings, script=Script(load_s=3_600)) as gateway:
        assert await engines(f"http://127.0.0.1:{gateway.port}") == 3
        assert capsys.readouterr().out == "default\tstarting\tthe simulated engine is loading\n"


async def test_something_else_answers(capsys: pytest.CaptureFixture[str]) -> None:
    async def say_something(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        writer.close()

    async with await asyncio.start_server(say_something, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await engines(f"http://127.0.0.1:{port}") == 1
    assert "Nothing usable answers at" in capsys.readouterr().err


# ---------------------------------------------------------------- transcripts

SECRET = "eyJhbGciOi.J9.secret"

Answer = tuple[int, str, bytes]


@pytest.fixture
def transcripts() -> Iterator[tuple[str, list[str], list[Answer]]]:
    """The address of something that answers with what is put into the list; and the paths asked for."""
    asked: list[str] = []
    answers: list[Answer] = []

    class Requests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            token = self.headers.get("Authorization")
            asked.append(self.path if token is None else f"{self.path} {token}")
            status, kind, body = answers.pop()
            self.send_response(status)
            self.send_header("Location" if status == 302 else "Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked, answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


Transcripts = tuple[str, list[str], list[Answer]]


def transcript(url: str, *argv: str) -> int:
    return main(["read", "--meeting", "standup", *argv, "--url", url])


def test_a_transcript_is_printed_as_it_is(transcripts: Transcripts, capsys: pytest.CaptureFixture[str]) -> None:
    url, asked, answers = transcripts
    srt = "1\n00:00:00,000 --> 00:00:01,400\nおはよう\n"
    answers.append((200, "application/x-subrip", srt.encode()))
    assert transcript(url, "--transcript", "srt", "ja", "en") == 0
    assert capsys.readouterr() == (srt, "")
    assert asked == ["/v1/meetings/standup/transcript.srt?lang=ja,en"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_transcript_cannot_drive_the_terminal(
    terminal: bool, transcripts: Transcripts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked, answers = transcripts
    answers.append((200, "text/plain", b"Ana: a\x1b[2J\r\nBen: b\n"))
    # It may be a pager that reads.
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert transcript(url, "--transcript", "txt") == 0
    assert capsys.readouterr().out == "Ana: a [2J\nBen: b\n"
    assert asked == ["/v1/meetings/standup/transcript.txt"]
    answers.append((200, "application/json", '{"text":"a\x7fb\x9bc\u202ed"}'.encode()))
    assert transcript(url, "--transcript", "json") == 0
    assert capsys.readouterr().out == r'{"text":"a\u007fb\u009bc\u202ed"}' + "\n"


@pytest.mark.parametrize(
    ("answer", "status", "sentence"),
    [
        (
            (404, "application/problem+json", b'{"code":"unknown_meeting","detail":"No meeting.","status":404}'),
            3,
            "There is no transcript of standup: nothing was said there, or it has expired.",
        ),
        (
            (422, "application/problem+json", b'{"code":"unsupported_language","detail":"No xx."}'),
            3,
            "No xx.",
        ),
        (
            (404, "text/plain", b"Not Found"),
            1,
            "The server at {url} refused the transcript with HTTP status 404; is it a gateway?",
        ),
    ],
)
def test_no_transcript_is_one_sentence(
    answer: Answer, status: int, sentence: str, transcripts: Transcripts, capsys: pytest.CaptureFixture[str]
) -> None:
    url, _, answers = transcripts
    answers.append(answer)
    assert transcript(url, "--transcript", "vtt", "ja") == status
    assert capsys.readouterr() == ("", f"gateway: {sentence.format(url=url)}\n")


@pytest.mark.parametrize(
    ("answer", "token", "sentence"),
    [
        (
            (401, "application/problem+json", b'{"code":"unauthenticated","detail":"It needs a token."}'),
            "",
            "This gateway needs a token: set GATEWAY_TOKEN or --token-file.",
        ),
        ((401, "text/plain", b"No."), SECRET, "The gateway did not accept the token."),
        (
            (403, "application/problem+json", b'{"code":"forbidden","detail":"No transcripts."}'),
            SECRET,
            "No transcripts.",
        ),
        ((403, "text/plain", b"No."), "", "The server at {url} does not let this client in (HTTP status 403)."),
    ],
)
def test_a_transcript_may_need_a_token(
    answer: Answer,
    token: str,
    sentence: str,
    transcripts: Transcripts,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, asked, answers = transcripts
    monkeypatch.setenv("GATEWAY_TOKEN", token)
    answers.append(answer)
    assert transcript(url, "--transcript", "txt", "--traceback") == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f"gateway: {sentence.format(url=url)}\n")
    assert SECRET not in err
    assert asked == ["/v1/meetings/standup/transcript.txt" + (f" Bearer {token}" if token else "")]


def test_a_token_for_a_transcript_may_lie_in_a_file(
    transcripts: Transcripts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, asked, answers = transcripts
    (tmp_path / "token").write_text("t1\n")
    answers.append((200, "text/plain", b"Ana: a\n"))
    assert transcript(url, "--transcript", "txt", "--token-file", str(tmp_path / "token")) == 0
    assert capsys.readouterr() == ("Ana: a\n", "")
    assert asked == ["/v1/meetings/standup/transcript.txt Bearer t1"]


def test_a_token_is_not_sent_to_where_a_redirect_leads(
    transcripts: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked, answers = transcripts
    monkeypatch.setenv("GATEWAY_TOKEN", "t1")
    answers += [(200, "text/plain", b"Ana: a\n"), (302, f"{url}/elsewhere", b"")]
    assert transcript(url, "--transcript", "txt") == 0
    assert asked == ["/v1/meetings/standup/transcript.txt Bearer t1", "/elsewhere"]
