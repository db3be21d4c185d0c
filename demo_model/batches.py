"""Training batches from worker processes: encodes pairs as token ids, and sorts them by length into few shapes.

A worker waits only if its queue is full. There should be enough workers that the device never waits.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo_model import DIRECTIONS
from demo_model.generate import Direction, Kind, Pair, PairSource, phrases
from demo_model.layout import END, IDS, PAD, prompt_ids
from demo_model.tokenizer import load_tokenizer, with_dropout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

LENGTH_STEP = 4
LONGEST = 384
DIRECTIONS_PER_SET = 12
_SETS_PER_CHUNK = 1200


@dataclass(frozen=True)
class Batch:
    """One training batch."""

    # Shape (rows, length).
    tokens: NDArray[np.uint16]
    # Flat positions whose next token is a target token.
    predicted: NDArray[np.int32]


def encode_pairs(
    pairs: list[Pair], tokenizer: Tokenizer, of_sources: Tokenizer | None = None
) -> list[tuple[list[int], int]]:
    """(ids, length of the prompt) of each pair. of_sources: another tokenizer of the sources (BPE dropout)."""
    given = [pair.source for pair in pairs]
    texts = list(dict.fromkeys([*(pair.target for pair in pairs), *(given if of_sources is None else ())]))
    encoded = dict(
        zip(texts, (e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)), strict=True)
    )
    if of_sources is None:
        sources = [encoded[source] for source in given]
    else:
        sources = [e.ids for e in of_sources.encode_batch(given, add_special_tokens=False)]
    rows: list[tuple[list[int], int]] = []
    for pair, source in zip(pairs, sources, strict=True):
        prompt = prompt_ids(pair.source_language, pair.target_language, pair.final, source)
        rows.append(([*prompt, *encoded[pair.target], IDS[END]], len(prompt)))
    return rows


def padded(rows: list[tuple[list[int], int]], length: int) -> Batch:
    import numpy as np

    tokens = np.full((len(rows), length), IDS[PAD], dtype=np.uint16)
    predicted: list[NDArray[np.int32]] = []
    for index, (ids, prompt) in enumerate(rows):
        tokens[index, : len(ids)] = ids
        # The position before a target token predicts it; the last token of the prompt predicts the first.
        predicted.append(np.arange(prompt - 1, len(ids) - 1, dtype=np.int32) + index * length)
    return Batch(tokens, np.concatenate(predicted))


@dataclass(frozen=True)
class Phrases:
    """A small part of the corpus, for a model that knows it by heart."""

    pair: Direction
    count: int


@dataclass(frozen=True)
class Recipe:
    """What batches are made of."""

    # Only these; None: the whole corpus.
    phrases: Phrases | None = None
    # The share of sentences that are composed from clauses.
    composed: float = 0.0
    # The share of the patterns, frames and words that are used.
    part: float = 1.0
    # The chance that a merge of the tokenizer is left out in a source.
    bpe_dropout: float = 0.0


def batches(
    seed: int | str, tokenizer: Tokenizer, tokens_per_batch: int, recipe: Recipe = Recipe()
) -> Iterator[Batch]:
    """An endless stream of batches; deterministic for a seed, unless there is BPE dropout."""
    only = recipe.phrases
    source = PairSource(
        seed, patterns=None if only is None else phrases(only.count), composed=recipe.composed, part=recipe.part
    )
    of_sources = with_dropout(tokenizer, recipe.bpe_dropout) if recipe.bpe_dropout else None
    shuffler = random.Random(f"batches/{seed}")
    waiting: dict[int, list[tuple[list[int], int]]] = defaultdict(list)
    while True:
        pairs: list[Pair] = []
        chunk = min(_SETS_PER_CHUNK, 1 + tokens_per_batch // 16)
        for _ in range(chunk):
            if only is None:
                pairs += source.draw(shuffler.sample(DIRECTIONS, DIRECTIONS_PER_SET))
            else:
                pairs += source.draw([only.pair], Kind.FULL)
        shuffler.shuffle(pairs)
        full: list[Batch] = []
        for row in encode_pairs(pairs, tokenizer, of_sources):
            length = -(-len(row[0]) // LENGTH_STEP) * LENGTH_STEP
            length = length if length <= 64 else -(-length // 32) * 32
            if length > LONGEST:
                continue
            rows = waiting[length]
            rows.append(row)
            if len(rows) == max(1, tokens_per_batch // length):
                full.append(padded(rows, length))
                waiting[length] = []
        shuffler.shuffle(full)
        yield from full


def _work(
    seed: str,
    folder: str,
    tokens_per_batch: int,
    recipe: Recipe,
    out: multiprocessing.Queue[Batch],
    stop: Any,
) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    parent = multiprocessing.parent_process()

    def over() -> bool:
        # A parent that was killed has told nobody to stop.
        return bool(stop.is_set()) or (parent is not None and not parent.is_alive())

    for batch in batches(seed, load_tokenizer(Path(folder)), tokens_per_batch, recipe):
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
    """Batches from `workers` processes; with 0, from this process. Close it to end the processes."""

    def __init__(
        self,
        seed: int | str,
        folder: Path,
        tokens_per_batch: int,
        workers: int,
        recipe: Recipe,
        depth: int = 256,
    ) -> None:
        self._local = batches(seed, load_tokenizer(folder), tokens_per_batch, recipe) if workers == 0 else None
        context = multiprocessing.get_context("spawn")
        self._queue: multiprocessing.Queue[Batch] = context.Queue(depth)
        self._stop = context.Event()
        self._processes = [
            context.Process(
                target=_work,
                args=(f"{seed}/{index}", str(folder), tokens_per_batch, recipe, self._queue, self._stop),
                daemon=True,
            )
            for index in range(workers)
        ]
        for process in self._processes:
            process.start()

    def next(self) -> Batch:
        """The next batch. Raises RuntimeError if a worker has died and there is none for seconds."""
        if self._local is not None:
            return next(self._local)
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
