"""What axe-core says about a page's accessibility, as it is: under its own content security policy.

axe runs in a world of its own beside the page's scripts, where it sees the same document; the page's policy, which
forbids foreign scripts, stays in force and is not touched.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.async_api import CDPSession, Page

_SOURCE = Path(__file__).parents[2] / ".venv/node/node_modules/axe-core/axe.min.js"

_RUN = """axe.run(%s, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    resultTypes: ["violations"],
}).then((results) => JSON.stringify(results.violations))"""


class Violation(NamedTuple):
    """A rule that is broken. places: for each element its selector, its markup, and what is wrong with it."""

    rule: str
    impact: str
    help: str
    places: list[tuple[str, str, str]]

    def __str__(self) -> str:
        places = "".join(
            f"\n    {selector}\n        {markup}\n        {why}" for selector, markup, why in self.places
        )
        return f"{self.impact}: {self.help} ({self.rule}){places}"


class Findings(NamedTuple):
    """serious: what keeps people out, and must not be. moderate: everything else that axe knows better."""

    serious: list[Violation]
    moderate: list[Violation]

    def __str__(self) -> str:
        return "\n".join(["", *map(str, self.serious), *map(str, self.moderate)])


async def scan(page: Page, within: str | None = None) -> Findings:
    """Everything axe objects to, in the page as it stands, or in what a CSS selector finds there.

    `assert not (found := await scan(page)).serious, found`
    """
    if not _SOURCE.exists():
        pytest.fail("axe-core is not installed; `make install-dev` does that.")
    session = await page.context.new_cdp_session(page)
    try:
        tree = await session.send("Page.getFrameTree")
        world = await session.send(
            "Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "axe"}
        )
        context = world["executionContextId"]
        await _evaluate(session, context, f"{_SOURCE.read_text()};0")
        found = json.loads(await _evaluate(session, context, _RUN % json.dumps(within or "html")))
    finally:
        await session.detach()
    violations = [_violation(entry) for entry in found]
    return Findings(
        [each for each in violations if each.impact in ("serious", "critical")],
        [each for each in violations if each.impact not in ("serious", "critical")],
    )


async def _evaluate(session: CDPSession, context: int, script: str) -> Any:
    answer = await session.send(
        "Runtime.evaluate",
        {"expression": script, "contextId": context, "awaitPromise": True, "returnByValue": True},
    )
    if "exceptionDetails" in answer:
        details = answer["exceptionDetails"]
        raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
    return answer["result"].get("value")


def _violation(entry: dict[str, Any]) -> Violation:
    places = [
        (" ".join(map(str, node["target"])), node["html"], " ".join(node.get("failureSummary", "").split()))
        for node in entry["nodes"]
    ]
    return Violation(entry["id"], str(entry["impact"]), entry["help"], places)
