"""Training batches from worker processes: pairs as token ids, packed one after the other into rows of one length.

All batches have one shape, so what is compiled is compiled once. A worker waits only if its queue is full.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo_model import DIRECTIONS
from demo_model.corpus.pairs import Pair, PairSource
from demo_model.layout import prompt_ids
from gateway.bundled.tokenizer import END, IDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

ROW = 256
"""Tokens of a row. What is longer than a row is left out."""
PREDICTED = 0.6
"""Most tokens of a batch that are predicted, as a share; a row's last pairs are dropped if there are more."""
_WITH_ENGLISH, _OTHERS = ([each for each in DIRECTIONS if ("en" in each) is english] for english in (True, False))
DIRECTIONS_PER_SET = {5: _WITH_ENGLISH, 9: _OTHERS}
"""In how many of which directions a set is drawn: most meetings have English, but the others are harder."""
_SETS_PER_CHUNK = 400


@dataclass(frozen=True)
class Batch:
    """Rows of packed pairs."""

    # Shape (rows, ROW) each: ids; the place of each token in its pair; the number of its pair in the row, from 1.
    tokens: NDArray[np.int32]
    places: NDArray[np.int32]
    pairs: NDArray[np.int32]
    # Shape (rows × ROW × PREDICTED,) each: flat positions whose next token is predicted, and those tokens. Filled
    # up with position 0 and token -100.
    predicted: NDArray[np.int32]
    expected: NDArray[np.int32]
    # How many tokens are no filling, and how many are predicted.
    filled: int
    targets: int


Row = tuple[list[int], int]
"""The ids of a pair, and the length of its prompt."""


def encode_pairs(pairs: list[Pair], tokenizer: Tokenizer) -> list[Row]:
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.source, pair.target)))
    encoded = dict(
        zip(texts, (e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)), strict=True)
    )
    rows: list[Row] = []
    for pair in pairs:
        prompt = prompt_ids(pair.source_language, pair.target_language, pair.final, encoded[pair.source])
        rows.append(([*prompt, *encoded[pair.target], IDS[END]], len(prompt)))
    return rows


def pack(waiting: list[Row], rows: int) -> Batch:
    """A batch; takes what it uses from the end of `waiting`, which must have enough for all rows."""
    import numpy as np

    tokens = np.zeros((rows, ROW), np.int32)
    places, pairs = np.zeros_like(tokens), np.zeros_like(tokens)
    most = int(rows * ROW * PREDICTED)
    predicted, expected = np.zeros(most, np.int32), np.full(most, -100, np.int32)
    count = filled = 0
    for row in range(rows):
        at, number = 0, 0
        # First fit among the next few, so that less of a row is left empty.
        while found := next(
            (i for i in range(1, min(24, len(waiting)) + 1) if len(waiting[-i][0]) <= ROW - at), 0
        ):
            ids, prompt = waiting.pop(-found)
            end, answer = at + len(ids), len(ids) - prompt
            if count + answer > most:
                continue
            number += 1
            tokens[row, at:end] = ids
            places[row, at:end] = range(len(ids))
            pairs[row, at:end] = number
            # The last token of the prompt predicts the first of the answer.
            predicted[count : count + answer] = np.arange(at + prompt - 1, end - 1) + row * ROW
            expected[count : count + answer] = ids[prompt:]
            count += answer
            filled += len(ids)
            at = end
    return Batch(tokens, places, pairs, predicted, expected, filled, count)


def batches(source: PairSource, tokenizer: Tokenizer, rows: int, shuffler: random.Random) -> Iterator[Batch]:
    waiting: list[Row] = []
    while True:
        while sum(len(ids) for ids, _ in waiting) < rows * ROW * 2:
            pairs: list[Pair] = []
            for _ in range(_SETS_PER_CHUNK):
                drawn = (shuffler.sample(group, count) for count, group in DIRECTIONS_PER_SET.items())
                pairs += source.draw(list(chain.from_iterable(drawn)))
            waiting += [row for row in encode_pairs(pairs, tokenizer) if len(row[0]) <= ROW]
            shuffler.shuffle(waiting)
        yield pack(waiting, rows)


def _work(seed: str, tokenizer: Path, rows: int, out: multiprocessing.Queue[Batch], stop: Any) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer

    parent = multiprocessing.parent_process()

    def over() -> bool:
        # A parent that was killed has told nobody to stop.
        return bool(stop.is_set()) or (parent is not None and not parent.is_alive())

    loaded = Tokenizer.from_file(str(tokenizer))
    loaded.encode_special_tokens = True
    for batch in batches(PairSource(seed), loaded, rows, random.Random(f"batches/{seed}")):
        while not over():
            try:
                out.put(batch, timeout=0.5)
                break
            except queue.Full:
                continue
        if over():
            out.cancel_join_thread()
            return


class BatchPool:
    """Batches from worker processes. Close it to end them."""

    def __init__(self, seed: int | str, tokenizer: Path, rows: int, workers: int, depth: int = 64) -> None:
        context = multiprocessing.get_context("spawn")
        self._queue: multiprocessing.Queue[Batch] = context.Queue(depth)
        self._stop = context.Event()
        self._processes = [
            context.Process(
                target=_work, args=(f"{seed}/{index}", tokenizer, rows, self._queue, self._stop), daemon=True
            )
            for index in range(workers)
        ]
        for process in self._processes:
            process.start()

    def next(self) -> Batch:
        """The next batch. Raises RuntimeError if a worker has died and there is none for seconds."""
        while True:
            try:
                return self._queue.get(timeout=5)
            except queue.Empty:
                # The others, if any, may wait for a lock that it had.
                if died := [process.exitcode for process in self._processes if process.exitcode is not None]:
                    raise RuntimeError(
                        f"{len(died)} of {len(self._processes)} workers have died: {died}"
                    ) from None

    @property
    def waiting(self) -> int:
        """How many batches are made and not yet taken."""
        return self._queue.qsize()

    def close(self) -> None:
        self._stop.set()
        for process in self._processes:
            process.join(timeout=2)
            if process.is_alive():
                process.terminate()
