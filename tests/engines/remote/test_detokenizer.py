"""Text of tokens, with the bundled model's real tokenizer."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.engines.remote.detokenizer import Detokenizer

TEXTS = ["Guten Morgen.", "ローンチを金曜日に。", "🙂 鬱", "a  b", "1.250 €", ""]


class Slow:
    """A tokenizer without a fast backend."""

    def __init__(self, tokenizer: Any) -> None:
        self.decode = tokenizer.decode


@pytest.mark.parametrize("slow", [False, True], ids=["fast", "slow"])
@pytest.mark.parametrize("text", TEXTS)
def test_token_by_token_it_is_the_text(tokenizer: Any, text: str, slow: bool) -> None:
    prompt = [*tokenizer.encode("Good morning.", add_special_tokens=False), tokenizer.eos_token_id]
    ids = tokenizer.encode(text, add_special_tokens=False)
    detokenizer = Detokenizer(Slow(tokenizer) if slow else tokenizer, prompt)
    pieces = [detokenizer.add([token]) for token in ids]
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)
    together = Detokenizer(Slow(tokenizer) if slow else tokenizer, prompt)
    assert together.add(ids) == text


@pytest.mark.parametrize("slow", [False, True], ids=["fast", "slow"])
def test_special_tokens_are_not_text(tokenizer: Any, slow: bool) -> None:
    detokenizer = Detokenizer(Slow(tokenizer) if slow else tokenizer, [5])
    assert detokenizer.add([tokenizer.eos_token_id, tokenizer.bos_token_id]) == ""


def test_a_stream_that_is_confused_goes_on(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Confused:
        def step(self, _tokenizer: Any, _token: int) -> str:
            raise Exception("Invalid prefix encountered while decoding stream.")  # as it is raised there

    token = tokenizer.encode("Guten", add_special_tokens=False)[0]
    detokenizer = Detokenizer(tokenizer, [5])
    detokenizer._stream = Confused()
    assert detokenizer.add([token]) == Detokenizer(tokenizer, []).add([token])
