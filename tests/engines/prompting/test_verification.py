"""What is read from probes, on a model that is a table: no engine runs here."""

from __future__ import annotations

import logging
from itertools import takewhile
from typing import Any, NamedTuple

import pytest

from gateway.domain.engine import FinishReason, TranslationRequest
from gateway.engines.prompting import verification
from gateway.engines.prompting.completions import News, Rows
from gateway.engines.prompting.encoding import EncodedPrompt, PromptEncoder
from gateway.engines.prompting.families import detect
from gateway.engines.prompting.verification import VerifiedPrefix, verify_proposal
from tests.engines.prompting.cuts import HAN_WORD, LOWER_WORD, encoded, one_token, rare_characters

ANSWER = "Bitte aktualisieren Sie das Ticket bis Montag."
OTHER = "Das Ticket ist alt."


def add_row(rows: Rows, *columns: tuple[int, float, int]) -> None:
    rows.start_indices.append(len(rows.token_ids))
    for token, logprob, rank in columns:
        rows.token_ids.append(token)
        rows.logprobs.append(logprob)
        rows.ranks.append(rank)
    rows.end_indices.append(len(rows.token_ids))


class Model:
    """Says one answer, and behind any other beginning `elsewhere`, one token that no test proposes there.

    gaps: how much less likely than its choice it finds these tokens, nats; others 9. tied: its choice is as likely
    as another token. cached: so many tokens of a prompt are in the prefix cache, and their rows are garbage that
    agrees. stubborn: it reads the cache whatever it is told. mute: it gives no log-probabilities.
    """

    def __init__(self, tokenizer: Any, answer: str = ANSWER, *, second_runner: bool = False) -> None:
        marker = {"translation_gateway": {"prompt": "bundled", "languages": ["en", "de"]}}
        self.tokenizer = tokenizer
        self.encoder = PromptEncoder(
            tokenizer, detect(marker, "m"), window=200, output_base=32, output_per_source_token=3.0
        )
        self.answer = self.encode(answer)
        self.elsewhere = one_token(tokenizer, LOWER_WORD)
        (self._elsewhere,) = self.encode(self.elsewhere)
        self.gaps: dict[int, float] = {}
        self.tied = False
        self.cached = 0
        self.mute = False
        self.second_runner = second_runner
        self.stubborn = False
        self.probes: list[tuple[str, bool]] = []

    def encode(self, text: str) -> list[int]:
        return encoded(self.tokenizer, text)

    def agreed(self, text: str) -> int:
        """With how many tokens of the answer this text begins."""
        both = zip(self.encode(text), self.answer, strict=False)
        return len([*takewhile(lambda pair: pair[0] == pair[1], both)])

    def text(self, count: int) -> str:
        """So many tokens of the answer."""
        return str(self.tokenizer.decode(self.answer[:count]))

    def choose(self, said: list[int]) -> int:
        """What it says behind these tokens."""
        on_track = said == self.answer[: len(said)]
        return [*self.answer, self.tokenizer.eos_token_id][len(said)] if on_track else self._elsewhere

    def go_on(self, found: VerifiedPrefix) -> str:
        """The whole text: what the reader is told first, and what is generated behind it."""
        said = list(found.ids)
        while found.finish is None and said[len(found.ids) :][-1:] != [self.tokenizer.eos_token_id]:
            said.append(self.choose(said))
            assert len(said) <= self.prompt.max_tokens
        first = found.event.text if found.event else ""
        return first + str(self.tokenizer.decode(said[len(found.ids) :], skip_special_tokens=True))

    async def begin(self, *, greedy: bool = True, **proposed: Any) -> VerifiedPrefix:
        request = TranslationRequest(
            id="r", text="Please update the ticket before Monday.", source="en", target="de", **proposed
        )
        self.prompt = await self.encoder.encode(request)
        return await verify_proposal(request, self.prompt, self.encoder, self.probe, greedy=greedy)

    async def probe(self, ids: list[int], read_cache: bool) -> News:
        prompt: EncodedPrompt = self.prompt
        said = ids[len(prompt.ids) :]
        assert ids[: len(prompt.ids)] == prompt.ids
        assert len(ids) < 200, "the window holds one token more"
        self.probes.append((self.tokenizer.decode(said), read_cache))
        if self.mute:
            return News([], FinishReason.LENGTH, 3)
        cached = min(self.cached, len(ids) - 1) if read_cache or self.stubborn else 0
        rows = Rows([], [], [], [], [])
        add_row(rows)
        # The second model runner has no rows at all for what the prefix cache held.
        for position in range(1 + (cached if self.second_runner else 0), len(ids)):
            token, behind = ids[position], position - len(prompt.ids)
            choice = token if behind < 0 else self.choose(said[:behind])
            if position <= cached:
                add_row(rows, (token, -0.1, 1), (token, -0.1, 1), (3, -9.0, 2))
            elif token == choice:
                second = -0.1 if self.tied else -9.0
                add_row(rows, (token, -0.1, 2 if self.tied else 1), (token, -0.1, 1), (3, second, 2))
            else:
                refused = -0.1 - self.gaps.get(token, 9.0)
                add_row(rows, (token, refused, 5), (choice, -0.1, 1), (token, refused, 2))
        following = self.choose(said)
        ends = following == self.tokenizer.eos_token_id
        # Those behind the prompt are what is asked for.
        rows = rows.last(len(said))
        return News([following], FinishReason.STOP if ends else FinishReason.LENGTH, cached, rows=rows)


