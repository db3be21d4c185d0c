"""What is told of a model before it is loaded, and which are refused, on machines that the test makes up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo_model import SMALL_MODEL
from gateway.domain.errors import StartupError
from gateway.engines.vllm import hardware
from gateway.engines.vllm import plan as plans
from gateway.engines.vllm.options import VllmOptions
from gateway.engines.vllm.plan import HubModel, can_be_planned, plan, weights_of
from tests.engines.vllm.hub_server import Hub, HubFolder, running_hub
from tests.engines.vllm.nvml import Device, installed
from tests.usual import usual

GIB = 2**30


def machine(monkeypatch: pytest.MonkeyPatch, *, free_gib: float, reads_gb: float = 20) -> None:
    """One without a GPU, which calculates with float32."""
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    monkeypatch.setattr(hardware, "cpu_dtype", lambda: "float32")
    monkeypatch.setattr(hardware, "available_gib", lambda: free_gib)
    monkeypatch.setattr(hardware, "memory_read_per_s", lambda: reads_gb * 1e9)


def model(folder: Path, *, gib: float = 0.001, template: bool = True, **config: Any) -> str:
    """A folder with so many (empty) weights. Takes no room on disk."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", "torch_dtype": "bfloat16"} | config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "x"} if template else {}))
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(int(gib * GIB))
    return str(folder)


def refused(name: str, **options: Any) -> str:
    with pytest.raises(StartupError) as caught:
        plan(usual(VllmOptions, model=name, **options))
    return caught.value.message


def test_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=20, reads_gb=20)
    name = model(tmp_path / "HY-MT1.5-1.8B", gib=3)
    about, memory, speed = plan(usual(VllmOptions, model=name)).sentences()
    assert about == f"Model: {name}; prompt family hy-mt1.5, 33 languages."
    # Twice the files, as they are loaded as float32; then the cache, and what the engine takes.
    assert memory == "  Memory: about 9.9 GiB (weights 6.0 in float32), and 20.0 GiB are free."
    assert speed.startswith(
        "  Speed: about 1.7 tokens a second for one translation, so 11 s for a sentence of 12 words"
    )
    assert "slower than people speak" in speed
    assert "each token reads 6.4 GB of weights, and the memory gives 20.0 GB a second" in speed


def test_a_folder_is_read_as_written_by_a_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=20)
    monkeypatch.setenv("HOME", str(tmp_path))
    model(tmp_path / "tower-plus-2b")
    assert plan(usual(VllmOptions, model="~/tower-plus-2b")).family.name == "tower-plus"


def test_a_fast_model_is_not_called_slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=20, reads_gb=200)
    assert "slower" not in str(plan(usual(VllmOptions, model=model(tmp_path / "m", gib=1))).speed())


def test_speed_of_experts_is_a_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=90)
    said = str(plan(usual(VllmOptions, model=model(tmp_path / "m", gib=20, num_experts=64))).speed())
    assert said.startswith("at least 0.")
    assert "slower" not in said


def test_unknown_model_is_asked_as_a_chat_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=20)
    about, *_ = plan(usual(VllmOptions, model=model(tmp_path / "m"))).sentences()
    assert "not a translation model that is known, so it is asked like any instruct model" in about


def test_where_no_family_suits_all_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=20)
    said = refused(model(tmp_path / "m", template=False))
    assert "no chat template" in said
    assert "--family (hunyuan-mt, hy-mt1.5, hy-mt2, seed-x, translategemma" in said


def test_what_the_engine_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=20)
    other = model(tmp_path / "nllb", template=False, is_encoder_decoder=True, model_type="m2m_100")
    assert "is an encoder-decoder (m2m_100), which the engine does not run" in refused(other)


def test_a_folder_without_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=20)
    name = model(tmp_path / "m")
    Path(name, "model.safetensors").unlink()
    assert "has no weights" in refused(name)
    # Made by the engine, for measurements: how large they are is not known.
    assert "not known" in plan(usual(VllmOptions, model=name, extra={"load_format": "dummy"})).sentences()[-1]


