"""The bundled model of the real base, assembled at the first start of a gateway, translates."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from gateway.bundled import folder
from gateway.bundled.base import BaseMissing, installed_base
from tests.processes import UNHURRIED, gateway_process

pytestmark = [pytest.mark.engine]

QUESTION = {"text": "Can you hear me?", "source_lang": "en", "target_lang": "de"}


def test_the_first_start_assembles_the_model_and_it_translates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        installed_base()
        folder.fingerprint()
    except BaseMissing as missing:
        pytest.skip(f"{missing}: make install")
    environment = {folder.VARIABLE: "", "XDG_CACHE_HOME": str(tmp_path), **UNHURRIED}
    with gateway_process("--host", "127.0.0.1", env=environment) as gateway:
        gateway.ready()
        assert "Assembling the bundled model in" in gateway.said
        asked = urllib.request.Request(  # noqa: S310 -- ours
            f"{gateway.url}/v1/translate", json.dumps(QUESTION).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked) as response:  # noqa: S310 -- ours
            assert "hören" in json.load(response)["translation"].lower()
        assert json.loads(gateway.get("/v1/languages"))["model"] == "bundled_model"
