"""A transcript finds what a client does wrong: each fault is one that a client could have."""

from __future__ import annotations

import json

import pytest

from gateway.cli.main import main
from gateway.conformance.play import Deviation, play
from gateway.conformance.transcripts import transcripts
from tests.conformance.drivers import javascript_driver, printing, python_driver

BY_NAME = {transcript.name: transcript for transcript in transcripts()}
# Longer than anything here takes, on any machine.
PATIENT_S = 120.0

# Transcript, what is broken in the client, what is said of it.
FAULTS = [
    (
        "lost-connection",
        "from gateway.client.received import Received\nplain = Received.is_new\n"
        "Received.is_new = lambda self, message: plain(self, message) or True",
        r'expected shown .*"u9".*\n.*"u1"',
    ),
    (
        "lost-connection",
        "import gateway.client.session as s; reopen = s.reopen\n"
        "s.reopen = lambda endpoint, start, outage: reopen(endpoint, s.replace(start, resume=None), outage)",
        r'"resume": \{.*\n.*"resume": null',
    ),
    (
        "lost-acknowledgement",
        "from msgspec.structs import replace\n"
        "from gateway.client.connection import Connection\nplain = Connection.send\n"
        "seen = set()\n"
        "async def other(self, message):\n"
        "    id = getattr(message, 'id', None)\n"
        "    if id in seen: message = replace(message, text='Other.')\n"
        "    seen.add(id) if id else None\n"
        "    await plain(self, message)\n"
        "Connection.send = other",
        r'"One\.".*\n.*"Other\."',
    ),
    (
        "replaced",
        "import gateway.client.session as s; s.may_reconnect = lambda code: True",
        "the client connected again",
    ),
    (
        "final-refused",
        "from gateway.client.outgoing import Outgoing\nfrom msgspec.structs import replace\n"
        "refused = Outgoing.refused\n"
        "Outgoing.refused = lambda self, error, now_s: refused("
        "self, replace(error, retryable=True, retry_after_ms=1), now_s)",
        r'expected .*\n +got +\{"type": "utterance.final", "id": "u1"',
    ),
    (
        "say",
        "from gateway.client.connection import Connection\nfrom msgspec.structs import replace\n"
        "plain = Connection.send\n"
        "async def wrong(self, message):\n"
        "    await plain(self, replace(message, rev='one') if hasattr(message, 'rev') else message)\n"
        "Connection.send = wrong",
        r"sent a message that is not valid: .* \(field rev\)",
    ),
    (
        "said-again",
        "from gateway.client.received import Received\n"
        "from gateway.protocol.messages import TranslationFailed, TranslationFinal\n"
        "plain, failed = Received.is_new, set()\n"
        "def once(self, message):\n"
        "    if isinstance(message, TranslationFailed): failed.add(message.utterance)\n"
        "    if isinstance(message, TranslationFinal) and message.utterance in failed: return False\n"
        "    return plain(self, message)\n"
        "Received.is_new = once",
        r'expected shown .*"u1".*\n.*"u9"',
    ),
    (
        "not-recorded",
        "from gateway.client.received import Received\nfrom msgspec.structs import replace\n"
        "Received.start_to_resume = lambda self, start: replace(start, resume=self.position)",
        r'"record": false\}\n.*"record": null',
    ),
    (
        "cancel",
        "from gateway.client.session import ClientSession\nfrom gateway.protocol.messages import UtteranceCancel\n"
        "ClientSession.cancel = lambda self, id: self._send_now(UtteranceCancel('other'))",
        r'"id": "u1"\}\n.*"id": "other"',
    ),
    (
        "partials",
        "from gateway.client.outgoing import Outgoing; Outgoing.next_revision = lambda self, id: 1",
        "revision 1 of u1 is not newer than 1",
    ),
]


@pytest.mark.parametrize(
    ("name", "fault", "said"), FAULTS, ids=[f"{name}-{n}" for n, (name, *_) in enumerate(FAULTS)]
)
async def test_a_fault_of_a_client_is_found(name: str, fault: str, said: str) -> None:
    await play(BY_NAME[name], python_driver(), wait_s=PATIENT_S)
    with pytest.raises(Deviation, match=said):
        await play(BY_NAME[name], python_driver(fault), wait_s=PATIENT_S)


@pytest.mark.parametrize("program", ["print('hello')", "raise SystemExit(7)"])
async def test_a_program_that_does_nothing_is_not_waited_for(program: str) -> None:
    with pytest.raises(Deviation, match="for 1 s the client did not connect"):
        await play(BY_NAME["say"], printing(program), wait_s=1)


# ---------------------------------------------------------------- `gateway conformance`


@pytest.mark.parametrize("driver", [python_driver(), javascript_driver()], ids=["python", "javascript"])
def test_our_clients_keep_to_every_transcript(driver: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--wait", "120", "--", *driver]) == 0
    names = [transcript.name for transcript in transcripts()]
    said = [f"ok    {name}" for name in names]
    said.append(f"{len(names)} of {len(names)} transcripts were kept to.")
    assert capsys.readouterr().out.splitlines() == said


def test_what_a_client_does_differently_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    program = "import sys\nassert sys.argv[1] == '--flag'"
    assert main(["conformance", "--only", "say", "--wait", "1", "--", *printing(program), "--flag"]) == 3
    first, about, step, last = capsys.readouterr().out.splitlines()
    assert first == "FAIL  say"
    assert about.strip() == next(each.about for each in transcripts() if each.name == "say")
    assert step.strip() == "step 2: for 1 s the client did not connect"
    assert last == "0 of 1 transcripts were kept to."


def test_the_transcripts_can_be_listed_and_had_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == [f"{transcript.name}: {transcript.about}" for transcript in transcripts()]
    assert main(["conformance", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [transcript["name"] for transcript in shown] == [transcript.name for transcript in transcripts()]
    assert shown[0]["steps"][0]["do"]["do"] == "connect"


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as status:
        main(["conformance"])
    assert status.value.code == 2
    assert "give the program that drives the client, after --" in capsys.readouterr().err
    assert main(["conformance", "--only", "sing", "--", "./driver"]) == 2
    assert capsys.readouterr().err == "gateway: There is no transcript sing.\n"
    assert main(["conformance", "--", "./no-such-driver"]) == 1
    assert capsys.readouterr().err == "gateway: ./no-such-driver cannot be started: No such file or directory.\n"