@pytest.mark.parametrize(
    ("config", "options", "needed"),
    [
        ({}, {}, 9.9),  # 6 GiB of float32 and 0.15 of it, cache 1, processes 2
        ({"torch_dtype": "float32"}, {}, 6.45),
        ({}, {"dtype": "bfloat16"}, 6.45),
        ({}, {"kv_cache_gib": 4.0}, 12.9),
        ({"quantization_config": {"quant_method": "gptq"}}, {}, 6.45),
        # The output layer, which is shared with the input, is there twice.
        ({"tie_word_embeddings": True, "vocab_size": 2**18, "hidden_size": 2**11}, {}, 11.9),
    ],
)
def test_what_does_not_fit_is_refused(
    config: dict[str, Any], options: dict[str, Any], needed: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = model(tmp_path / "m", gib=3, **config)
    machine(monkeypatch, free_gib=needed + 0.1)
    plan(usual(VllmOptions, model=name, **options))
    machine(monkeypatch, free_gib=needed - 0.1)
    assert f"Too little memory: {name} needs about" in refused(name, **options)
    # How much less it will be is not known.
    plan(usual(VllmOptions, model=name, extra={"quantization": "fp8"}, **options))


@pytest.mark.parametrize(
    ("name", "extra", "wanted"),
    [
        ("acme/a", {}, True),
        ("s3://acme/a", {}, False),
        ("acme/a", {"revision": "v2"}, False),
        ("acme/a", {"download_dir": "/models"}, False),
    ],
)
def test_what_only_vllm_finds_is_not_planned(name: str, extra: dict[str, Any], wanted: bool) -> None:
    assert can_be_planned(usual(VllmOptions, model=name, extra=extra)) is wanted


def test_a_download_for_which_there_is_no_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, free_gib=100)
    folder = Path(model(tmp_path / "m"))
    monkeypatch.setattr(
        plans, "look_at", lambda _: HubModel(folder, "mit", 9 * 10**9, 8 * 10**9, tmp_path, 2 * 10**9)
    )
    assert f"needs 8.0 GB in {tmp_path}, and 2.0 GB are free" in refused("acme/m")
    monkeypatch.setattr(
        plans, "look_at", lambda _: HubModel(folder, "mit", 9 * 10**9, 8 * 10**9, tmp_path, 10**10)
    )
    about, download, *_ = plan(usual(VllmOptions, model="acme/m")).sentences()
    assert about.endswith("48 languages, licence mit.")
    assert download == f"  Download: 8.0 GB into {tmp_path}, where 10.0 GB are free."


def test_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: True)
    installed(monkeypatch, Device("GPU-1"), Device("GPU-2"))
    name = model(tmp_path / "m", gib=75)
    assert (
        "needs about 76.5 GiB (weights 75.0 in bfloat16), and 72.0 GiB are the engine's (0.9 of all)"
        in refused(name)
    )
    both = usual(VllmOptions, model=name, extra={"tensor_parallel_size": 2})
    _, memory, speed = plan(both).sentences()
    assert (
        memory
        == "  Memory: about 78.0 GiB (weights 75.0 in bfloat16), and 144.0 GiB are the engine's (0.9 of all)."
    )
    assert speed.startswith("  Speed: about 49 tokens a second")


WEIGHTS = SMALL_MODEL.joinpath("model.safetensors").stat().st_size

# The client reads its environment when it is imported, so each look is a process of its own.
_LOOK = """
import json, sys
import msgspec
from gateway.domain.errors import StartupError
from gateway.engines.vllm.plan import look_at
try:
    found = look_at(sys.argv[1])
    print(json.dumps({**msgspec.structs.asdict(found), "folder": str(found.folder), "cache": str(found.cache)}))
except StartupError as error:
    print(json.dumps(error.message))
"""

