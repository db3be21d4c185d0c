"""How many tokens of a text come together."""

from __future__ import annotations

from gateway.engines.pieces import tokens_a_piece


def test_a_piece_comes_about_every_interval() -> None:
    assert tokens_a_piece(0.04, 0.010, 4) == 4
    assert tokens_a_piece(0.04, 0.100, 4) == 1


def test_every_token_by_itself_without_an_interval_or_a_time() -> None:
    assert tokens_a_piece(0.0, 0.010, 4) == 1
    assert tokens_a_piece(0.04, 0.0, 4) == 1


def test_a_piece_is_never_many_tokens() -> None:
    assert tokens_a_piece(0.04, 0.001, 4) == 12


def test_pieces_come_less_often_where_many_sequences_run() -> None:
    assert tokens_a_piece(0.04, 0.020, 256) == 5  # each every 0.1 s
    assert tokens_a_piece(0.04, 0.020, 64) == 2
