"""What the simulated engine makes of prefix and draft, word by word; what holds for every engine is a contract."""

from __future__ import annotations

import pytest

from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineFailed, EngineUnavailable
from gateway.engines.simulated import Rule, Script, SimulatedEngine

TEXT = "one two three four"


def request(**proposed: object) -> TranslationRequest:
    return TranslationRequest(id="r", text=TEXT, source="en", target="de", **proposed)  # type: ignore[arg-type]


async def events(**proposed: object) -> list[TokenEvent]:
    engine = SimulatedEngine(Script(first_token_s=0, token_s=0))
    await engine.start()
    given: list[TokenEvent] = []
    await engine.generate(request(**proposed), given.append)
    return given


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


async def test_strange_prefix_replaces_as_many_words() -> None:
    assert await texts(prefix="eins zwei drei") == ["eins zwei drei", " three", " four"]
    assert await texts(prefix="eins zwei drei vier fünf sechs ") == ["eins zwei drei vier fünf sechs "]


@pytest.mark.parametrize("prefix", ["[de] eins", "eins"])
async def test_strange_prefix_is_dropped_or_rejected(prefix: str) -> None:
    assert "".join(await texts(prefix=prefix, tolerance=9.0)) == f"[de] {TEXT}"
    (only,) = await events(prefix=prefix, tolerance=9.0, final=False)
    assert (only.text, only.finish) == ("", FinishReason.REJECTED)
    assert only.prompt_tokens > 0


@pytest.mark.parametrize("proposed", [{}, {"prefix": "[de] one"}, {"draft": "[de] one two"}])
async def test_fault_counts_reused_words_too(proposed: dict[str, str]) -> None:
    engine = SimulatedEngine(Script(first_token_s=0, token_s=0, rules=(Rule("two", fail_after=4),)))
    await engine.start()
    given: list[TokenEvent] = []
    with pytest.raises(EngineFailed):
        await engine.generate(request(**proposed), given.append)
    assert "".join(event.text for event in given) == "[de] one two three"


async def test_generation_ended_by_its_reader_stops() -> None:
    engine = SimulatedEngine(Script(first_token_s=0, token_s=0))
    await engine.start()
    given: list[TokenEvent] = []

    def ends(event: TokenEvent) -> None:
        given.append(event)
        engine.fail("the reader says so")

    with pytest.raises(EngineUnavailable, match="the reader says so"):
        await engine.generate(request(), ends)
    assert len(given) == 1
