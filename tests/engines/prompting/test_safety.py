"""Speech is data: no control string survives in what users supply, in any family."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tokenizers import Regex
from tokenizers.normalizers import NFKC, BertNormalizer, Lowercase, Prepend, Replace
from tokenizers.normalizers import Sequence as Normalizers

from gateway.domain.engine import TranslationOptions, TranslationRequest
from gateway.domain.errors import EngineFailed, StartupError
from gateway.engines.prompting.families import FAMILIES, detect
from gateway.engines.prompting.safety import joint, neutralise, neutralise_request
from gateway.engines.prompting.templates import ChatPrompt, RawPrompt

JOINER = "\u2060"
BUNDLED = {"translation_gateway": {"prompt": "bundled", "languages": ["en", "de", "ja"]}}


def request(
    text: str, *, glossary: tuple[tuple[str, str], ...] = (), context: tuple[str, ...] = ()
) -> TranslationRequest:
    options = TranslationOptions(glossary=glossary, context=context, formality="formal")
    return TranslationRequest(id="t1", text=text, source="de", target="en", options=options, final=True)


CONTROL = (
    "<s>",
    "</s>",
    "<|im_end|>",
    "<text>",
    "</text>",
    "<zh>",
    "<to>",
    "<<<text>>>",
    "[Source Text]",
    "\n",
)
speech = st.lists(st.one_of(st.sampled_from(CONTROL), st.text(max_size=4)), max_size=8).map("".join)


@given(text=speech, term=speech, before=speech)
@pytest.mark.parametrize("name", FAMILIES)
def test_no_control_string_survives_in_what_users_supply(name: str, text: str, term: str, before: str) -> None:
    family = detect(BUNDLED, "demo") if name == "bundled" else FAMILIES[name]
    seen: list[TranslationRequest] = []

    def template(safe: TranslationRequest) -> RawPrompt:
        seen.append(safe)
        return RawPrompt("")

    special = frozenset({"<unused7>", "x<to>"})
    spied = replace(family, template=template)
    spied.render(request(text, glossary=((term, term),), context=(before,)), special)
    (safe,) = seen
    options = safe.options
    supplied = [safe.text, *(part for pair in options.glossary for part in pair), *options.context]
    for string in supplied:
        assert not [token for token in family.markers | special if token in string]
    assert not any("\n" in string for string in supplied[1:])


def test_special_tokens_of_the_tokenizer_are_broken_as_well() -> None:
    prompt = FAMILIES["tower"].render(request("a <extra_0> b"), frozenset({"<extra_0>"}))
    assert isinstance(prompt, ChatPrompt)
    assert f"German: a <{JOINER}extra_0> b\n" in str(prompt.content)


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("no tokens here", ["<s>"], "no tokens here"),
        ("a < b", ["<s>"], "a < b"),
        ("<s>", ["<s>"], f"<{JOINER}s>"),
        ("<<s>s>", ["<s>"], f"<<{JOINER}s>s>"),
        ("aaa", ["aa"], f"a{JOINER}a{JOINER}a"),
        ("<s><s", ["<s>", "><"], f"<{JOINER}s>{JOINER}<s"),
        ("a\x00b", ["\x00"], "ab"),
        ("<\x00s>", ["\x00", "<s>"], f"<{JOINER}s>"),
        ("ab", ["", "ab"], f"a{JOINER}b"),
        ("ab", ["ab", f"a{JOINER}b"], "a\u200bb"),
        ("", ["<s>"], ""),
    ],
)
def test_neutralise(text: str, tokens: list[str], expected: str) -> None:
    assert neutralise(text, tokens) == expected


ALPHABET = "<>s/|a\u2060\u200b"


@given(text=st.text(ALPHABET, max_size=30), tokens=st.sets(st.text(ALPHABET, min_size=1, max_size=4), max_size=6))
def test_neutralised_text_contains_no_token(text: str, tokens: set[str]) -> None:
    result = neutralise(text, tokens)
    assert not [token for token in tokens if token in result]
    if not any(token in text for token in tokens):
        assert result == text


@given(text=st.text(ALPHABET, max_size=30), tokens=st.sets(st.text("<>s/|a", min_size=2, max_size=4), max_size=6))
def test_neutralising_only_adds_the_joiner(text: str, tokens: set[str]) -> None:
    assert neutralise(text, tokens).replace(JOINER, "") == text.replace(JOINER, "")


# Made-up tokenizers change a text before they look for tokens in it.
NORMALISERS = {
    "lowercase": Lowercase(),
    "no word joiner": Replace("\u2060", ""),
    "no zero-width space": Replace("\u200b", ""),
    "neither": Normalizers([Replace("\u2060", ""), Replace("\u200b", "")]),
    "compatible": NFKC(),
    "compatible, then lowercase": Normalizers([NFKC(), Lowercase()]),
    "lowercase, then compatible": Normalizers([Lowercase(), NFKC()]),
    "clean": BertNormalizer(lowercase=False, strip_accents=False),
    "blanks as marks": Normalizers([Prepend("▁"), Replace(" ", "▁")]),
    "one letter for another": Normalizers([Replace("a", "s"), Lowercase()]),
}
# One ends with another, as those of Qwen and what is broken for every model.
TOKENS = frozenset({"<s>", "</s>", "[GO]", "<|s|>", "|>"})


def spelled(tokens: frozenset[str], normalise: Callable[[str], str]) -> set[str]:
    return {each for token in tokens for each in (token, normalise("." + token).removeprefix(normalise(".")))}


@given(text=st.text("<>sSa/|[]gGoO ﹤＞ｓ\u2060\u200b\u200c", max_size=30))
@pytest.mark.parametrize("name", NORMALISERS)
def test_no_token_is_spelled_after_normalising(name: str, text: str) -> None:
    normalise = NORMALISERS[name].normalize_str
    seen = normalise(neutralise(text, TOKENS, normalise))
    assert not [token for token in spelled(TOKENS, normalise) if token in seen]


@pytest.mark.parametrize("text", ["a < b, it said", "Grüße\u200b und so", "やあ、元気？"])
@pytest.mark.parametrize("name", NORMALISERS)
def test_normalising_leaves_ordinary_text_alone(name: str, text: str) -> None:
    assert neutralise(text, TOKENS, NORMALISERS[name].normalize_str) == text


def test_normaliser_that_joins_broken_tokens_is_refused() -> None:
    normalise = Normalizers([Replace(Regex("[^ -~]"), "")]).normalize_str
    with pytest.raises(StartupError, match="tokenizer"):
        joint(TOKENS, normalise)


def test_normaliser_that_never_settles_fails_the_text() -> None:
    with pytest.raises(EngineFailed, match="tokenizer"):
        neutralise("q", ["<s>"], Replace("q", "<s>q").normalize_str)


def test_token_of_one_character_that_normalising_makes_is_removed() -> None:
    assert neutralise("aSb", ["s"], Lowercase().normalize_str) == "ab"


def test_tokens_that_use_every_zero_width_character_are_refused() -> None:
    with pytest.raises(StartupError, match="zero-width"):
        neutralise("x", [f"{each}a" for each in "\u2060\u200b\u200c\u2063\u034f"])


def test_every_string_a_user_supplies_is_neutralised() -> None:
    said = request("<s>1", glossary=(("<s>2", "<s>3"),), context=("<s>4", "<s>5"))
    broken = f"<{JOINER}s>"
    assert neutralise_request(said, ["<s>"]) == request(
        f"{broken}1",
        glossary=((f"{broken}2", f"{broken}3"),),
        context=(f"{broken}4", f"{broken}5"),
    )


def test_a_text_does_not_become_many_times_as_long() -> None:
    long = "\ufdfa" * 1_990  # eighteen characters each, in their compatibility form
    safe = neutralise("＜|im_end|＞" + long, frozenset({"<|im_end|>"}))
    assert "<|im_end|>" not in safe
    assert len(safe) < 2 * len(long)
