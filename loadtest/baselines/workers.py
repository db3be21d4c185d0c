"""Which baselines there are, what one of them is made of, how a load test starts it; the queue and the worker
processes behind it: each text gets its translation back.

Knows: their shapes, the gateway's settings, the command, processes, a queue, how a batch is gathered, what a
worker translates with: vLLM's offline `LLM`, or a script. Must not know: HTTP, clients.

When a worker is gone, everything that waits ends with an error, and nothing is accepted from then on.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager, suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from gateway.config import EngineSettings, Settings
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import EngineFailed
from gateway.engine import engine_options
from gateway.engines.host import processes
from gateway.engines.host.orphans import exit_with_parent
from gateway.engines.prompting.encoding import EncodedPrompt
from gateway.engines.simulated import Rule, Script
from gateway.engines.vllm.arguments import engine_arguments, engine_environment
from loadtest.options import Say
from loadtest.systems.prompting import gateway_settings, prompts
from loadtest.systems.server import Running, Server, free_port, serving
from loadtest.trial.values import Http


class Plan(Struct, frozen=True, kw_only=True):
    """What a baseline is made of."""

    # Processes with an engine each, which take from one queue.
    workers: int = 1
    # Texts that a worker generates together, at most.
    batch: int = 1
    # How long a batch may wait for further texts, from its first one on.
    window_s: float = 0.05
    # Texts in the queue before a request is refused.
    max_waiting: int = 1_000
    # Settings of each worker's engine, as the gateway has them.
    engine: EngineSettings = EngineSettings()


ARCHITECTURES = {"one-worker": Plan(), "two-workers": Plan(workers=2), "static-batching": Plan(batch=16)}


def plan(architecture: str, settings: dict[str, Any]) -> Plan:
    """An architecture's plan. settings: a gateway's, of which `engine` counts. Raises `LoadtestError`."""
    made = ARCHITECTURES[architecture]
    engine = gateway_settings(settings).engine
    # A batch that the engine took in parts would be no static batch.
    return replace(made, engine=replace(engine, max_num_seqs=max(engine.max_num_seqs, made.batch)))


@asynccontextmanager
async def baseline(made: Plan, name: str, told: dict[str, Any], say: Say) -> AsyncIterator[Running]:
    """A baseline of this plan, ready; it, its workers and their engines are gone when the block ends.

    told: its settings, for reports. say: told how far it is. Raises `LoadtestError` when it cannot start.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="loadtest-baseline-") as folder:
        file = Path(folder, "plan.json")
        file.write_bytes(msgspec.json.encode(made))  # noqa: ASYNC240 -- a page at most
        # However this process ends, the engines must not stay behind.
        command = [sys.executable, "-m", "loadtest.baselines", str(file), str(port), str(os.getpid())]
        server = Server(f"The baseline {name}", command, port, Path(folder, "baseline.log"))
        async with serving(server, name, say):
            yield Running(name, Http(server.url), told, server.pid, f"{server.url}/metrics")


# ---------------------------------------------------------------- what a worker translates with


class Job(Struct, frozen=True):
    """One text for one language."""

    text: str
    source: str
    target: str


class Translation(Struct, frozen=True):
    """What an engine made of a job."""

    text: str = ""
    tokens: int = 0
    # A sentence; None when it was translated.
    failed: str | None = None


class SimulatedBatches:
    """The gateway's simulated engine, for batches: its words and times. One takes as long as its longest text;
    translations come in the order of the jobs when all are done."""

    def __init__(self, script: Script) -> None:
        self._script = script
        time.sleep(script.load_s)

    def translate(self, jobs: Sequence[Job]) -> list[Translation]:
        script = self._script
        rules = [next((rule for rule in script.rules if rule.match in job.text), Rule(match="")) for job in jobs]
        if any(rule.crash_after is not None for rule in rules):
            os.kill(os.getpid(), signal.SIGKILL)
        said = [f"[{job.target}] {job.text}".split() * rule.repeat for job, rule in zip(jobs, rules, strict=True)]
        time.sleep(script.first_token_s + (max(map(len, said)) - 1) * script.token_s)
        return [
            Translation(failed="The script says that this text fails.")
            if rule.fail_after is not None
            else Translation(" ".join(words), len(words))
            for words, rule in zip(said, rules, strict=True)
        ]

    def close(self) -> None:
        pass


