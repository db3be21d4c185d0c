from __future__ import annotations

from tests.client.recognisers.recordings import Step, play, recorded


@recorded("browser")
def test_recording(steps: list[Step]) -> None:
    play(steps)
