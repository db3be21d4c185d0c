"""The event log in a real Redis when answers are lost, subscriptions die and the store is restarted.

What holds for every store is in `tests/contract/`.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from unittest import mock

import pytest
from prometheus_client import REGISTRY

from gateway.domain.errors import LogUnavailable, SessionReplaced
from gateway.domain.log import Accepted, LogUsage, Page, Publication, Said, Unfinished
from gateway.domain.session_store import Fence
from gateway.stores.redis import entries
from gateway.stores.redis import log as redis_log
from gateway.stores.redis.entries import Position, Push
from gateway.stores.redis.log import RedisEventLog, Subscriber, Topic, UnansweredPromise, UnansweredPromises
from gateway.stores.redis.store import RedisStore
from gateway.stores.sealing import Seal
from tests.logs import nothing, offsets, said, texts, translated, untranslated, utterance
from tests.patience import until
from tests.redis_server import RedisServer, impatient, shared_server
from tests.stores.redis.proxy import Proxy
from tests.usual import usual

HELLO = utterance("hello", id="1")


@asynccontextmanager
async def opened(url: str, *, prefix: str = "gateway:", **options: Any) -> AsyncIterator[RedisEventLog]:
    names = ("max_publications", "keep_s", "max_bytes", "account_bytes")
    bounds = {name: options.pop(name) for name in names if name in options}
    store = usual(RedisStore, url, prefix=prefix, **options)
    await store.start()
    log = usual(RedisEventLog, store, **bounds)
    await log.start()
    try:
        yield log
    finally:
        await log.close()
        await store.close()


@pytest.fixture
async def ana(network: Proxy, prefix: str) -> AsyncIterator[RedisEventLog]:
    async with opened(network.url, prefix=prefix) as log:
        yield log


@pytest.fixture
async def ben(prefix: str) -> AsyncIterator[RedisEventLog]:
    """On the same store."""
    async with opened(shared_server().url, prefix=prefix) as log:
        yield log


@asynccontextmanager
async def reading(
    log: RedisEventLog, *languages: str, begun_again: Callable[[], None] = lambda: None
) -> AsyncIterator[list[Publication]]:
    """Somebody reads these languages; what was delivered."""
    live: list[Publication] = []
    async with log.subscribe("standup", live.append, begun_again=begun_again) as subscription:
        await subscription.reads(languages)
        yield live


# Lost answers


async def test_an_utterance_whose_answer_is_lost_is_accepted_once(
    ana: RedisEventLog, ben: RedisEventLog, network: Proxy
) -> None:
    async with reading(ana), reading(ben, "ja"):
        network.lose_the_answer_to(b"hello")
        accepted = await ana.accept("standup", HELLO)
        assert network.has_lost
        assert accepted == Accepted(1, ("ja",), ("ja",), last=1), "nobody has said it before"
        assert (await ana.accept("standup", HELLO)).known
    assert texts((await ben.read("standup", 0)).publications) == ["hello"]


async def test_a_promise_whose_answer_is_lost_is_concluded_once(
    ana: RedisEventLog, ben: RedisEventLog, network: Proxy
) -> None:
    async with reading(ana), reading(ben, "ja"):
        await ana.accept("standup", HELLO)
        network.lose_the_answer_to("やあ".encode())
        assert await ana.conclude("standup", translated("やあ")) is None, "it has an outcome"
        assert network.has_lost
    assert [type(each.event).__name__ for each in (await ben.read("standup", 0)).publications] == [
        "Said",
        "Translated",
    ]


async def test_what_was_accepted_without_an_answer_is_taken_over(
    network: Proxy, ben: RedisEventLog, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(network.url, prefix=prefix) as ana, reading(ana), reading(ben, "ja"):
        network.loses_answers = True
        with impatient(ana.store), pytest.raises(LogUnavailable) as error:
            await ana.accept("standup", HELLO)
        assert error.value.retry_after_ms
        await until_said(ben)
        network.loses_answers = False
        network.cut()
        # It is there, however slow.
        monkeypatch.setattr(redis_log, "_SHORT_PATIENCE_S", 3_600.0)
        assert await ana.take_over() == (Unfinished("standup", HELLO, 1, ("ja",)),)
        assert await ana.take_over() == ()


async def test_claim_of_a_cancelled_task_is_taken_over(ana: RedisEventLog, ben: RedisEventLog) -> None:
    await ben.accept("standup", HELLO)
    task = asyncio.create_task(ana.claim("standup", {1: ["ja"]}))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert await ana.take_over() == (Unfinished("standup", HELLO, 1, ("ja",)),)
    assert await ben.claim("standup", {1: ["ja"]}) == {}


async def test_what_was_accepted_after_all_is_not_in_doubt(
    network: Proxy, ben: RedisEventLog, prefix: str
) -> None:
    async with opened(network.url, prefix=prefix) as ana, reading(ana), reading(ben, "ja"):
        network.loses_answers = True
        with impatient(ana.store), pytest.raises(LogUnavailable):
            await ana.accept("standup", HELLO)
        network.loses_answers = False
        network.cut()
        assert (await ana.accept("standup", HELLO)).owned == ("ja",)
        assert await ana.take_over() == ()


async def test_unanswered_take_over_is_not_lost(
    network: Proxy, ben: RedisEventLog, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(network.url, prefix=prefix) as ana:
        async with reading(ana, "ja"):
            await ben.accept("standup", HELLO)
        await ben.close()
        network.loses_answers = True
        with impatient(ana.store), pytest.raises(LogUnavailable):
            await ana.take_over()
        network.loses_answers = False
        network.cut()
        monkeypatch.setattr(redis_log, "_SHORT_PATIENCE_S", 3_600.0)
        assert await ana.take_over() == (Unfinished("standup", HELLO, 1, ("ja",), tries=1),)
        assert await ana.take_over() == ()


async def test_promises_of_the_previous_format_are_read(
    ana: RedisEventLog, ben: RedisEventLog, prefix: str
) -> None:
    async with reading(ben, "ja"):
        await ana.accept("standup", HELLO)
        shared_server().ask(f"HSET {prefix}{{standup}}:unfinished 1 ja:2:{ana.store.id}")
        await ana.close()
        assert await ben.take_over() == (Unfinished("standup", HELLO, 1, ("ja",), tries=2),)
        assert await ben.claim("standup", {1: ["ja"]}) == {1: ("ja",)}
        assert await ben.conclude("standup", translated("やあ")) is not None


async def test_meeting_left_during_an_outage_is_left_later(
    ana: RedisEventLog, ben: RedisEventLog, network: Proxy
) -> None:
    async with reading(ana, "ja"):
        network.loses_answers = True
        network.cut()
        shared_server().ask("PING")
    network.loses_answers = False
    network.cut()
    await ana.sweep()
    assert (await ben.accept("standup", HELLO)).owned == ()


async def until_said(log: RedisEventLog) -> None:
    while not (await log.read("standup", 0)).publications:
        await asyncio.sleep(0.001)


# Subscriptions


async def test_a_subscription_that_the_store_ends_goes_on(ana: RedisEventLog, ben: RedisEventLog) -> None:
    async with reading(ana, "ja") as live:
        await ben.accept("standup", utterance("before"))
        assert shared_server().ask("CLIENT KILL TYPE pubsub").startswith(":")
        for n in range(5):
            await ben.accept("standup", utterance(f"after {n}"))
        await until(lambda: len(live) == 6)
        await ben.accept("standup", utterance("more"))
        await until(lambda: len(live) == 7)
    assert offsets(live) == [*range(1, 8)]


async def test_a_subscription_that_dies_silently_is_found(
    ana: RedisEventLog, ben: RedisEventLog, network: Proxy
) -> None:
    async with reading(ana, "ja") as live:
        await ben.accept("standup", utterance("heard"))
        await until(lambda: live)
        network.loses_pushes = True
        await ben.accept("standup", utterance("not pushed"))
        while len(live) < 2:
            await ana.sweep()
            await ben.sweep()
            await asyncio.sleep(0.001)
        assert network.for_pushes == 1
        while network.for_pushes == 1:
            await ana.sweep()
            await asyncio.sleep(0.001)
        network.loses_pushes = False
        network.cut()
        await ben.accept("standup", utterance("pushed again"))
        await until(lambda: len(live) == 3)
    assert texts(live) == ["heard", "not pushed", "pushed again"]


async def test_lost_pushes_are_read_when_the_next_one_comes(
    ana: RedisEventLog, ben: RedisEventLog, network: Proxy
) -> None:
    async with reading(ana, "ja") as live:
        network.loses_pushes = True
        for n in range(250):  # more than a page
            await ben.accept("standup", utterance(f"lost {n}"))
        network.loses_pushes = False
        await ben.accept("standup", utterance("heard"))
        await until(lambda: len(live) == 251)
    assert offsets(live) == [*range(1, 252)]


async def test_what_is_recent_is_read_without_what_is_older(server: RedisServer) -> None:
    async with opened(server.url) as log, reading(log, "ja"):
        await asyncio.gather(*(log.accept("standup", utterance(str(n))) for n in range(500)))
        server.ask("CONFIG RESETSTAT")
        recent = await log.recent("standup", 3)
        assert (offsets(recent.page.publications), len(recent.unfinished)) == ([498, 499, 500], 497)
        assert "cmdstat_xrevrange:calls=1," in server.ask("INFO commandstats")
        assert (await log.recent("standup", 150)).page.publications[0].offset == 351


# The store goes away and comes back


async def test_acknowledged_work_survives_store_death(server: RedisServer) -> None:
    async with opened(server.url) as ana, opened(server.url) as ben, reading(ben, "ja") as live:
        acknowledged: dict[int, str] = {}

        async def speak(speaker: int) -> None:
            for n in range(60):
                spoken = utterance(f"{speaker}:{n}")
                accepted = await ana.accept("standup", spoken)
                acknowledged[accepted.offset] = spoken.text
                if n % 2:
                    await ana.conclude("standup", translated("はい", said=accepted.offset, utterance=spoken.id))

        async with asyncio.TaskGroup() as speakers:
            for speaker in range(8):
                speakers.create_task(speak(speaker))
            for several in (20, 120, 300):
                await until(lambda several=several: len(acknowledged) >= several)  # type: ignore[misc]
                server.kill()
                server.start()
        log = await everything(ana)
        assert offsets(log) == [*range(1, len(log) + 1)]
        said = {each.offset: each.event.utterance.text for each in log if isinstance(each.event, Said)}
        assert said == acknowledged
        assert sorted(said.values()) == sorted(f"{speaker}:{n}" for speaker in range(8) for n in range(60))
        await until(lambda: len(live) == len(log))
        assert live == log


async def test_while_the_store_is_away_everything_says_so(server: RedisServer) -> None:
    async with opened(server.url) as log, reading(log, "ja") as live:
        await log.accept("standup", HELLO)
        server.kill()
        for call in (
            log.accept("standup", utterance("more")),
            log.conclude("standup", translated("やあ")),
            log.claim("standup", {1: ["de"]}),
            log.take_over(),
            log.read("standup", 0),
            log.recent("standup", 5),
            log.usage(),
        ):
            with impatient(log.store), pytest.raises(LogUnavailable):
                await call
        with impatient(log.store), pytest.raises(LogUnavailable):
            async with log.subscribe("retro", nothing):
                pass
        await log.sweep()
        server.start()
        while (await everything_or_nothing(log))[-1:] != ["more"]:
            await asyncio.sleep(0.01)
            await asyncio.gather(log.accept("standup", utterance("more")), return_exceptions=True)
        await until(lambda: texts(live) == ["hello", "more"])


async def test_late_commands_of_a_frozen_store_count(server: RedisServer) -> None:
    async with (
        opened(server.url) as ana,
        opened(server.url) as ben,
        reading(ana),
        reading(ben, "ja") as live,
    ):
        # It is connected, so the first attempt is sent before anybody notices.
        await ana.read("standup", 0)
        server.freeze()
        with mock.patch.object(ana.store.commands, "_answer_s", 0.1):
            for _ in range(2):
                with impatient(ana.store, 0.3), pytest.raises(LogUnavailable):
                    await ana.accept("standup", HELLO)
            await ana.sweep()
        server.thaw()
        await until(lambda: live)
        while not (taken := await taken_over(ana)):
            await asyncio.sleep(0.01)
        assert taken == (Unfinished("standup", HELLO, 1, ("ja",)),)
        assert await ana.conclude("standup", translated("やあ")) is not None
        await until(lambda: len(live) == 2)
        assert len(await everything(ben)) == 2


async def taken_over(log: RedisEventLog) -> tuple[Unfinished, ...]:
    try:
        return await log.take_over()
    except LogUnavailable:
        return ()


async def test_first_newcomer_after_a_loss_makes_it_known(server: RedisServer) -> None:
    async with opened(server.url) as ana, opened(server.url) as ben, reading(ana, "ja") as live:
        await ben.accept("standup", utterance("lost"))
        await until(lambda: live)
        server.ask("FLUSHALL")
        # Nobody of this gateway hears of the first one by a push.
        server.ask("CLIENT KILL TYPE pubsub")
        await ben.accept("standup", utterance("first"))
        async with reading(ana, "de") as later:
            await until(lambda: len(live) == 2)
        assert texts(live) == ["lost", "first"]
        assert texts(later) in ([], ["first"])


async def test_restored_older_copy_gets_another_epoch(server: RedisServer) -> None:
    async with opened(server.url) as ana, reading(ana, "ja") as live:
        await ana.accept("standup", utterance("kept"))
        shutil.copytree(server.folder / "appendonlydir", server.folder / "copy")
        await ana.accept("standup", utterance("lost"))
        await until(lambda: len(live) == 2)
        before = await ana.read("standup", 0)
        server.kill()
        shutil.rmtree(server.folder / "appendonlydir")
        (server.folder / "copy").rename(server.folder / "appendonlydir")
        server.start()
        accepted = await ana.accept("standup", utterance("another"))
        page = await ana.read("standup", 0)
        assert page.epoch != before.epoch
        assert (accepted.offset, page.first, page.last) == (2, 1, 2)
        assert texts(page.publications) == ["kept", "another"]
        await until(lambda: len(live) == 3)
        assert texts(live) == ["kept", "lost", "another"]
        assert (await ana.read("standup", 0)).epoch == page.epoch


async def test_a_store_that_has_lost_everything_begins_again(server: RedisServer) -> None:
    seen: list[int] = []
    async with (
        opened(server.url) as ana,
        opened(server.url) as ben,
        reading(ana, "ja", begun_again=lambda: seen.append(len(live))) as live,
    ):
        await ben.accept("standup", utterance("lost"))
        await until(lambda: live)
        server.ask("FLUSHALL")
        assert (await ben.accept("standup", utterance("first"))).offset == 1
        await until(lambda: len(live) == 2)
        for _ in range(3):
            await ana.sweep()
        while (await ben.accept("standup", utterance(secrets.token_hex(4)))).owned != ("ja",):
            await asyncio.sleep(0.01)
        await until(lambda: len(live) > 2)
        assert seen == [1], "once, before anything of the new log was delivered"
    assert texts(live)[:2] == ["lost", "first"]
    assert offsets(live)[1:] == [*range(1, len(live))]


async def test_forgotten_scripts_are_loaded_again(server: RedisServer) -> None:
    async with opened(server.url) as log:
        await log.accept("standup", HELLO)
        server.ask("SCRIPT FLUSH")
        assert (await log.accept("standup", HELLO)).known


def keep_for(log: RedisEventLog, seconds: float) -> None:
    """From now on. What was written before is kept for so long once its meeting is due."""
    log._bounds = (round(seconds * 1_000), *log._bounds[1:])


async def test_full_store_refuses_new_and_finishes_old(server: RedisServer) -> None:
    async with opened(server.url, keep_s=3_600.0) as log, reading(log, "ja") as live:
        await log.accept("standup", HELLO)
        server.ask("ZADD gateway:due 0 standup")
        server.ask("CONFIG SET maxmemory 1")
        with pytest.raises(LogUnavailable, match="full"):
            await log.accept("standup", utterance("more"))
        with pytest.raises(LogUnavailable, match="full"):
            await log.claim("standup", {1: ["de"]})
        assert await log.conclude("standup", translated("やあ")) is not None
        await log.read("standup", 0)
        keep_for(log, 0.1)
        server.ask(f"DEL gateway:gateway:{log.store.id}")
        await log.sweep()
        assert server.ask(f"EXISTS gateway:gateway:{log.store.id}") == ":1\r\n"
        while (await log.usage()).publications:
            await asyncio.sleep(0.01)
            await log.sweep()
        server.ask("CONFIG SET maxmemory 0")
        assert (await log.accept("standup", utterance("more"))).offset == 3
        await until(lambda: len(live) == 3)


# What is held


async def test_usage_is_counted_per_account_until_expiry(prefix: str) -> None:
    async with opened(shared_server().url, prefix=prefix, keep_s=3_600.0, max_bytes=80_000) as log:
        async with log.subscribe("standup", nothing, account="acme") as subscription:
            await subscription.reads(["ja"])
            await log.accept("standup", HELLO)
            await log.conclude("standup", untranslated("no luck"))
            await log.accept("retro", utterance("elsewhere"))
            usage = await log.usage()
            assert usage.publications == 3
            assert usage.bytes == sum(usage.bytes_by_account.values())
            assert usage.bytes_by_account["acme"] > usage.bytes_by_account[""] > 0
        keep_for(log, 0.1)
        shared_server().ask(f"ZADD {prefix}due 0 standup 0 retro")
        while await log.usage() != LogUsage(0, 0, {}):
            await asyncio.sleep(0.01)
            await log.sweep()
    left = shared_server().ask(f"KEYS {prefix}*").split()[2::2]
    own = f"{prefix}gateway:{log.store.id}:left"
    assert sorted(left) == [own, f"{prefix}gateways", f"{prefix}heard_of_one", f"{prefix}usage"]


async def test_a_meeting_keeps_its_newest_publication_however_large(prefix: str) -> None:
    async with opened(shared_server().url, prefix=prefix, max_bytes=40_000) as log:
        for n in range(10):
            await log.accept("standup", utterance(f"{n}" * 500))
        page = await log.read("standup", 0)
        assert 1 < page.first < page.last == 10
        assert offsets(page.publications) == [*range(page.first, 11)]
        await log.accept("standup", utterance("long" * 5_000))
        page = await log.read("standup", 0)
        assert (page.first, page.last, len(page.publications)) == (11, 11, 1)
        # What was trimmed is forgotten, and can be said again.
        assert not (await log.accept("standup", utterance("0" * 500))).known


async def test_excess_is_dropped_in_parts_per_append(prefix: str) -> None:
    bounds: dict[str, int] = {}
    async with (
        opened(shared_server().url, prefix=prefix, account_bytes=bounds.get) as log,
        AsyncExitStack() as stack,
    ):
        for meeting in ("quiet", *map(str, range(30)), "running"):
            await stack.enter_async_context(log.subscribe(meeting, nothing, account="acme"))
        await asyncio.gather(*(log.accept("quiet", utterance(str(n))) for n in range(600)))
        for number in range(30):
            await log.accept(str(number), utterance("hello"))
        bounds["acme"] = 0
        left = []
        for n in range(3):
            await log.accept("running", utterance(str(n)))
            left.append((await log.usage()).publications)
        assert left == [131, 13, 1], "500 entries of 20 meetings at most"


async def test_bound_that_failed_is_kept_by_the_next_append(
    network: Proxy, ben: RedisEventLog, prefix: str
) -> None:
    bounds = {"acme": 0}
    async with (
        opened(network.url, prefix=prefix, account_bytes=bounds.get) as ana,
        ana.subscribe("standup", nothing, account="acme"),
    ):
        await ana.accept("standup", utterance("one"))
        network.lose_the_answer_to(b"acme")
        await ana.accept("standup", utterance("two"))
        assert network.has_lost, "and it was done once more"
        assert texts((await ben.read("standup", 0)).publications) == ["two"]

        async def unavailable(*_: Any, **__: Any) -> Any:
            raise LogUnavailable("The test says so.")

        run_script = ana.store.run_script
        ana.store.run_script = lambda name, *rest, **more: (  # type: ignore[method-assign]
            unavailable() if name == "fit_account" else run_script(name, *rest, **more)
        )
        assert (await ana.accept("standup", utterance("three"))).offset == 3
        assert texts((await ben.read("standup", 0)).publications) == ["two", "three"]
        ana.store.run_script = run_script  # type: ignore[method-assign]
        await ana.accept("standup", utterance("four"))
        assert texts((await ben.read("standup", 0)).publications) == ["four"]


async def test_meeting_of_a_left_gateway_is_trimmed_first(ben: RedisEventLog, prefix: str) -> None:
    bounds: dict[str, int] = {}
    server = shared_server()
    async with (
        opened(server.url, prefix=prefix, account_bytes=bounds.get) as log,
        log.subscribe("quiet", nothing, account="acme"),
        log.subscribe("running", nothing, account="acme"),
        ben.subscribe("left", nothing, account="acme"),
    ):
        for meeting in ("quiet", "left", "running"):
            await log.accept(meeting, utterance("hello"))
        bounds["acme"] = (await log.usage()).bytes
        await ben.close()
        await log.accept("running", utterance("again"))
        assert texts((await log.read("quiet", 0)).publications) == ["hello"]
        assert server.ask(f"EXISTS {prefix}{{left}}:meta") == ":0\r\n"


async def test_vanished_meeting_is_skipped_when_trimming(prefix: str) -> None:
    bounds = {"acme": 0}
    server = shared_server()
    async with opened(server.url, prefix=prefix, account_bytes=bounds.get) as log, AsyncExitStack() as stack:
        for meeting in ("vanished", "quiet", "running"):
            await stack.enter_async_context(log.subscribe(meeting, nothing, account="acme"))
            bounds.clear()
            await log.accept(meeting, utterance("hello"))
        server.ask(f"DEL {prefix}{{vanished}}:meta")
        bounds["acme"] = 0
        await log.accept("running", utterance("more"))
        assert (await log.read("quiet", 0)).publications == ()
        assert server.ask(f"ZRANGE {prefix}account:acme 0 -1").split()[2::2] == ["running"]


async def test_log_expires_without_any_gateway(prefix: str) -> None:
    server = shared_server()
    async with opened(server.url, prefix=prefix, keep_s=400.0) as log, reading(log, "ja"):
        await log.accept("standup", HELLO)
        await log.conclude("standup", untranslated("no luck"))
        await log.accept("standup", utterance("unfinished"))
        for key in ("log", "said"):
            assert 0 < int(server.ask(f"PTTL {prefix}{{standup}}:{key}")[1:]) <= 1_200_000
    # As when that has passed.
    server.ask(f"DEL {prefix}{{standup}}:log {prefix}{{standup}}:said")
    server.ask(f"ZADD {prefix}due 0 standup")
    async with opened(server.url, prefix=prefix, keep_s=0.1) as log:
        while await log.usage() != LogUsage(0, 0, {}):
            await asyncio.sleep(0.01)
            await log.sweep()


async def test_unfinished_meeting_outlives_its_time(prefix: str) -> None:
    server = shared_server()
    async with opened(server.url, prefix=prefix, keep_s=1.5) as log:
        async with reading(log, "ja"):
            await log.accept("standup", HELLO)
        # By the store's clock; it would forget all of it after three times as long.
        await asyncio.sleep(1.6)
        await log.sweep()
        page = await log.read("standup", 0)
        assert (page.first, page.last, bool(page.epoch)) == (2, 1, True)
        assert server.ask(f"XLEN {prefix}{{standup}}:log") == ":0\r\n"
        assert await log.accept("standup", HELLO) == Accepted(1, ("ja",), ("ja",), known=True, last=1)
        async with log.subscribe("standup", nothing):
            publication = await log.conclude("standup", translated("やあ"))
            assert publication is not None
            assert publication.offset == 2
            assert server.ask(f"HLEN {prefix}{{standup}}:said") == ":1\r\n", "only the empty key is left"
            for name in ("unfinished", "texts"):
                assert server.ask(f"EXISTS {prefix}{{standup}}:{name}") == ":0\r\n", "nothing is left of it"
            assert (await log.accept("standup", HELLO)).offset == 3


async def test_what_is_known_of_trimmed_segments_expires_and_goes(prefix: str) -> None:
    server = shared_server()
    async with opened(server.url, prefix=prefix, max_publications=1, keep_s=400.0) as log, reading(log, "ja"):
        await log.accept("standup", utterance("hello", id="1", continues=True))
        await log.accept("standup", utterance("on", id="1~2", continues=True))
        # As a gateway of the version before leaves it.
        texts = f"{prefix}{{standup}}:texts"
        pack = "local t = cmsgpack.unpack(redis.call('HGET', KEYS[1], 1)) t[4] = nil"
        pack += " return redis.call('HSET', KEYS[1], 1, cmsgpack.pack(t))"
        assert await log.store.commands.run("EVAL", pack, "1", texts) == 0
        await log.conclude("standup", untranslated("no luck"))
        assert server.ask(f"EXISTS {prefix}{{standup}}:kept") == ":0\r\n"
        await log.conclude("standup", untranslated("no luck", said=2, utterance="1~2"))
        assert server.ask(f"ZCOUNT {prefix}{{standup}}:kept 2 2") == ":1\r\n"
        assert server.ask(f"HLEN {prefix}{{standup}}:said") == ":2\r\n"
        for sweeps in (False, True):
            if sweeps:
                server.ask(f"PERSIST {prefix}{{standup}}:kept")
                server.ask(f"ZADD {prefix}due 0 standup")
                await log.sweep()
            assert 0 < int(server.ask(f"PTTL {prefix}{{standup}}:kept")[1:]) <= 1_200_000
        await log.erase("standup")
        assert server.ask(f"EXISTS {prefix}{{standup}}:kept") == ":0\r\n"


async def test_a_text_may_outlast_what_became_of_it(prefix: str) -> None:
    server = shared_server()
    async with opened(server.url, prefix=prefix, max_publications=1) as log, reading(log, "ja"):
        await log.accept("standup", HELLO)
        await log.accept("standup", utterance("more"))
        server.ask(f"DEL {prefix}{{standup}}:said")
        [owed] = (await log.recent("standup", 1)).unfinished
        assert (owed.said, owed.languages) == (1, ("ja",))
        assert await log.claim("standup", {1: ["de"]}) == {1: ("de",)}


async def test_what_has_vanished_is_not_looked_for_again(ana: RedisEventLog, prefix: str) -> None:
    server = shared_server()
    await ana.accept("standup", HELLO)
    server.ask(f"DEL {prefix}{{standup}}:meta")
    server.ask(f"ZADD {prefix}due 1 standup")
    await ana.sweep()
    assert server.ask(f"EXISTS {prefix}due") == ":0\r\n"


async def test_time_never_goes_backwards_in_a_meeting(ana: RedisEventLog, prefix: str) -> None:
    await ana.accept("standup", HELLO)
    shared_server().ask(f"HSET {prefix}{{standup}}:meta t 9000000000000")
    await ana.accept("standup", utterance("more"))
    assert (await ana.read("standup", 1)).publications[0].at_ms == 9_000_000_000_000


async def test_gateways_that_have_left_nothing_are_forgotten(
    ana: RedisEventLog, ben: RedisEventLog, prefix: str
) -> None:
    await ana.close()
    assert await ben.take_over() == ()
    assert shared_server().ask(f"SCARD {prefix}gateways") == ":1\r\n"


async def test_doubtful_claim_of_another_owner_is_not_taken(ana: RedisEventLog, ben: RedisEventLog) -> None:
    async with reading(ben, "ja"):
        await ben.accept("standup", HELLO)
        task = asyncio.create_task(ana.claim("standup", {1: ["ja"]}))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert await ana.take_over() == ()


async def test_lease_lasts_six_seconds_from_a_sweep(ana: RedisEventLog, prefix: str) -> None:
    key = f"{prefix}gateway:{ana.store.id}"
    server = shared_server()
    server.ask(f"PEXPIRE {key} 10000000")
    await ana.sweep()
    assert 0 < int(server.ask(f"PTTL {key}")[1:]) <= 6_000
    await ana.close()
    assert server.ask(f"EXISTS {key}") == ":0\r\n"


async def test_much_that_is_unfinished_is_taken_over_in_parts(ana: RedisEventLog, ben: RedisEventLog) -> None:
    async with reading(ben, "ja"):
        await asyncio.gather(*(ana.accept("standup", utterance(str(n))) for n in range(450)))
        await ana.close()
        taken = [await ben.take_over() for _ in range(4)]
    assert [len(part) for part in taken] == [200, 200, 50, 0]
    assert [work.said for part in taken for work in part] == [*range(1, 451)]


async def everything(log: RedisEventLog) -> list[Publication]:
    found: list[Publication] = []
    while page := (await log.read("standup", len(found))).publications:
        found += page
    return found


async def everything_or_nothing(log: RedisEventLog) -> list[str]:
    try:
        return texts(await everything(log))
    except LogUnavailable:
        return []


async def test_sealed_text_is_unreadable_in_the_store(server: RedisServer) -> None:
    seal = Seal([secrets.token_bytes(32)])
    async with (
        opened(server.url, seal=seal) as ana,
        opened(server.url, seal=seal) as ben,
        reading(ana, "ja") as live,
    ):
        accepted = await ben.accept("standup", utterance("a secret thing", id="1"))
        await ben.conclude("standup", translated("ein Geheimnis", said=accepted.offset, utterance="1"))
        await until(lambda: len(live) == 2)
        assert (await ben.accept("standup", utterance("a secret thing", id="1"))).known
        assert texts((await ana.read("standup", 0)).publications) == ["a secret thing"]
    held = b"".join(file.read_bytes() for file in server.folder.rglob("*") if file.is_file())
    assert b"standup" in held
    assert b"secret" not in held
    assert b"Geheimnis" not in held


async def held(log: RedisEventLog, meeting: str) -> list[list[Any]]:
    """What the store has of a meeting's log: id and fields of each entry."""
    found: list[list[Any]] = await log.store.commands.run(
        "XRANGE", f"{log.store.prefix}{{{meeting}}}:log", "-", "+"
    )
    return found


