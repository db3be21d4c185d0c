"""A store that loses everything, against the operator's promise: sessions go on with what is said afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any, cast

import pytest

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import LogUnavailable
from gateway.protocol.messages import Resume, SessionEnd, TranslationFinal, UtteranceFinal
from gateway.sessions.machine import Accept
from gateway.stores.redis.log import RedisEventLog
from gateway.stores.redis.store import RedisStore
from tests.redis_server import RedisServer, new_folder
from tests.sessions.desk import desk
from tests.sessions.talk import only
from tests.translation.stage import until
from tests.usual import usual


@pytest.fixture
def server() -> Iterator[RedisServer]:
    folder = new_folder()
    server = RedisServer(folder)
    yield server.start()
    server.kill()
    shutil.rmtree(folder)


async def test_after_a_loss_everybody_rejoins_afresh(server: RedisServer) -> None:
    store = usual(RedisStore, server.url)
    await store.start()
    log = usual(RedisEventLog, store)
    await log.start()
    async with desk(log=cast(Any, log)) as d:
        entry, ana = await d.join(speaks="en", reads=["de"])
        accept = only(Accept, ana.send(UtteranceFinal("1", 1, "Lost.")))
        await d.sessions.accept(entry.session, accept)
        room, epoch = entry.session.room, entry.session.room.epoch
        server.ask("FLUSHALL")
        while not ana.closed:
            for _ in range(3):  # positions are compared every few sweeps
                await log.sweep()
            await d.sessions.sweep()
        assert ana.closed == [CloseCode.RESTART]
        assert isinstance(ana.reasons[0], LogUnavailable)
        assert room.epoch not in ("", epoch)
        resume = Resume(entry.session.secret, epoch, 1)
        again, connection = await d.join(speaks="en", reads=["de"], resume=resume)
        assert again.recovered is False
        await room.stream_to(again.session.member, again.feed)
        accept = only(Accept, connection.send(UtteranceFinal("1", 1, "Lost.")))
        await d.sessions.accept(again.session, accept)
        connection.send(SessionEnd())
        await until(lambda: [request for request in d.core.engine.pending() if request.text == "Lost."])
        for request in d.core.engine.pending():
            d.core.engine.end(request, "Verloren.")
        await d.core.finals.quiet()
        await until(lambda: CloseCode.NORMAL in connection.closed)
        finals = [message for message in await connection.received() if isinstance(message, TranslationFinal)]
        assert [message.text for message in finals] == ["Verloren."]
    await log.close()
    await store.close()
