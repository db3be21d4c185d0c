"""The duties of every adapter of the Engine port.

The simulated engine, a pool of two, the same in a process of its own with both ways of reaching it there, and two
real ones in such a process run the same tests: vLLM's engine, and a real `vllm serve` that is asked from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from demo_model import SMALL_MODEL
from gateway.domain.engine import EngineHealth, EngineState, FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineFailed, EngineUnavailable
from gateway.domain.pairs import PairPattern
from gateway.domain.ports import Engine
from gateway.engines.host import processes, proxy
from gateway.engines.host.processes import Process
from gateway.engines.host.proxy import HostedEngine, start_host
from gateway.engines.host.shared import SharedEngine
from gateway.engines.pool import Lane, Pool
from gateway.engines.prompting.completions import Completions
from gateway.engines.prompting.model import PromptedModel
from gateway.engines.remote.engine import RemoteEngine, RemoteOptions
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.engines.supervisor import RestartPolicy, Supervisor
from gateway.engines.translating import TranslatingEngine
from gateway.engines.vllm.engine import VllmEngine
from gateway.engines.vllm.options import VllmOptions
from tests.generations import events_of
from tests.usual import usual
from tests.vllm_server import VllmServer

pytestmark = pytest.mark.asyncio(loop_scope="session")


# A text that takes longer than any test lasts.
ENDLESS = "one two three four five six seven eight nine " * 10
KINDS = [
    "simulated",
    "pool",
    pytest.param("hosted", marks=pytest.mark.slow),
    pytest.param("shared", marks=pytest.mark.slow),
    pytest.param("vllm", marks=pytest.mark.engine),
    pytest.param("remote", marks=pytest.mark.engine),
]
VLLM = partial(VllmEngine, usual(VllmOptions, model=str(SMALL_MODEL), max_num_seqs=4))
RULES = (Rule(match=ENDLESS, repeat=1_000),)
SIMULATED = partial(SimulatedEngine, Script(first_token_s=0.001, token_s=0.001, max_running=4, rules=RULES))


# Those that run in this process.
HERE = ("simulated", "pool")
ONCE = usual(RestartPolicy, max_restarts=0, restart_backoff_max_s=3_600)
HALF = partial(SimulatedEngine, Script(first_token_s=0.001, token_s=0.001, max_running=2, rules=RULES))


class OfOneWorker(SharedEngine):
    """What a worker has, and with it what its parent does."""

    def __init__(self, build: Callable[[], Completions]) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        path = Path(self._folder.name) / "engine.sock"
        self._hosted = HostedEngine(partial(start_host, build, path), watched=True)
        self._hosted._life.on_change = self._tell

    def _tell(self, health: EngineHealth) -> None:
        # As a parent's word, it comes a little later.
        asyncio.get_running_loop().call_soon(self.follow_parent, health, self._hosted.shared_at)

    async def start(self) -> None:
        await self._hosted.start()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        await self._hosted.stop()
        self._folder.cleanup()


def new_engine(kind: str, server: VllmServer | None = None) -> Engine:
    """One that is not started. server: of the remote kind."""
    match kind:
        case "simulated":
            return SIMULATED()
        case "shared":
            return OfOneWorker(SIMULATED)
        case "pool":
            return Pool([Lane(name, usual(Supervisor, HALF, ONCE), [PairPattern.parse("*")]) for name in "ab"])
        case "remote":
            assert server is not None
            return HostedEngine(partial(start_host, partial(RemoteEngine, remote_options(server.url))))
        case _:
            return HostedEngine(partial(start_host, VLLM if kind == "vllm" else SIMULATED))


def remote_options(url: str) -> RemoteOptions:
    return usual(RemoteOptions, url=url, model=str(SMALL_MODEL), max_num_seqs=4, api_key="secret")


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(kind: str, request: pytest.FixtureRequest) -> VllmServer | None:
    """What a remote engine asks."""
    server: VllmServer | None = request.getfixturevalue("real_server") if kind == "remote" else None
    return server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def others(server: VllmServer | None) -> frozenset[Process]:
    """What runs below this process before there is an engine."""
    if server is not None:
        await server.revive()
    return processes.children()


@pytest.fixture(scope="module")
def unstarted(kind: str, server: VllmServer | None, others: frozenset[Process]) -> Engine:
    return new_engine(kind, server)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def engine(unstarted: Engine) -> AsyncIterator[Engine]:
    assert unstarted.health().state is EngineState.STARTING
    await unstarted.start()
    yield unstarted
    await unstarted.stop()
    assert unstarted.health().state is EngineState.STOPPED


def request(
    request_id: str, text: str = "Good morning, everyone.", target: str = "de", **proposed: Any
) -> TranslationRequest:
    return TranslationRequest(id=request_id, text=text, source="en", target=target, **proposed)


async def generate(engine: Engine, req: TranslationRequest) -> list[TokenEvent]:
    events: list[TokenEvent] = []
    await engine.generate(req, events.append)
    return events


def joined(events: list[TokenEvent]) -> str:
    return "".join(event.text for event in events)


async def until_idle(engine: Engine) -> None:
    """The suite's timeout is the bound."""
    while engine.capacity().running or engine.capacity().waiting or await still_generated(engine):
        await asyncio.sleep(0.01)


