"""The ids a model sees, and the room its answer gets, with the bundled model's real tokenizer."""

from __future__ import annotations

import asyncio
import copy
import threading
from typing import Any

import pytest
from tokenizers import AddedToken, Regex
from tokenizers.decoders import Sequence, Strip
from tokenizers.normalizers import NFKC, Lowercase, Replace
from tokenizers.normalizers import Sequence as Normalizers

from demo_model import layout
from gateway.bundled.tokenizer import IDS
from gateway.domain.engine import TranslationOptions, TranslationRequest
from gateway.domain.errors import StartupError, TextTooLong
from gateway.engines.prompting.encoding import EncodedPrompt, Opening, PromptEncoder, _Batches
from gateway.engines.prompting.families import FAMILIES, detect
from tests.engines.prompting.cuts import (
    CAPITAL_WORD,
    HAN_WORD,
    LOWER_WORD,
    encoded,
    letters_that_a_third_parts,
    one_token,
    rare_characters,
)

TEXTS = ["Hello there.", " lead", "trail ", "a  b", "日本語です。", "x\ny", "🙂", "Tanakaさん", "1,250 €", ""]


def encoder(tokenizer: Any, family: str = "bundled", window: int = 1_024) -> PromptEncoder:
    marker = {"translation_gateway": {"prompt": family, "languages": ["en", "ja"]}}
    return PromptEncoder(
        tokenizer, detect(marker, "m"), window=window, output_base=32, output_per_source_token=3.0
    )


def request(text: str, *, final: bool = True) -> TranslationRequest:
    return TranslationRequest(id="r", text=text, source="en", target="ja", final=final)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("final", [True, False], ids=["final", "partial"])
async def test_bundled_prompt_is_that_of_training(tokenizer: Any, text: str, final: bool) -> None:
    source = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    # The small model has the same tokens at other places.
    places = {place: tokenizer.convert_tokens_to_ids(name) for name, place in IDS.items()}
    before, after = layout.prompt_ids("en", "ja", final, [])[:-1], layout.prompt_ids("en", "ja", final, [])[-1:]
    expected = [*(places[each] for each in before), *source, *(places[each] for each in after)]
    prompt = await encoder(tokenizer).encode(request(text, final=final))
    assert prompt.ids == expected
    assert prompt.max_tokens == 32 + 3 * len(source)
    assert prompt.room == 1_024 - len(expected)


@pytest.mark.parametrize("text", ["</s>", "<to>hello", "<en><ja>", "a</s></s>b"])
async def test_special_tokens_in_speech_are_text(tokenizer: Any, text: str) -> None:
    ids = (await encoder(tokenizer).encode(request(text))).ids
    special = set(tokenizer.all_special_ids)
    assert not special & set(ids[4:-1])
    assert ids[-1] in special


@pytest.mark.parametrize("token", ["[TOOL_CALLS]", "<unused7>", "<tool_call>", "＜unused7＞", "＜tool_call>"])
@pytest.mark.parametrize("special", [True, False])
async def test_added_tokens_are_text_in_speech(tokenizer: Any, token: str, special: bool) -> None:
    own = copy.deepcopy(tokenizer)
    own.backend_tokenizer.normalizer = NFKC()
    added = ["[TOOL_CALLS]", "<unused7>", "<tool_call>"]
    # Those that are not special are found after the tokenizer's own normalisation.
    own.add_tokens([AddedToken(each, special=special, normalized=not special) for each in added])
    own.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    ids = (await encoder(own, "chat").encode(request(f"before {token} after"))).ids
    assert not set(own.convert_tokens_to_ids(added)) & set(ids)


@pytest.mark.parametrize(
    ("normaliser", "spelled"),
    [
        (Lowercase(), "<TOOL_call>"),
        (Lowercase(), "[Tool_Calls]"),
        (Replace("\u2060", ""), "<tool\u2060_call>"),
        (Replace("\u200b", ""), "<tool\u200b_call>"),
        (Normalizers([Replace("\u2060", ""), Replace("\u200b", "")]), "<tool_call>"),
        (Normalizers([NFKC(), Lowercase()]), "＜ＴＯＯＬ_call>"),
    ],
)
@pytest.mark.parametrize("template", [True, False], ids=["chat", "raw"])
async def test_tokens_that_normalising_spells_are_text(
    tokenizer: Any, normaliser: Any, spelled: str, template: bool
) -> None:
    own = copy.deepcopy(tokenizer)
    own.backend_tokenizer.normalizer = normaliser
    added = ["[TOOL_CALLS]", "<tool_call>"]
    own.add_tokens([AddedToken(each, normalized=True) for each in added])
    own.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    made = encoder(own, "chat" if template else "bundled")
    said = request(f"before {spelled} after")
    found = {
        *(await made.encode(said)).ids,
        *(await made.opening(await made.encode(request("x")), spelled, "")).ids,
    }
    assert not set(own.convert_tokens_to_ids(added)) & found


