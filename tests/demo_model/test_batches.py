"""Packed batches."""

from __future__ import annotations

import random

import numpy as np

from demo_model.batches import PREDICTED, ROW, pack
from gateway.bundled.tokenizer import END, IDS


def rows(count: int, seed: int = 1) -> list[tuple[list[int], int]]:
    """Pairs of invented ids; the answer of each ends."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        prompt, answer = rng.randint(6, 60), rng.randint(1, 30)
        made.append(([*[100 + number] * (prompt + answer), IDS[END]], prompt))
    return made


def test_each_answer_is_predicted_from_its_prompt() -> None:
    waiting = rows(200)
    batch = pack(waiting, 4)
    flat = batch.tokens.reshape(-1)
    real = batch.expected >= 0
    assert real.sum() == batch.targets
    assert (flat[batch.predicted[real] + 1] == batch.expected[real]).all()
    pairs = batch.pairs.reshape(-1)
    assert (pairs[batch.predicted[real]] == pairs[batch.predicted[real] + 1]).all()


def test_places_begin_anew_in_each_pair() -> None:
    batch = pack(rows(200), 4)
    for row_places, row_pairs in zip(batch.places, batch.pairs, strict=True):
        for number in range(1, row_pairs.max() + 1):
            inside = row_places[row_pairs == number]
            assert (inside == np.arange(len(inside))).all()


def test_rows_are_nearly_full_and_nothing_is_twice() -> None:
    waiting = rows(300)
    before = len(waiting)
    batch = pack(waiting, 8)
    used = sum(int(row.max()) for row in batch.pairs)
    assert used <= before - len(waiting)
    assert batch.filled / (8 * ROW) > 0.85
    assert len(batch.predicted) == int(8 * ROW * PREDICTED)


def test_too_many_predicted_tokens_are_left_out() -> None:
    batch = pack([([5] * 100, 5)] * 40, 4)
    assert batch.targets <= int(4 * ROW * PREDICTED)
