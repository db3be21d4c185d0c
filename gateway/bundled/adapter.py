"""Our adapter: what makes a translator of the base. One file, safetensors, with these tensors:

    vocabulary       int32, (tokens,)        the base's ids of the tokens that are kept, ascending
    special          (9, width)              embeddings of the base's ids 6 to 14: the languages, `<final>`, …
    layers           int32, (layers,)        which of the base's layers are kept, in order; without it, all are
    NAME.A, NAME.B   (rank, in), (out, rank) their product B·A is added to the weight NAME.weight
    NAME.weight                              takes the place of the base's, such as that of a norm

NAME is the name of a part in the assembled model, so layers are counted there (`model.layers.0.mlp.up_proj`).
Numbers are bfloat16, float32, or have a factor for each row (`special.scale`, `NAME.A.scale`, … float32, (rows,)):
int8, or uint8 with two numbers of 4 bits in each, the first in the lower ones, from which 8 is taken.
The embedding is `model.embed_tokens`, and has the rows of the vocabulary.

Knows: this layout. Must not know: the base, what is made of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gateway.bundled.gguf import Floats
from gateway.bundled.tensors import InvalidTensors, read_tensors

FIRST_SPECIAL = 6
"""The base's id of the first row of `special`; those below are its own control tokens, which are kept as well."""

_SCALE = ".scale"


class Adapter(Struct, frozen=True):
    """An adapter that was read."""

    vocabulary: npt.NDArray[np.int64]
    special: Floats
    # None: all.
    layers: tuple[int, ...] | None
    # Part of the model → A and B.
    low_rank: Mapping[str, tuple[Floats, Floats]]
    # Part of the model → its weight.
    replaced: Mapping[str, Floats]

    def applied(self, part: str, weight: Floats) -> Floats:
        """The weight of a part of the model, of the base's. Raises `InvalidTensors` if they do not fit."""
        own = self.replaced.get(part, weight)
        if part in self.low_rank:
            a, b = self.low_rank[part]
            if (b.shape[0], a.shape[1]) != own.shape or b.shape[1] != a.shape[0]:
                raise InvalidTensors(f"{part}: {b.shape} · {a.shape} does not fit {own.shape}")
            own = own + b @ a
        if own.shape != weight.shape:
            raise InvalidTensors(f"{part}: {own.shape} does not fit {weight.shape}")
        return own


def read_adapter(path: Path) -> Adapter:
    """The adapter in a file. Raises `InvalidTensors`, `OSError`."""
    tensors = read_tensors(path)
    found = {name: _numbers(name, tensors) for name in tensors if not name.endswith(_SCALE)}
    try:
        vocabulary, special = found.pop("vocabulary").astype(np.int64), found.pop("special")
        layers = found.pop("layers", None)
        parts = {name.removesuffix(".A") for name in found if name.endswith(".A")}
        low_rank = {part: (found.pop(f"{part}.A"), found.pop(f"{part}.B")) for part in parts}
    except KeyError as error:
        raise InvalidTensors(f"{path.name} has no {error.args[0]}") from None
    if strange := [name for name in found if not name.endswith(".weight")]:
        raise InvalidTensors(f"{path.name} has {strange[0]}, which is not known")
    _check_vocabulary(path, vocabulary, special)
    return Adapter(
        vocabulary,
        special,
        None if layers is None else tuple(layers.tolist()),
        low_rank,
        {name.removesuffix(".weight"): weight for name, weight in found.items()},
    )


def _numbers(name: str, tensors: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    numbers, scale = tensors[name], tensors.get(f"{name}{_SCALE}")
    if numbers.dtype == np.uint8:
        halves = np.stack([numbers & 15, numbers >> 4], axis=-1).reshape(len(numbers), -1)
        numbers = halves.astype(np.int8) - np.int8(8)
    if numbers.dtype != np.int8:
        return numbers
    if scale is None or scale.shape != numbers.shape[:1]:
        raise InvalidTensors(f"{name} has no {name}{_SCALE} with a factor for each row")
    scaled: Floats = numbers.astype(np.float32) * scale[:, None]
    return scaled


def _check_vocabulary(path: Path, vocabulary: npt.NDArray[np.int64], special: Floats) -> None:
    own = np.arange(FIRST_SPECIAL + len(special))
    if vocabulary.ndim != 1 or not np.array_equal(vocabulary[: len(own)], own) or (np.diff(vocabulary) <= 0).any():
        raise InvalidTensors(f"{path.name}: the vocabulary has to ascend, and to begin with 0 to {own[-1]}")