async def still_generated(engine: Engine) -> bool:
    """Whether vLLM itself says that something runs or waits."""
    page = (await engine.metrics(["vllm:num_requests_running", "vllm:num_requests_waiting"])).decode()
    return any(float(line.split()[-1]) > 0 for line in page.splitlines() if line.startswith("vllm:"))


async def test_it_is_ready_and_says_what_it_can_do(engine: Engine) -> None:
    assert engine.health().state is EngineState.READY
    assert {"en", "ja", "es", "de", "fr", "zh"} <= set(engine.profile().languages)
    # One that is shared has its slots a little later. The suite's timeout is the bound.
    while engine.capacity().max_running != 4:
        await asyncio.sleep(0.01)


async def test_exactly_the_last_event_finishes(engine: Engine) -> None:
    events = await generate(engine, request("finish"))
    assert [event.finish for event in events[:-1]] == [None] * (len(events) - 1)
    assert events[-1].finish is FinishReason.STOP
    assert sum(event.tokens for event in events) >= len(joined(events).split())
    assert events[-1].prompt_tokens > 0


async def test_the_prefix_cache_tells_nothing_of_other_scopes(engine: Engine) -> None:
    """How many tokens were cached shows in the time to the first token, so it would tell what others said."""
    text = "The plant in Bristol will be closed in March, and nobody outside this room may know about it. " * 3

    async def cached(scope: str, name: str) -> int:
        return (await generate(engine, request(f"scope-{name}", text, cache_scope=scope)))[-1].cached_tokens

    await cached("board", "first")
    own = await cached("board", "again")
    assert await cached("", "shared") == 0
    assert await cached("guesser", "guess") == 0
    assert own > 0 or engine.profile().family == "simulated"


async def test_text_does_not_depend_on_company(engine: Engine) -> None:
    texts = [f"The meeting starts at {hour} o'clock in room {hour}0." for hour in range(2, 12)]
    alone = [joined(await generate(engine, request(f"alone-{n}", text))) for n, text in enumerate(texts)]
    together = await asyncio.gather(
        *(generate(engine, request(f"together-{n}", text)) for n, text in enumerate(texts))
    )
    assert [joined(events) for events in together] == alone
    assert len(set(alone)) == len(texts)


async def test_an_error_of_who_is_told_ends_the_generation(engine: Engine) -> None:
    def broken(_: TokenEvent) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await engine.generate(request("broken", ENDLESS), broken)
    await until_idle(engine)


async def test_cancelling_its_task_ends_the_generation(engine: Engine) -> None:
    first = asyncio.Event()

    reader = asyncio.create_task(engine.generate(request("cancel", ENDLESS), lambda _: first.set()))
    await first.wait()
    reader.cancel()
    await asyncio.wait([reader])
    assert reader.cancelled()
    await until_idle(engine)


async def test_a_text_that_is_too_long_fails_alone(engine: Engine) -> None:
    good, bad = await asyncio.gather(
        generate(engine, request("good")),
        generate(engine, request("bad", "word " * 3_000)),
        return_exceptions=True,
    )
    assert isinstance(bad, EngineFailed)
    assert not isinstance(good, BaseException)
    assert good[-1].finish is FinishReason.STOP


async def test_more_than_fit_together_all_get_through(engine: Engine) -> None:
    results = await asyncio.gather(*(generate(engine, request(f"many-{n}")) for n in range(12)))
    assert len({joined(events) for events in results}) == 1
    await until_idle(engine)


