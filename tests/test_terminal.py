"""Lines that are redrawn in place: widths, and what the terminal is told."""

from __future__ import annotations

import io
import os

import pytest

from gateway.terminal import LiveLines, can_redraw, cells, printable, tail


class Screen(io.StringIO):
    """Just enough of a terminal to see what a person would see: it obeys what `LiveLines` writes."""

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
                    raise AssertionError(f"unknown sequence {command}")
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
    ("text", "columns", "shown"),
    [
        ("fits", 4, "fits"),
        ("does not fit", 5, "… fit"),
        ("会議を始めます", 7, "…めます"),
        ("会議を始めます", 6, "…ます"),
        ("会議", 1, "…"),
    ],
)
def test_the_end_of_a_text_that_is_too_long(text: str, columns: int, shown: str) -> None:
    assert tail(text, columns) == shown


def test_a_translation_cannot_drive_the_terminal() -> None:
    assert printable("a\x1b[2Jb\r\nc\td\x9b") == "a [2Jb  c d "


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


def test_a_single_line_moves_no_cursor_up() -> None:
    screen = Screen()
    lines = LiveLines(screen, ["de"])
    lines.draw(["Gut"])
    lines.finish(["Guten Morgen"])
    assert screen.rows() == ["de  Guten Morgen", ""]


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
