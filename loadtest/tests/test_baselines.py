"""The baselines through their own HTTP interface: what a client sends, what it must receive, in which order."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from gateway.client import connect
from gateway.protocol.messages import TranslationFinal
from loadtest.baselines.workers import Job, SimulatedBatches, baseline, plan
from loadtest.results import LoadtestError
from loadtest.systems import processes
from loadtest.systems.server import Running, metric
from loadtest.trial.values import Http
from tests.processes import GatewayProcess

ROOT = Path(__file__).parents[2]

SCRIPT = {"first_token_s": 0.1, "token_s": 0.05}
SENTENCE = {"text": "a b c", "source": "en", "target": "de"}
LONG = {"text": "a b c d e f g h i j k", "source": "en", "target": "de"}


def test_the_architectures_are_those_of_the_reports() -> None:
    shapes = {name: plan(name, {}) for name in ("one-worker", "two-workers", "static-batching")}
    assert [(each.workers, each.batch) for each in shapes.values()] == [(1, 1), (2, 1), (1, 16)]


def test_settings_of_a_gateway_say_which_engine() -> None:
    settings = {
        "limits": {"messages_per_s": 100_000},
        "engine": {"model": "x", "max_num_seqs": 4, "gpu_memory_utilization": 0.2, "extra": {"seed": 1}},
    }
    made = plan("static-batching", settings)
    assert (made.engine.model, made.engine.extra) == ("x", {"seed": 1})
    # All of a batch is generated together.
    assert made.engine.max_num_seqs == 16
    with pytest.raises(LoadtestError, match="modell"):
        plan("one-worker", {"engine": {"modell": "x"}})


def test_a_batch_lasts_as_its_longest_text() -> None:
    script = msgspec.convert(SCRIPT, plan("one-worker", {}).engine.script.__class__)
    short, long = SimulatedBatches(script).translate([Job("a b c", "en", "de"), Job("a b c d", "en", "de")])
    assert (short.text, short.tokens) == ("[de] a b c", 4)
    assert (long.text, long.tokens) == ("[de] a b c d", 5)


# ---------------------------------------------------------------- all of it


class Service:
    """A running baseline and a client of it."""

    def __init__(self, running: Running) -> None:
        assert isinstance(running.address, Http)
        assert running.pid is not None
        self.pid = running.pid
        self.url = running.address.url
        self._client = httpx.AsyncClient(base_url=self.url, timeout=300, trust_env=False)

    async def translate(self, body: dict[str, str]) -> httpx.Response:
        return await self._client.post("/translate", json=body)

    async def metric(self, name: str) -> float | None:
        return metric((await self._client.get("/metrics")).text, name)

    async def until(self, name: str, value: float) -> None:
        while await self.metric(name) != value:
            await asyncio.sleep(0.01)

    def workers(self) -> list[int]:
        return [pid for pid in processes.below(self.pid) if "spawn_main" in processes.command(pid)]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Its workers do nothing meanwhile."""
        workers = self.workers()
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in workers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    async def close(self) -> None:
        await self._client.aclose()


@asynccontextmanager
async def serving(architecture: str, **own: Any) -> AsyncIterator[Service]:
    """own: a script besides `SCRIPT`, and what the plan has instead."""
    settings = {"engine": {"kind": "simulated", "script": SCRIPT | own.pop("script", {})}}
    made = replace(plan(architecture, settings), **own)
    async with baseline(made, architecture, {}, lambda _line: None) as running:
        service = Service(running)
        try:
            yield service
        finally:
            await service.close()


@pytest.mark.slow
async def test_one_worker_takes_texts_in_turn() -> None:
    async with serving("one-worker", max_waiting=1) as service:
        ended: list[str] = []

        async def ask(body: dict[str, str]) -> dict[str, Any]:
            response = await service.translate(body)
            ended.append(body["text"])
            answer: dict[str, Any] = response.json()
            return answer

        async with asyncio.TaskGroup() as tasks:
            with service.held():
                first = tasks.create_task(ask(LONG))
                await service.until("baseline_running", 1)
                second = tasks.create_task(ask(SENTENCE))
                await service.until("baseline_waiting", 1)
                # The queue is full.
                refused = await service.translate(SENTENCE)
        assert refused.status_code == 503
        assert "waiting" in refused.json()["error"]
        assert ended == [LONG["text"], SENTENCE["text"]]
        alone, waited = first.result(), second.result()
        assert (alone["text"], alone["tokens"]) == (f"[de] {LONG['text']}", 12)
        assert waited == {"text": f"[de] {SENTENCE['text']}", "tokens": 4}
        assert await service.metric("baseline_tokens_total") == 16
        queue_s = await service.metric("baseline_queue_seconds_total")
        response_s = await service.metric("baseline_response_seconds_total")
        assert queue_s is not None
        assert response_s is not None
        # The second spent in queues at least what the first took in all, by the script.
        assert 0.1 + 11 * 0.05 <= queue_s < response_s
        assert await service.metric("baseline_running") == 0

        below = processes.below(service.pid)
        assert below
        async with asyncio.TaskGroup() as tasks:
            with service.held():
                accepted = [tasks.create_task(service.translate(SENTENCE))]
                # Until then it has the one place in the queue.
                await service.until("baseline_running", 1)
                accepted.append(tasks.create_task(service.translate(SENTENCE)))
                await service.until("baseline_waiting", 1)
                os.kill(service.pid, signal.SIGTERM)
        assert [each.result().status_code for each in accepted] == [200, 200]
        while any(map(processes.resident_mib, [service.pid, *below])):
            await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_two_workers_serve_until_one_dies() -> None:
    async with serving("two-workers") as service:
        first, second = service.workers()
        async with asyncio.TaskGroup() as tasks:
            with service.held():
                asked = [tasks.create_task(service.translate(SENTENCE)) for _ in range(3)]
                await service.until("baseline_waiting", 1)
                assert await service.metric("baseline_running") == 2
        assert {each.result().status_code for each in asked} == {200}

        async with asyncio.TaskGroup() as tasks:
            with service.held():
                asked = [tasks.create_task(service.translate(LONG)) for _ in range(5)]
                await service.until("baseline_waiting", 3)
                os.kill(second, signal.SIGKILL)
                answers = await asyncio.gather(*asked)
        assert first != second
        assert {answer.status_code for answer in answers} == {500}
        assert all("The process of worker" in answer.json()["error"] for answer in answers)


