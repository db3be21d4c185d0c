"""Speech is data: no control string survives in what users supply, in any family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.engine import TranslationOptions, TranslationRequest
from gateway.domain.errors import InvalidValue
from gateway.engines.prompting.families import FAMILIES, detect
from gateway.engines.prompting.safety import neutralise, neutralise_request
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
    assert f"German: a <{JOINER}extra_0> b\n" in str(prompt.messages[0].content)


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


def test_tokens_that_use_every_zero_width_character_are_refused() -> None:
    with pytest.raises(InvalidValue):
        neutralise("x", ["\u2060a", "\u200ba", "\u200ca"])


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
