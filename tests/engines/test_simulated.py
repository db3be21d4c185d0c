"""What the simulated engine makes of prefix and draft, word by word; what holds for every engine is a contract."""

from __future__ import annotations

import pytest

from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.engines.simulated import Script, SimulatedEngine

TEXT = "one two three four"


async def events(**proposed: object) -> list[TokenEvent]:
    engine = SimulatedEngine(Script(first_token_s=0, token_s=0))
    await engine.start()
    request = TranslationRequest(id="r", text=TEXT, source="en", target="de", **proposed)  # type: ignore[arg-type]
    return [event async for event in engine.generate(request)]


async def texts(**proposed: object) -> list[str]:
    return [event.text for event in await events(**proposed)]


async def test_words_that_it_would_say_are_given_at_once() -> None:
    first, *rest = await events(prefix="[de] one", draft=" two 3 four")
    assert (first.text, first.reused, first.tokens, first.finish) == ("[de] one two", 3, 1, None)
    assert [event.text for event in rest] == [" three", " four"]
    assert rest[-1].prompt_tokens == 5 + 5


async def test_all_of_them_are_one_event() -> None:
    (only,) = await events(draft=f"[de] {TEXT}")
    assert (only.reused, only.finish) == (5, FinishReason.STOP)


async def test_a_prefix_may_end_within_a_word() -> None:
    assert await texts(prefix="[de] one tw", draft="elve") == ["[de] one tw", "o", " three", " four"]


async def test_behind_a_strange_prefix_it_goes_on_with_as_many_words_less() -> None:
    assert await texts(prefix="eins zwei drei") == ["eins zwei drei", " three", " four"]
    assert await texts(prefix="eins zwei drei vier fünf sechs ") == ["eins zwei drei vier fünf sechs "]


@pytest.mark.parametrize("prefix", ["[de] eins", "eins"])
async def test_with_a_tolerance_a_strange_prefix_is_dropped_or_rejected(prefix: str) -> None:
    assert "".join(await texts(prefix=prefix, tolerance=9.0)) == f"[de] {TEXT}"
    (only,) = await events(prefix=prefix, tolerance=9.0, final=False)
    assert (only.text, only.finish) == ("", FinishReason.REJECTED)
    assert only.prompt_tokens > 0