@pytest.mark.slow
async def test_a_static_batch_ends_together() -> None:
    script = {"rules": [{"match": "unlucky", "fail_after": 1}]}
    async with serving("static-batching", batch=2, window_s=3_600.0, script=script) as service:
        began_s, ended_s = time.monotonic(), []

        async def ask(body: dict[str, str]) -> int:
            tokens: int = (await service.translate(body)).json()["tokens"]
            ended_s.append(time.monotonic())
            return tokens

        assert list(await asyncio.gather(ask(SENTENCE), ask(LONG))) == [4, 12]
        # The short one waits for the long one: by the script it alone would have taken a quarter of a second.
        assert min(ended_s) - began_s >= 0.1 + 11 * 0.05
        assert (await service.translate({"text": "no languages"})).status_code == 400
        fails, works = await asyncio.gather(
            service.translate(SENTENCE | {"text": "unlucky"}), service.translate(SENTENCE)
        )
        assert fails.status_code == 500
        assert "script says" in fails.json()["error"]
        assert works.status_code == 200


@pytest.mark.slow
async def test_a_worker_crash_ends_the_service() -> None:
    script = {"rules": [{"match": "poison", "crash_after": 0}]}
    async with serving("one-worker", script=script) as service:
        assert (await service.translate(SENTENCE | {"text": "poison"})).status_code == 500
        while processes.resident_mib(service.pid):
            await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_a_baseline_ends_with_its_load_test() -> None:
    settings = {"engine": {"kind": "simulated"}}
    program = (
        "import asyncio\nfrom loadtest.baselines.workers import baseline, plan\n"
        "async def main():\n"
        f"    made = plan('two-workers', {settings})\n"
        "    async with baseline(made, 'two workers', {}, lambda line: None) as running:\n"
        "        print(running.pid, flush=True)\n        await asyncio.sleep(600)\n"
        "asyncio.run(main())"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    family = [pid, *processes.below(pid)]
    assert len(family) >= 3
    process.kill()
    await process.wait()
    while any(map(processes.resident_mib, family)):
        await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_an_engine_load_failure_is_one_sentence() -> None:
    made = plan("static-batching", {"engine": {"model": "./nowhere"}})
    with pytest.raises(LoadtestError, match=r"static-batching ended with status 1.*worker 1 could not be loaded"):
        async with baseline(made, "static-batching", {}, lambda _line: None):
            pass


@pytest.mark.long
async def test_a_baseline_translates_as_the_gateway_does(real_gateway: GatewayProcess) -> None:
    sentences = ["Good morning, everyone.", "Can you hear me?", "Let's move the launch to Friday."]
    wanted: list[tuple[str, int]] = []
    async with connect(real_gateway.url, reads=["de"], speaks="en") as session:
        for text in sentences:
            await session.final(text)
            async for message in session:
                if isinstance(message, TranslationFinal):
                    wanted.append((message.text, message.tokens))
                    break
    assert wanted[0][0].startswith("Guten Morgen")
    async with baseline(plan("static-batching", {}), "static-batching", {}, lambda _line: None) as running:
        service = Service(running)

        async def ask(text: str) -> dict[str, Any]:
            answer: dict[str, Any] = (
                await service.translate({"text": text, "source": "en", "target": "de"})
            ).json()
            return answer

        # Alone, and in a batch.
        alone = await ask(sentences[0])
        answers = [alone, *await asyncio.gather(*map(ask, sentences))]
        await service.close()
    assert [(each["text"], each["tokens"]) for each in answers] == [wanted[0], *wanted]