@pytest.fixture(params=[False, True], ids=["first runner", "second runner"])
def model(request: pytest.FixtureRequest, tokenizer: Any) -> Model:
    return Model(tokenizer, second_runner=request.param)


def reused(beginning: VerifiedPrefix) -> int:
    assert beginning.event is not None
    return beginning.event.reused


# ---------------------------------------------------------------- the draft


async def test_a_right_draft_is_the_whole_answer(model: Model) -> None:
    found = await model.begin(draft=ANSWER)
    assert found.event is not None
    assert found.event.text == ANSWER
    assert found.event.finish is FinishReason.STOP
    assert (found.event.tokens, found.event.reused) == (1, len(model.answer))
    assert found.event.prompt_tokens == len(model.prompt.ids) + len(model.answer)


async def test_right_beginning_is_taken_over(model: Model) -> None:
    draft = "Bitte aktualisieren Sie"
    count = model.agreed(draft)
    assert model.text(count) == draft
    found = await model.begin(draft=draft)
    assert found.event is not None
    assert (found.event.text, found.event.finish) == (model.text(count + 1), None)
    assert (found.event.tokens, found.event.reused) == (1, count)
    assert found.event.prompt_tokens == found.event.cached_tokens == 0, "known on the last event"


async def test_a_wrong_draft_is_no_event(model: Model) -> None:
    model.answer = []
    found = await model.begin(draft=OTHER)
    assert found.event is None
    assert (found.ids, found.probes) == ([], 1)


async def test_tie_is_left_to_the_model(model: Model) -> None:
    model.tied = True
    assert (await model.begin(draft=ANSWER)).event is None


async def test_a_tolerance_is_not_for_the_draft(model: Model) -> None:
    count = model.agreed("Bitte gut")
    model.gaps[model.encode("Bitte gut")[count]] = 0.01
    found = await model.begin(draft="Bitte gut", tolerance=3.0)
    assert (found.text, found.reused) == (model.text(count + 1), count)


# ---------------------------------------------------------------- the prefix


@pytest.mark.parametrize("final", [True, False])
async def test_a_right_prefix_is_kept(model: Model, final: bool) -> None:
    prefix = "Bitte aktualisieren"
    count = model.agreed(prefix)
    assert model.text(count) == prefix
    found = await model.begin(prefix=prefix, tolerance=0.0, final=final)
    assert (found.text, found.finish, found.probes) == (model.text(count + 1), None, 1)
    assert (found.ids, found.reused) == (model.answer[: count + 1], count)


async def test_a_token_within_the_tolerance_is_kept(model: Model) -> None:
    for token in model.encode(" gut"):
        model.gaps[token] = 3.0
    found = await model.begin(prefix="Bitte gut", tolerance=3.1, final=False)
    assert (found.text, found.reused) == (f"Bitte gut{model.elsewhere}", len(model.encode("Bitte gut")))
    assert (await model.begin(prefix="Bitte gut", tolerance=2.9, final=False)).finish is FinishReason.REJECTED


async def test_a_partial_ends_where_the_prefix_is_implausible(model: Model) -> None:
    found = await model.begin(prefix=OTHER, draft=ANSWER, tolerance=3.0, final=False)
    assert found.event is not None
    assert (found.event.text, found.event.tokens, found.event.reused) == ("", 1, 0)
    assert found.event.finish is FinishReason.REJECTED
    assert found.event.prompt_tokens > len(model.prompt.ids)


