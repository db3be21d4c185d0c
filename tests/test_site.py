"""The documentation as a site, as `make docs` makes it."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """What a page names: its anchors, what it loads, where its links lead."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name == "id":
                self.anchors.add(value)
            elif value and (name == "src" or (name == "href" and tag == "link")):
                self.loads.add(value)
            elif value and name == "href":
                self.links.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site. A warning is an error: a link to nothing, a page that is in no chapter."""
    folder = tmp_path_factory.mktemp("site")
    (recipe,) = re.findall(r"^\t\$\(BIN\)/(sphinx-build .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    command = recipe.replace("build/site", str(folder)).replace("build/doctrees", str(folder / "doctrees")).split()
    command[0] = str(Path(sys.executable).parent / command[0])
    built = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert (built.returncode, built.stderr) == (0, ""), built.stderr
    return folder


def test_links_lead_somewhere_and_nothing_loads_from_elsewhere(site: Path) -> None:
    pages = {file: Page(file) for file in site.rglob("*.html") if "_downloads" not in file.parts}
    assert len(pages) > 50
    for file, page in pages.items():
        for target in page.loads | page.links:
            url = urlsplit(target)
            if url.scheme or url.netloc:
                assert target in page.links - page.loads or url.scheme == "data", f"{file} loads {target}"
                continue
            there = (file.parent / unquote(url.path)).resolve() if url.path else file
            assert there.is_file(), f"{file} leads to {target}"
            if url.fragment and there in pages:
                assert unquote(url.fragment) in pages[there].anchors, f"{file} leads to {target}"
    for file in [*site.rglob("*.css"), *site.rglob("*.js")]:
        assert not re.search(r"@import|url\(['\"]?(https?:)?//|importScripts", file.read_text()), (
            f"{file} loads more"
        )


def test_site_begins_with_readme_and_has_all_chapters(site: Path) -> None:
    index = (site / "index.html").read_text()
    chapters = re.findall(r'<p class="caption"[^>]*><span class="caption-text">([^<]+)', index)
    readme = (ROOT / "README.md").read_text().partition("\n## Read on\n")[2].partition("\n## ")[0]
    assert chapters == re.findall(r"^### (.+)$", readme, re.MULTILINE) != []
