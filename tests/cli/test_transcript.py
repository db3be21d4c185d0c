"""`gateway read --transcript`: what was said, as it is or as one sentence."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway.cli.main import main

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