async def test_final_continues_from_the_models_own_words(model: Model) -> None:
    for token in model.encode(" gut"):
        model.gaps[token] = 1.0
    found = await model.begin(prefix="Bitte gut Quatsch", draft=ANSWER, tolerance=3.0)
    assert (found.text, found.finish) == (model.text(model.agreed("Bitte gut")), None)


@pytest.mark.parametrize("final", [True, False])
async def test_without_a_tolerance_nothing_is_asked_about_the_prefix(model: Model, final: bool) -> None:
    found = await model.begin(prefix=OTHER, final=final)
    assert (found.text, found.probes) == (OTHER, 0)
    assert found.event is not None
    assert found.event.tokens == 0
    assert not model.probes


async def test_draft_is_probed_without_tolerance(model: Model) -> None:
    found = await model.begin(prefix=OTHER, draft=" Quatsch")
    assert (found.text, found.probes) == (OTHER + model.elsewhere, 1)
    assert found.reused == len(model.encode(OTHER))


async def test_without_greedy_choice_prefix_is_kept_without_draft(model: Model) -> None:
    found = await model.begin(prefix=OTHER, draft=ANSWER, tolerance=0.0, greedy=False)
    assert (found.text, found.probes) == (OTHER, 0)


@pytest.mark.parametrize("prefix", ["</s>", "a</s>b<to>"])
async def test_a_prefix_with_special_tokens_stands_as_it_was(model: Model, prefix: str) -> None:
    found = await model.begin(prefix=prefix)
    assert found.text == prefix
    assert not set(model.tokenizer.all_special_ids) & set(found.ids)


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("tolerance", [None, 3.0])
async def test_a_prefix_that_fills_the_window_is_not_kept(
    model: Model, final: bool, tolerance: float | None
) -> None:
    found = await model.begin(prefix="und " * 300, tolerance=tolerance, final=final)
    assert found.finish is (None if final else FinishReason.REJECTED)
    assert (found.ids, found.probes) == ([], 0)


def test_a_prefix_without_any_token_is_told_too() -> None:
    assert VerifiedPrefix(text="\x01").event is not None


# ---------------------------------------------------------------- the token behind what is taken over


async def test_choice_for_a_refused_draft_token_is_taken(model: Model) -> None:
    count = model.agreed("Bitte gut")
    found = await model.begin(draft="Bitte gut")
    assert (found.text, found.ids, found.reused) == (model.text(count + 1), model.answer[: count + 1], count)
    found = await model.begin(draft=OTHER)
    assert found.event is not None
    assert (found.event.text, found.event.tokens, found.event.reused) == (model.text(1), 1, 0)


async def test_choice_for_a_refused_prefix_is_taken(model: Model) -> None:
    count = model.agreed("Bitte gut")
    found = await model.begin(prefix="Bitte gut", draft=" das Ticket", tolerance=3.0)
    assert (found.text, found.ids, found.reused) == (model.text(count + 1), model.answer[: count + 1], count)
    found = await model.begin(prefix=OTHER, tolerance=3.0)
    assert (found.text, found.ids, found.reused) == (model.text(1), model.answer[:1], 0)


async def test_choice_behind_dropped_tokens_is_not_taken(model: Model) -> None:
    """What it says behind `Bitte gut` is nothing to go on from behind `Bitte`."""
    for token in model.encode(" gut"):
        model.gaps[token] = 1.0
    count = model.agreed("Bitte gut")
    found = await model.begin(prefix="Bitte gut Quatsch", tolerance=3.0)
    assert (found.text, found.ids, found.reused) == (model.text(count), model.answer[:count], count)


async def test_rejected_partial_takes_nothing(model: Model) -> None:
    for prefix in (OTHER, "Bitte gut"):
        found = await model.begin(prefix=prefix, tolerance=3.0, final=False)
        assert (found.text, found.ids, found.finish) == ("", [], FinishReason.REJECTED)


@pytest.mark.parametrize("draft", ["Bitte", "Bitte Quatsch"])
async def test_a_control_token_is_not_taken(model: Model, draft: str) -> None:
    said = model.encode("Bitte")
    for control in ("</s>", "<to>", "<de>", "<pad>"):
        model.answer = [*said, model.tokenizer.convert_tokens_to_ids(control)]
        found = await model.begin(draft=draft)
        assert (found.text, found.ids, found.reused) == ("Bitte", said, len(said))


async def test_answer_shorter_than_draft_is_not_finished(model: Model) -> None:
    found = await model.begin(draft=f"{ANSWER}{model.elsewhere}")
    assert (found.text, found.ids, found.finish) == (ANSWER, model.answer, None)


