"""How Sphinx makes a site of the documentation (`make docs`).

The pages are plain Markdown, which has to read well on GitHub, too. So nothing in them is written for Sphinx:
the site has the folders of the repository, and links between its pages are the same there. The navigation is
what the README lists under "Read on", a chapter for each of its headings. A page that is not listed there is an
error.
"""

from __future__ import annotations

import re
import shutil
from pathlib import PurePosixPath

from pygments.lexers import TextLexer
from sphinx.application import Sphinx

from gateway import __version__

project = "Translation Gateway"
release = version = __version__
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/**",
    "examples/README.md",
    "demo_model/README.md",
    "demo_model/corpus/README.md",
]
# What is in none of these folders is not even looked for.
exclude_patterns = [".*", "artifacts", "build", "dist", "gateway", "loadtest", "node_modules", "tests", "web_demo"]

# The anchors are GitHub's, and only what GitHub understands is read.
myst_heading_anchors = 6
myst_disable_syntax = ["myst_line_comment", "myst_block_break", "myst_role", "myst_target"]
# Quotes, and code of no language, are shown as they are written.
highlight_language = "text"
smartquotes = False
# Tables of results begin with the heading of a part.
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = f"{project} {version}"
html_favicon = "../web_demo/favicon.svg"
html_copy_source = False
html_show_copyright = False
html_use_index = False


def navigation(readme: str) -> str:
    """The chapters of the README's section "Read on", as Sphinx wants them."""
    chapters = readme.partition("\n## Read on\n")[2].partition("\n## ")[0].split("\n### ")[1:]
    trees = []
    for chapter in chapters:
        caption, _, text = chapter.partition("\n")
        links = re.findall(r"\[([^\]]+)\]\(([^)#:]+)\.md\)", text)
        entries = "\n".join(f"{title} <{page}>" for title, page in links)
        trees.append(f"```{{toctree}}\n:caption: {caption}\n:hidden:\n\n{entries}\n```\n")
    return "\n".join(trees)


def prepare(_: Sphinx, name: str, content: list[str]) -> None:
    """Add to a page what only the site needs."""
    path = PurePosixPath(name)
    if name == root_doc:
        content[0] += "\n" + navigation(content[0])
    elif path.name == "table":
        # The results of a run, to which the page of the benchmarks links.
        title = "" if content[0].startswith("# ") else f"# {path.parent.relative_to('docs/benchmarks')}\n\n"
        content[0] = f"---\norphan: true\n---\n\n{title}{content[0]}"


def add_index(app: Sphinx, error: Exception | None) -> None:
    """The README is also what a web server shows for the site itself."""
    if error is None:
        shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def setup(app: Sphinx) -> None:
    # What GitHub draws, or shows as it is.
    for language in ("mermaid", "transcript"):
        app.add_lexer(language, TextLexer)
    app.connect("source-read", prepare)
    app.connect("build-finished", add_index)
