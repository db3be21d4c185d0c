"""The packages against the real engine, in a gateway as `make demo` starts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from gateway.client import connect
from tests.browser.test_browser_docs import served
from tests.packages.node import output_of
from tests.packages.test_examples import joined, said
from tests.packages.test_npm_package import ADDRESS, EXAMPLES
from tests.packages.test_react_example import write_app
from tests.processes import GatewayProcess

pytestmark = [pytest.mark.engine, pytest.mark.slow]


async def test_the_first_example_of_the_npm_package_translates(
    node_project: Path, real_gateway: GatewayProcess
) -> None:
    printed = await output_of(node_project, EXAMPLES[0].replace(ADDRESS, real_gateway.url))
    assert sorted(line[:2] for line in printed) == ["de", "ja"]
    assert any("Guten Morgen" in line for line in printed), printed


@pytest.mark.browser
async def test_a_react_app_with_the_packed_package_shows_captions(
    node_project: Path, real_gateway: GatewayProcess, browser: Browser, tmp_path: Path, artifacts: Path
) -> None:
    write_app(tmp_path / "app", node_project)
    with served(tmp_path / "app") as origin:
        async with await browser.new_page(viewport={"width": 680, "height": 300}) as page:
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(f"{origin}/index.html?gateway={real_gateway.url}")
            async with connect(
                real_gateway.url, meeting="react", name="Ana", speaks="en", reads=["ja"]
            ) as session:
                await joined(session)
                await said(session, "Let's move the launch to Friday.", "Can you hear me?")
            await expect(page.locator("p")).to_have_text(
                ["Ana: ローンチを金曜日に変更しましょう。", "Ana: 私の声は聞こえますか？"]
            )
            await page.screenshot(path=artifacts / "react_captions_real.png")
            assert complaints == []