# Fills the cache with a whole model, as the engine does.
_DOWNLOAD = "import sys; from huggingface_hub import snapshot_download; snapshot_download(sys.argv[1])"

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs Python about a model, with this hub and a cache of the test's own."""

    def process(program: str, name: str, hub: Hub, **more: str) -> Any:
        env = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), **more}
        done = subprocess.run(
            [sys.executable, "-c", program, name], env=env, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout or "null")

    return process


@pytest.fixture
def hub() -> Iterator[Hub]:
    model = HubFolder(SMALL_MODEL, {"license": "apache-2.0"})
    with running_hub(acme__small=model, acme__gated=HubFolder(SMALL_MODEL, gated=True)) as server:
        yield server


def test_a_model_that_is_there(hub: Hub, run: Run) -> None:
    found = run(_LOOK, "acme/small", hub)
    assert (found["licence"], found["weights"], found["missing"]) == ("apache-2.0", WEIGHTS, WEIGHTS)
    assert json.loads(Path(found["folder"], "config.json").read_text())["model_type"] == "llama"
    assert found["free"] > 0
    # Nothing large was downloaded to find out.
    assert sorted(hub.given) == ["config.json", "tokenizer_config.json"]


@pytest.mark.slow
def test_cached_model_needs_no_hub(hub: Hub, run: Run) -> None:
    run(_DOWNLOAD, "acme/small", hub)
    assert run(_LOOK, "acme/small", hub)["missing"] == 0
    for without in ({"HF_ENDPOINT": "http://127.0.0.1:9"}, {"HF_HUB_OFFLINE": "1"}):
        gone = run(_LOOK, "acme/small", hub, **without)
        assert (gone["weights"], gone["missing"]) == (WEIGHTS, 0)


@pytest.mark.slow
def test_interrupted_download_is_not_a_model(hub: Hub, run: Run) -> None:
    hub.cut = 1_000
    with pytest.raises(subprocess.CalledProcessError):
        run(_DOWNLOAD, "acme/small", hub)
    assert "has not been downloaded before" in run(_LOOK, "acme/small", hub, HF_ENDPOINT="http://127.0.0.1:9")
    hub.cut = None
    assert run(_LOOK, "acme/small", hub)["missing"] == WEIGHTS


def test_names_that_lead_to_no_model(hub: Hub, run: Run) -> None:
    assert run(_LOOK, "acme/none", hub).startswith(f"There is no model acme/none at {hub.url}, or it is private")
    assert "neither a folder here nor a name on the hub" in run(_LOOK, "two words", hub)
    assert f"accepted first: do so at {hub.url}/acme/gated" in run(_LOOK, "acme/gated", hub)


def test_a_hub_that_is_not_reached(hub: Hub, run: Run) -> None:
    said = run(_LOOK, "acme/small", hub, HF_ENDPOINT="http://127.0.0.1:9")
    assert said.startswith("acme/small has not been downloaded before, and http://127.0.0.1:9 does not answer (")
    assert "copy the model's folder" in said


def test_the_engine_loads_one_form_of_weights() -> None:
    both = {"a.safetensors": 3, "b.safetensors": 4, "a.bin": 7, "original/c.safetensors": 7, "config.json": 1}
    assert weights_of(both) == {"a.safetensors": 3, "b.safetensors": 4}
    assert weights_of({"a.bin": 7, "config.json": 1}) == {"a.bin": 7}
    assert weights_of({"config.json": 1}) == {}
    # Mistral's, in its own form beside the usual one.
    own = {"consolidated.safetensors": 7}
    assert weights_of(own | {"model-1.safetensors": 3, "model-2.safetensors": 4}) == {
        "model-1.safetensors": 3,
        "model-2.safetensors": 4,
    }
    assert weights_of(own) == own


def test_looking_leaves_the_environment_as_it_was(hub: Hub, run: Run) -> None:
    """As it is a part of what an engine is made of, by which the next gateway knows one that waits."""
    look = """
import json, os, sys
from gateway.engines.vllm.plan import look_at
before = dict(os.environ)
look_at(sys.argv[1])
print(json.dumps(before == dict(os.environ)))
"""
    assert run(look, "acme/small", hub) is True