@pytest.mark.parametrize("tail", ["", "Quatsch", "{similar}", "x{rare}"])
async def test_half_a_character_is_not_taken(tokenizer: Any, tail: str) -> None:
    rare, similar = rare_characters(tokenizer)
    model = Model(tokenizer, f"です。{rare}です")
    said = model.encode("です。")
    found = await model.begin(draft="です。" + tail.format(rare=rare, similar=similar))
    assert (found.text, found.ids, found.reused) == ("です。", said, len(said))


async def test_a_choice_between_equally_likely_tokens_is_not_taken(model: Model) -> None:
    count = model.agreed("Bitte gut")
    wrong = model.encode("Bitte gut")[count]
    for gap, known in ((0.0, count), (0.001, count + 1)):
        model.gaps[wrong] = gap
        found = await model.begin(draft="Bitte gut")
        assert (found.text, found.reused) == (model.text(known), count)


async def test_last_token_is_left_to_be_generated(tokenizer: Any) -> None:
    word = one_token(tokenizer, LOWER_WORD)
    model = Model(tokenizer, word * 150)
    await model.begin()
    limit = model.prompt.max_tokens
    assert len(model.prompt.ids) + limit < 200, "the limit is the answer's, not the window's"
    for accepted, known in ((limit - 3, limit - 2), (limit - 2, limit - 1), (limit - 1, limit - 1)):
        for wrong in ("", "."):
            found = await model.begin(draft=word * accepted + wrong)
            assert (len(found.ids), found.reused, found.finish) == (known, accepted, None)
    longest = await model.begin(draft=word * 150)
    assert (len(longest.ids), longest.reused) == (limit - 1, limit - 1)
    beyond = await model.begin(prefix=word * (limit + 5), draft=word, tolerance=3.0)
    assert (len(beyond.ids), beyond.reused) == (limit + 5, limit + 5)


ANSWERS = pytest.mark.parametrize(
    "answer", [ANSWER, "金曜日までに、{rare}な会議です🙂。"], ids=["german", "japanese"]
)
TAILS = ("", "x", " ", " Quatsch", "。", "{similar}", "日までに", "\ufffd", "</s>")


def held_against(model: Model, found: VerifiedPrefix) -> None:
    """It is the answer so far, with one token more than the request has where that can be shown."""
    assert found.ids == model.answer[: len(found.ids)]
    assert model.go_on(found) == model.tokenizer.decode(model.answer)
    more = model.answer[: found.reused + 1]
    shown = len(more) > found.reused and not model.tokenizer.decode(more).endswith("\ufffd")
    assert len(found.ids) == found.reused + shown


@ANSWERS
@pytest.mark.parametrize("tail", TAILS)
async def test_any_cut_of_a_draft_gives_the_answer(tokenizer: Any, answer: str, tail: str) -> None:
    rare, similar = rare_characters(tokenizer)
    answer, tail = answer.format(rare=rare), tail.format(similar=similar)
    model = Model(tokenizer, answer)
    for cut in range(len(answer) + 1):
        found = await model.begin(draft=answer[:cut] + tail)
        if answer[:cut] + tail:
            held_against(model, found)


@ANSWERS
@pytest.mark.parametrize("tail", TAILS)
async def test_any_cut_of_a_prefix_gives_the_answer(tokenizer: Any, answer: str, tail: str) -> None:
    rare, similar = rare_characters(tokenizer)
    answer, tail = answer.format(rare=rare), tail.format(similar=similar)
    model = Model(tokenizer, answer)
    for cut in range(1, len(answer) + 1):
        held_against(model, await model.begin(prefix=answer[:cut] + tail, tolerance=0.0))
        held_against(model, await model.begin(prefix=answer[:cut], draft=answer[cut:-1] + tail, tolerance=0.0))


# ---------------------------------------------------------------- a token over the border


class Border(NamedTuple):
    """A word of one token, which a prefix and its draft share."""

    model: Model
    word: str
    prefix: str
    draft: str


@pytest.fixture
def border(tokenizer: Any) -> Border:
    word = one_token(tokenizer, HAN_WORD)
    return Border(Model(tokenizer, f"{word}までに"), word, word[:2], f"{word[2:]}までに")


@pytest.mark.parametrize("tolerance", [None, 3.0])
async def test_border_token_is_taken_if_chosen(border: Border, tolerance: float | None) -> None:
    found = await border.model.begin(prefix=border.prefix, draft=border.draft, tolerance=tolerance)
    assert (found.text, found.finish, found.probes) == (f"{border.word}までに", FinishReason.STOP, 1)


