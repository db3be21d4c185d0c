"""Lines that are redrawn in place: widths, and what the terminal is told."""

from __future__ import annotations

import io
import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.terminal import drawing
from gateway.cli.terminal.drawing import (
    LiveArea,
    LiveLines,
    Row,
    can_redraw,
    cells,
    escaped,
    head,
    printable,
    styled,
    tail,
)


class Screen(io.StringIO):
    """Just enough of a terminal to see what a person would see: it obeys what is written.

    Wide characters take one column here; what is under test counts columns by itself.
    """

    def isatty(self) -> bool:
        return True

    def rows(self) -> list[str]:
        rows, row, column = [""], 0, 0
        text = self.getvalue()
        at = 0
        while at < len(text):
            if text.startswith("\x1b[", at):
                end = at + 2
                while not text[end].isalpha():
                    end += 1
                number, command = text[at + 2 : end], text[end]
                if command == "A":
                    row -= int(number)
                elif command == "K":
                    rows[row] = ""
                elif command == "J":
                    rows[row:] = [rows[row][:column]]
                else:
                    assert command == "m", f"unknown sequence {command}"
                at = end + 1
                continue
            match text[at]:
                case "\r":
                    column = 0
                case "\n":
                    row, column = row + 1, 0
                    if row == len(rows):
                        rows.append("")
                case character:
                    rows[row] = rows[row][:column].ljust(column) + character + rows[row][column + 1 :]
                    column += 1
            at += 1
        return rows


@pytest.mark.parametrize(("text", "columns"), [("", 0), ("Haus", 4), ("会議", 4), ("e\u0301", 1), ("a\u200bb", 2)])
def test_the_width_of_a_text(text: str, columns: int) -> None:
    assert cells(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "beginning", "end"),
    [
        ("fits", 4, "fits", "fits"),
        ("does not fit", 5, "does…", "… fit"),
        ("会議を始めます", 7, "会議を…", "…めます"),
        ("会議を始めます", 6, "会議…", "…ます"),
        ("会議", 1, "…", "…"),
    ],
)
def test_parts_of_a_text_that_is_too_long(text: str, columns: int, beginning: str, end: str) -> None:
    assert (head(text, columns), tail(text, columns)) == (beginning, end)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb\r\nc\td\x9b", "a [2Jb  c d "),
        ("one\u2028two\u2029three\x85four", "one two three four"),
        # An override would turn around everything behind it on the line, the next speaker's name too.
        ("a\u202eb\u2066c\u2069", "abc"),
        ("half \ud83d", "half \ufffd"),
        # These belong to how words and pictures are written.
        ("می\u200cخواهم 👩\u200d💻", "می\u200cخواهم 👩\u200d💻"),
    ],
)
def test_a_translation_cannot_drive_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_json_keeps_its_meaning_and_cannot_drive_the_terminal(text: str) -> None:
    line = escaped(msgspec.json.encode([text]).decode())
    assert msgspec.json.decode(line) == [text]
    assert printable(line) == line


def test_lines_grow_in_place_and_stay() -> None:
    screen = Screen()
    lines = LiveLines(screen, ["ja", "zh-hant"])
    lines.draw(["", ""])
    assert screen.rows() == ["ja       ", "zh-hant  "]
    lines.draw(["おは", "早"])
    lines.draw(["おはよう", "早安"])
    assert screen.rows() == ["ja       おはよう", "zh-hant  早安"]
    # Tentative text may be taken back, and the final text may be another.
    lines.draw(["おはよう", "早"])
    assert screen.rows() == ["ja       おはよう", "zh-hant  早"]
    lines.finish(["はい", "早安"])
    assert screen.rows() == ["ja       はい", "zh-hant  早安", ""]
    lines.draw(["つぎ", ""])
    assert screen.rows() == ["ja       はい", "zh-hant  早安", "ja       つぎ", "zh-hant  "]


def test_a_living_line_never_wraps() -> None:
    screen = Screen()
    lines = LiveLines(screen, ["de"])
    lines.draw(["x" * 200 + "end"])
    (row,) = screen.rows()
    assert cells(row) == 79
    assert row.startswith("de  …x")
    assert row.endswith("end")
    lines.finish(["x" * 200])
    assert screen.rows() == ["de  " + "x" * 200, ""]


def test_what_can_be_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert can_redraw(Screen(), 8)
    assert not can_redraw(Screen(), 24)
    assert not can_redraw(io.StringIO(), 1)
    monkeypatch.setenv("TERM", "dumb")
    assert not can_redraw(Screen(), 1)
    monkeypatch.delenv("TERM")
    assert not can_redraw(Screen(), 1)


