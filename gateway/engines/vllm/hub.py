"""A model on the Hugging Face hub, looked at before it is downloaded.

Knows: the hub's client, its cache and its errors. Must not know: what a model needs to run.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway.domain.errors import StartupError

# What a model says about itself: small files, which the engine needs as well.
_ABOUT = ("config.json", "tokenizer_config.json", "*chat_template*", "tokenizer.model*", "tekken.json")
# Forms of weights; the engine takes the first that there is.
_WEIGHTS = (".safetensors", ".bin", ".pt")
# For the hub to answer.
_ANSWER_S = 10.0


class HubModel(Struct, frozen=True):
    """What the hub says, or the cache."""

    # Where the small files are.
    folder: Path
    # The licence as the hub names it; None: it does not.
    licence: str | None
    # Size of all weights, bytes.
    weights: int
    # What is still to be downloaded, bytes.
    missing: int
    # Where to, and how many bytes are free there.
    cache: Path
    free: int


def weights_of(files: dict[str, int]) -> dict[str, int]:
    """Those of these files, with their sizes, that hold weights that the engine loads."""
    # vLLM reads no folders below, and of two copies of a model the one that is not "consolidated".
    own = {name: size for name, size in files.items() if "/" not in name}
    own = {name: size for name, size in own.items() if not name.startswith("consolidated")} or own
    for form in _WEIGHTS:
        if found := {name: size for name, size in own.items() if name.endswith(form)}:
            return found
    return {}


def look_at(name: str) -> HubModel:
    """The model of this name. Downloads its small files. Raises `StartupError`."""
    from huggingface_hub import HfApi, constants, errors, snapshot_download, try_to_load_from_cache
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars

    hub, cache = constants.ENDPOINT, Path(constants.HF_HUB_CACHE)
    try:
        info = HfApi().model_info(name, files_metadata=True, timeout=_ANSWER_S)
        # Not by the environment, which is a part of what an engine is made of.
        disable_progress_bars()
        try:
            folder = Path(snapshot_download(name, revision=info.sha, allow_patterns=list(_ABOUT)))
        finally:
            enable_progress_bars()
    except errors.HFValidationError:
        raise StartupError(
            f"There is no model at {name}: it is neither a folder here nor a name on the hub, such as "
            "tencent/Hunyuan-MT-7B."
        ) from None
    except errors.GatedRepoError:
        raise StartupError(
            f"Whoever made {name} wants its terms accepted first: do so at {hub}/{name}, then start again with a "
            "token of your account in the variable HF_TOKEN."
        ) from None
    except errors.RepositoryNotFoundError:
        raise StartupError(
            f"There is no model {name} at {hub}, or it is private, and no folder of that name is here: check the "
            "name; a private model needs a token in the variable HF_TOKEN."
        ) from None
    except Exception as error:  # which HTTP client it has, and so which errors, changes between versions
        return _downloaded(name, cache, f"{hub} does not answer ({_reason(error)})")
    files = weights_of({file.rfilename: file.size or 0 for file in info.siblings or ()})
    there = {file for file in files if isinstance(try_to_load_from_cache(name, file, revision=info.sha), str)}
    return HubModel(
        folder,
        _licence(info.card_data),
        sum(files.values()),
        sum(size for file, size in files.items() if file not in there),
        cache,
        _free(cache),
    )


def _downloaded(name: str, cache: Path, why: str) -> HubModel:
    """The model as an earlier start has left it. Raises `StartupError` if it is not all there."""
    from huggingface_hub import errors, snapshot_download

    try:
        # Whether all files are there is known where the hub was asked for all of them.
        folder = Path(snapshot_download(name, local_files_only=True, allow_patterns=[*_ABOUT, "*.safetensors"]))
    except (errors.LocalEntryNotFoundError, OSError):
        folder = None
    files = {} if folder is None else weights_of({file.name: file.stat().st_size for file in folder.iterdir()})
    if folder is None or not files:
        raise StartupError(
            f"{name} has not been downloaded before, and {why}: connect this machine, or copy the model's folder "
            "to it and name that."
        )
    return HubModel(folder, None, sum(files.values()), 0, cache, _free(cache))


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _licence(card: Any) -> str | None:
    licence = getattr(card, "license", None)
    named = getattr(card, "license_name", None) if licence == "other" else licence
    return str(named or licence) if licence else None


def _free(folder: Path) -> int:
    """Bytes where the folder is, or will be."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return shutil.disk_usage(there).free
