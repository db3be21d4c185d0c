"""Pieces of text, and the rows of log-probabilities that are sent."""

from __future__ import annotations

from gateway.engines.prompting.completions import Rows, tokens_a_piece

# An empty row, one of two tokens, one of three.
ROWS = Rows([0, 0, 2], [0, 2, 5], [4, 5, 6, 7, 8], [-1.0, -2.0, -3.0, -4.0, -5.0], [1, 1, 2, 1, 2])


def test_the_last_rows_are_a_layout_of_their_own() -> None:
    assert ROWS.last(9) == ROWS.last(3) == ROWS
    assert ROWS.last(2) == Rows([0, 2], [2, 5], ROWS.token_ids, ROWS.logprobs, ROWS.ranks)
    assert ROWS.last(1) == Rows([0], [3], [6, 7, 8], [-3.0, -4.0, -5.0], [2, 1, 2])
    assert ROWS.last(0) == Rows([], [], [], [], [])


def test_a_piece_comes_about_every_interval() -> None:
    assert tokens_a_piece(0.04, 0.010, 4) == 4
    assert tokens_a_piece(0.04, 0.100, 4) == 1


def test_single_tokens_without_interval_or_time() -> None:
    assert tokens_a_piece(0.0, 0.010, 4) == 1
    assert tokens_a_piece(0.04, 0.0, 4) == 1


def test_a_piece_is_never_many_tokens() -> None:
    assert tokens_a_piece(0.04, 0.001, 4) == 12


def test_pieces_come_less_often_where_many_sequences_run() -> None:
    assert tokens_a_piece(0.04, 0.020, 256) == 5  # each every 0.1 s
    assert tokens_a_piece(0.04, 0.020, 64) == 2
