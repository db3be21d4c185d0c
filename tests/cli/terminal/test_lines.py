"""Lines of stdin, as a command reads them."""

from __future__ import annotations

import pytest

from gateway.cli import translate
from tests.cli.commands import run_against
from tests.scripted_gateway import Peer, translated


@pytest.mark.parametrize("argv", [[], ["-"]])
async def test_lines_of_stdin_come_out_in_order(argv: list[str]) -> None:
    """More lines than are under way at once; the gateway answers the later ones first."""
    lines = [f"line {number}" for number in range(1, 21)]
    under_way: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        left = len(lines)
        while left:
            finals = [await peer.take() for _ in range(min(left, translate._WINDOW))]
            under_way.append(len(finals))
            left -= len(finals)
            for utterance in reversed(finals):
                await peer.say(translated(utterance, "ja", utterance.text.upper()))
        await peer.end()

    # An empty line is nothing to translate; the last line has no end; a carriage return is part of none.
    text = "\r\n".join([lines[0], "", *lines[1:]])
    ran = await run_against(script, "translate", *argv, "--to", "ja", stdin=text)
    assert ran == (0, "".join(f"ja\t{line.upper()}\n" for line in lines), "")
    assert under_way == [8, 8, 4]
