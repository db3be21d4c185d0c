"""Any recogniser: which one it is shows in the form of its first result.

Knows: how to tell the forms apart. Must not know: what is in them (`lines`, `states`, `browser`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gateway.client.recognisers.browser import Browser
from gateway.client.recognisers.lines import Lines
from gateway.client.recognisers.states import Increments, States
from gateway.client.recognisers.utterances import Said

# What a recogniser says at a time: decoded JSON, or a line of whisper_streaming.
Result = Mapping[str, Any] | str

_INCREMENT = re.compile(r"(\d+)(?:\.\d+)? (\d+)(?:\.\d+)? +(.*)", re.DOTALL)


class Recogniser:
    """What one recogniser hears, as utterances.

    prefix: what their ids begin with. Within a session it is used for one recogniser.
    """

    def __init__(self, prefix: str = "u") -> None:
        self._prefix = prefix
        self._form: Lines | States | Browser | Increments | None = None

    def hear(self, result: Result) -> list[Said]:
        """What is to be said after this result. A result without words, and one of no known form, says nothing."""
        if isinstance(result, str):
            increment = _INCREMENT.fullmatch(result.strip())
            if increment is None:
                return []
            if not isinstance(self._form, Increments):
                self._form = Increments(self._prefix)
            return self._form.hear(int(increment[1]), int(increment[2]), increment[3])
        if self._form is None:
            self._form = _form_of(result, self._prefix)
        return [] if self._form is None or isinstance(self._form, Increments) else self._form.hear(result)

    def restarted(self, begin_ms: int | None = None) -> None:
        """The recogniser was started again, or its connection: its next results continue the sentence.

        begin_ms: where its clock begins now; by default at the newest time that it said.
        """
        if self._form is not None:
            self._form.restarted(begin_ms)

    def rest(self) -> list[Said]:
        """What is to be said after the last result."""
        return [] if self._form is None else self._form.rest()


def _form_of(result: Mapping[str, Any], prefix: str) -> Lines | States | Browser | None:
    if "lines" in result or "segments" in result:
        return States(prefix)
    if "results" in result or result.get("type") == "start":
        return Browser(prefix)
    if result.keys() & {"partial", "text", "alternatives"} or isinstance(result.get("t"), str):
        return Lines(prefix)
    return None
