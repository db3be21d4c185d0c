"""SpeechRecognition of browsers, as its events come: on a computer, and on Android, where finals are not final.

Knows: the form of its events. Must not know: what becomes of what it heard (`utterances`), when it is started.

    {"type": "start"}
    {"type": "result", "results": [{"0": {"transcript": "good mor", "confidence": 0.9}, "isFinal": false}, …]}
    {"type": "end"}

`results` are all since the start. Chrome on Android calls every interim result final, with confidence 0, repeats
in each all that was said, and gives the last one twice. A recogniser that ends in mid-sentence is started again,
and what it hears then belongs to the same sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.client.recognisers.texts import common_beginning, join, known_words, plain, without_words, words_of
from gateway.client.recognisers.utterances import GUESS_WORDS, Form, Said


class Browser(Form):
    """The results of one recogniser after another."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self._begin()

    def hear(self, event: Mapping[str, Any]) -> list[Said]:
        """One event: `start`, `result` or `end`. Any other one says nothing."""
        if "results" in event:
            return self._results(list(event["results"]))
        if event.get("type") == "start":
            self._begin()
        elif event.get("type") == "end":
            # What it called final is final now; the next run continues what it did not.
            if self._is_loose:
                return self.rest()
            self.restarted()
        return []

    def restarted(self, begin_ms: int | None = None) -> None:
        self._begin()
        super().restarted(begin_ms)

    def rest(self) -> list[Said]:
        """See `Utterances.rest`. What the same run still says of it is left out."""
        self._done = self._length
        self._is_loose = False
        return super().rest()

    def _begin(self) -> None:
        # How many results are done, and how many there were.
        self._done = self._length = 0
        # Results that were not final at first: their final is one.
        self._interim: set[int] = set()
        # What was final in this run, and the last of it.
        self._settled = self._last = ""
        # Whether finals repeat what was said before.
        self._repeats = False
        # Whether the newest text is only called final.
        self._is_loose = False

    def _results(self, results: list[Mapping[str, Any]]) -> list[Said]:
        if len(results) < self._length:
            self._begin()
        self._length = len(results)
        said: list[Said] = []
        text, is_loose = "", False
        for index in range(self._done, len(results)):
            best, is_final = results[index]["0"], results[index]["isFinal"] is True
            heard = plain(best["transcript"])
            if not is_final:
                self._interim.add(index)
            is_born_final = is_final and index not in self._interim
            if is_born_final or self._repeats:
                heard = self._unsaid(heard)
            self._repeats |= is_born_final and best.get("confidence") == 0
            grows = is_loose and _grows(text, heard)
            if is_born_final and self._repeats and best.get("confidence", 0) == 0:
                if text and not grows:
                    said += self._settle(text, index)
                text = heard if not grows or len(words_of(heard)) >= len(words_of(text)) else text
                is_loose = True
            elif is_final:
                if is_loose and not grows:
                    said += self._settle(text, index)
                    text = ""
                text = heard if grows else join(text, heard)
                if is_born_final and words_of(text) == words_of(self._last):
                    text = ""  # the same final again
                said += self._settle(text, index + 1)
                text, is_loose = "", False
            else:
                text, is_loose = heard if grows else join(text, heard), False
        self._is_loose = is_loose
        return said + self._utterances.partial(text)

    def _settle(self, text: str, done: int) -> list[Said]:
        """It is final, and so many results are done."""
        self._settled, self._last, self._done = join(self._settled, text), text or self._last, done
        return self._utterances.final(text)

    def _unsaid(self, heard: str) -> str:
        """The text without what was final before it, if it repeats that."""
        words, settled = words_of(heard), words_of(self._settled)
        if not settled or len(words) <= len(settled) or words[: len(settled)] != settled:
            return heard
        self._repeats = True
        return without_words(heard, len(settled))


def _grows(text: str, heard: str) -> bool:
    """Whether it is the same sentence, heard further or better."""
    earlier, words = words_of(text), words_of(heard)
    if len(earlier) < GUESS_WORDS or words == earlier[: len(words)]:
        return True
    same = max(common_beginning(earlier, words), known_words(earlier, words))
    return 2 * same >= len(earlier) and len(words) >= same
