"""Builds web_demo/built: the page in a few files, with the style sheets written into its document.

    python -m scripts.page

It knows esbuild and index.html; it must not know the page's scripts, except which view a visitor needs first. The
output depends on the sources alone. It is committed, so that the page can be served where there is no Node.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from gateway.server.page import hash_of_sources
from scripts.npm_package import NODE, PAGE, ROOT

ESBUILD = ROOT / ".venv" / "node" / "node_modules" / "esbuild" / "bin" / "esbuild"
BUILT = PAGE / "built"
# Where the document's script begins, and the view that it loads unless the address asks for another.
APP, MEETING = "page/app.js", "page/meeting/start_meeting.js"
# Part of the first script, so it gets no file of its own as the other languages do.
ENGLISH = "page/words/en.js"
# What is loaded by its address, when it is wanted.
LATER = (MEETING, "page/captions/captions_view.js", "page/captions/captions.css", "page/words/??.js")
# The oldest browsers that docs/page.md names.
OPTIONS = (
    "--bundle",
    "--minify",
    "--charset=utf8",
    "--legal-comments=none",
    "--target=chrome123,firefox128,safari17.5",
)

_STYLESHEET = re.compile(r'  <link rel="stylesheet" href="\./(.+?)">\n')


def build(destination: Path = BUILT) -> None:
    """Write the files into a folder, instead of what is in it. Raises `CalledProcessError` if esbuild fails."""
    shutil.rmtree(destination, ignore_errors=True)
    index = (PAGE / "index.html").read_text()
    lines = [f'  <link rel="modulepreload" href="./built/{each}">\n' for each in bundle(destination)]
    lines.append(f'  <script type="module" src="./built/{Path(APP).name}"></script>\n')
    lines.append(f"  <style>{bundle_styles(_STYLESHEET.findall(index))}</style>\n")
    index = _STYLESHEET.sub("", index).replace(
        f'  <script type="module" src="./{APP}"></script>\n', "".join(lines)
    )
    made_of = f"<!doctype html>\n<!-- Made by `make page` of sources with the hash {hash_of_sources(PAGE)}. -->"
    (destination / "index.html").write_text(index.replace("<!doctype html>", made_of, 1))


def bundle(destination: Path) -> list[str]:
    """Bundle the scripts; the paths of those that the meeting needs beside the first, most needed first."""
    later = (file.relative_to(PAGE).as_posix() for path in LATER for file in sorted(PAGE.glob(path)))
    entries = (APP, *(path for path in later if path != ENGLISH))
    metafile = destination / "made.json"
    esbuild(
        *(*entries, f"--outdir={destination}", "--outbase=page", "--splitting", "--format=esm"),
        f"--metafile={metafile}",
    )
    outputs = json.loads(metafile.read_text())["outputs"]
    metafile.unlink()
    needed = [path for path, made in outputs.items() if made.get("entryPoint") == MEETING]
    for path in needed:
        static = [each["path"] for each in outputs[path]["imports"] if each["kind"] == "import-statement"]
        needed += [each for each in static if each not in needed]
    return [(PAGE / path).resolve().relative_to(destination.resolve()).as_posix() for path in needed[::-1]]


def bundle_styles(paths: list[str]) -> str:
    """One minified style sheet, in the order of the document."""
    imports = "".join(f'@import "./{path}";\n' for path in paths)
    made = esbuild("--loader=css", "--external:*.woff2", stdin=imports).strip()
    # References to the faces stay as tokens.css has them, and from now on they are the document's.
    return made.replace("url(./fonts/", "url(./page/fonts/")


def esbuild(*arguments: str, stdin: str | None = None) -> str:
    command = [str(NODE), str(ESBUILD), *arguments, *OPTIONS, "--log-level=warning"]
    return subprocess.run(command, cwd=PAGE, input=stdin, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    build()
