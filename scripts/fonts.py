"""Makes web_demo/page/fonts: the faces of the page, as small as they can be, with their licences.

    python -m scripts.fonts

It fetches two packages of Fontsource from the npm registry, by version and hash, and keeps what the page shows:
weights from 400 to 700, and the characters that `tokens.css` asks of each file. The faces are under the SIL Open
Font License 1.1 without reserved names. The result is committed, so that nothing else needs this.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.npm_package import NPM, PAGE

FONTS = PAGE / "page" / "fonts"
TOKENS = PAGE / "page" / "tokens.css"
# What fonttools compresses WOFF2 with. Nothing else needs it, so it is not in a lock.
BROTLI = "brotli==1.2.0"
# Package → its version, the SHA-256 of its archive, and the file there of each file here.
PACKAGES = {
    "commissioner": (
        "5.3.0",
        "09ddbabb378a47e1915863d2a8f6041f7c49408ee4dfd8ba8677d7a77c871318",
        {
            "commissioner-latin.woff2": "commissioner-latin-flar-normal.woff2",
            "commissioner-latin-ext.woff2": "commissioner-latin-ext-flar-normal.woff2",
        },
    ),
    "vazirmatn": (
        "5.3.0",
        "94e5cbe1a433f86c79617ad462aa64d9bff8fd145b07b247dc747b8069aa3722",
        {"vazirmatn-arabic.woff2": "vazirmatn-arabic-wght-normal.woff2"},
    ),
}
# Arabic needs those that join its letters (`init`, `medi`, `fina`, `rlig`).
FEATURES = "kern,liga,mark,mkmk,ccmp,locl,tnum,case,init,medi,fina,isol,rlig,calt,rclt"
WEIGHTS = "wght=400:700"

_FACE = re.compile(r'url\("\./fonts/([^"]+)"\).*?unicode-range: ([^;]+);')


def build(destination: Path = FONTS) -> None:
    """Write the faces and licences into a folder, instead of what is in it.

    Raises `CalledProcessError` if a tool fails, and `ValueError` for a package with another hash.
    """
    ranges = dict(_FACE.findall(TOKENS.read_text()))
    shutil.rmtree(destination, ignore_errors=True)
    destination.mkdir(parents=True)
    with TemporaryDirectory() as name:
        folder = Path(name)
        tools = folder / "tools"
        run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tools), BROTLI)
        for package, (version, sha256, files) in PACKAGES.items():
            unpacked = fetch(package, version, sha256, folder)
            shutil.copy(unpacked / "LICENSE", destination / f"LICENSE-{package}.txt")
            for here, there in files.items():
                subset(unpacked / "files" / there, destination / here, ranges[here], tools)


def fetch(package: str, version: str, sha256: str, folder: Path) -> Path:
    """The unpacked package."""
    run(str(NPM), "pack", "--silent", f"@fontsource-variable/{package}@{version}", cwd=folder)
    archive = folder / f"fontsource-variable-{package}-{version}.tgz"
    if (digest := hashlib.sha256(archive.read_bytes()).hexdigest()) != sha256:
        raise ValueError(f"{archive.name} has another hash than the one that was reviewed: {digest}")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / package, filter="data")
    return folder / package / "package"


def subset(source: Path, target: Path, unicodes: str, tools: Path) -> None:
    """The weights and characters that are shown; the licence stays in the names of the face."""
    limited = target.with_suffix(".limited.woff2")
    path = f"import sys; sys.path.append({str(tools)!r}); "
    instancer = path + "from fontTools.varLib.instancer import main; main(sys.argv[1:])"
    run(sys.executable, "-c", instancer, str(source), WEIGHTS, "-o", str(limited), "-q", "--no-recalc-timestamp")
    subsetter = path + "from fontTools.subset import main; main(sys.argv[1:])"
    options = (
        f"--unicodes={unicodes}",
        f"--layout-features={FEATURES}",
        "--flavor=woff2",
        "--name-IDs=0,1,2,6,13,14,25",
    )
    run(
        sys.executable, "-c", subsetter, str(limited), *options, f"--output-file={target}", "--no-recalc-timestamp"
    )
    limited.unlink()


def run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True)


if __name__ == "__main__":
    build()