def test_tokenizer_that_drops_every_joint_is_refused(tokenizer: Any) -> None:
    own = copy.deepcopy(tokenizer)
    own.backend_tokenizer.normalizer = Replace(Regex("[^ -~]"), "")
    with pytest.raises(StartupError, match="tokenizer"):
        encoder(own)


async def test_spaces_that_were_added_to_a_tokenizer_stay_spaces(tokenizer: Any) -> None:
    own = copy.deepcopy(tokenizer)
    own.add_tokens([AddedToken(each) for each in ("\n", "  ", "▁▁▁", "\t\t")])
    own.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    text = "a  b\n\t\tc"
    assert f"\n{text}\n" in own.decode((await encoder(own, "chat").encode(request(text))).ids)


async def test_the_answer_gets_what_is_left_of_the_window(tokenizer: Any) -> None:
    text = "Good morning, everyone. " * 30
    window = 2 * len((await encoder(tokenizer, window=4_000).encode(request(text))).ids) + 40
    prompt = await encoder(tokenizer, window=window).encode(request(text))
    assert len(prompt.ids) + prompt.max_tokens == window


async def test_text_without_room_for_an_answer_is_refused(tokenizer: Any) -> None:
    with pytest.raises(TextTooLong, match="window of 100"):
        await encoder(tokenizer, window=100).encode(request("Good morning, everyone. " * 30))


async def test_background_gives_way_to_the_text(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}")
    spoken = tuple(f"{n} {'many words were said before this ' * 20}" for n in range(7))
    options = TranslationOptions(context=spoken)
    said = TranslationRequest(id="r", text="Short text.", source="en", target="ja", options=options)
    prompt = await encoder(tokenizer, "chat", window=1_200).encode(said)
    shown = tokenizer.decode(prompt.ids)
    assert "Short text." in shown
    assert spoken[-1].strip() in shown, "the newest is kept longest"
    assert spoken[0].strip() not in shown
    assert len(prompt.ids) + prompt.max_tokens <= 1_200


