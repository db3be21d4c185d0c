"""The packages as their users have them: built, and installed where there is nothing else, without a network."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import npm_package
from tests.processes import GatewayProcess, gateway_process

# As fast as it goes, with a model that takes everything.
ENGINE = """
[engine]
kind = "simulated"
[engine.script]
first_token_s = 0.01
token_s = 0.01
options = ["glossary", "context", "formality"]
"""


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway that is ready, for tests that leave it as it was."""
    file = tmp_path_factory.mktemp("gateway") / "gateway.toml"
    file.write_text(ENGINE)
    with gateway_process("--config", str(file), "--log-level", "warning") as process:
        yield process.ready()


@pytest.fixture(scope="session")
def npm_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm_package.build(tmp_path_factory.mktemp("npm"))


@pytest.fixture(scope="session")
def node_project(npm_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package installed, and nothing else. npm has no network and an empty cache."""
    folder = tmp_path_factory.mktemp("project")
    subprocess.run(
        [
            *(npm_package.NPM, "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"),
            *("--cache", folder / ".npm", npm_archive),
        ],
        cwd=folder,
        check=True,
    )
    return folder
