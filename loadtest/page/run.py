"""The measurement of the page, from its first byte to forty captions a second.

Knows: the order of things. Must not know: how the browser is asked (`browser`), who says what (`meeting`), how a
result looks (`report`).

The gateway is the product's own command with the simulated engine, in a process of its own: what is measured is
the page. Each visit and each phase has a browser context of its own, in which nobody ever was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from demo_model import LANGUAGES
from gateway.client import ClientError
from loadtest.machine import describe
from loadtest.page.browser import OpenPage, Reading, chromium, context_of, opened
from loadtest.page.cpu import CpuTimes, read_cpu
from loadtest.page.meeting import meeting
from loadtest.page.result import Device, Opening, PagePlan, PageResult, Phase, Visit, long_tasks, times
from loadtest.results import LoadtestError, first_error
from loadtest.systems.gateway import gateway
from loadtest.trial.values import WebSocketGateway

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["run"]

# Work that a page does once it is there, and that is no part of what captions cost.
_SETTLE_S = 2.0
# Until everything that was said stands on the page, for a slow one.
_ROWS_MS = 30_000.0

# Between visits, for what the browser tidies up behind one.
_PAUSE_S = 0.5

# Cores that others may use in a quiet moment.
_QUIET_CORES = 0.1

# Everybody has spoken, and speaks again: what arrives has reached its rate.
_STEADY_ROWS = 2 * len(LANGUAGES)


async def run(plan: PagePlan, command: str, say: Callable[[str], object]) -> PageResult:
    """Run the plan. `say` is told what is going on, one short line at a time. Raises `LoadtestError`."""
    machine = describe()
    began, began_s = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
    try:
        async with asyncio.timeout(plan.time_limit_s), _gateway(plan, say) as url, chromium() as browser:
            measured = _Page(plan, url, browser, say)
            visits = await measured.visits()
            openings = [await measured.opening(device) for device in plan.devices]
            phases = [
                await measured.phase(device, rate) for device in plan.devices for rate in plan.captions_per_s
            ]
            version = f"Chromium {browser.version}"
    except TimeoutError:
        raise LoadtestError("The load test took longer than its time limit allows.") from None
    except ExceptionGroup as errors:
        # Task groups wrap what their blocks raise.
        first = first_error(errors)
        if isinstance(first, ClientError):
            raise LoadtestError(f"A speaker lost its session: {first}") from None
        raise first from None
    return PageResult(
        command=command,
        began=began,
        plan=plan,
        machine=machine,
        browser=version,
        elapsed_s=round(time.monotonic() - began_s, 1),
        visits=visits,
        openings=openings,
        phases=phases,
    )


class _Page:
    def __init__(self, plan: PagePlan, url: str, browser: Browser, say: Callable[[str], object]) -> None:
        self._plan = plan
        self._url = url
        self._browser = browser
        self._say = say

    async def visits(self) -> list[Visit]:
        """What is fetched by somebody who was never here, and by the same again."""
        self._say("weighing the page")
        device, id = self._plan.devices[0], "weight"
        found: list[Visit] = []
        async with context_of(self._browser, device, id) as context:
            for name in ("first visit", "second visit"):
                async with opened(context, device, self._url) as page:
                    await page.go(id)
                    found.append(Visit(name, page.requests()))
        return found

    async def opening(self, device: Device) -> Opening:
        """Cold visits, one after the other."""
        found: list[tuple[float, float, float]] = []
        await self._quiet(f"opening on a {device.name}")
        for number in range(self._plan.visits):
            self._say(f"opening on a {device.name}: {number + 1} of {self._plan.visits}")
            id = f"opening-{device.name}-{number}"
            async with (
                context_of(self._browser, device, id) as context,
                opened(context, device, self._url) as page,
            ):
                await page.go(id)
                found.append(await page.opening_ms())
            await asyncio.sleep(_PAUSE_S)
        return Opening(
            device=device.name,
            visits=len(found),
            first_paint=times([each[0] for each in found]),
            first_contentful_paint=times([each[1] for each in found]),
            ready=times([each[2] for each in found]),
        )

    async def phase(self, device: Device, rate: int) -> Phase:
        """One rate on one device: a meeting that begins, is measured, and ends."""
        title = f"{device.name}, {rate} captions/s"
        id = f"captions-{device.name}-{rate}"
        await self._quiet(title)
        async with (
            meeting(self._url, id, rate, self._plan.seed) as said,
            context_of(self._browser, device, id) as context,
            opened(context, device, self._url) as page,
            asyncio.TaskGroup() as tasks,
        ):
            self._say(f"{title}: beginning")
            await page.go(id)
            heap_before = await page.heap_mib()
            await asyncio.sleep(_SETTLE_S)
            speaking = tasks.create_task(said.speak())
            if rate and not await page.until_rows(_STEADY_ROWS):
                raise LoadtestError("Nothing of what was said came to stand on the page.")
            self._say(f"{title}: measuring for {self._plan.seconds:g} s")
            window = await _Window.over(page, self._plan.seconds)
            said.hush()
            await speaking
            await page.until_rows(said.said, _ROWS_MS)
            return window.phase(
                device=device,
                rate=rate,
                said=said.said,
                late_ms=said.late_ms,
                shown=await page.rows(),
                heap=(heap_before, await page.heap_mib()),
                complaints=page.complaints,
            )

    async def _quiet(self, title: str) -> None:
        """Wait for a second in which other processes let the CPU alone, within the plan's patience."""
        until_s = time.monotonic() + self._plan.quiet_wait_s
        while time.monotonic() < until_s:
            before, began_s = read_cpu(), time.monotonic()
            await asyncio.sleep(1)
            if _others(read_cpu().since(before)) < _QUIET_CORES * (time.monotonic() - began_s):
                return
            self._say(f"{title}: waiting for other processes to leave the CPU alone")


