"""The Python client's own distribution, in an environment that has nothing but what it asks for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from scripts import python_client
from tests.conftest import ROOT
from tests.processes import GatewayProcess

pytestmark = pytest.mark.slow

README = (ROOT / "gateway/client/README.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
REQUIRED = ("msgspec", "websockets")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of the environment. What the client asks for is copied from here: there may be no network."""
    wheel, _ = python_client.build(tmp_path_factory.mktemp("dist"))
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in REQUIRED:
        for file in distribution(name).files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), target)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", wheel], check=True)
    return python


def output(python: Path, program: str) -> list[str]:
    # -I: this checkout is not on the path.
    done = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("example", EXAMPLES, ids=["asyncio", "blocking"])
def test_the_examples_translate(python: Path, gateway: GatewayProcess, example: str) -> None:
    printed = output(python, example.replace("http://127.0.0.1:8000", gateway.url))
    assert sorted(printed) == ["de [de] Good morning, everyone.", "ja [ja] Good morning, everyone."]


def test_client_imports_without_engine_or_server(python: Path) -> None:
    """Every module of the client can be imported."""
    program = """
import importlib, pkgutil, sys, gateway
names = [module.name for module in pkgutil.walk_packages(gateway.__path__, "gateway.")]
for name in names:
    importlib.import_module(name)
print(*sorted({name.split(".")[1] for name in names}))
heavy = {"starlette", "uvicorn", "vllm", "torch", "redis", "jwt"}
print(*sorted(heavy & {name.split(".")[0] for name in sys.modules}))
"""
    assert output(python, program) == ["client domain protocol", ""]


def test_it_is_small(tmp_path: Path) -> None:
    wheel, source = python_client.build(tmp_path)
    assert wheel.stat().st_size < 200_000
    assert source.stat().st_size < 200_000
    # Within a tenth, so that not every change has to change it.
    [told] = re.findall(r"is the client alone: (\d+) kB", (ROOT / "docs" / "client.md").read_text())
    assert wheel.stat().st_size / 1000 == pytest.approx(int(told), rel=0.1)
