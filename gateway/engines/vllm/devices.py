"""Which devices an engine may use, however they are written.

Knows: numbers and ids of GPUs, numbers of cores. Must not know: what this machine has.
"""

from __future__ import annotations

import re

# `0`, `cuda:0`, `0-7`.
_NUMBERS = re.compile(r"(?:cuda:)?([0-9]{1,4})(?:-([0-9]{1,4}))?")
# As the driver names GPUs and their parts.
_ID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]{1,64}")


def spelled(text: str) -> str:
    """The one way to write these devices: `cuda:0, 1` is `0,1`. Raises `ValueError`, with a sentence."""
    return "|".join(",".join(_spelled(part.strip()) for part in rank.split(",")) for rank in text.split("|"))


def _spelled(part: str) -> str:
    if _ID.fullmatch(part):
        return part
    if (numbers := _NUMBERS.fullmatch(part.lower())) is None:
        raise ValueError("it is not numbers of GPUs (0, or 0,1) or, on a CPU, of cores (0-7).")
    first, last = (None if number is None else int(number) for number in numbers.groups())
    if last is None:
        return str(first)
    if first is None or last < first:
        raise ValueError(f"{part} ends before it begins.")
    return f"{first}-{last}"


def devices_of(text: str) -> frozenset[str]:
    """Each of the devices, of a text that is `spelled`."""
    found: set[str] = set()
    for part in re.split(r"[,|]", text):
        first, _, last = part.partition("-")
        if first.isdigit() and last.isdigit():
            found.update(map(str, range(int(first), int(last) + 1)))
        else:
            found.add(part)
    return frozenset(found)