class _VllmBatches:
    """vLLM as for offline work, with the gateway's prompts, output limits, sampling and engine arguments."""

    def __init__(self, settings: EngineSettings) -> None:
        own = Settings(engine=settings)
        options = engine_options(own)
        for name, value in engine_environment(options).items():
            os.environ.setdefault(name, value)
        # A model that is not there is told of before vLLM is imported.
        self._prompts = prompts(own)

        from vllm import LLM, SamplingParams
        from vllm.inputs import TokensPrompt

        self._prompt_class, self._sampling_class = TokensPrompt, SamplingParams
        self._llm: Any = LLM(**engine_arguments(options))
        self._sampling = {
            **asdict(self._prompts.sampling),
            "stop_token_ids": self._prompts.encoder.stop_token_ids or None,
            "skip_special_tokens": True,
        }
        self.translate([Job("1 2 3", "en", "de")])

    def translate(self, jobs: Sequence[Job]) -> list[Translation]:
        encoded = asyncio.run(self._encode(jobs))
        generated = iter(self._generate([each for each in encoded if isinstance(each, EncodedPrompt)]))
        return [
            next(generated) if isinstance(each, EncodedPrompt) else Translation(failed=each.message)
            for each in encoded
        ]

    def close(self) -> None:
        # It ends with the process anyway; this way it is told to.
        with suppress(Exception):
            self._llm.llm_engine.engine_core.shutdown()

    async def _encode(self, jobs: Sequence[Job]) -> list[EncodedPrompt | EngineFailed]:
        """All of a batch at once; an error in the place of a text that the model's window does not hold."""

        async def encode(job: Job) -> EncodedPrompt | EngineFailed:
            request = TranslationRequest(id="", text=job.text, source=job.source, target=job.target)
            try:
                return await self._prompts.encoder.encode(request)
            except EngineFailed as error:
                return error

        return await asyncio.gather(*map(encode, jobs))

    def _generate(self, prompts: Sequence[EncodedPrompt]) -> list[Translation]:
        if not prompts:
            return []
        outputs = self._llm.generate(
            [self._prompt_class(prompt_token_ids=prompt.ids) for prompt in prompts],
            [self._sampling_class(max_tokens=prompt.max_tokens, **self._sampling) for prompt in prompts],
            use_tqdm=False,
        )
        completions = [output.outputs[0] for output in outputs]
        return [Translation(each.text.strip(), len(each.token_ids)) for each in completions]


# ---------------------------------------------------------------- the queue and the workers


# For workers to end by themselves, between looks at them, and to be gone once killed.
_LEAVE_S, _LOOK_S, _KILL_S = 10.0, 0.05, 5.0


class Refused(Exception):
    """Nothing is accepted now; its text is a sentence."""


class Timed(Struct, frozen=True):
    """A translation, and how long its text waited before the worker and its answer behind it."""

    translation: Translation
    queue_s: float


class _Waiting(Struct, frozen=True):
    job: Job
    queued_s: float
    answer: asyncio.Future[Timed]


