"""Hears English with pocketsphinx, whose model is in its package, and writes a line of JSON for each result.

    pip install pocketsphinx
    arecord -q -f S16_LE -r 16000 -t raw | python examples/pocketsphinx_lines.py | gateway bridge --meeting standup

Its input is sound as 16-bit numbers, 16,000 a second, one channel. Results are in the form of Vosk.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pocketsphinx import Decoder, Endpointer


def main() -> None:
    endpointer = Endpointer()
    decoder = Decoder(samprate=endpointer.sample_rate)
    is_over = False
    while not is_over:
        frame = sys.stdin.buffer.read(endpointer.frame_bytes)
        is_over = len(frame) < endpointer.frame_bytes
        was_speaking = endpointer.in_speech
        speech = endpointer.end_stream(frame) if is_over else endpointer.process(frame)
        if speech is None:
            continue
        if not was_speaking:
            decoder.start_utt()
        decoder.process_raw(speech)
        if endpointer.in_speech:
            write({"partial": text_of(decoder)})
        else:
            decoder.end_utt()
            write({"text": text_of(decoder), "result": words_of(decoder, endpointer.speech_start)})


def text_of(decoder: Any) -> str:
    hypothesis = decoder.hyp()
    return "" if hypothesis is None else str(hypothesis.hypstr)


def words_of(decoder: Any, start_s: float) -> list[dict[str, Any]]:
    """The words and where they are in the sound, in seconds. Silence and noise are in <> and []."""
    frame_s = 1 / decoder.config["frate"]
    return [
        {
            "word": segment.word.partition("(")[0],
            "start": round(start_s + segment.start_frame * frame_s, 2),
            "end": round(start_s + (segment.end_frame + 1) * frame_s, 2),
        }
        for segment in decoder.seg() or ()
        if segment.word[0] not in "<["
    ]


def write(result: dict[str, Any]) -> None:
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
