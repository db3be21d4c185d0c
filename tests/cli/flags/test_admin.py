"""The flags of `gateway admin`."""

from __future__ import annotations

import pytest

from gateway.cli.main import main


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["end"], "give end MEETING"),
        (["disconnect", "standup"], "give disconnect MEETING PARTICIPANT"),
        (["workers", "1"], "workers takes no NAME"),
        (["meetings"], "give an operator's key: set GATEWAY_ADMIN_KEY or --key-file"),
        (["meetings", "--key-file", "/nowhere"], "The token file cannot be read"),
        (["explode"], "invalid choice"),
    ],
)
def test_wrong_usage(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GATEWAY_ADMIN_KEY", raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["admin", *argv])
    assert sentence in capsys.readouterr().err
