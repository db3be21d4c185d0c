"""How much of what is still being said is translated, beside what an idle gateway would translate."""

from __future__ import annotations

import pytest

from gateway.translation import partials
from loadtest.measuring.measure import PACE_S, could_be_translated, translated, translated_part
from loadtest.trial.values import Line, Partial


def line(due_s: float, *partials: tuple[float, str], targets: tuple[str, ...] = ("de",)) -> Line:
    return Line("1", "All of it.", "en", targets, due_s, partials=tuple(Partial(*each) for each in partials))


SAID = ((1.0, "a"), (1.3, "a b"), (1.6, "a b c"), (1.9, "a b c d"))


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ([], 0),
        ([line(2.0)], 0),
        ([line(2.0, (1.0, "a"))], 1),
        # At once, and 0.6 s later what is new by then; the last would come after the final.
        ([line(2.1, *SAID)], 2),
        ([line(2.3, *SAID)], 3),
        ([line(2.3, *SAID, targets=("de", "ja"))], 6),
        # What is said again is not translated again.
        ([line(9.0, (1.0, "a"), (2.0, "a"), (3.0, "a b"))], 2),
        ([line(2.0, (1.0, "a")), line(2.0, (1.0, "a"))], 2),
    ],
)
def test_so_many_partials_could_be_translated(lines: list[Line], count: int) -> None:
    assert could_be_translated(lines) == count


def test_the_pace_is_the_gateways() -> None:
    assert PACE_S == partials._PACE_S


def test_the_part_that_was_translated() -> None:
    lines = [line(2.3, *SAID)] * 4
    assert translated_part(lines, 10, 16) == 0.5
    assert translated_part(lines, 10, 30) == 1.0
    assert translated_part([line(2.0)], 10, 16) is None


def test_the_counter_is_that_of_translated_partials_of_all_languages() -> None:
    text = (
        'gateway_partials_total{lang="de",outcome="translated"} 3.0\n'
        'gateway_partials_total{lang="ja",outcome="translated",worker="1"} 4.0\n'
        'gateway_partials_total{lang="de",outcome="superseded"} 50.0\n'
    )
    assert translated(text) == 7
    assert translated("") == 0
