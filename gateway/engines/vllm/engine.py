"""The `vllm` engine: one `AsyncLLMEngine` in this process, called directly from the event loop.

Knows: vLLM's arguments, tokenizer and exceptions, where its processes write their log; works on 0.26 (CUDA) and
0.32 (CPU).
Must not know: the wire, meetings. vLLM is imported inside `start`, because the import takes 10 s.

vLLM runs its scheduler and the model in a child process. Its front end, which takes prompts in and hands tokens
out, runs on this process's event loop and can fill a core, so a gateway runs this engine in a process of its own
(`engines.host`). A new prompt joins the running batch at the next step.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from gateway import metrics
from gateway.domain.engine import EngineCapacity, EngineHealth, EngineState, FinishReason
from gateway.domain.errors import EngineFailed, EngineUnavailable, GatewayError, StartupError
from gateway.engines.host import processes
from gateway.engines.lifecycle import Generation
from gateway.engines.prompting import model_config
from gateway.engines.prompting.completions import News, OnNews, Prompt
from gateway.engines.prompting.encoding import PromptEncoder
from gateway.engines.prompting.model import PromptedModel, prompted_model
from gateway.engines.translating import TranslatingEngine
from gateway.engines.vllm import hardware, preflight
from gateway.engines.vllm.arguments import (
    device_environment,
    engine_arguments,
    engine_environment,
    gpus_used,
    shares_memory,
)
from gateway.engines.vllm.completions import EngineLoad, VllmApi, VllmRequests, load_logger
from gateway.engines.vllm.options import VllmOptions
from gateway.engines.vllm.plan import plan

_log = logging.getLogger(__name__)


class EngineLog:
    """A file that several processes append to."""

    def __init__(self) -> None:
        # None before `open`.
        self.path: Path | None = None

    def open(self) -> int:
        """A new file's descriptor, which the caller closes."""
        handle, name = tempfile.mkstemp(prefix="gateway-engine-", suffix=".log")
        os.close(handle)
        self.path = Path(name)
        return os.open(self.path, os.O_WRONLY | os.O_APPEND)

    def take_logger(self) -> None:
        """From now on, what vLLM logs in this process goes there, too; it is open."""
        assert self.path is not None  # noqa: S101 -- it is open
        log_of_vllm = logging.getLogger("vllm")
        log_of_vllm.setLevel(logging.WARNING)
        log_of_vllm.handlers = [logging.FileHandler(self.path)]

    def close(self, *, keep: bool) -> None:
        for handler in logging.getLogger("vllm").handlers:
            handler.close()
        if self.path is not None and not keep:
            self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def output_to(descriptor: int) -> Iterator[None]:
    """Let a process started inside this context inherit `descriptor` as its stdout and stderr.

    The engine's log is long, so it goes to a file. Our own log handlers still write to the terminal, because
    `host.main` gives them a duplicate of the terminal's descriptor before an engine starts.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        for number, original in zip((1, 2), saved, strict=True):
            os.dup2(original, number)
            os.close(original)


class Stage(NamedTuple):
    """What an engine is doing while it starts."""

    doing: str
    # Seconds that it usually takes; None: that is not known.
    usual_s: int | None = None
    # What may take longer, in words.
    more: str = ""

    def sentence(self, passed_s: float) -> str:
        """With how long it takes: the usual time only until it has passed. passed_s: seconds since it began."""
        if self.usual_s is None:
            return self.doing
        more = f", {self.more}" if self.more else ""
        if passed_s <= self.usual_s:
            return f"{self.doing} (about {self.usual_s} s on a CPU{more})"
        # In steps: each other sentence is a line in the log.
        return f"{self.doing} (longer than usual: {passed_s // 10 * 10:.0f} s so far{more})"


class RawEngine(NamedTuple):
    """vLLM's own engine and the parts of a request to it, to measure what the gateway adds."""

    # The `AsyncLLM`.
    llm: Any
    encoder: PromptEncoder
    # Most output tokens → sampling parameters, the same as for translations.
    sampling: Callable[[int], Any]
    # Token ids → prompt.
    tokens_input: Callable[[list[int]], Any]


