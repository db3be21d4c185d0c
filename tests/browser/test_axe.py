"""The scan for accessibility finds what is wrong, and leaves the page's policy in force."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette

from gateway.server.page import routes as page_routes
from gateway.server.uvicorn_server import listen
from tests.browser.axe import scan
from tests.conftest import OpenPage

pytestmark = pytest.mark.browser

HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>'
HEAD += '<link rel="stylesheet" href="./style.css"><link rel="icon" href="./icon.svg">'
GOOD = HEAD + '<main><h1>Hello</h1><label for="a">Name</label> <input id="a"> <button>Send</button></main></html>'
BAD = (
    HEAD
    + '<main><h1>Hello</h1><h4>Deep</h4><input id="a"> <button></button> <p class="pale">Pale</p></main></html>'
)
STYLE = "body { color: black; background: white } .pale { color: #ccc }"


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the test runner's signals are its own


@contextlib.asynccontextmanager
async def served(folder: Path, index: str) -> AsyncIterator[str]:
    """A page with the product's headers; its address."""
    (folder / "index.html").write_text(index)
    (folder / "style.css").write_text(STYLE)
    (folder / "icon.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    with listen("127.0.0.1", 0) as sock:
        server = _Quiet(
            uvicorn.Config(
                Starlette(routes=page_routes(folder, demo_controls=True)), log_config=None, lifespan="off"
            )
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[sock]))
            while not server.started:
                await asyncio.sleep(0.005)
            yield f"http://127.0.0.1:{sock.getsockname()[1]}/"
            server.should_exit = True


async def test_what_is_wrong_is_found(tmp_path: Path, open_page: OpenPage) -> None:
    async with served(tmp_path, BAD) as url, open_page(url) as watch:
        found = await scan(watch.page)
    assert {each.rule for each in found.serious} == {"label", "button-name", "color-contrast"}
    assert {each.rule for each in found.moderate} == {"heading-order"}
    assert "critical: Form elements must have labels (label)\n    #a" in str(found)


async def test_only_a_part_is_looked_at(tmp_path: Path, open_page: OpenPage) -> None:
    async with served(tmp_path, BAD) as url, open_page(url) as watch:
        found = await scan(watch.page, ".pale")
    assert {each.rule for each in found.serious} == {"color-contrast"}


async def test_scan_leaves_page_and_policy_unchanged(tmp_path: Path, open_page: OpenPage) -> None:
    """A correct page has no findings."""
    async with served(tmp_path, GOOD) as url, open_page(url) as watch:
        watch.allow("requires 'TrustedHTML'")
        found = await scan(watch.page)
        assert (found.serious, found.moderate) == ([], [])
        # In the page's own world neither axe nor a way around the policy is left.
        assert await watch.page.evaluate("typeof axe") == "undefined"
        refused = "() => { try { document.body.innerHTML = '<b></b>' } catch (error) { return error.name } }"
        assert await watch.page.evaluate(refused) == "TypeError"
        await watch.page.wait_for_function("document.querySelectorAll('main').length === 1")
