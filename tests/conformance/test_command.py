"""`gateway conformance`: both of our clients keep to every transcript; the report and the exit statuses."""

from __future__ import annotations

import json

import pytest

from gateway.cli.main import main
from gateway.conformance.transcripts import transcripts
from tests.conformance.drivers import javascript_driver, printing, python_driver


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