class VllmEngine(TranslatingEngine):
    """Engine port over `AsyncLLMEngine`. A process starts one at a time."""

    def __init__(self, options: VllmOptions) -> None:
        super().__init__()
        self._options = options
        self._engine: Any = None
        self._load = EngineLoad()
        self._requests: VllmRequests | None = None
        self._api: VllmApi | None = None
        self._others: frozenset[processes.Process] = frozenset()
        self._processes: frozenset[processes.Process] = frozenset()
        self._building: asyncio.Future[None] | None = None
        self._stage, self._stage_since_s = Stage(""), 0.0
        self._log = EngineLog()

    @property
    def log_path(self) -> Path | None:
        return self._log.path

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        try:
            await self._start()
        except Exception as error:
            refusal = preflight.refusal(error, self._options.model, self.log_path)
            self._life.become(EngineState.FAILED, refusal.message)
            raise refusal from error
        self._find_processes()
        self._life.become(EngineState.READY)

    async def _start(self) -> None:
        options = self._options
        self._enter(Stage("reading the model's config"))
        # A name on the hub was looked at before this process was started.
        config, calibration, family = model_config.read_config(options.model), None, None
        if config is not None:
            calibration = model_config.read_calibration(options.model)
            family = plan(options).family
        if shares_memory(options):
            preflight.check_shared_memory()
        handle = self._log.open()
        self._enter(Stage("importing vLLM", usual_s=10))
        self._others = processes.children()
        hub = "" if family else "after the download if the model is not here yet"
        # The thread cannot be cancelled; `stop` waits for it.
        self._building = asyncio.ensure_future(asyncio.to_thread(self._build, handle, hub))
        await asyncio.shield(self._building)
        window = int(self._engine.model_config.max_model_len)
        if family is None:
            config = self._engine.model_config.hf_config.to_dict()
            family = model_config.find_family(config, options.model, options.family)
        tokenizer = self._engine.get_tokenizer()
        model = await asyncio.to_thread(prompted_model, options, tokenizer, family, window, calibration)
        if hardware.gpu_present():
            model = replace(model, probes_below=_PROBES_BELOW)
        self._model = model
        self._profile = model.profile()
        assert self._api is not None  # noqa: S101 -- set by `_build`
        self._requests = VllmRequests(
            self._engine, self._api, self._load, delta_interval_s=options.delta_interval_s
        )
        self._enter(Stage("warming up"))
        try:
            await self._warm_up(tokenizer.encode("1 2 3", add_special_tokens=False), model.sampling)
            # vLLM's objects live as long as the engine. Scanning them for garbage would stop the event loop for a
            # third of a second each time.
            gc.collect()
            gc.freeze()
            self._api.cache_environment(True)
        except (EngineFailed, EngineUnavailable) as error:
            raise StartupError(f"The model loads but cannot translate: {error.message}") from error
        _log.info("engine ready: %s, prompt family %s", self._profile.model, family.name)

    async def stop(self) -> None:
        failed = self.health().state is EngineState.FAILED
        self._end_as_stopped()
        while self._building is not None and not self._building.done():
            # Killing the engine process ends the thread that waits for it. While the thread imports vLLM, there is
            # no process yet, so this is repeated.
            await asyncio.to_thread(self._kill)
            await asyncio.wait([self._building], timeout=_LOOK_S)
        self._find_processes()
        if self._engine is not None:
            # vLLM logs the end of its process as an error, even an intended one.
            logging.getLogger("vllm").setLevel(logging.CRITICAL)
            # vLLM ends its process and waits for it. Its way of doing so changes between versions, so the wait is
            # bounded here.
            shutdown = asyncio.ensure_future(asyncio.to_thread(self._engine.shutdown, _GRACE_S))
            began_s = asyncio.get_running_loop().time()
            await asyncio.wait([shutdown], timeout=2 * _GRACE_S)
            failed |= asyncio.get_running_loop().time() - began_s > _GRACE_S
            if shutdown.done() and (error := shutdown.exception()) is not None:
                _log.warning("vLLM could not shut its engine down: %r", error)
            self._engine = self._requests = None
            if self._api is not None:
                self._api.cache_environment(False)
            gc.unfreeze()
            gc.collect()
        await asyncio.to_thread(self._kill)
        # After a failure, the error message names it for the operator.
        self._log.close(keep=failed)

    def _find_processes(self) -> None:
        self._processes |= processes.descendants(self._processes | (processes.children() - self._others))

    def _kill(self) -> None:
        """Kill all processes of this engine; blocks for a moment."""
        self._find_processes()
        if left := processes.kill(self._processes, _KILL_S):
            _log.error("processes of the engine do not end: %s", ", ".join(str(process.pid) for process in left))

    def _build(self, log: int, hub: str) -> None:
        """Import vLLM and start its engine process; blocks until that is done. Closes `log`.

        hub: what may come first, in words.

        The engine is assigned only to its attribute, never to a local name: vLLM keeps this frame alive until the
        interpreter shuts down, and there the engine's finaliser fails.
        """
        try:
            self._import_and_spawn(log, hub)
        finally:
            os.close(log)
        self._log.take_logger()

    def _import_and_spawn(self, log: int, hub: str) -> None:
        for name, value in engine_environment(self._options).items():
            os.environ.setdefault(name, value)
        os.environ.update(device_environment(self._options))
        with output_to(log):
            self._api = api = VllmApi()
            if self._life.state is EngineState.STOPPED:
                raise StartupError("The gateway was stopped while vLLM was being imported.")
            self._enter(Stage("starting the engine process", usual_s=30, more=hub))
            arguments = {
                # The model's own limit, or what fits into the cache: many take more than any utterance needs.
                "max_model_len": -1,
                "enable_log_requests": False,
                "disable_log_stats": False,
                **engine_arguments(self._options),
            }
            self._engine = api.AsyncLLM.from_engine_args(
                api.AsyncEngineArgs(**arguments),
                stat_loggers=[load_logger(self._load, self._stepped, api.PrometheusStatLogger)],
            )
            # The gateway has its own statistics of requests and tokens. vLLM's cost a tenth of a full event loop;
            # only traces need them. The statistics of the engine's steps are not affected.
            if arguments.get("otlp_traces_endpoint") is None:
                self._engine.log_stats = self._engine.output_processor.log_stats = False

    # ------------------------------------------------------------ generations

    def _stepped(self) -> None:
        if self._requests is not None:
            self._requests.look()

    async def _complete(self, generation: Generation, prompt: Prompt, on_news: OnNews) -> None:
        if self._requests is None or self._api is None:
            raise EngineUnavailable("The engine was stopped.", retry_after_ms=2_000)
        try:
            await self._requests.run(generation, prompt, on_news)
        except GatewayError:
            raise
        except Exception as error:
            # The death of the engine can show as several kinds of exceptions.
            dead = self.health().state in (EngineState.FAILED, EngineState.STOPPED)
            if dead or isinstance(error, self._api.EngineDeadError):
                raise EngineUnavailable("The engine died.", retry_after_ms=2_000) from error
            if isinstance(error, ValueError) and prompt.rows_from is not None:
                # Some configurations of vLLM refuse to tell them. Any other problem shows again without them.
                on_news(News([], FinishReason.LENGTH))
                return
            if isinstance(error, (ValueError, self._api.EngineGenerateError)):
                raise EngineFailed(f"The engine refused this text: {error}") from error
            raise

    def raw(self) -> RawEngine:
        """vLLM's own engine. Raises `EngineUnavailable` until it is ready."""
        self._check()
        requests, model = self._requests, self.model
        assert self._api is not None  # noqa: S101 -- ready engines have it
        assert requests is not None  # noqa: S101 -- ready engines have it
        assert isinstance(model, PromptedModel)  # noqa: S101 -- as it has said
        encoder = model.translator().encoder

        def sampling(max_tokens: int) -> Any:
            prompt = Prompt("", [], max_tokens, model.sampling, tuple(encoder.stop_token_ids))
            made = requests.sampling(prompt)
            made.detokenize = True
            return made

        return RawEngine(self._engine, encoder, sampling, self._api.tokens_input)

    # ------------------------------------------------------------ state

    def _enter(self, stage: Stage) -> None:
        self._stage, self._stage_since_s = stage, time.monotonic()
        self._say(stage.sentence(0))

    def health(self) -> EngineHealth:
        if self._life.state is EngineState.STARTING and self._stage.doing:
            self._say(self._stage.sentence(time.monotonic() - self._stage_since_s))
        if self._life.state is EngineState.READY and self._engine is not None and self._engine.errored:
            self._life.become(EngineState.FAILED, f"the engine process died (log: {self.log_path})")
            self._generations.end("The engine process died.")
        return self._life.health

    def capacity(self) -> EngineCapacity:
        return EngineCapacity(self._options.max_num_seqs, self._load.running, self._load.waiting)

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        # In a thread: a thousand series would hold up the event loop, and with it every next token.
        return await asyncio.to_thread(self._exposition, names)

    def _exposition(self, names: Sequence[str]) -> bytes:
        hardware.show_gpus(gpus_used(self._options))
        return metrics.engine_exposition(names)


# On a GPU: with fewer translations at once a probe costs about what it saves, and keeps partials calmer.
_PROBES_BELOW = 4
# Longest wait for the engine process to end by itself; normally it takes five seconds.
_GRACE_S = 12.0
# Longest wait for a killed process to be gone.
_KILL_S = 5.0
# Time between two attempts to kill an engine that is still starting.
_LOOK_S = 0.1
