"""The examples of `docs/webhooks.md` verify what the gateway sends, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.config import load
from gateway.webhooks.message import headers, read_secrets

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
SECRETS = [f"whsec_{letter * 32}" for letter in "AB"]
BODY = '{"data":{"meeting":"朝会"}}'.encode()

Verifies = Callable[[str, Mapping[str, str], bytes], bool]


def code(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def in_python(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    names: dict[str, Any] = {}
    exec(code("python"), names)  # noqa: S102 -- our own page
    try:
        names["verify"](secret, headers, body)
    except ValueError:
        return False
    return True


def in_javascript(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    arguments = f"{json.dumps(secret)}, {json.dumps(headers)}, Buffer.from({json.dumps(body.decode())})"
    program = f"{code('javascript')}\ntry {{ verify({arguments}); }} catch {{ process.exit(7); }}"
    done = subprocess.run(["node", "--input-type=module", "-e", program], check=False)
    assert done.returncode in (0, 7)
    return done.returncode == 0


@pytest.mark.parametrize("verifies", [in_python, in_javascript])
def test_examples_accept_only_what_the_gateway_sends(verifies: Verifies, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("\n".join(SECRETS))
    both = read_secrets(str(tmp_path / "secret"))
    now_s = int(time.time())
    sent = headers(both, "evt_1", now_s, BODY)
    assert [verifies(secret, sent, BODY) for secret in SECRETS] == [True, True]
    assert not verifies(SECRETS[1], headers(both[:1], "evt_1", now_s, BODY), BODY)
    assert not verifies(SECRETS[0], sent, BODY + b" ")
    assert not verifies(SECRETS[0], {**sent, "webhook-id": "evt_2"}, BODY)
    assert not verifies(SECRETS[0], {**sent, "webhook-timestamp": str(now_s + 1)}, BODY)
    assert not verifies(SECRETS[0], headers(both, "evt_1", now_s - 400, BODY), BODY)


def test_the_settings_of_the_page_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text(code("toml"))
    [webhook] = load(tmp_path / "gateway.toml").webhooks
    assert (webhook.name, len(webhook.events)) == ("backend", 3)