async def test_refused_border_token_probes_the_prefix(border: Border) -> None:
    model = border.model
    model.answer = model.encode(f"{border.prefix}までに")
    count = model.agreed(border.prefix)
    assert model.text(count) == border.prefix
    found = await model.begin(prefix=border.prefix, draft=border.draft, tolerance=3.0)
    assert [text for text, _ in model.probes] == [f"{border.word}までに", border.prefix]
    assert (found.text, found.finish, found.probes) == (model.text(count + 1), None, 2)
    assert (found.ids, found.reused) == (model.answer[: count + 1], count)


async def test_refused_border_token_keeps_the_prefix(border: Border) -> None:
    border.model.answer = border.model.encode("です。")
    found = await border.model.begin(prefix=border.prefix, draft=border.draft)
    assert (found.text, found.probes) == (border.prefix, 1)


# ---------------------------------------------------------------- what the engine does not tell


async def test_unwritten_rows_are_not_read(model: Model) -> None:
    prompt = len(model.encode("<s><en><de><final>"))  # more than the real prompt has tokens
    model.cached = prompt + 60
    found = await model.begin(draft=OTHER)
    assert (found.text, found.reused) == (model.text(1), 0)
    assert [read_cache for _, read_cache in model.probes] == [True, False]
    assert found.probes == 2
    assert found.cached_tokens > 0


async def test_engine_that_always_reads_cache_is_not_believed(model: Model) -> None:
    model.cached = 1_000
    model.stubborn = True
    assert (await model.begin(draft=OTHER)).event is None
    assert (await model.begin(prefix=OTHER, tolerance=3.0, final=False)).finish is FinishReason.REJECTED
    model.cached = len(model.prompt.ids)
    assert (await model.begin(draft=OTHER)).event is None


async def test_a_cached_prompt_is_looked_at_once(model: Model) -> None:
    await model.begin(draft=ANSWER)
    model.probes.clear()
    model.cached = len(model.prompt.ids) - 1
    assert (await model.begin(draft=ANSWER)).text == ANSWER
    assert len(model.probes) == 1
    # The row of the first proposed token is the first that is not written.
    model.cached = len(model.prompt.ids)
    assert (await model.begin(draft=OTHER)).reused == 0
    assert len(model.probes) == 3


async def test_cached_prefix_is_probed_once(model: Model) -> None:
    await model.begin(prefix="Bitte aktualisieren", draft=" Quatsch")
    model.probes.clear()
    model.cached = len(model.prompt.ids) + 1
    assert (await model.begin(prefix="Bitte aktualisieren", draft=" Quatsch")).text.startswith("Bitte akt")
    assert len(model.probes) == 1


async def test_without_logprobs_only_the_prefix_is_kept(
    model: Model, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "_warned", False)
    model.mute = True
    with caplog.at_level(logging.WARNING):
        found = await model.begin(prefix=OTHER, draft=ANSWER, tolerance=0.0, final=False)
        assert (found.text, found.finish) == (OTHER, None)
        assert (await model.begin(draft=ANSWER)).event is None
    assert [record.levelname for record in caplog.records] == ["WARNING"], "once"
    assert found.probes == 1
    assert found.cached_tokens == 3


# -------------------------------------------------------------------- how probable it was


async def test_kept_tokens_are_rated(model: Model) -> None:
    for token in model.encode(" gut"):
        model.gaps[token] = 0.4
    # "Bitte" is the model's own choice, each token at -0.1, and each of " gut" is at -0.5.
    own, count = model.agreed("Bitte gut"), len(model.encode("Bitte gut"))
    found = await model.begin(prefix="Bitte gut", tolerance=0.5)
    assert (found.reused, found.rated) == (count, count)
    assert found.logprob == pytest.approx(-0.1 * own - 0.5 * (count - own))
    # The model's choice in place of what it refuses was looked at as well.
    prefix = "Bitte aktualisieren gut"
    own = model.agreed(prefix)
    found = await model.begin(prefix=prefix, tolerance=0.1)
    assert (found.reused, found.rated, len(found.ids)) == (own, own + 1, own + 1)
    assert found.logprob == pytest.approx(-0.1 * (own + 1))


async def test_what_was_not_looked_at_is_not_rated(model: Model) -> None:
    found = await model.begin(prefix=ANSWER[:25])
    assert (found.rated, found.logprob) == (0, 0.0)
