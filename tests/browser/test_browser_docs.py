"""docs/browser.md: its page is opened from another origin than the gateway's, its tables are held to the code."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.async_api import Browser, ConsoleMessage, expect

from gateway.identity import key_file
from gateway.identity.key_file import KeyFile, new_api_key, new_signing_key
from gateway.server.guard.origins import CLOSE_REASON
from loadtest.systems.server import free_port
from tests.browser.conftest import SCRIPT, StartGateway
from tests.browser.pages import partials_done
from tests.conftest import ROOT

pytestmark = pytest.mark.browser

DOC = (ROOT / "docs" / "browser.md").read_text()
(PAGE,) = re.findall(r"^```html\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)
CLIENT = (ROOT / "web_demo" / "client" / "gateway_client.js").read_text()
ADDRESS = "127.0.0.1:8000"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a web server of somebody else's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_the_page_works_from_another_origin(
    start_gateway: StartGateway, browser: Browser, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with served(folder) as origin:
        gateway = start_gateway(f'allowed_origins = ["{origin}"]\n{SCRIPT}').ready()
        host = gateway.url.removeprefix("http://")
        (folder / "index.html").write_text(PAGE.replace(ADDRESS, host))
        complaints: list[str] = []

        def note(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning") and not str(message.location.get("url")).endswith(".ico"):
                complaints.append(message.text)

        async with await browser.new_page() as page:
            page.on("console", note)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(origin)
            await expect(page.get_by_role("status")).to_have_text("open")
            field = page.get_by_label("Say something")
            # Of a text of two words, one is shown once the second was translated, too.
            await field.press_sequentially("Good")
            while not await partials_done(gateway.url, "ja", "translated"):
                await asyncio.sleep(0.02)
            await field.press_sequentially(" morn")
            await expect(page.get_by_role("listitem")).to_contain_text("[ja]")
            await field.fill("Good morning.")
            await field.press("Enter")
            await expect(page.get_by_role("listitem")).to_have_text("Ana: [ja] Good morning.")
            await expect(field).to_have_value("")
            await field.fill("A text that will fail.")
            await field.press("Enter")
            await expect(page.get_by_role("listitem").nth(1)).to_contain_text("fails")
            assert complaints == []


async def test_the_page_gets_its_tokens_from_the_example_backend(
    start_gateway: StartGateway, browser: Browser, tmp_path: Path
) -> None:
    (with_token,) = re.findall(r"^```js\n(async function token.*?)^```$", DOC, re.MULTILINE | re.DOTALL)
    client = "".join(line for line in PAGE.splitlines(keepends=True) if "GatewayClient(" in line)
    port = free_port()
    kept, api_key = new_api_key("default")
    keys = tmp_path / "keys.json"
    key_file.save(keys, KeyFile(signing=(new_signing_key(),), api=(kept,)))
    auth = f'allowed_origins = ["http://127.0.0.1:{port}"]\n{SCRIPT}\n[auth]\nkeys_file = "{keys}"\n'
    gateway = start_gateway(auth).ready()
    (tmp_path / "page").mkdir()
    page_source = PAGE.replace(client, with_token).replace(ADDRESS, gateway.url.removeprefix("http://"))
    (tmp_path / "page" / "index.html").write_text(page_source)
    backend = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "uvicorn", "--app-dir", ROOT / "examples", "--port", str(port), "backend:app"),
        cwd=tmp_path,
        env={**os.environ, "GATEWAY_URL": gateway.url, "GATEWAY_API_KEY": api_key},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert backend.stderr is not None
        while b"running on" not in (line := await backend.stderr.readline()):
            assert line, "the backend ended"
        async with await browser.new_page() as page:
            await page.goto(f"http://127.0.0.1:{port}")
            await expect(page.get_by_role("status")).to_have_text("open")
            await page.get_by_label("Say something").fill("Good morning.")
            await page.get_by_label("Say something").press("Enter")
            await expect(page.get_by_role("listitem")).to_have_text("Ana: [ja] Good morning.")
    finally:
        backend.kill()
        await backend.communicate()


ASKING = """async ([http, body]) => {
    const answer = await fetch(`${http}/v1/translate`, {
        method: "POST",
        headers: {"Content-Type": "application/json", Authorization: "Bearer none"},
        body: JSON.stringify(body),
    }).then((response) => response.json(), (error) => error.name);
    const closed = await new Promise((resolve) => {
        const socket = new WebSocket(`${http.replace("http", "ws")}/v1/stream`);
        socket.onopen = () => socket.send('{"type": "ping"}');
        socket.onmessage = () => socket.close(1000, "answered");
        socket.onclose = (event) => resolve([event.code, event.reason]);
    });
    return [answer.translation ?? answer, ...closed];
}"""


async def test_what_scripts_of_other_pages_can_read(
    start_gateway: StartGateway, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("<title>elsewhere</title>")
    with served(tmp_path) as allowed, served(tmp_path) as foreign:
        gateway = start_gateway(f'allowed_origins = ["{allowed}"]\n{SCRIPT}').ready()
        asked = [gateway.url, {"text": "hi", "source_lang": "en", "target_lang": "ja"}]
        async with await browser.new_page() as page:
            await page.goto(allowed)
            assert await page.evaluate(ASKING, asked) == ["[ja] hi", 1000, "answered"]
            await page.goto(foreign)
            assert await page.evaluate(ASKING, asked) == ["TypeError", 4504, CLOSE_REASON]


def rows(heading: str) -> list[str]:
    """The first column of the tables of a section; tables of codes are about something else."""
    section = DOC.split(f"\n## {heading}\n")[1].split("\n## ")[0].split("\n| code |")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_option_property_and_method_is_listed() -> None:
    options = re.findall(r"@property \{.*\} \[(\w+)\]", (ROOT / "web_demo/client/events.js").read_text())
    public = CLIENT[CLIENT.index("export class") :]
    properties = [*re.findall(r"^  get (\w+)\(\)", public, re.M), *re.findall(r"^  (\w+) = ", public, re.M)]
    methods = re.findall(r"^  (?!constructor|get )(\w+)\(.*\) \{$", public, re.M)
    listed = [name.split("(")[0] for name in rows("The session")]
    assert sorted(listed) == sorted([*options, *properties, *methods])


def test_every_event_is_listed() -> None:
    files = ("events.js", "messages.js", "session/connection_status.js")
    types = "".join((ROOT / "web_demo/client" / name).read_text() for name in files)
    assert sorted(rows("Events")) == sorted(set(re.findall(r'\{type: "([\w.]+)"', types)))
