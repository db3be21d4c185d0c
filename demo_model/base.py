"""Makes the folder that training begins with: the base as it is, with the vocabulary that the bundled model has.

    python -m demo_model.base FOLDER

The folder is an ordinary model for transformers; `vocabulary.json` has the base's ids of the tokens that are kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from demo_model.adapter import save_adapter
from gateway.bundled.adapter import read_adapter
from gateway.bundled.assembly import assemble
from gateway.bundled.base import Base, installed_base
from gateway.bundled.tokenizer import PROMPT_TOKENS

ADAPTER = Path(__file__).parents[1] / "gateway" / "bundled_model" / "adapter.safetensors"
VOCABULARY_FILE = "vocabulary.json"


def write_base(base: Base, vocabulary: Sequence[int], hidden: int, folder: Path) -> None:
    """vocabulary: the base's ids that are kept, ascending. hidden: the base's width. folder: is made."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as beside:
        nothing = Path(beside) / "adapter.safetensors"
        special = np.zeros((len(PROMPT_TOKENS), hidden), np.float32)
        save_adapter(nothing, vocabulary=vocabulary, special=special, low_rank={})
        assemble(base, nothing, (), folder)
    (folder / VOCABULARY_FILE).write_text(json.dumps(list(vocabulary)), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo_model.base", description="Make what training begins with.")
    parser.add_argument("folder", type=Path)
    own = read_adapter(ADAPTER)
    write_base(installed_base(), own.vocabulary.tolist(), own.special.shape[1], parser.parse_args().folder)


if __name__ == "__main__":
    main()
