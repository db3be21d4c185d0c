"""What the recordings of no recogniser show: one that is believed at the wrong moment, or never ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.client.recognisers.utterances import Said, Times, Utterances

TEXTS = st.lists(st.sampled_from(["let", "us", "move", "on", "会議", "Yes.", ""]), max_size=6).map(" ".join)
STEPS = st.lists(st.tuples(st.sampled_from(["partial", "final", "rest", "restarted", "withdrawn"]), TEXTS))


@given(STEPS, st.booleans())
def test_each_utterance_ends_once_and_says_nothing_twice(
    steps: list[tuple[str, str]], believes_repeats: bool
) -> None:
    utterances = Utterances("u", believes_repeats=believes_repeats)
    said: list[Said] = []
    for kind, text in [*steps, ("rest", "")]:
        said += getattr(utterances, kind)(*([text] if kind in ("partial", "final") else [])) or []
    texts: dict[str, str] = {}
    ended = set()
    for each in said:
        assert each.id not in ended
        assert each.kind == "cancel" or (each.text == each.text.strip() != "")
        assert each.kind != "partial" or texts.get(each.id) != each.text
        texts[each.id] = each.text
        if each.kind != "partial":
            ended.add(each.id)
    assert set(texts) == ended


def test_an_utterance_across_a_restart_keeps_its_beginning() -> None:
    utterances = Utterances("u")
    utterances.partial("we are", Times(1_000, 2_000))
    utterances.restarted(30_000)
    (said,) = utterances.final("late", Times(500, 900))
    assert (said.text, said.start_ms, said.end_ms) == ("we are late", 1_000, 30_900)
