"""A translation on an engine that is a list of answers: prompts of token ids in, token events out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineFailed
from gateway.engines.prompting.completions import Completion, Completions, tokens_a_piece, translated
from gateway.engines.prompting.encoding import PromptEncoder
from gateway.engines.prompting.families import detect
from gateway.engines.prompting.model_config import Calibration
from gateway.engines.prompting.verification import Probe

ANSWER = (Completion("Guten", 2), Completion(" Morgen.", 1, FinishReason.STOP, cached_tokens=5))


@pytest.fixture(scope="module")
def encoder(tokenizer: Any) -> PromptEncoder:
    marker = {"translation_gateway": {"prompt": "bundled", "languages": ["en", "de"]}}
    return PromptEncoder(tokenizer, detect(marker, "m"), window=200, output_base=8, output_per_source_token=0.0)


@dataclass
class Scripted(Completions):
    """Says its answer; its probes find nothing, so that a prefix is kept and a draft is not used."""

    answer: tuple[Completion, ...] = ANSWER
    greedy: bool = True
    asked: list[tuple[list[int], int]] = field(default_factory=list)
    probed: list[list[int]] = field(default_factory=list)
    closed: bool = False

    async def complete(self, ids: list[int], max_tokens: int) -> AsyncGenerator[Completion, None]:
        self.asked.append((ids, max_tokens))
        try:
            for new in self.answer:
                yield new
        finally:
            self.closed = True

    async def probe(self, ids: list[int], read_cache: bool) -> Probe:
        self.probed.append(ids)
        return Probe(cached_tokens=3)


def request(**proposed: Any) -> TranslationRequest:
    return TranslationRequest(id="r", text="Good morning.", source="en", target="de", **proposed)


async def test_translation_is_the_models_completion(encoder: PromptEncoder) -> None:
    engine = Scripted()
    events = [event async for event in translated(request(), encoder, engine)]
    prompt = encoder.encode(request())
    assert engine.asked == [(prompt.ids, prompt.max_tokens)]
    assert engine.probed == []
    assert events == [
        TokenEvent("Guten", 2),
        TokenEvent(" Morgen.", 1, FinishReason.STOP, prompt_tokens=len(prompt.ids), cached_tokens=5),
    ]


async def test_kept_prefix_is_told_first(encoder: PromptEncoder) -> None:
    engine = Scripted()
    asked = request(prefix="Guten", tolerance=1.0)
    first, *others = [event async for event in translated(asked, encoder, engine)]
    prompt = encoder.encode(asked)
    opening = encoder.opening(prompt, "Guten", "")
    ids = prompt.ids + opening.ids
    assert (first.text, first.reused, first.finish) == ("Guten", len(opening.ids), None)
    assert engine.asked == [(ids, prompt.max_tokens - len(opening.ids))]
    # The probe and the completion together.
    assert engine.probed == [ids]
    assert (others[-1].prompt_tokens, others[-1].cached_tokens) == (2 * len(ids), 3 + 5)


async def test_sampling_model_is_not_probed(encoder: PromptEncoder) -> None:
    engine = Scripted(greedy=False)
    events = [event async for event in translated(request(prefix="Guten", tolerance=1.0), encoder, engine)]
    assert engine.probed == []
    assert events[0].text == "Guten"


async def test_full_window_generates_nothing(encoder: PromptEncoder) -> None:
    engine = Scripted()
    long = " ".join(["Morgen"] * 300)
    (event,) = [event async for event in translated(request(prefix=long, final=False), encoder, engine)]
    assert event.finish is FinishReason.REJECTED
    assert engine.asked == []


async def test_a_reader_that_leaves_ends_the_completion(encoder: PromptEncoder) -> None:
    engine = Scripted()
    events = translated(request(), encoder, engine)
    await anext(events)
    assert not engine.closed
    await events.aclose()
    assert engine.closed


async def test_too_long_text_never_reaches_the_engine(encoder: PromptEncoder) -> None:
    engine = Scripted()
    long = TranslationRequest(id="r", text="Good morning. " * 200, source="en", target="de")
    with pytest.raises(EngineFailed, match="does not fit"):
        await anext(translated(long, encoder, engine))
    assert engine.asked == []


CALIBRATION = Calibration(bias=-5.0, slope=-1.5, unsure_below=0.5)


def rated(*logprobs: float | None) -> Scripted:
    """An engine that tells the sum of log-probabilities with each part of its answer."""
    return Scripted(tuple(replace(new, logprob=sum_) for new, sum_ in zip(ANSWER, logprobs, strict=True)))


async def test_a_final_says_how_far_it_can_be_trusted(encoder: PromptEncoder) -> None:
    first, last = [each async for each in translated(request(), encoder, rated(-0.25, -0.3), CALIBRATION)]
    assert first.confidence is None
    assert last.confidence == CALIBRATION.confidence(-0.3, 3)


@pytest.mark.parametrize(
    ("engine", "calibration", "proposed"),
    [
        (rated(-0.25, -0.3), None, {}),
        (rated(None, None), CALIBRATION, {}),
        (rated(-0.25, -0.3), CALIBRATION, {"final": False}),
    ],
)
async def test_unknown_confidence_is_not_told(
    encoder: PromptEncoder, engine: Scripted, calibration: Calibration | None, proposed: dict[str, Any]
) -> None:
    events = [each async for each in translated(request(**proposed), encoder, engine, calibration)]
    assert [each.confidence for each in events] == [None, None]


# ---------------------------------------------------------------- folded texts


def said(*pieces: str, logprob: float = -0.001) -> Scripted:
    last = len(pieces) - 1
    ends = [FinishReason.STOP if number == last else None for number in range(len(pieces))]
    answer = [Completion(piece, 1, end, logprob=logprob) for piece, end in zip(pieces, ends, strict=True)]
    return Scripted(tuple(answer))


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
    encoder: PromptEncoder,
    text: str,
    pieces: tuple[str, ...],
    answer: str,
    unsure: bool,
    calibration: Calibration | None,
) -> None:
    events = [event async for event in translated(asking(text), encoder, said(*pieces), calibration)]
    assert "".join(event.text for event in events) == answer
    confidence = events[-1].confidence
    assert bool(confidence and confidence.unsure) is unsure
    if calibration is None:
        assert (confidence is not None) is unsure


async def test_an_unfinished_utterance_may_have_no_words_yet(encoder: PromptEncoder) -> None:
    (event,) = [event async for event in translated(asking("yes", final=False), encoder, said(""))]
    assert (event.text, event.confidence) == ("", None)


async def test_what_was_shown_of_a_folded_text_goes_on(encoder: PromptEncoder) -> None:
    engine = said(" O", "PS-4821.")
    asked = asking("– We meet on {day}.", prefix="– Wir treffen uns", final=False)
    events = [event async for event in translated(asked, encoder, engine)]
    assert "".join(event.text for event in events) == "– Wir treffen uns {day}."
    ((ids, _),) = engine.asked
    expected = encoder.encode(asking("We meet on OPS-4821.", final=False))
    assert ids == expected.ids + encoder.opening(expected, "Wir treffen uns", "").ids
    # Shown before it was known that it is a label.
    for prefix, draft in ((">> ", "Ein"), (">>", " Ein"), ("", ">> Ein")):
        asked = asking(">> ANNA: it is", prefix=prefix, draft=draft, final=False)
        events = [event async for event in translated(asked, encoder, said(" Es ist"))]
        assert "".join(event.text for event in events).strip() == ">> ANNA:  Es ist"
    # Shown of a text that began otherwise: it is what readers have.
    asked = asking("– We meet.", prefix="Wir treffen uns")
    events = [event async for event in translated(asked, encoder, said(" jetzt."))]
    assert "".join(event.text for event in events) == "Wir treffen uns jetzt."


def test_a_piece_comes_about_every_interval() -> None:
    assert tokens_a_piece(0.04, 0.010, 4) == 4
    assert tokens_a_piece(0.04, 0.100, 4) == 1


def test_single_tokens_without_interval_or_time() -> None:
    assert tokens_a_piece(0.0, 0.010, 4) == 1
    assert tokens_a_piece(0.04, 0.0, 4) == 1


def test_a_piece_is_never_many_tokens() -> None:
    assert tokens_a_piece(0.04, 0.001, 4) == 12


def test_pieces_come_less_often_where_many_sequences_run() -> None:
    assert tokens_a_piece(0.04, 0.020, 256) == 5  # each every 0.1 s
    assert tokens_a_piece(0.04, 0.020, 64) == 2