def _others(used: CpuTimes) -> float:
    """Seconds of CPU that nothing of ours used."""
    return max(used.everything_s - used.serving_s - used.below_s, 0.0)


class _Window:
    """What grew while it was open."""

    def __init__(
        self,
        before: Reading,
        after: Reading,
        frames: tuple[int, float],
        tasks: list[tuple[float, float]],
        used: CpuTimes,
    ) -> None:
        self._before = before
        self._after = after
        self._frames, self._gap_ms = frames
        self._tasks = tasks
        self._used = used

    @classmethod
    async def over(cls, page: OpenPage, seconds: float) -> _Window:
        await page.count_frames()
        before, used = await page.reading(), read_cpu()
        await asyncio.sleep(seconds)
        after, used = await page.reading(), read_cpu().since(used)
        return cls(before, after, await page.frames(), await page.tasks(), used)

    def phase(
        self,
        *,
        device: Device,
        rate: int,
        said: int,
        late_ms: float,
        shown: int,
        heap: tuple[float, float],
        complaints: list[str],
    ) -> Phase:
        before, after, used = self._before, self._after, self._used
        seconds = (after.now_ms - before.now_ms) / 1000
        came = {kind: count - before.messages.get(kind, 0) for kind, count in after.messages.items()}
        script, layout = after.script_s - before.script_s, after.layout_s - before.layout_s
        return Phase(
            device=device.name,
            captions_per_s=rate,
            seconds=round(seconds, 2),
            captions=came.get("caption.final", 0) + came.get("translation.final", 0),
            deltas=came.get("caption", 0) + came.get("translation.delta", 0),
            messages=sum(came.values()),
            said=said,
            shown=shown,
            tasks=long_tasks(self._tasks, before.now_ms, after.now_ms),
            frames_per_s=round(self._frames / seconds, 1),
            longest_gap_ms=round(self._gap_ms, 1),
            script=round(script / seconds, 4),
            layout=round(layout / seconds, 4),
            other=round(max(after.task_s - before.task_s - script - layout, 0.0) / seconds, 4),
            heap_before=round(heap[0], 2),
            heap_after=round(heap[1], 2),
            nodes=after.nodes,
            late_ms=round(late_ms, 1),
            busy_cores=round(used.everything_s / seconds, 2),
            other_cores=round(_others(used) / seconds, 2),
            complaints=complaints,
        )


@asynccontextmanager
async def _gateway(plan: PagePlan, say: Callable[[str], object]) -> AsyncIterator[str]:
    script = {"token_s": plan.token_s, "max_running": 256}
    settings = {"engine": {"kind": "simulated", "script": script}, "log_level": "warning"}
    async with gateway(settings, say) as running:
        assert isinstance(running.address, WebSocketGateway)  # noqa: S101 -- what a gateway has
        yield running.address.url
