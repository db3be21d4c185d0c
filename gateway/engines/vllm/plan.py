"""What a model is, what it needs of this machine and how fast it will be, found before it is loaded.

Knows: a model's `config.json`; the Hugging Face hub's client, cache and errors; the machine.
Must not know: how an engine is started, how the plan is told.

The figures are estimates. docs/models.md says how they are made, and what they were compared with.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway.domain.errors import StartupError
from gateway.engines.prompting.families import PromptFamily
from gateway.engines.prompting.model_config import check_chat_template, find_family, known_families, read_config
from gateway.engines.vllm import hardware
from gateway.engines.vllm.arguments import gpus_used
from gateway.engines.vllm.options import VllmOptions

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


_GB, _GIB = 1e9, 2**30

# Memory of processes with torch and vLLM, GiB, and of what grows with the model, as a share of the weights; on a
# GPU, of its context, graphs and steps.
_PROCESSES_GIB, _STEPS_SHARE = 2, 0.15
_GPU_STEPS_GIB = 1.5

# Share of the memory's speed that decoding reaches; and seconds of each step besides reading.
# Measured: docs/models.md.
_CPU_SHARE, _CPU_STEP_S = 0.55, 0.006
_GPU_SHARE, _GPU_STEP_S = 0.6, 0.0005

# A sentence of 12 words: its tokens in most languages, and its prompt, which takes as long as some tokens more.
_SENTENCE_TOKENS, _PROMPT_AS_TOKENS = 16, 3
# People speak 150 words a minute.
_SPOKEN_S = 12 / 150 * 60

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# What makes a model smaller than its files.
_SMALLER = {"quantization", "cpu_offload_gb"}
# What makes vLLM look for a model where a plan does not.
_ELSEWHERE = {"revision", "download_dir"}
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


class Speed(Struct, frozen=True):
    """An estimate for one translation that is alone in the engine."""

    # The least where a token needs only a part of the weights (a mixture of experts).
    tokens_per_s: float
    at_least: bool
    # What the memory gives, bytes a second, and the weights that each token reads.
    read_per_s: float
    weights: float

    def __str__(self) -> str:
        sentence_s = (_SENTENCE_TOKENS + _PROMPT_AS_TOKENS) / self.tokens_per_s
        slow = sentence_s > _SPOKEN_S and not self.at_least
        return (
            f"{'at least' if self.at_least else 'about'} {_rounded(self.tokens_per_s)} tokens a second for one "
            f"translation, so {_rounded(sentence_s)} s for a sentence of 12 words"
            + (", which is slower than people speak: take a smaller model, or a GPU" if slow else "")
            + f" (estimated: each token reads {_size(self.weights)} of weights, and the memory gives "
            f"{_size(self.read_per_s)} a second)"
        )


class Plan(Struct, frozen=True):
    """A model that fits here."""

    options: VllmOptions
    family: PromptFamily
    # None: a folder.
    hub: HubModel | None
    # The number format of the weights in memory.
    dtype: str
    # Bytes in memory: of the weights, of everything, and what there is (None: not known).
    weights: float
    needed: float
    available: float | None
    place: str
    # Whether a token needs only a part of the weights.
    experts: bool

    def sentences(self) -> list[str]:
        """What the operator who starts it is told. Measures the memory's speed, which takes a second."""
        told = [f"Model: {self.options.model}; {self._prompts()}{self._licence()}."]
        if self.hub is not None:
            told.append(f"  Download: {self._download(self.hub)}.")
        free = "" if self.available is None else f", and {self.available / _GIB:.1f} GiB {self.place}"
        weights = f"weights {self.weights / _GIB:.1f} in {self.dtype}"
        told.append(f"  Memory: about {self.needed / _GIB:.1f} GiB ({weights}){free}.")
        speed = self.speed()
        told.append(f"  Speed: {speed or 'not known here'}.")
        return told

    def _prompts(self) -> str:
        known = self.family.name != "chat"
        how = "" if known else "not a translation model that is known, so it is asked like any instruct model, "
        return f"{how}prompt family {self.family.name}, {len(self.family.languages)} languages"

    def _licence(self) -> str:
        return f", licence {self.hub.licence}" if self.hub is not None and self.hub.licence else ""

    @staticmethod
    def _download(of: HubModel) -> str:
        if not of.missing:
            return f"nothing, it is in {of.cache}"
        return f"{_size(of.missing)} into {of.cache}, where {_size(of.free)} are free"

    def speed(self) -> Speed | None:
        """Measures how fast memory is read. None where that is not known."""
        if not self.weights:
            return None
        if hardware.gpu_present():
            devices = hardware.gpus(self.options.device)[: gpus_used(self.options)]
            read_per_s = sum(device.read_per_s() or 0 for device in devices)
            share, step_s = _GPU_SHARE, _GPU_STEP_S
        else:
            read_per_s, share, step_s = hardware.memory_read_per_s(), _CPU_SHARE, _CPU_STEP_S
        if not read_per_s:
            return None
        token_s = self.weights / (share * read_per_s) + step_s
        return Speed(1 / token_s, self.experts, read_per_s, self.weights)


