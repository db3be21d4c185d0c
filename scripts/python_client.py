"""Builds the Python client as a distribution of its own, without the engine and the server.

    python -m scripts.python_client FOLDER

What it has is what `gateway.client` imports: the same files as in the gateway. FOLDER gets a wheel and a source
archive; nothing is fetched. Prints their paths.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
# The rooms that the client may know, by the import rule of the house.
ROOMS = ("client", "domain", "protocol")
NOT_SHIPPED = shutil.ignore_patterns("__pycache__", "*.md", "*.toml")


def build(destination: Path) -> list[Path]:
    """Build both; returns the wheel and the source archive. Raises `CalledProcessError` if the build fails."""
    destination.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy_into(folder)
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-d", destination.resolve()],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            # Archives of the same files are the same.
            env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"},
        )
    return [next(destination.glob(f"translation_gateway_client-*{kind}")) for kind in (".whl", ".tar.gz")]


def copy_into(folder: Path) -> None:
    """The project as hatch expects one."""
    package = folder / "gateway"
    package.mkdir()
    shutil.copy(ROOT / "gateway" / "__init__.py", package)
    (package / "py.typed").touch()
    for room in ROOMS:
        shutil.copytree(ROOT / "gateway" / room, package / room, ignore=NOT_SHIPPED)
    shutil.copy(ROOT / "gateway" / "client" / "package.toml", folder / "pyproject.toml")
    shutil.copy(ROOT / "gateway" / "client" / "README.md", folder)
    shutil.copy(ROOT / "LICENSE", folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m scripts.python_client FOLDER")
    for archive in build(Path(sys.argv[1])):
        print(archive)
