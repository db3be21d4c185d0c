"""Builds everything that a release is made of, in one folder.

    python -m scripts.packages FOLDER

FOLDER gets the gateway and the Python client, each as a wheel and a source archive, the npm package of the
JavaScript client, for each engine a list of all packages that run with the gateway (an SBOM in CycloneDX's
format), and the checksums of them all. The same commit gives the same files, wherever and whenever it is built.
Nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway import __version__
from scripts import npm_package, python_client

ROOT = Path(__file__).parents[1]
ENGINES = ("cpu", "cuda")


def build(destination: Path) -> list[Path]:
    """Build all of it; returns the files. Raises `CalledProcessError` if a tool fails."""
    destination.mkdir(parents=True, exist_ok=True)
    files = [
        *build_gateway(destination),
        *python_client.build(destination),
        npm_package.build(destination),
        *(write_sbom(engine, destination) for engine in ENGINES),
    ]
    sums = destination / "SHA256SUMS"
    sums.write_text(checksums(files))
    return [*files, sums]


def build_gateway(destination: Path) -> list[Path]:
    """The gateway's wheel and source archive."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", destination.resolve()],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "SOURCE_DATE_EPOCH": time_of_commit()},
    )
    name = f"translation_gateway-{__version__}"
    return [destination / f"{name}-py3-none-any.whl", destination / f"{name}.tar.gz"]


def time_of_commit() -> str:
    """When what is built was committed, in seconds since 1970. Files in archives get this time."""
    log = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(log, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def write_sbom(engine: str, destination: Path) -> Path:
    """The packages of the lock of an engine, as CycloneDX writes them."""
    file = destination / f"translation_gateway-{__version__}-{engine}.cdx.json"
    with TemporaryDirectory() as name:
        project = Path(name) / "pyproject.toml"
        # The tool knows only versions that stand in this file.
        text = (ROOT / "pyproject.toml").read_text()
        project.write_text(text.replace('dynamic = ["version"]', f'version = "{__version__}"'))
        # It warns that a lock does not say which package needs which.
        tool = [sys.executable, "-W", "ignore::UserWarning", "-m", "cyclonedx_py", "requirements"]
        options = ["--output-reproducible", "--no-validate", f"--pyproject={project}", f"--output-file={file}"]
        subprocess.run(
            [*tool, str(ROOT / "locks" / f"{engine}.txt"), *options],
            check=True,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SOURCE_DATE_EPOCH": time_of_commit()},
        )
    return file


def checksums(files: Iterable[Path]) -> str:
    """What `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m scripts.packages FOLDER")
    for built in build(Path(sys.argv[1])):
        print(built)
