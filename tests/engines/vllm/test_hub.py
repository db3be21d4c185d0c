"""What the hub says of a model before it is downloaded, from a hub on this machine, by the hub's own client."""

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
from gateway.engines.vllm.hub import weights_of
from tests.engines.vllm.hub_server import Hub, HubFolder, running_hub

WEIGHTS = SMALL_MODEL.joinpath("model.safetensors").stat().st_size

# The client reads its environment when it is imported, so each look is a process of its own.
_LOOK = """
import json, sys
import msgspec
from gateway.domain.errors import StartupError
from gateway.engines.vllm.hub import look_at
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
def test_what_is_here_already_is_not_downloaded_again_and_needs_no_hub(hub: Hub, run: Run) -> None:
    run(_DOWNLOAD, "acme/small", hub)
    assert run(_LOOK, "acme/small", hub)["missing"] == 0
    for without in ({"HF_ENDPOINT": "http://127.0.0.1:9"}, {"HF_HUB_OFFLINE": "1"}):
        gone = run(_LOOK, "acme/small", hub, **without)
        assert (gone["weights"], gone["missing"]) == (WEIGHTS, 0)


@pytest.mark.slow
def test_a_download_that_was_interrupted_is_not_taken_for_a_model(hub: Hub, run: Run) -> None:
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
from gateway.engines.vllm.hub import look_at
before = dict(os.environ)
look_at(sys.argv[1])
print(json.dumps(before == dict(os.environ)))
"""
    assert run(look, "acme/small", hub) is True