async def test_before_start_nothing_is_taken() -> None:
    remote = RemoteEngine(remote_options("http://127.0.0.1:9"))
    for engine in (
        SimulatedEngine(),
        VllmEngine(usual(VllmOptions, model="/nowhere")),
        remote,
        new_engine("hosted"),
    ):
        with pytest.raises(EngineUnavailable):
            await generate(engine, request("early"))
    with pytest.raises(EngineUnavailable):
        VllmEngine(usual(VllmOptions, model="/nowhere")).profile()
    with pytest.raises(EngineUnavailable):
        remote.profile()
    with pytest.raises(EngineUnavailable):
        new_engine("hosted").profile()
    assert await new_engine("hosted").metrics() == b""


# ---------------------------------------------------------------- prefix and draft

TICKET = "Please update ticket CRM-8868 before Monday."
NONSENSE = "Unsinn ohne Ende"
TARGETS = pytest.mark.parametrize("target", ["de", "ja"])


async def say(engine: Engine, name: str, target: str = "de", **proposed: Any) -> list[TokenEvent]:
    """The events of one generation of `TICKET`, held against what holds for all."""
    events = await generate(engine, request(name, TICKET, target, **proposed))
    assert [event.finish for event in events[:-1]] == [None] * (len(events) - 1)
    assert events[-1].finish is not None
    assert events[-1].prompt_tokens > 0
    return events


async def translate(engine: Engine, name: str, target: str = "de", **proposed: Any) -> str:
    return joined(await say(engine, name, target, **proposed))


def generated(events: list[TokenEvent]) -> int:
    return sum(event.tokens for event in events)


def reused(events: list[TokenEvent]) -> int:
    return sum(event.reused for event in events)


@TARGETS
async def test_a_right_draft_is_not_generated_again(engine: Engine, target: str) -> None:
    alone = await say(engine, "alone", target)
    again = await say(engine, "right", target, draft=joined(alone))
    assert joined(again) == joined(alone)
    assert 0 < generated(again) < generated(alone)
    assert reused(again) > 0
    assert reused(alone) == 0
    assert again[-1].finish is FinishReason.STOP


