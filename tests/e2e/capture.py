"""A short animation of a page, for the README: what Chromium draws, frame by frame."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.async_api import Page

# Faster than words change, and small enough for a page of documentation.
_FRAME_S = 0.2
_WIDTH_PX = 960
_LAST_FRAME_S = 2.0


class Capture:
    """Frames with the time at which each was drawn, seconds."""

    def __init__(self) -> None:
        self.frames: list[tuple[float, bytes]] = []

    def save(self, file: Path) -> None:
        """As an animated WebP that plays for ever."""
        kept: list[tuple[float, bytes]] = []
        for at_s, frame in self.frames:
            if not kept or at_s - kept[-1][0] >= _FRAME_S:
                kept.append((at_s, frame))
        ends = [at_s for at_s, _ in kept[1:]] + [kept[-1][0] + _LAST_FRAME_S]
        images = [_scaled(Image.open(io.BytesIO(frame)).convert("RGB")) for _, frame in kept]
        durations = [round((end - at_s) * 1000) for (at_s, _), end in zip(kept, ends, strict=True)]
        images[0].save(
            file, save_all=True, append_images=images[1:], duration=durations, loop=0, quality=70, method=4
        )


def _scaled(image: Image.Image) -> Image.Image:
    height = round(image.height * _WIDTH_PX / image.width)
    return image.resize((_WIDTH_PX, height), Image.Resampling.LANCZOS)


@asynccontextmanager
async def captured(page: Page) -> AsyncIterator[Capture]:
    """Everything that is drawn meanwhile."""
    capture = Capture()
    session = await page.context.new_cdp_session(page)
    acknowledgements: list[asyncio.Task[Any]] = []

    def take(event: dict[str, Any]) -> None:
        capture.frames.append((event["metadata"]["timestamp"], base64.b64decode(event["data"])))
        acknowledge = session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})
        acknowledgements.append(asyncio.ensure_future(acknowledge))

    session.on("Page.screencastFrame", take)
    await session.send("Page.startScreencast", {"format": "jpeg", "quality": 90})
    try:
        yield capture
    finally:
        session.remove_listener("Page.screencastFrame", take)
        # One that is under way when the session is detached fails, and with it whatever the test does next.
        await asyncio.gather(*acknowledgements)
        await session.send("Page.stopScreencast")
        await session.detach()