async def test_chat_models_get_their_own_template(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    template = (
        "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
        "{% if add_generation_prompt %}<to>{% endif %}"
    )
    monkeypatch.setattr(tokenizer, "chat_template", template)
    shown = tokenizer.decode((await encoder(tokenizer, "chat").encode(request("Hello"))).ids)
    assert shown.startswith("<s>user: Translate what was said")
    assert shown.endswith("<text>\nHello\n</text></s><to>")


def test_stop_strings_of_a_family_become_token_ids(tokenizer: Any) -> None:
    own, family = copy.deepcopy(tokenizer), FAMILIES["translategemma"]

    def found() -> list[int]:
        return PromptEncoder(own, family, window=100, output_base=1, output_per_source_token=1).stop_token_ids

    assert found() == []
    own.add_tokens([*family.stop])
    assert found() == own.convert_tokens_to_ids([*family.stop])


# ---------------------------------------------------------------- how the answer is proposed to begin

PROPOSED = [
    ("", ""),
    ("Bitte", ""),
    ("", "Bitte aktualisieren Sie"),
    ("Bitte aktualisieren", " Sie das Ticket"),
    ("金曜日", "までに"),
    ("{rare}", "{rare}です"),
    (" a ", " b "),
    ("🙂\n", "\t🙂"),
]


async def opened(
    tokenizer: Any, prefix: str, draft: str, **settings: Any
) -> tuple[PromptEncoder, EncodedPrompt, Opening]:
    made = encoder(tokenizer, **settings)
    prompt = await made.encode(request("Please update ticket CRM-8868 before Monday."))
    return made, prompt, await made.opening(prompt, prefix, draft)


@pytest.mark.parametrize(("prefix", "draft"), PROPOSED)
async def test_an_opening_is_prefix_and_draft(tokenizer: Any, prefix: str, draft: str) -> None:
    rare, _ = rare_characters(tokenizer)
    prefix, draft = prefix.format(rare=rare), draft.format(rare=rare)
    made, prompt, opening = await opened(tokenizer, prefix, draft)
    assert opening.ids == encoded(tokenizer, prefix + draft)
    assert made.cut(prompt, opening, len(opening.ids), keep=True) == (len(opening.ids), prefix + draft)
    assert made.cut(prompt, opening, opening.cover, keep=True) == (opening.cover, prefix)
    assert made.cut(prompt, opening, 0, keep=False) == (0, "")


async def test_it_continues_the_prompt_of_a_chat_model(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}Answer: ")
    made, prompt, opening = await opened(tokenizer, "Bitte", " aktualisieren", family="chat")
    assert tokenizer.decode(prompt.ids + opening.ids).endswith("Answer: Bitte aktualisieren")
    count = len(encoded(tokenizer, "Bitte"))
    assert made.cut(prompt, opening, count, keep=True) == (count, "Bitte")


async def test_beginning_that_changes_tokens_is_encoded_alone(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = one_token(tokenizer, CAPITAL_WORD)
    begun, rest = word[:3], word[3:]
    monkeypatch.setattr(tokenizer, "chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}" + begun)
    made, prompt, opening = await opened(tokenizer, rest, "", family="chat")
    assert encoded(tokenizer, word) != [*encoded(tokenizer, begun), *opening.ids]
    assert opening.ids == encoded(tokenizer, rest)
    assert made.cut(prompt, opening, len(opening.ids), keep=True)[1] == rest


async def test_characters_are_not_cut_in_two(tokenizer: Any) -> None:
    rare, _ = rare_characters(tokenizer)
    made, prompt, opening = await opened(tokenizer, "", f"金曜日。{rare}です")
    before = encoded(tokenizer, "金曜日。")
    for count in range(len(before), len(before) + 3):
        assert made.cut(prompt, opening, count, keep=False) == (len(before), "金曜日。")
    assert made.cut(prompt, opening, len(before) + 3, keep=False) == (len(before) + 3, f"金曜日。{rare}")


async def test_replacement_character_is_a_character(tokenizer: Any) -> None:
    made, prompt, opening = await opened(tokenizer, "", "x\ufffdy")
    whole = len(opening.ids)
    cut = [made.cut(prompt, opening, count, keep=False)[1] for count in range(1, whole + 1)]
    assert cut == [*["x"] * (whole - 1), "x\ufffdy"]


async def test_tokens_that_decode_otherwise_are_dropped(tokenizer: Any) -> None:
    folding = copy.deepcopy(tokenizer)
    folding.backend_tokenizer.normalizer = NFKC()
    made, prompt, opening = await opened(folding, "", "a ﬁn")
    assert made.cut(prompt, opening, len(opening.ids), keep=False)[1] == "a"
    made, prompt, opening = await opened(folding, "ﬁ", " a")
    assert made.cut(prompt, opening, len(opening.ids), keep=True)[1] == "ﬁ"


async def test_border_token_covers_the_prefix(tokenizer: Any) -> None:
    word = one_token(tokenizer, HAN_WORD)
    prefix, rest = word[:2], word[2:]
    made, prompt, opening = await opened(tokenizer, prefix, f"{rest}までに")
    assert (opening.within, opening.cover) == (0, 1)
    assert made.cut(prompt, opening, 1, keep=True) == (1, word)
    alone = await made.opening(prompt, prefix, "")
    assert alone.within == alone.cover == len(alone.ids)
    assert made.cut(prompt, alone, alone.cover, keep=True)[1] == prefix


async def test_tokens_before_a_border_token_may_differ(tokenizer: Any) -> None:
    two, third = letters_that_a_third_parts(tokenizer)
    made, prompt, opening = await opened(tokenizer, f".{two}", third)
    assert [tokenizer.decode([token]) for token in opening.ids] == [".", two[0], two[1] + third]
    assert [tokenizer.decode([token]) for token in (await made.opening(prompt, f".{two}", "")).ids] == [".", two]
    assert (opening.within, opening.cover) == (1, 3)


@pytest.mark.parametrize(("prefix", "draft"), [("a</s>b", ""), ("a", "</s><to>b"), ("a<", "/s>b"), ("a</", "s>b")])
async def test_special_tokens_in_prefix_and_draft_are_text(tokenizer: Any, prefix: str, draft: str) -> None:
    made, prompt, opening = await opened(tokenizer, prefix, draft)
    assert opening.ids
    assert not set(tokenizer.all_special_ids) & set(opening.ids)
    assert made.cut(prompt, opening, len(opening.ids), keep=True)[1].startswith(prefix)


async def test_draft_leaves_the_last_token_free(tokenizer: Any) -> None:
    for window in (1_024, 70):
        _, prompt, opening = await opened(tokenizer, "Bitte", " und" * 500, window=window)
        assert len(opening.ids) == prompt.max_tokens - 1
        assert len(prompt.ids) + len(opening.ids) < window


async def test_a_prefix_is_never_cut(tokenizer: Any) -> None:
    _, prompt, opening = await opened(tokenizer, "und" * 500, " oder")
    assert len(opening.ids) == opening.cover > prompt.max_tokens


# ---------------------------------------------------------------- one more token


async def followed(tokenizer: Any, text: str, token: int, **settings: Any) -> str | None:
    made, prompt, opening = await opened(tokenizer, "", text, **settings)
    return made.follow(prompt, opening.ids, token)


@pytest.mark.parametrize("text", ["", "Bitte", "Bitte ", "金曜日", "🙂"])
@pytest.mark.parametrize("more", [" und", "Bitte", " ", ".", "日", "会議", "\n"])
async def test_a_token_is_what_it_says_behind_others(tokenizer: Any, text: str, more: str) -> None:
    token = encoded(tokenizer, more)[0]
    said = tokenizer.decode([token])
    assert said
    assert more.startswith(said)
    assert await followed(tokenizer, text, token) == said


async def test_a_control_token_says_nothing(tokenizer: Any) -> None:
    for token in tokenizer.all_special_ids:
        assert await followed(tokenizer, "Bitte", token) is None


def test_vocabulary_only_and_end_tokens_are_not_text(tokenizer: Any) -> None:
    added = copy.deepcopy(tokenizer)
    added.add_tokens([AddedToken("<unused0>", special=True), AddedToken("<end_of_turn>", special=False)])
    added.add_tokens(["Donaudampfschiff"])
    hidden, stop, word = added.convert_tokens_to_ids(["<unused0>", "<end_of_turn>", "Donaudampfschiff"])
    assert not {hidden, stop} & set(added.all_special_ids)
    made = PromptEncoder(added, FAMILIES["translategemma"], window=100, output_base=1, output_per_source_token=1)
    assert made.stop_token_ids == [stop]
    prompt = EncodedPrompt(ids=[3], max_tokens=9, room=99, text="<to>", add_special_tokens=False)
    assert [made.follow(prompt, [], token) for token in (hidden, stop, word)] == [None, None, "Donaudampfschiff"]


async def test_neither_does_one_that_is_not_a_whole_character(tokenizer: Any) -> None:
    made, prompt, opening = await opened(tokenizer, "", f"です。{rare_characters(tokenizer)[0]}")
    *before, first, second, third = opening.ids
    assert made.follow(prompt, before, first) is None
    assert made.follow(prompt, [*before, first], second) is None
    # The last one completes it, but what stood there before it was none.
    assert made.follow(prompt, [*before, first, second], third) is None


async def test_it_is_told_from_the_prompts_last_token_on(tokenizer: Any) -> None:
    """Some decoders drop the space at the very beginning."""
    dropping = copy.deepcopy(tokenizer)
    dropping.backend_tokenizer.decoder = Sequence([dropping.backend_tokenizer.decoder, Strip(" ", 1, 0)])
    word = one_token(tokenizer, LOWER_WORD)
    (token,) = encoded(dropping, word)
    assert dropping.decode([token]) == word[1:]
    assert await followed(dropping, "", token) == word


# ---------------------------------------------------------------- in a thread


class Encoding:
    """A tokenizer that remembers what it was asked for together; it waits while it is held."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.held = threading.Event()
        self.held.set()

    def __call__(self, texts: list[str]) -> list[list[int]]:
        self.batches.append(texts)
        assert threading.current_thread() is not threading.main_thread()
        self.held.wait()
        if "bad" in texts:
            raise ZeroDivisionError
        return [[len(text)] for text in texts]


async def test_texts_of_a_turn_are_one_batch() -> None:
    batches = _Batches(encode := Encoding())
    assert [*await asyncio.gather(*map(batches.ids, ("", "a", "bb")))] == [[0], [1], [2]]
    encode.held.clear()
    first = batches.ids("c")
    while len(encode.batches) < 2:
        await asyncio.sleep(0)
    # Those that come while it runs go together as well.
    second = batches.ids("dd")
    await asyncio.sleep(0)
    third, cancelled = batches.ids("eee"), batches.ids("f")
    cancelled.cancel()
    encode.held.set()
    assert [*await asyncio.gather(first, second, third)] == [[1], [2], [3]]
    assert encode.batches == [["", "a", "bb"], ["c"], ["dd", "eee", "f"]]


async def test_a_tokenizer_that_fails_fails_one_batch() -> None:
    batches = _Batches(Encoding())
    done = await asyncio.gather(batches.ids("bad"), batches.ids("a"), return_exceptions=True)
    assert [type(each) for each in done] == [ZeroDivisionError] * 2
    assert await batches.ids("a") == [1]
