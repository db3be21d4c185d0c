"""Recognisers that write a line for each result: Vosk, and pocketsphinx in Vosk's form or its own.

Knows: the form of their lines. Must not know: what becomes of what they heard (`utterances`).

    {"partial": "good mor"}
    {"text": "good morning", "result": [{"word": "good", "start": 0.4, "end": 0.6}, …]}   final; may be empty
    {"alternatives": [{"text": "good morning", …}, …]}                                    final, the best one first
    {"b": 0.4, "d": 0.9, "t": "good morning", "w": […]}                                   final, of `pocketsphinx`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.client.recognisers.utterances import NO_TIMES, Form, Said, Times, times_of


class Lines(Form):
    """Partials of one utterance, then its final text."""

    def hear(self, result: Mapping[str, Any]) -> list[Said]:
        """One line."""
        voice = result.get("voice")
        if isinstance(result.get("t"), str):
            begin_s, long_s = result.get("b"), result.get("d")
            times = NO_TIMES
            if isinstance(begin_s, int | float) and isinstance(long_s, int | float):
                times = times_of(begin_s, begin_s + long_s)
            return self._utterances.final(result["t"], times, voice)
        if "partial" in result:
            return self._utterances.partial(result["partial"], _times(result.get("partial_result")), voice)
        best = (result.get("alternatives") or [result])[0]
        return self._utterances.final(best.get("text"), _times(best.get("result")), voice)


def _times(words: list[Mapping[str, Any]] | None) -> Times:
    return times_of(words[0].get("start"), words[-1].get("end")) if words else NO_TIMES
