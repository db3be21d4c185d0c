"""The page as an app on a phone: what it shows without a connection, and that it keeps nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.axe import scan
from tests.browser.conftest import SCRIPT, StartGateway, kill
from tests.browser.pages import PHONE, connected
from tests.conftest import OpenPage
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

INSTALLED: dict[str, Any] = PHONE | {"service_workers": "allow"}
KEPT = """async () => {
    const found = [];
    for (const name of await caches.keys()) {
        for (const { url } of await (await caches.open(name)).keys()) found.push(new URL(url).pathname);
    }
    return found.sort();
}"""


async def test_page_without_gateway_explains_and_opens_later(
    start_gateway: StartGateway, open_page: OpenPage, artifacts: Path
) -> None:
    """It opens once the gateway is there."""
    gateway = start_gateway().ready()
    async with open_page(gateway.url, **INSTALLED | {"locale": "de-DE"}) as watch:
        page = watch.page
        watch.allow("net::ERR")
        watch.allow("WebSocket connection")
        await connected(page)
        await page.wait_for_function("navigator.serviceWorker.ready.then(() => true)")
        address = page.url
        kill(gateway)
        await page.reload()
        heading = page.get_by_role("heading", name="Das Meeting ist nicht erreichbar")
        await expect(heading).to_be_visible()
        assert page.url == address
        await expect(page.get_by_text("das Gateway antwortet nicht")).to_be_visible()
        assert await page.title() == "Translation Gateway: Das Meeting ist nicht erreichbar"
        await page.screenshot(path=artifacts / "offline.png")
        found = await scan(page)
        assert (found.serious, found.moderate) == ([], [])
        # Another language was chosen than the browser's.
        await page.evaluate("localStorage.setItem('page-language', 'ar')")
        await page.reload()
        await expect(page.get_by_role("heading")).to_have_text("يتعذر الوصول إلى الاجتماع")
        await expect(page.locator("html")).to_have_attribute("dir", "rtl")
        await page.screenshot(path=artifacts / "offline-ar.png")
        found = await scan(page)
        assert (found.serious, found.moderate) == ([], [])
        await page.evaluate("localStorage.setItem('page-language', 'en')")
        await page.reload()
        await expect(page.locator("html")).to_have_attribute("dir", "ltr")
        await page.context.set_offline(True)
        await expect(page.get_by_text("This device has no connection to the network.")).to_be_visible()
        await expect(page.get_by_text("the gateway does not answer")).to_be_hidden()
        await page.context.set_offline(False)
        # Nobody reloads: the page comes back by itself, into the same meeting.
        start_gateway(SCRIPT, port=gateway.port).ready()
        await connected(page)
        assert page.url == address


async def test_nothing_but_the_offline_page_is_kept(gateway: GatewayProcess, open_page: OpenPage) -> None:
    async with open_page(gateway.url, **INSTALLED) as watch:
        page = watch.page
        await connected(page)
        await page.wait_for_function("navigator.serviceWorker.ready.then(() => true)")
        # Under the worker, too, the page comes from the gateway.
        response = await page.reload()
        assert response is not None
        await connected(page)
        assert await page.evaluate("navigator.serviceWorker.controller !== null")
        parts = ("offline.css", "offline.html", "offline.js", "offline_words.js")
        looks = ["/page/fonts/commissioner-latin.woff2", "/page/tokens.css"]
        shell = ["/favicon.svg", *(f"/offline/{part}" for part in parts), *looks]
        assert await page.evaluate(KEPT) == shell


async def test_another_address_of_the_gateway_is_left_alone(
    start_gateway: StartGateway, open_page: OpenPage
) -> None:
    gateway = start_gateway().ready()
    async with open_page(gateway.url, **INSTALLED) as watch:
        page = watch.page
        watch.allow("net::ERR")
        watch.allow("WebSocket connection")
        await connected(page)
        await page.wait_for_function("navigator.serviceWorker.ready.then(() => true)")
        await page.reload()
        await connected(page)
        kill(gateway)
        with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
            await page.goto(f"{gateway.url}/v1/languages")