async def put(
    log: RedisEventLog, meeting: str, entry: list[Any], *, offset: int = 1, payload: bytes = b""
) -> None:
    """Write an entry over one of a meeting's log, as others with access may. payload: another one for it."""
    key, run = f"{log.store.prefix}{{{meeting}}}:log", log.store.commands.run
    kept = [each for each in await held(log, meeting) if each[0] != b"%d-0" % offset]
    await run("DEL", key)
    fields = entry[1] if not payload else [part if n != 1 else payload for n, part in enumerate(entry[1])]
    for id, values in sorted(
        [*kept, [b"%d-0" % offset, fields]], key=lambda each: int(each[0].partition(b"-")[0])
    ):
        await run("XADD", key, id, *values)


def refused(reason: str) -> float:
    return REGISTRY.get_sample_value("gateway_store_entries_refused_total", {"reason": reason}) or 0.0


async def test_entry_copied_to_another_meeting_is_refused(prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(shared_server().url, prefix=prefix, seal=Seal([secrets.token_bytes(32)])) as log:
        await log.accept("acme/standup", utterance("a secret", id="1"))
        await log.accept("other/standup", utterance("hello", id="1"))
        before = refused("changed")
        await put(log, "other/standup", (await held(log, "acme/standup"))[0])
        assert (await log.read("other/standup", 0)).publications == ()
        assert texts((await log.read("acme/standup", 0)).publications) == ["a secret"]
        assert refused("changed") == before + 1
        assert "another place" in caplog.text


async def test_entry_copied_to_a_later_log_is_refused(prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(shared_server().url, prefix=prefix, seal=Seal([secrets.token_bytes(32)])) as log:
        await log.accept("standup", utterance("a secret", id="1"))
        [entry] = await held(log, "standup")
        await log.erase("standup")
        await log.accept("standup", utterance("hello", id="2"))
        before = refused("part")
        await put(log, "standup", entry)
        assert (await log.read("standup", 0)).publications == ()
        assert refused("part") == before + 1
        assert "epoch" in caplog.text


async def test_entry_copied_over_another_kind_is_refused(prefix: str) -> None:
    async with opened(shared_server().url, prefix=prefix, seal=Seal([secrets.token_bytes(32)])) as log:
        async with reading(log, "ja"):
            await log.accept("standup", utterance("hello", id="1"))
            await log.conclude("standup", translated("やあ", utterance="1"))
        before = refused("changed")
        said, outcome = await held(log, "standup")
        await put(log, "standup", outcome, offset=2, payload=said[1][1])
        assert offsets((await log.read("standup", 0)).publications) == [1]
        assert refused("changed") == before + 1, "it would not have been read in any case, as it is no outcome"


async def test_copied_pushes_and_unfinished_work_are_refused(prefix: str) -> None:
    seal = Seal([secrets.token_bytes(32)])
    async with (
        opened(shared_server().url, prefix=prefix, seal=seal) as ana,
        opened(shared_server().url, prefix=prefix, seal=seal) as ben,
        reading(ana, "ja") as live,
    ):
        await ben.accept("acme/standup", utterance("a secret", id="1"))
        [entry] = await held(ben, "acme/standup")
        accepted = await ana.accept("standup", utterance("hello", id="1"))
        await until(lambda: len(live) == 1)
        epoch = (await ana.read("standup", 0)).epoch
        push = b"%b %d 1 \n" % (epoch.encode(), accepted.offset + 1) + entry[1][1]
        before = refused("changed")
        await ben.store.commands.run("PUBLISH", ben.store.channel("standup", "push"), push)
        await until(lambda: refused("changed") == before + 1)
        await put(ben, "standup", entry)
        assert (await ben.recent("standup", 1)).page.publications == ()
        shared_server().ask(f"DEL {prefix}gateway:{ana.store.id}")
        assert await ben.take_over() == (), "whose text is another meeting's"
        assert texts(live) == ["hello"]


async def test_entries_from_before_a_loss_stay_readable(prefix: str) -> None:
    async with (
        opened(shared_server().url, prefix=prefix, seal=Seal([secrets.token_bytes(32)])) as log,
        reading(log),
    ):
        await log.accept("standup", utterance("one", id="1"))
        await log.accept("standup", utterance("two", id="2"))
        run, base = log.store.commands.run, f"{prefix}{{standup}}:"
        # As after the store has come back with an older copy.
        [first, _] = await held(log, "standup")
        await run("DEL", f"{base}log")
        await run("XADD", f"{base}log", *first[:1], *first[1])
        await run("HSET", f"{base}meta", "o", "1")
        await run("HDEL", f"{base}said", entries.key_digest(utterance("two", id="2").key))
        await log.accept("standup", utterance("three", id="3"))
        page = await log.read("standup", 0)
        assert texts(page.publications) == ["one", "three"]
        assert offsets(page.publications) == [1, 2]


async def test_finals_reach_a_log_that_began_elsewhere(prefix: str) -> None:
    seal = Seal([secrets.token_bytes(32)])
    async with (
        opened(shared_server().url, prefix=prefix, seal=seal) as ana,
        opened(shared_server().url, prefix=prefix, seal=seal) as ben,
        reading(ana, "ja") as live,
    ):
        await ben.erase("standup")  # which ana may not have heard of
        accepted = await ana.accept("standup", HELLO)
        assert (accepted.offset, accepted.owned) == (1, ("ja",))
        assert await ben.conclude("standup", translated("やあ")) is not None, "a gateway without readers there"
        await until(lambda: len(live) == 2)
        for gateway in (ana, ben):
            assert offsets((await gateway.read("standup", 0)).publications) == [1, 2]


async def test_long_outage_gives_every_gateway_a_grace(
    ana: RedisEventLog, ben: RedisEventLog, prefix: str
) -> None:
    async with reading(ana, "ja"):
        await ana.accept("standup", HELLO)
        server = shared_server()
        # As after a minute in which it heard of nobody.
        server.ask(f"DEL {prefix}heard_of_one {prefix}gateway:{ana.store.id} {prefix}gateway:{ben.store.id}")
        await ben.sweep()
        assert await ben.take_over() == ()
        assert (await ben.accept("standup", utterance("more"))).unfinished == ("ja",)
        server.ask(f"DEL {prefix}grace")
        [left] = await ben.take_over()
        assert left.utterance == HELLO


async def test_lease_is_renewed_before_anything_else(ana: RedisEventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unavailable() -> None:
        raise LogUnavailable("The store does not answer.")

    monkeypatch.setattr(ana, "_check_positions", unavailable)
    key = f"{ana.store.prefix}gateway:{ana.store.id}"
    await ana.store.commands.run("DEL", key)
    await ana.sweep()
    assert await ana.store.commands.run("EXISTS", key) == 1


async def test_what_is_refused_begins_no_log(ana: RedisEventLog) -> None:
    session = b"ana's"
    await ana.store.commands.run("HSET", f"{ana.store.prefix}session:".encode() + session, "f", 2)
    with pytest.raises(SessionReplaced):
        await ana.accept("nowhere", HELLO, Fence(session, 1))
    assert (await ana.read("nowhere", 0)).epoch == ""


# What the store may have done without an answer


ONE, TWO = UnansweredPromise("standup", key=b"one"), UnansweredPromise("standup", offset=2)


def test_what_was_answered_is_not_asked_for() -> None:
    promises = UnansweredPromises()
    with promises.until_answered(ONE):
        pass
    assert promises.to_be_settled() == ()


@pytest.mark.parametrize("error", [LookupError, asyncio.CancelledError])
def test_unanswered_promise_is_asked_for_until_answered(error: type[BaseException]) -> None:
    promises = UnansweredPromises()
    with pytest.raises(error), promises.until_answered(ONE, TWO):
        raise error
    assert promises.to_be_settled() == (ONE, TWO)
    with promises.until_answered(ONE):
        pass
    assert promises.to_be_settled() == (TWO,)


def test_found_promises_settle_missing_ones_after_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_000.0
    monkeypatch.setattr("gateway.stores.redis.log.time.monotonic", lambda: now)
    promises = UnansweredPromises()
    with pytest.raises(LookupError), promises.until_answered(ONE, TWO):
        raise LookupError
    promises.settle(ONE, found=True)
    promises.settle(TWO, found=False)
    assert promises.to_be_settled() == (TWO,)
    now += 61
    promises.settle(TWO, found=False)
    assert promises.to_be_settled() == ()


def test_each_has_its_turn() -> None:
    promises = UnansweredPromises()
    many = [UnansweredPromise("standup", offset=offset) for offset in range(150)]
    with pytest.raises(LookupError), promises.until_answered(*many):
        raise LookupError
    assert {*promises.to_be_settled(), *promises.to_be_settled()} == set(many)


def publication(offset: int) -> Publication:
    return Publication(offset, 1_000 + offset, said(str(offset)))


def push(offset: int, epoch: str = "e1") -> Push:
    return Push(epoch, offset, publication(offset))


def page(*offsets: int, epoch: str = "e1") -> Page:
    return Page(epoch, 1, offsets[-1], tuple(map(publication, offsets)))


class Heard:
    """A subscriber, and the offsets that it got."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.subscriber = Subscriber(lambda publication: self.offsets.append(publication.offset))


@pytest.fixture
def topic() -> Topic:
    return Topic("standup", "", recorded=True)


@pytest.fixture
def heard(topic: Topic) -> Heard:
    """Subscribed when the meeting was at 3."""
    heard = Heard()
    assert topic.add(heard.subscriber, Position("e1", 0, 1, 3)) == Page("e1", 1, 3)
    return heard


def test_pushes_are_delivered_as_they_come(topic: Topic, heard: Heard) -> None:
    assert not topic.push(push(4))
    assert not topic.push(push(5))
    assert not topic.push(push(5)), "again"
    assert heard.offsets == [4, 5]


def test_gap_is_filled_by_reading_before_early_pushes(topic: Topic, heard: Heard) -> None:
    assert topic.push(push(6)), "4 and 5 are missing"
    assert heard.offsets == []
    topic.fill(page(4, 5), 5)
    assert heard.offsets == [4, 5, 6]
    assert not topic.push(push(7))
    assert heard.offsets == [4, 5, 6, 7]


def test_reading_may_give_what_a_push_has_given(topic: Topic, heard: Heard) -> None:
    topic.push(push(4))
    topic.fill(page(3, 4, 5), 5)
    assert not topic.push(push(5))
    assert heard.offsets == [4, 5]


def test_what_was_trimmed_is_passed_over(topic: Topic, heard: Heard) -> None:
    topic.fill(page(8, 9), 9)
    assert not topic.push(push(10))
    assert heard.offsets == [8, 9, 10]


def test_push_may_precede_the_first_subscription(topic: Topic) -> None:
    heard = Heard()
    assert not topic.push(push(3))
    assert not topic.push(push(4))
    assert topic.add(heard.subscriber, Position("e1", 0, 1, 3)) == Page("e1", 1, 4)
    assert not topic.push(push(5))
    assert heard.offsets == [5]


def test_a_second_subscriber_begins_where_the_first_one_is(topic: Topic, heard: Heard) -> None:
    second = Heard()
    topic.push(push(4))
    assert topic.add(second.subscriber, Position("e1", 0, 1, 5)) == Page("e1", 1, 5)
    topic.push(push(5))
    topic.push(push(6))
    assert (heard.offsets, second.offsets) == ([4, 5, 6], [6])
    topic.remove(second.subscriber)
    topic.push(push(7))
    assert second.offsets == [6]


def test_renewed_log_is_delivered_from_its_beginning(topic: Topic, heard: Heard) -> None:
    assert topic.push(push(1, "e2"))
    assert heard.offsets == []
    assert not topic.take_position(Position("e2", 0, 1, 1))
    assert topic.push(push(4, "e1")), "an old one: the store is asked again"
    assert not topic.push(push(2, "e2"))
    assert heard.offsets == [1, 2]


def test_older_copy_is_delivered_from_its_position(topic: Topic, heard: Heard) -> None:
    assert topic.take_position(Position("e2", 2, 1, 4)), "3 and 4 are missing"
    topic.fill(page(3, 4, epoch="e2"), 4)
    assert heard.offsets == [3, 4]


def test_a_publication_that_cannot_be_read_is_passed_over(topic: Topic, heard: Heard) -> None:
    topic.push(Push("e1", 4, None))
    topic.push(push(5))
    assert heard.offsets == [5]


def test_newest_is_the_highest_offset_seen(topic: Topic, heard: Heard) -> None:
    topic.note_newest("e1", 9)
    topic.note_newest("e0", 12)
    assert topic.newest == 9


def test_subscription_without_pushes_is_found_dead(topic: Topic, heard: Heard) -> None:
    assert not topic.has_dead_subscription()
    topic.push(push(4))
    assert not topic.has_dead_subscription()
    topic.fill(page(5), 5)
    assert not topic.has_dead_subscription(), "its push may be on its way"
    assert topic.has_dead_subscription()
    assert not topic.has_dead_subscription(), "the next one has time as well"
    topic.push(push(6))
    assert not topic.has_dead_subscription()


def test_languages_are_those_of_all_subscribers(topic: Topic, heard: Heard) -> None:
    second = Heard()
    topic.add(second.subscriber, Position("e1", 0, 1, 3))
    assert topic.languages == ""
    heard.subscriber.languages, second.subscriber.languages = frozenset({"ja", "de"}), frozenset({"ja", "fr"})
    assert topic.languages == "de,fr,ja"