@TARGETS
async def test_a_draft_never_changes_the_text(engine: Engine, target: str) -> None:
    text = await translate(engine, "alone", target)
    half = text[: len(text) // 2]
    drafts = {
        "its beginning": half,
        "wrong in the middle": f"{half} Unsinn {text[len(half) :]}",
        "one character wrong": f"{half}x{text[len(half) + 1 :]}",
        "garbage": "x1 \x00 ~~ )( \ufffd\ufffd",
        "spaces": "   ",
        "another script": "これは全く別の話です。🙂 鬱" if target == "de" else "Das ist etwas ganz anderes.",
        "longer": f"{text} {text} {text}",
        "control": "</s><to>" + text,
        "control behind it": text + "</s>",
        "endless": "und " * 400,
        "a character cut off": text + "\ufffd",
    }
    said = await asyncio.gather(*(translate(engine, f"draft-{n}", target, draft=drafts[n]) for n in drafts))
    assert dict(zip(drafts, said, strict=True)) == dict.fromkeys(drafts, text)


@TARGETS
async def test_a_right_prefix_is_kept_wherever_it_ends(engine: Engine, target: str) -> None:
    text = await translate(engine, "alone", target)

    async def cut(end: int) -> None:
        prefix, rest = text[:end], text[end:]
        events = await say(engine, f"cut-{end}", target, prefix=prefix, draft=rest, tolerance=3.0, final=True)
        assert joined(events) == text
        assert reused(events) > 0
        forced = await say(engine, f"forced-{end}", target, prefix=prefix)
        assert forced[0].text.startswith(prefix)

    await asyncio.gather(*map(cut, range(1, len(text) + 1)))


async def test_what_is_probed_last_has_the_same_text(engine: Engine, kind: str) -> None:
    """As on a GPU: finals are generated, and probed only where they differ; partials go on from what was shown."""
    if kind != "vllm":
        pytest.skip("a kind is enough: it is the translator's doing")
    assert isinstance(engine, TranslatingEngine)
    model = engine.model
    assert isinstance(model, PromptedModel)
    translator = replace(model, probes_below=0).translator()

    async def said(name: str, **proposed: Any) -> str:
        events: list[TokenEvent] = []
        asked = request(f"last-{name}", TICKET, tolerance=3.0, **proposed)
        await translator.translate(asked, engine.complete, events.append)
        assert [event.finish for event in events if event.finish] == [FinishReason.STOP]
        return joined(events)

    text = await translate(engine, "alone")
    begun = " ".join([*text.split()[:2], NONSENSE])
    seen = [text[:end] for end in range(1, len(text) + 1)]
    disbelieved = [NONSENSE, begun, "全く別の話", "</s>", "und " * 400]
    finals = await asyncio.gather(*(said(f"{n}", prefix=each) for n, each in enumerate([*seen, *disbelieved])))
    assert set(finals) == {text}
    partial = await said("partial", prefix=begun, draft=text, final=False)
    assert partial.startswith(begun)


async def test_a_partial_keeps_a_right_prefix(engine: Engine) -> None:
    text = await translate(engine, "alone", final=False)
    prefix = " ".join(text.split()[:3])
    events = await say(engine, "kept", prefix=prefix, tolerance=3.0, final=False)
    assert joined(events) == text
    assert events[0].text.startswith(prefix)
    assert events[0].reused > 0
    assert events[-1].finish is FinishReason.STOP


@pytest.mark.parametrize("final", [True, False], ids=["final", "partial"])
async def test_without_a_tolerance_any_prefix_is_kept(engine: Engine, final: bool) -> None:
    async def kept(name: str, prefix: str) -> None:
        text = await translate(engine, f"forced-{name}", prefix=prefix, final=final)
        assert text.startswith(prefix)
        assert await translate(engine, f"drafted-{name}", prefix=prefix, draft=" falsch", final=final) == text

    prefixes = (NONSENSE, f"{NONSENSE} ", "全く別の話", "</s>", "<to>", "<s><en><de><final>x<to>", "a</s>b")
    await asyncio.gather(*(kept(str(n), prefix) for n, prefix in enumerate(prefixes)))


async def test_final_drops_a_prefix_the_model_disbelieves(engine: Engine) -> None:
    text = await translate(engine, "alone")
    begun = " ".join([*text.split()[:2], NONSENSE])
    for prefix in (NONSENSE, begun, "全く別の話", "</s>", "und " * 400):
        events = await say(engine, "dropped", prefix=prefix, draft=text, tolerance=3.0)
        assert joined(events) == text
        assert events[-1].finish is FinishReason.STOP


async def test_partial_ends_at_a_prefix_the_model_disbelieves(engine: Engine) -> None:
    text = await translate(engine, "alone", final=False)
    begun = " ".join([*text.split()[:2], NONSENSE])
    for prefix in (NONSENSE, begun, "全く別の話", "</s>"):
        events = await say(engine, "rejected", prefix=prefix, draft=text, tolerance=3.0, final=False)
        assert joined(events) == ""
        assert [event.finish for event in events] == [FinishReason.REJECTED]


@pytest.mark.parametrize("turns", [0, 1, 3, 10, 30, 100])
async def test_cancelling_during_a_draft_ends_the_generation(engine: Engine, turns: int) -> None:
    endless = request(f"look-{turns}", ENDLESS, prefix="eins", draft=" zwei drei" * 30, tolerance=50.0)
    reader = asyncio.create_task(generate(engine, endless))
    for _ in range(turns):
        await asyncio.sleep(0)
    has_ended = reader.done()  # where others take the processor, it may be through before the last turn
    reader.cancel()
    await asyncio.wait([reader])
    assert reader.cancelled() or has_ended
    await until_idle(engine)


async def test_cancelling_its_task_behind_a_draft_ends_the_generation(engine: Engine) -> None:
    begun = ""
    async with contextlib.aclosing(events_of(engine, request("begun", ENDLESS))) as generation:
        async for event in generation:
            begun += event.text
            if len(begun) > 150:
                break
    await until_idle(engine)
    # On a busy machine it may be all there is; something has to be left to generate.
    begun = begun[: len(begun) // 3]
    for events in (1, 2):
        taken: list[TokenEvent] = []
        # On a busy machine all of it may be there before this test runs again: then once more.
        while len(taken) < events or taken[-1].finish is not None:
            generation = events_of(engine, request(f"behind-{events}", ENDLESS, draft=begun))
            taken = []
            with contextlib.suppress(StopAsyncIteration):
                while len(taken) < events:
                    taken.append(await anext(generation))
            assert taken[0].reused > 0
            await generation.aclose()
            await until_idle(engine)


async def test_drafts_do_not_depend_on_company(engine: Engine) -> None:
    text = await translate(engine, "alone")
    results = await asyncio.gather(*(translate(engine, f"cut-{end}", draft=text[:end]) for end in range(12)))
    assert set(results) == {text}


# ---------------------------------------------------------------- death: last, as the real engine above dies of it


async def begin(engine: Engine, count: int) -> list[asyncio.Task[list[TokenEvent]]]:
    """So many generations, each past its first token or waiting in the engine."""
    running = [asyncio.create_task(generate(engine, request(f"endless-{n}", ENDLESS))) for n in range(count)]
    while engine.capacity().running < min(count, 4):
        # One that cannot begin says why; without it this would wait for the suite's timeout.
        ended = [each.result() for each in running if each.done()]
        assert len(ended) < count
        await asyncio.sleep(0.01)
    return running


async def all_unavailable(running: list[asyncio.Task[list[TokenEvent]]]) -> None:
    """All but those that are complete: on a busy machine some are before this test runs again."""
    outcomes = await asyncio.gather(*running, return_exceptions=True)
    assert any(isinstance(outcome, EngineUnavailable) for outcome in outcomes)
    for outcome in outcomes:
        complete = isinstance(outcome, list) and outcome[-1].finish is not None
        assert complete or isinstance(outcome, EngineUnavailable), outcome


async def until_failed(engine: Engine) -> None:
    """The suite's timeout is the bound."""
    while engine.health().state is not EngineState.FAILED:
        await asyncio.sleep(0.01)


def kill(engine: Engine, kind: str, started: frozenset[Process], number: int, server: VllmServer | None) -> None:
    """The process that generates; for the real one, that is the one below its host, or below vLLM's server."""
    if isinstance(engine, SimulatedEngine):
        engine.fail("killed")
    if isinstance(engine, Pool):
        for lane in engine.lanes().values():
            assert isinstance(lane, Lane)
            assert isinstance(lane.engine, Supervisor)
            assert isinstance(lane.engine.engine, SimulatedEngine)
            lane.engine.engine.fail("killed")
    if server is not None:
        server.signal_engine(number)
        return
    for process in processes.descendants(started) - started if kind == "vllm" else started:
        os.kill(process.pid, number)


async def stopped(
    engine: Engine, kind: str, server: VllmServer | None, others: frozenset[Process], number: int
) -> None:
    """Its process gets this signal with work to do, and is stopped: what it ran ends, and no process is left."""
    started = processes.children() - others
    assert len(started) == (kind not in HERE)
    tree = processes.descendants(started)
    assert joined(await generate(engine, request("good")))
    running = await begin(engine, 40)
    if number == signal.SIGKILL:
        kill(engine, kind, started, number, server)
        await all_unavailable(running)
        await until_failed(engine)
        with pytest.raises(EngineUnavailable):
            await generate(engine, request("late"))
        assert await engine.metrics() == b""
    elif kind not in HERE:
        kill(engine, kind, started, number, server)
    await engine.stop()
    await all_unavailable(running)
    assert processes.children() == others
    assert not processes.descendants(tree)


async def test_engines_die_hang_and_stop_in_one_process(
    engine: Engine,
    kind: str,
    server: VllmServer | None,
    others: frozenset[Process],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One after another; real ones are that of the tests above as far as possible, as it takes long to start them.

    What a real one in a process of its own does when it hangs: `tests/e2e/test_faults.py`.
    """
    if kind in ("hosted", "shared"):
        # The others hang below their host, which does not wait for so long.
        monkeypatch.setattr(proxy, "_GRACE_S", 0.5)
    engines = [engine]
    if kind not in ("vllm", "remote"):
        # One of its own: where workers share these tests, others may come after this one.
        others = processes.children()
        engines = [new_engine(kind)]
        await engines[0].start()
    if kind != "vllm":
        await stopped(engines[0], kind, server, others, signal.SIGSTOP)
        if server is not None:
            server.signal_engine(signal.SIGCONT)
        engines.append(new_engine(kind, server))
        await engines[1].start()
    await stopped(engines[-1], kind, server, others, signal.SIGKILL)

    # Stopping while it loads.
    loading = SimulatedEngine(Script(load_s=3_600)) if kind in HERE else new_engine(kind, server)
    starting = asyncio.create_task(loading.start())
    while kind not in HERE and processes.children() == others:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0)
    starting.cancel()
    await loading.stop()
    await asyncio.wait([starting])
    assert starting.cancelled()
    assert processes.children() == others
    engines.append(loading)
    for each in engines:
        await each.stop()
        assert each.health().state is EngineState.STOPPED
    # The log of one that failed is kept, and that of one that stopped is not.
    if kind == "vllm":
        logs = [each.log_path for each in engines if isinstance(each, HostedEngine)]
        assert [log is not None and log.exists() for log in logs] == [True, False]
