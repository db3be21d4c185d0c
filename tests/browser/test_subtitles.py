"""What a browser shows of the gateway's subtitles: SubRip as pages convert it, and WebVTT as it is."""

from __future__ import annotations

import re

import pytest

from gateway.meeting.subtitles import subrip, webvtt
from tests.conftest import OpenPage
from tests.meeting.test_subtitle_readers_e2e import TALK, meant, spaceless
from tests.processes import GatewayProcess

pytestmark = pytest.mark.browser

_CUES = """async () => {
    const video = document.createElement("video");
    const track = Object.assign(document.createElement("track"), { kind: "subtitles", default: true });
    track.src = "/subtitles.vtt";
    video.append(track);
    document.body?.append(video) ?? document.documentElement.append(video);
    track.track.mode = "showing";
    await new Promise((resolve, reject) => Object.assign(track, { onload: resolve, onerror: reject }));
    return [...track.track.cues].map((cue) => cue.getCueAsHTML().textContent);
}"""


@pytest.mark.parametrize("format", ["srt", "vtt"])
async def test_a_browser_shows_what_was_said(format: str, gateway: GatewayProcess, open_page: OpenPage) -> None:
    if format == "vtt":
        file = webvtt(TALK)
        wanted = [spaceless(spoken.utterance.text) for spoken in TALK.utterances]
    else:
        file = "WEBVTT\n\n" + re.sub(r"(\d\d:\d\d),(\d{3})", r"\1.\2", subrip(TALK))
        wanted = [meant(spoken.utterance) for spoken in TALK.utterances]
    async with open_page(f"{gateway.url}/healthz") as watch:
        watch.allow("favicon.ico")  # what a browser looks for where no page names an icon
        await watch.page.route("**/subtitles.vtt", lambda route: route.fulfill(body=file, content_type="text/vtt"))
        shown = await watch.page.evaluate(_CUES)
    assert [spaceless(text) for text in shown] == wanted
