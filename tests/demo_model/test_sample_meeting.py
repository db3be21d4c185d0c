"""The sample meeting of the page: what the bundled model was trained for, and what is committed."""

from __future__ import annotations

from pathlib import Path

from demo_model.sample_meeting import SCRIPT, SPEAKERS, javascript, utterances

PAGE = Path(__file__).parents[2] / "web_demo"


def test_the_page_has_what_the_generator_writes() -> None:
    assert (PAGE / "page/samples/sample_meeting_script.js").read_text(encoding="utf-8") == javascript()


def test_revisions_of_an_utterance_form_its_sentence() -> None:
    for line, said in zip(SCRIPT, utterances(), strict=True):
        text = ""
        for revision in said.revisions:
            assert revision.after_ms > 0
            assert revision.dropped <= len(text)
            # The browser counts in UTF-16: characters of one unit only.
            assert all(ord(letter) < 0x10000 for letter in revision.appended)
            text = text[: len(text) - revision.dropped] + revision.appended
        assert said.speaker == line.speaker
        assert text == line.text


def test_it_lasts_minutes_and_speakers_differ_in_language() -> None:
    """The meeting takes two to four minutes."""
    length_ms = sum(said.gap_ms + sum(step.after_ms for step in said.revisions) for said in utterances())
    assert 120_000 < length_ms < 240_000
    assert {line.speaker for line in SCRIPT} == set(range(len(SPEAKERS)))
    assert len({language for _, language in SPEAKERS}) == len(SPEAKERS)


def test_every_misheard_word_is_put_right() -> None:
    for line, said in zip(SCRIPT, utterances(), strict=True):
        if line.misheard is None:
            continue
        right, wrong = line.misheard
        assert right in line.text
        assert wrong not in line.text
        assert any(revision.dropped for revision in said.revisions), line
