"""`gateway read --transcript`: what was said, as it is or as one sentence."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gateway.cli.main import main
from gateway.cli.meeting import MeetingOptions
from gateway.cli.transcript import transcript_url
from tests.cli.meetings import silent
from tests.scripted_gateway import scripted_gateway

Answer = tuple[int, str, bytes]


@pytest.fixture
def transcripts() -> Iterator[tuple[str, list[str], list[Answer]]]:
    """The address of something that answers with what is put into the list; and the paths asked for."""
    asked: list[str] = []
    answers: list[Answer] = []

    class Requests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, kind, body = answers.pop()
            self.send_response(status)
            self.send_header("Content-Type", kind)
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


async def test_no_gateway_for_a_transcript(capsys: pytest.CaptureFixture[str]) -> None:
    async with scripted_gateway(silent) as url:
        pass
    assert transcript(url, "--transcript", "json", "ja") == 1
    assert capsys.readouterr().err == f"gateway: No gateway answers at {url}: start one with `gateway serve`.\n"


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/meetings/m/transcript.srt?lang=ja"),
        ("wss://ws.example/deep/v1/stream", "https://ws.example/deep/v1/meetings/m/transcript.srt?lang=ja"),
        ("example:80", "http://example:80/v1/meetings/m/transcript.srt?lang=ja"),
    ],
)
def test_the_address_of_a_transcript(address: str, url: str) -> None:
    assert transcript_url(MeetingOptions(address, "m"), ["ja"], "srt") == url
