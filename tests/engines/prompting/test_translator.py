"""A translation on an engine that is a list of answers: prompts of token ids in, token events out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineFailed
from gateway.engines.prompting.completions import News, OnNews, Prompt, Sampling
from gateway.engines.prompting.encoding import PromptEncoder
from gateway.engines.prompting.families import detect
from gateway.engines.prompting.model_config import Calibration
from gateway.engines.prompting.translator import PromptTranslator
from tests.engines.prompting.cuts import encoded

ANSWER = ("Guten", " Morgen.")
GREEDY = Sampling()


@pytest.fixture(scope="module")
def encoder(tokenizer: Any) -> PromptEncoder:
    marker = {"translation_gateway": {"prompt": "bundled", "languages": ["en", "de"]}}
    return PromptEncoder(tokenizer, detect(marker, "m"), window=200, output_base=8, output_per_source_token=0.0)


@dataclass
class Scripted:
    """Says these pieces; its probes find nothing, so that a prefix is kept and a draft is not used.

    logprobs: the sum that is told with each piece.
    """

    tokenizer: Any
    pieces: tuple[str, ...] = ANSWER
    logprobs: tuple[float | None, ...] = (None, None)
    sampling: Sampling = GREEDY
    asked: list[Prompt] = field(default_factory=list)
    probed: list[Prompt] = field(default_factory=list)

    def ids(self) -> list[list[int]]:
        """The tokens of each piece; the last one ends the text."""
        ids = [encoded(self.tokenizer, piece) for piece in self.pieces]
        return [*ids[:-1], [*ids[-1], self.tokenizer.eos_token_id]]

    async def complete(self, prompt: Prompt, on_news: OnNews) -> None:
        if prompt.rows_from is not None:
            self.probed.append(prompt)
            on_news(News([3], FinishReason.LENGTH, 3))
            return
        self.asked.append(prompt)
        for number, (ids, logprob) in enumerate(zip(self.ids(), self.logprobs, strict=True), start=1):
            is_last = number == len(self.pieces)
            on_news(News(ids, FinishReason.STOP, 5, logprob) if is_last else News(ids, logprob=logprob))


async def translated(
    request: TranslationRequest,
    encoder: PromptEncoder,
    engine: Scripted,
    calibration: Calibration | None = None,
    **how: int,
) -> list[TokenEvent]:
    events: list[TokenEvent] = []
    translator = PromptTranslator(engine.tokenizer, encoder, engine.sampling, calibration, **how)
    await translator.translate(request, engine.complete, events.append)
    return events


def request(**proposed: Any) -> TranslationRequest:
    return TranslationRequest(id="r", text="Good morning.", source="en", target="de", **proposed)


async def test_translation_is_the_models_completion(tokenizer: Any, encoder: PromptEncoder) -> None:
    engine = Scripted(tokenizer)
    events = await translated(request(priority=3, cache_scope="m", traceparent="t"), encoder, engine)
    prompt = await encoder.encode(request())
    (asked,) = engine.asked
    assert (asked.id, asked.ids, asked.max_tokens) == ("r", prompt.ids, prompt.max_tokens)
    assert (asked.priority, asked.traceparent, asked.final, asked.rated) == (3, "t", True, False)
    assert engine.probed == []
    first, last = engine.ids()
    assert events == [
        TokenEvent("Guten", len(first)),
        # The token that ends the text counts, and does not show.
        TokenEvent(" Morgen.", len(last), FinishReason.STOP, prompt_tokens=len(prompt.ids), cached_tokens=5),
    ]


async def test_salts_do_not_tell_their_scope(tokenizer: Any, encoder: PromptEncoder) -> None:
    salts = []
    for scope in ("standup", "standup", "Vorstand – Übernahme\x00", ""):
        engine = Scripted(tokenizer)
        await translated(request(cache_scope=scope, prefix="Guten", tolerance=1.0), encoder, engine)
        assert engine.asked[0].salt == engine.probed[0].salt
        salts.append(engine.asked[0].salt)
    assert salts[0] == salts[1] != salts[2]
    assert salts[3] is None
    assert all(salt is not None and re.fullmatch("[0-9a-f]{32}", salt) for salt in salts[:3])


async def test_kept_prefix_is_told_first(tokenizer: Any, encoder: PromptEncoder) -> None:
    engine = Scripted(tokenizer)
    asked = request(prefix="Guten", tolerance=1.0)
    first, *others = await translated(asked, encoder, engine)
    prompt = await encoder.encode(asked)
    opening = await encoder.opening(prompt, "Guten", "")
    ids = prompt.ids + opening.ids
    assert (first.text, first.reused, first.finish) == ("Guten", len(opening.ids), None)
    assert [(each.ids, each.max_tokens) for each in engine.asked] == [(ids, prompt.max_tokens - len(opening.ids))]
    # The probe and the completion together.
    assert [(each.ids, each.max_tokens, each.rows_from) for each in engine.probed] == [(ids, 1, len(prompt.ids))]
    assert (others[-1].prompt_tokens, others[-1].cached_tokens) == (2 * len(ids), 3 + 5)


async def test_sampling_model_is_not_probed(tokenizer: Any, encoder: PromptEncoder) -> None:
    engine = Scripted(tokenizer, sampling=Sampling(temperature=0.7))
    events = await translated(request(prefix="Guten", tolerance=1.0), encoder, engine)
    assert engine.probed == []
    assert events[0].text == "Guten"


async def test_a_final_that_says_what_readers_have_seen_is_not_probed(
    tokenizer: Any, encoder: PromptEncoder
) -> None:
    engine = Scripted(tokenizer, ("Gut", "en", " Mor", "gen."), (-0.1, -0.2, -0.3, -0.4))
    asked = request(prefix="Guten", draft=" Tag", tolerance=1.0)
    events = await translated(asked, encoder, engine, CALIBRATION, probes_below=0)
    prompt = await encoder.encode(asked)
    assert engine.probed == []
    assert [each.ids for each in engine.asked] == [prompt.ids]
    # What they have seen does not grow again.
    assert [each.text for each in events] == ["Guten", " Mor", "gen."]
    tokens = sum(map(len, engine.ids()))
    assert sum(each.tokens for each in events) == tokens
    assert events[-1].confidence == CALIBRATION.confidence(-0.4, tokens)


@pytest.mark.parametrize("pieces", [("Schön", "en Tag."), ("Gut",), ("",)])
async def test_a_final_that_says_something_else_is_probed(
    tokenizer: Any, encoder: PromptEncoder, pieces: tuple[str, ...]
) -> None:
    engine = Scripted(tokenizer, pieces, (None,) * len(pieces))
    asked = request(prefix="Guten", tolerance=1.0)
    first, *others = await translated(asked, encoder, engine, probes_below=0)
    prompt = await encoder.encode(asked)
    opening = await encoder.opening(prompt, "Guten", "")
    ids = prompt.ids + opening.ids
    # The probe cannot say how likely it is, so it is kept, as by an engine that probes first.
    assert [each.ids for each in engine.probed] == [ids]
    assert [each.ids for each in engine.asked] == [prompt.ids, ids]
    assert (first.text, first.reused) == ("Guten", len(opening.ids))
    assert "".join(each.text for each in others) == "".join(pieces)
    # What nobody gets has been paid for, too, and the token of the probe.
    assert first.tokens == 1 + (len(engine.ids()[0]) if len(pieces) > 1 else sum(map(len, engine.ids())))
    assert others[-1].prompt_tokens == 2 * len(ids) + len(prompt.ids)


async def test_unfinished_text_goes_on_from_what_was_shown(tokenizer: Any, encoder: PromptEncoder) -> None:
    engine = Scripted(tokenizer)
    asked = request(prefix="Guten", draft=" Tag", tolerance=1.0, final=False)
    events = await translated(asked, encoder, engine, probes_below=0)
    assert engine.probed == []
    opening = await encoder.opening(await encoder.encode(asked), "Guten", "")
    assert [each.ids[-len(opening.ids) :] for each in engine.asked] == [opening.ids]
    assert events[0].text == "Guten"


async def test_only_those_that_come_when_many_run_are_not_probed(tokenizer: Any, encoder: PromptEncoder) -> None:
    engine = Scripted(tokenizer)
    translator = PromptTranslator(engine.tokenizer, encoder, engine.sampling, probes_below=1)
    asked = request(prefix="Guten", tolerance=1.0, final=False)
    probes: list[int] = []

    async def complete(prompt: Prompt, on_news: OnNews) -> None:
        if not probes:
            probes.append(len(engine.probed))
            await translator.translate(asked, complete, lambda _: None)
            probes.append(len(engine.probed))
        await engine.complete(prompt, on_news)

    await translator.translate(asked, complete, lambda _: None)
    await translator.translate(asked, complete, lambda _: None)
    # The one within another was not, the first and the last were.
    assert (probes, len(engine.probed)) == ([0, 0], 2)


async def test_full_window_generates_nothing(tokenizer: Any, encoder: PromptEncoder) -> None:
    engine = Scripted(tokenizer)
    long = " ".join(["Morgen"] * 300)
    (event,) = await translated(request(prefix=long, final=False), encoder, engine)
    assert event.finish is FinishReason.REJECTED
    assert engine.asked == []


async def test_too_long_text_never_reaches_the_engine(tokenizer: Any, encoder: PromptEncoder) -> None:
    engine = Scripted(tokenizer)
    long = TranslationRequest(id="r", text="Good morning. " * 200, source="en", target="de")
    with pytest.raises(EngineFailed, match="does not fit"):
        await translated(long, encoder, engine)
    assert engine.asked == []


CALIBRATION = Calibration(bias=-5.0, slope=-1.5, unsure_below=0.5)


async def test_a_final_says_how_far_it_can_be_trusted(tokenizer: Any, encoder: PromptEncoder) -> None:
    first, last = await translated(request(), encoder, Scripted(tokenizer, logprobs=(-0.25, -0.3)), CALIBRATION)
    assert first.confidence is None
    assert last.confidence == CALIBRATION.confidence(-0.3, first.tokens + last.tokens)


@pytest.mark.parametrize(
    ("logprobs", "calibration", "proposed"),
    [
        ((-0.25, -0.3), None, {}),
        ((None, None), CALIBRATION, {}),
        ((-0.25, -0.3), CALIBRATION, {"final": False}),
    ],
)
async def test_unknown_confidence_is_not_told(
    tokenizer: Any,
    encoder: PromptEncoder,
    logprobs: tuple[float | None, float | None],
    calibration: Calibration | None,
    proposed: dict[str, Any],
) -> None:
    engine = Scripted(tokenizer, logprobs=logprobs)
    events = await translated(request(**proposed), encoder, engine, calibration)
    assert [each.confidence for each in events] == [None, None]


# ---------------------------------------------------------------- folded texts


def said(tokenizer: Any, *pieces: str) -> Scripted:
    return Scripted(tokenizer, pieces, (-0.001,) * len(pieces))


def asking(text: str, **proposed: Any) -> TranslationRequest:
    return TranslationRequest(id="r", text=text, source="en", target="de", **proposed)


@pytest.mark.parametrize(
    ("text", "pieces", "answer", "unsure"),
    [
        (">> ANNA: “Good\u00a0morning.”", ("Guten ", "Tag."), ">> ANNA: “Guten Tag.”", False),
        ("On {day}, please.", ("Am O", "PS-48", "21, bitte."), "Am {day}, bitte.", False),
        ("On {day}, please.", ("Am Montag, bitte.",), "Am Montag, bitte.", True),
        ("– yes ", ("",), "– yes", True),
        ("  \n", ("",), "", False),
        ("It’s done.", ("It's done.",), "It's done.", True),
        ("Anna Schmidt", ("Anna Schmidt.",), "Anna Schmidt.", False),
        ("say <final> now", ("Sag <\u2060final> jetzt",), "Sag <final> jetzt", False),
    ],
)
@pytest.mark.parametrize("calibration", [None, CALIBRATION])
async def test_readers_get_words_and_what_was_kept(
    tokenizer: Any,
    encoder: PromptEncoder,
    text: str,
    pieces: tuple[str, ...],
    answer: str,
    unsure: bool,
    calibration: Calibration | None,
) -> None:
    events = await translated(asking(text), encoder, said(tokenizer, *pieces), calibration)
    assert "".join(event.text for event in events) == answer
    confidence = events[-1].confidence
    assert bool(confidence and confidence.unsure) is unsure
    if calibration is None:
        assert (confidence is not None) is unsure


async def test_an_unfinished_utterance_may_have_no_words_yet(tokenizer: Any, encoder: PromptEncoder) -> None:
    (event,) = await translated(asking("yes", final=False), encoder, said(tokenizer, ""))
    assert (event.text, event.confidence) == ("", None)


async def test_what_was_shown_of_a_folded_text_goes_on(tokenizer: Any, encoder: PromptEncoder) -> None:
    engine = said(tokenizer, " O", "PS-4821.")
    asked = asking("– We meet on {day}.", prefix="– Wir treffen uns", final=False)
    events = await translated(asked, encoder, engine)
    assert "".join(event.text for event in events) == "– Wir treffen uns {day}."
    (prompt,) = engine.asked
    expected = await encoder.encode(asking("We meet on OPS-4821.", final=False))
    assert prompt.ids == expected.ids + (await encoder.opening(expected, "Wir treffen uns", "")).ids
    # Shown before it was known that it is a label.
    for prefix, draft in ((">> ", "Ein"), (">>", " Ein"), ("", ">> Ein")):
        asked = asking(">> ANNA: it is", prefix=prefix, draft=draft, final=False)
        events = await translated(asked, encoder, said(tokenizer, " Es ist"))
        assert "".join(event.text for event in events).strip() == ">> ANNA:  Es ist"
    # Shown of a text that began otherwise: it is what readers have.
    asked = asking("– We meet.", prefix="Wir treffen uns")
    events = await translated(asked, encoder, said(tokenizer, " jetzt."))
    assert "".join(event.text for event in events) == "Wir treffen uns jetzt."
