"""A real recogniser: speech that is synthesised here → pocketsphinx → `gateway bridge` → the meeting's transcript.

Both packages bring their models, and go into a folder of the test's own: there are not wheels for every Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.processes import GatewayProcess

pytestmark = pytest.mark.slow

PACKAGES = ("pocketsphinx==5.1.1", "espeakng-loader==0.2.4")
SPOKEN = (
    "good morning everyone",
    "let us move the launch to friday",
    "thank you for the presentation",
    "what is the next step",
)

# Lines of text in, sound out: 16-bit numbers, 16,000 a second. After each line there is a second of silence.
ESPEAK = """
import array, ctypes, sys, espeakng_loader
espeak = ctypes.CDLL(str(espeakng_loader.get_library_path()))
rate = espeak.espeak_Initialize(1, 0, str(espeakng_loader.get_data_path()).encode(), 0)
sound = array.array("h")
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
def hear(samples, count, _):
    if samples:
        sound.extend(samples[:count])
    return 0
espeak.espeak_SetSynthCallback(hear)
espeak.espeak_SetVoiceByName(b"en-us")
espeak.espeak_SetParameter(1, 140, 0)  # words a minute
for line in sys.stdin.read().splitlines():
    text = line.encode() + b"\\0"
    espeak.espeak_Synth(text, len(text), 0, 0, 0, 1, None, None)
    espeak.espeak_Synchronize()
    sound.extend([0] * rate)
count = len(sound) * 16_000 // rate
sys.stdout.buffer.write(array.array("h", (sound[at * rate // 16_000] for at in range(count))).tobytes())
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of programs that have them."""
    folder = tmp_path_factory.mktemp("packages")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*install, "--target", folder, *PACKAGES], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"there is no pocketsphinx for this Python here: {done.stderr.strip().splitlines()[-1]}")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def test_what_is_spoken_is_in_the_transcript(gateway: GatewayProcess, packages: dict[str, str]) -> None:
    def through(command: list[str | Path], given: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, *command], input=given, env=packages, capture_output=True, check=True
        )

    sound = through(["-c", ESPEAK], "\n".join(SPOKEN).encode()).stdout
    lines = through([ROOT / "examples/pocketsphinx_lines.py"], sound).stdout
    results = [json.loads(line) for line in lines.splitlines()]
    heard = [result["text"] for result in results if result.get("text")]
    assert heard[2] == SPOKEN[2]  # what others become is the recogniser's business
    address = ["--meeting", "spoken", "--name", "Ana", "--url", gateway.url]
    bridged = through(["-m", "gateway", "bridge", *address], lines)
    assert bridged.stderr.endswith(f"gateway: {len(heard)} said, {len(heard)} accepted, 0 refused.\n".encode())

    said = json.loads(gateway.get("/v1/meetings/spoken/transcript.json"))["utterances"]
    assert [each["text"] for each in said] == heard
    times = [time for each in said for time in (each["start_ms"], each["end_ms"])]
    assert times == sorted(times)
