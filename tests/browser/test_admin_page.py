"""The administration's page, as an operator uses it on a phone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Dialog, expect

from gateway.config import Settings
from gateway.domain.webhooks import Webhook
from gateway.protocol.messages import SessionStart, SessionStarted, TranslationFinal, UtteranceFinal
from tests.administration import Operator, administered
from tests.browser.axe import scan
from tests.browser.pages import SMALL_PHONE
from tests.conftest import OpenPage
from tests.webhooks.receiver import receiver

pytestmark = pytest.mark.browser


async def test_an_operator_sees_meetings_live_erases_disconnects_and_ends(
    tmp_path: Path, open_page: OpenPage
) -> None:
    operator = Operator(tmp_path)
    async with (
        administered(operator) as (gateway, client),
        gateway.peer() as ana,
        open_page(f"{client.base_url}/admin/", **SMALL_PHONE) as watch,
    ):
        page, asked = watch.page, []

        async def agree(dialog: Dialog) -> None:
            asked.append(dialog.message)
            await dialog.accept()

        page.on("dialog", agree)
        watch.allow("401")
        await page.get_by_label("Operator's key").fill("ga_of_nobody")
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_role("alert")).to_contain_text("needs an operator's key")
        assert not await page.get_by_role("heading", name="Meetings").is_visible()
        await page.get_by_label("Operator's key").fill(operator.key)
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_role("status")).to_have_text("Live")
        for heading in ("Administration", "Meetings"):
            await expect(page.get_by_role("heading", name=heading)).to_be_in_viewport()

        # Somebody comes, and it is seen without asking.
        await ana.send(SessionStart(meeting="standup", name="Ana", speaks="en", reads=["ja"]))
        await ana.until(SessionStarted)
        await ana.send(UtteranceFinal(id="1", rev=1, text="Good morning"))
        await ana.until(TranslationFinal)
        meeting = page.get_by_role("listitem").filter(has_text="standup")
        await expect(meeting).to_contain_text("1 connected · 0 away · 2 kept")
        await page.get_by_role("button", name="People: standup").click()
        await expect(page.get_by_role("heading", name="People in standup")).to_be_focused()
        await expect(page.get_by_role("listitem").filter(has_text="Ana")).to_contain_text("reads ja · speaks en")
        found = await scan(page)
        assert not found.serious, found
        assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")

        await page.get_by_role("button", name="Disconnect: Ana").click()
        await expect(page.get_by_role("listitem").filter(has_text="Ana")).to_have_count(0)
        await expect(meeting).to_contain_text("0 connected · 0 away · 2 kept")
        await page.get_by_role("button", name="Erase: standup").click()
        await expect(meeting).to_have_count(0)
        assert asked == ["Disconnect Ana?", "Erase what was said in standup?"]
        while (await gateway.gateway.log.read("standup", 0)).epoch:
            await asyncio.sleep(0.02)

        # The key is kept for this tab alone, until it is to be forgotten.
        await page.reload()
        await expect(page.get_by_role("status")).to_have_text("Live")
        await page.get_by_role("button", name="Forget key").click()
        await expect(page.get_by_label("Operator's key")).to_be_visible()
        assert await page.evaluate("sessionStorage.length + localStorage.length") == 0


async def test_operator_sees_waiting_and_gone_webhooks_live(tmp_path: Path, open_page: OpenPage) -> None:
    operator, statuses = Operator(tmp_path), [503]
    (tmp_path / "secret").write_text(f"whsec_{'A' * 32}")
    with receiver(lambda _: statuses[-1]) as other:
        url = f"{other.url}?s3cret"
        webhooks = (Webhook(name="backend", url=url, secret_file=str(tmp_path / "secret")),)
        async with (
            administered(operator, Settings(webhooks=webhooks)) as (gateway, client),
            gateway.peer() as ana,
            open_page(f"{client.base_url}/admin/", **SMALL_PHONE) as watch,
        ):
            page = watch.page
            await page.get_by_label("Operator's key").fill(operator.key)
            await page.get_by_role("button", name="Show").click()
            await expect(page.get_by_role("heading", name="Webhooks")).to_be_visible()
            backend = page.get_by_role("listitem").filter(has_text="backend")
            await expect(backend).to_have_text(f"backend{other.url.split('/')[2]} · 0 waiting")

            await ana.send(SessionStart(meeting="standup", reads=["ja"]))
            await ana.until(SessionStarted)
            await expect(backend).to_contain_text("1 waiting · oldest")
            await expect(backend).to_contain_text("It answered with status 503.")
            found = await scan(page)
            assert not found.serious, found
            assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")

            statuses.append(410)
            await expect(backend).to_contain_text("0 waiting · last try")
            await expect(backend).to_contain_text("It answered with status 410. · stopped, as it answered 410")
            assert "s3cret" not in await page.content()