class Workers:
    """The worker processes of one plan.

    reason: why nothing is accepted; empty while texts are. running: texts with workers. on_broken: told once, when
    nothing will be accepted any more.
    """

    def __init__(self, plan: Plan, on_broken: Callable[[], object] = lambda: None) -> None:
        self.reason = "the engines are loading"
        self.running = 0
        self._plan = plan
        self._on_broken = on_broken
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(plan.max_waiting)
        self._unanswered: set[asyncio.Future[Timed]] = set()
        self._loading = plan.workers
        self._left = False
        # Forked after CUDA was touched, a process cannot use it.
        context = multiprocessing.get_context("spawn")
        self._pools = [ProcessPoolExecutor(1, context) for _ in range(plan.workers)]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def waiting(self) -> int:
        """Texts in the queue."""
        return self._queue.qsize()

    def start(self) -> None:
        """Start the processes; their engines load meanwhile."""
        self._tasks = [
            asyncio.create_task(self._work(number, pool)) for number, pool in enumerate(self._pools, start=1)
        ]

    async def translate(self, job: Job) -> Timed:
        """Through the queue and back. Raises `Refused`."""
        if self.reason:
            raise Refused(f"The service takes nothing: {self.reason}.")
        answer: asyncio.Future[Timed] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait(_Waiting(job, time.monotonic(), answer))
        except asyncio.QueueFull:
            raise Refused("Too many texts are waiting.") from None
        self._unanswered.add(answer)
        answer.add_done_callback(self._unanswered.discard)
        return await answer

    async def drain(self) -> None:
        """Accept nothing more; what is under way goes on, and the server waits for the answers."""
        self._refuse("it is being stopped")

    async def stop(self) -> None:
        """End the workers, and whatever still waits for them with an error."""
        idle = not self._loading and not self.running
        self._refuse("it was stopped")
        self._fail("The service was stopped.")
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await asyncio.to_thread(self._end, _LEAVE_S if idle else 0.0)

    def _end(self, patience_s: float) -> None:
        # Engines have processes of their own, which would not be found behind a worker that is gone.
        found = processes.descendants(processes.children())
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        until_s = time.monotonic() + patience_s
        while processes.children() and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
        processes.kill(found, _KILL_S)

    # ------------------------------------------------------------ one worker

    async def _work(self, number: int, pool: ProcessPoolExecutor) -> None:
        loop, doing = asyncio.get_running_loop(), "could not be loaded"
        try:
            await loop.run_in_executor(pool, _load, self._plan.engine)
            self._loading -= 1
            if not self._loading:
                self.reason = ""
            doing = "failed"
            while True:
                batch = await self._take()
                self.running += len(batch)
                began_s, ended_s, made = await loop.run_in_executor(pool, _translate, [each.job for each in batch])
                self.running -= len(batch)
                now_s = time.monotonic()
                for waiting, translation in zip(batch, made, strict=True):
                    if not waiting.answer.done():  # the client may have given up
                        queue_s = began_s - waiting.queued_s + now_s - ended_s
                        waiting.answer.set_result(Timed(translation, queue_s))
        except BrokenProcessPool:
            self._break(f"The process of worker {number} ended.")
        except Exception as error:
            self._break(f"The engine of worker {number} {doing}: {_sentence(error)}")

    async def _take(self) -> list[_Waiting]:
        """Wait for a text, then, for the plan's window, for further ones up to a full batch."""
        batch = [await self._queue.get()]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._plan.window_s):
                while len(batch) < self._plan.batch:
                    batch.append(await self._queue.get())
        return batch

    def _break(self, reason: str) -> None:
        self._fail(reason)
        if not self._left:
            self._refuse(reason.rstrip("."))
            self._on_broken()

    def _refuse(self, reason: str) -> None:
        if not self._left:
            self._left, self.reason = True, reason

    def _fail(self, reason: str) -> None:
        for answer in list(self._unanswered):
            if not answer.done():
                answer.set_result(Timed(Translation(failed=reason), 0.0))


_engines: list[SimulatedBatches | _VllmBatches] = []


def _load(settings: EngineSettings) -> None:
    # Ctrl-C is for the front, which lets its workers finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_with_parent()
    simulated = settings.kind == "simulated"
    engine = SimulatedBatches(settings.script) if simulated else _VllmBatches(settings)
    Finalize(None, engine.close, exitpriority=10)
    _engines.append(engine)


def _translate(jobs: Sequence[Job]) -> tuple[float, float, list[Translation]]:
    """When the engine began and ended, and one translation for each job."""
    began_s = time.monotonic()
    try:
        made = _engines[0].translate(jobs)
    except ValueError as error:
        # The engine refuses this text, and lives on.
        made = [Translation(failed=f"The engine refused this text: {_sentence(error)}")] * len(jobs)
    return began_s, time.monotonic(), made


def _sentence(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
