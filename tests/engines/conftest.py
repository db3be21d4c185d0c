from __future__ import annotations

from typing import Any

import pytest

from demo_model import SMALL_MODEL


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """That of the bundled model, by its class: `AutoTokenizer` would import torch to find it, for 5 s."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(SMALL_MODEL)
