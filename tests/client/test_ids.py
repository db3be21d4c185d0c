"""Ids of utterances that nobody chose."""

from __future__ import annotations

import re

from gateway.client.ids import Ids


def test_ids_are_short_and_not_those_of_another_process() -> None:
    one, other = Ids(), Ids()
    first, second, elsewhere = one.next(), one.next(), other.next()
    assert re.fullmatch(r"[2-9a-z]{4}-1", first)
    assert second == first.replace("-1", "-2")
    assert first != elsewhere
