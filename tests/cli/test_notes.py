"""What all commands tell alike: that they wait for an engine, and for how long."""

from __future__ import annotations

from gateway.cli import jobs
from gateway.protocol.messages import (
    SessionStart,
    UtteranceFinal,
)
from tests.cli.commands import run, run_against
from tests.scripted_gateway import (
    Peer,
    refused,
    scripted_gateway,
    translated,
)


async def test_an_engine_that_dies_is_waited_for_as_long() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        # More often than a text is sent again for other reasons, and said once for all texts.
        for _ in range(jobs._ATTEMPTS + 1):
            one, two = await peer.expect(UtteranceFinal), await peer.expect(UtteranceFinal)
            await peer.say(refused("engine_unavailable", "Restarting.", one.id, retry_after_ms=1))
            await peer.say(refused("engine_unavailable", "Restarting.", two.id, retry_after_ms=1))
        one, two = await peer.take(), await peer.take()
        await peer.say(translated(one, "ja", one.text), translated(two, "ja", two.text))
        await peer.end()

    ran = await run_against(script, "translate", "--to", "ja", stdin="a\nb\n")
    assert ran == (0, "ja\ta\nja\tb\n", "gateway: The gateway's engine is not ready yet; waiting for it.\n")


async def test_an_engine_that_stays_dead() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(refused("engine_unavailable", "The engine died.", utterance.id, retry_after_ms=1))
        await peer.end()

    ran = await run_against(script, "translate", "hi", "--to", "ja", "--wait", "0")
    assert ran == (3, "", "gateway: The engine died.\n")


async def test_wait_bounds_the_patience() -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(refused("engine_unavailable", "Loading.", retry_after_ms=2_000))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        ran = await run("translate", "hi", "--to", "ja", "--wait", "0", "--url", url)
        later = await run("translate", "hi", "--to", "ja", "--wait", "0.5", "--url", url)
    engine = f"gateway: The engine of the gateway at {url.replace('http:', 'ws:')}"
    assert ran == (1, "", f"{engine} is still loading (try --wait SECONDS).\n")
    assert later == (1, "", f"{engine} is not ready after 0.5 s.\n")