def test_a_terminal_without_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Screen, "fileno", lambda _self: 1, raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda _fd: os.terminal_size((0, 0)))
    monkeypatch.setenv("TERM", "xterm")
    assert can_redraw(Screen(), 8)
    screen = Screen()
    LiveLines(screen, ["de"]).draw(["x" * 200])
    assert cells(screen.rows()[0]) == 79


# ---------------------------------------------------------------- a live area


@pytest.fixture
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def size(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Columns and lines of every terminal; may be changed."""
    now = [80, 24]
    monkeypatch.setattr(drawing, "_size", lambda _out: os.terminal_size(tuple(now)))
    return now


def test_finished_rows_scroll_up_and_unfinished_ones_grow_below() -> None:
    screen = Screen()
    area = LiveArea(screen)
    area.show([], [Row("Ana: ", "こん", "にち")])
    assert screen.rows() == ["Ana: こんにち"]
    area.show([], [Row("Ana: ", "こんにちは"), Row("Ben: ", "Gu")])
    assert screen.rows() == ["Ana: こんにちは", "Ben: Gu"]
    area.show([Row("", "— Cy joined")], [Row("Ana: ", "こんにちは"), Row("Ben: ", "Gut")])
    assert screen.rows() == ["— Cy joined", "Ana: こんにちは", "Ben: Gut"]
    area.show([Row("Ana: ", "こんにちは。")], [Row("Ben: ", "Guten")])
    assert screen.rows() == ["— Cy joined", "Ana: こんにちは。", "Ben: Guten"]
    area.show([Row("Ben: ", "Guten Tag")], [])
    assert screen.rows() == ["— Cy joined", "Ana: こんにちは。", "Ben: Guten Tag", ""]
    area.show([], [Row("Ana: ", "は"), Row("Ben: ", "Gu")])
    area.leave()
    assert screen.rows() == ["— Cy joined", "Ana: こんにちは。", "Ben: Guten Tag", ""]
    screen.write("^C")
    area.leave()
    assert screen.rows() == ["— Cy joined", "Ana: こんにちは。", "Ben: Guten Tag", ""]


@pytest.mark.usefixtures("xterm")
def test_unfinished_row_is_one_line(size: list[int]) -> None:
    size[0] = 20
    screen = Screen()
    area = LiveArea(screen)
    area.show([], [Row("Maximiliana: ", "die ", "Sitzung beginnt jetzt")])
    (row,) = screen.rows()
    assert row == "Maximili……nnt jetzt"
    assert cells(row) == 19
    # All that is left of it is tentative.
    assert screen.getvalue().endswith("\x1b[2m…nnt jetzt\x1b[0m")
    area.show([Row("Maximiliana: ", "die Sitzung beginnt jetzt")], [Row("A: ", "会議を始めましょう皆さん")])
    rows = screen.rows()
    assert rows[0] == "Maximiliana: die Sitzung beginnt jetzt"
    assert rows[1] == "A: …ましょう皆さん"
    assert cells(rows[1]) <= 19


def test_a_terminal_that_became_narrower_wraps_what_was_drawn(size: list[int]) -> None:
    screen = Screen()
    area = LiveArea(screen)
    area.show([], [Row("", "x" * 70), Row("", "会" * 10)])
    size[0] = 20
    screen.truncate(screen.seek(0))
    area.show([], [])
    # 70 columns are four lines now, and 20 are one; the cursor is on the last one.
    assert screen.getvalue() == "\r\x1b[4A\x1b[J"


@pytest.mark.usefixtures("xterm")
@pytest.mark.parametrize(
    ("row", "written"),
    [
        (Row("Ana: ", "said", "may", colour=6), "\x1b[32mAna: \x1b[0msaid\x1b[2mmay\x1b[0m\n"),
        (Row("Ana: ", "said", dim=True, colour=6), "\x1b[2mAna: said\x1b[0m\n"),
        (Row("", "said", colour=6), "said\n"),
    ],
)
def test_rows_are_styled(row: Row, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    LiveArea(screen).show([row], [])
    assert screen.getvalue() == written
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen()
    LiveArea(screen).show([row], [])
    assert screen.getvalue() == f"{row.label}{row.text}{row.tentative}\n"


@pytest.mark.usefixtures("xterm")
def test_what_is_styled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert styled(Screen())
    assert not styled(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "")  # set and empty is not set, by the convention
    assert styled(Screen())
    monkeypatch.setenv("NO_COLOR", "0")
    assert not styled(Screen())


@pytest.mark.parametrize(("lines", "room"), [(24, 6), (8, 6), (6, 4), (2, 1), (1, 1)])
def test_there_is_room_for_a_few(lines: int, room: int, size: list[int]) -> None:
    size[1] = lines
    assert LiveArea(Screen()).room == room