def can_be_planned(options: VllmOptions) -> bool:
    """Whether the model is a folder or of the hub, in its newest version; vLLM knows other places."""
    return "://" not in options.model and not options.extra.keys() & _ELSEWHERE


def plan(options: VllmOptions) -> Plan:
    """The plan for the model of these options; of a name on the hub, the small files are downloaded.

    Raises `StartupError` if it cannot be loaded here: not found, not to be asked, too large.
    """
    config, found = read_config(options.model), None
    if config is None:
        found = look_at(options.model)
        config = read_config(str(found.folder)) or {}
    folder = Path(options.model).expanduser() if found is None else found.folder
    # First, as no prompt would help.
    if config.get("is_encoder_decoder"):
        raise StartupError(
            f"{options.model} is an encoder-decoder ({config.get('model_type', 'of some kind')}), which the "
            f"engine does not run: choose a model of the families {known_families()}, or another instruct model."
        )
    family = find_family(config, options.model, options.family)
    check_chat_template(str(folder), family)
    if found is not None and found.missing > found.free:
        raise StartupError(
            f"Too little disk: {options.model} needs {_size(found.missing)} in {found.cache}, and "
            f"{_size(found.free)} are free; make room, or name another folder in the variable HF_HOME."
        )
    dtype, grows = _loaded_as(config, options)
    weights = grows * (_in_folder(folder, options) if found is None else found.weights)
    on_gpu = hardware.gpu_present()
    needed, available, place = _on_gpu(options, weights) if on_gpu else _on_cpu(config, options, weights, dtype)
    if available is not None and needed > available and not options.extra.keys() & _SMALLER:
        advice = "" if on_gpu else "lower engine.kv_cache_gib, "
        raise StartupError(
            f"Too little memory: {options.model} needs about {needed / _GIB:.1f} GiB (weights "
            f"{weights / _GIB:.1f} in {dtype}), and {available / _GIB:.1f} GiB {place}; {advice}choose a smaller "
            "model, or free memory."
        )
    experts = any(config.get(name) or _text(config).get(name) for name in _EXPERTS)
    return Plan(options, family, found, dtype, weights, needed, available, place, experts)


def _on_cpu(
    config: Mapping[str, Any], options: VllmOptions, weights: float, dtype: str
) -> tuple[float, float | None, str]:
    """Bytes needed, bytes there are, and where."""
    text = _text(config)
    # The CPU's kernels want the output layer in an order of their own; shared with the input, it is there twice.
    tied = bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings")))
    again = text.get("vocab_size", 0) * text.get("hidden_size", 0) * _BYTES.get(dtype, 2) if tied else 0
    needed = (1 + _STEPS_SHARE) * weights + again + (max(1, round(options.kv_cache_gib)) + _PROCESSES_GIB) * _GIB
    return needed, hardware.available_gib() * _GIB, "are free"


def _on_gpu(options: VllmOptions, weights: float) -> tuple[float, float | None, str]:
    """The same. The cache gets what is left."""
    memory = [device.memory() for device in hardware.gpus(options.device)[: gpus_used(options)]]
    totals = [each.total for each in memory if each is not None]
    share = options.gpu_memory_utilization
    available = share * sum(totals) if totals else None
    return weights + _GPU_STEPS_GIB * _GIB * max(1, len(totals)), available, f"are the engine's ({share:g} of all)"


def _loaded_as(config: Mapping[str, Any], options: VllmOptions) -> tuple[str, float]:
    """The number format in memory, and how many times the size of the files that makes the weights."""
    quantised = config.get("quantization_config")
    if isinstance(quantised, Mapping):
        return str(quantised.get("quant_method", "a format of its own")), 1.0
    text = _text(config)
    stored = str(text.get("dtype") or text.get("torch_dtype") or config.get("torch_dtype") or "bfloat16")
    dtype = options.dtype
    if dtype == "auto":
        on_gpu = "float16" if stored == "float32" else stored
        dtype = on_gpu if hardware.gpu_present() else hardware.cpu_dtype()
    return dtype, _BYTES.get(dtype, 2) / _BYTES.get(stored, 2)


def _in_folder(folder: Path, options: VllmOptions) -> int:
    """Bytes of its weights. Raises `StartupError` where it has none."""
    weights = weights_of({file.name: file.stat().st_size for file in folder.iterdir() if file.is_file()})
    if not weights and options.extra.get("load_format", "auto") in ("auto", "safetensors", "hf"):
        raise StartupError(f"The model at {folder} has no weights: its files *.safetensors are missing.")
    return sum(weights.values())


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What describes the language model where it is a part of another one."""
    inner = config.get("text_config")
    return inner if isinstance(inner, Mapping) else config


def _size(number: float) -> str:
    return f"{number / _GB:.1f} GB" if number >= _GB else f"{math.ceil(number / 1e6)} MB"


def _rounded(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"
