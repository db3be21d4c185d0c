"""What LibreTranslate's tests make a server with: theirs is the gateway at $GATEWAY."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, NamedTuple

_FORM = "application/x-www-form-urlencoded"


class Answer(NamedTuple):
    """As Flask's test client has them."""

    status_code: int
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Client:
    """As Flask's test client, over HTTP."""

    def get(self, path: str) -> Answer:
        return _asked("GET", path)

    def post(self, path: str, data: dict[str, str] | None = None, **given: Any) -> Answer:
        if "json" in given:
            return _asked("POST", path, json.dumps(given["json"]), "application/json")
        return _asked("POST", path, urllib.parse.urlencode(data or {}), _FORM)


class App:
    """As Flask's application."""

    def test_client(self) -> Client:
        return Client()


def create_app(_options: None) -> App:
    return App()


def _asked(method: str, path: str, body: str | None = None, media_type: str = _FORM) -> Answer:
    request = urllib.request.Request(  # noqa: S310 -- a gateway of ours
        os.environ["GATEWAY"] + path,
        data=None if body is None else body.encode(),
        method=method,
        headers={"Content-Type": media_type},
    )
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return Answer(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read())
