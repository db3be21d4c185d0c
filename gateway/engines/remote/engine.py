"""The `remote` engine: a vLLM server that others run, asked over HTTP with token ids.

Knows: the life of the adapter, which begins when the server answers and ends when it does not any more.
Must not know: the wire, meetings, vLLM. Tokenizers are imported inside `start`, because that takes seconds.

The gateway makes prompts and text, as for an engine of our own, so the server need not know about translations.
It may be one `vllm serve`, or stand in front of several.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway import metrics
from gateway.domain.engine import EngineCapacity, EngineState
from gateway.domain.errors import EngineFailed, EngineUnavailable, StartupError
from gateway.engines.lifecycle import Generation
from gateway.engines.prompting import model_config
from gateway.engines.prompting.completions import OnNews, Prompt
from gateway.engines.prompting.model import prompted_model
from gateway.engines.remote import capabilities
from gateway.engines.remote.completions import Completing, RemoteRequests
from gateway.engines.remote.server import Lost, NotTaken, Server, ServerError
from gateway.engines.translating import TranslatingEngine
from gateway.runtime import cancelled

_log = logging.getLogger(__name__)


class RemoteOptions(Struct, frozen=True, kw_only=True):
    """Everything the adapter needs, by the names of the settings."""

    # Where the server is, `https://gpu.example.com:8000`, without the path of a route.
    url: str
    # What the server calls its API key. None: it asks for none.
    api_key: str | None
    # File whose first word is the key; read at each start of the engine.
    api_key_file: str | None
    # PEM file of the authorities that may sign the server's certificate. None: those of this machine.
    ca_file: str | None
    # The model that the server serves: a folder, or a name on the Hugging Face hub. Only its tokenizer is loaded.
    model: str
    # Prompt family. None: detected from the model.
    family: str | None
    # Sequences that the server runs together; over all replicas, if there are several.
    max_num_seqs: int
    # Tokens of prompt and output together. None: what the server says.
    max_model_len: int | None
    # Sample as the model card recommends, instead of greedily.
    card_sampling: bool
    # Output tokens that every translation may have, and further ones for each source token.
    output_tokens_base: int
    output_tokens_per_source_token: float
    # About how often the server is to send new text, in seconds. 0: every token.
    delta_interval_s: float
    # Longest silence of the server about one generation, in seconds.
    stall_s: float


# How long a start waits for a server that does not answer, in seconds: as long as a large model may take to load.
_WAIT_S = 600.0
# Time between two looks at a server that is not there yet, and at one that is.
_LOOK_S, _WATCH_S = 0.5, 2.0
# Pauses before the looks after which a server is gone. The first looks may go to a replica that is dead.
_PAUSES_S = (0.0, 0.1, 0.2, 0.4, 0.8)


class RemoteEngine(TranslatingEngine):
    """Engine port over a vLLM server."""

    def __init__(self, options: RemoteOptions) -> None:
        super().__init__()
        self._options = options
        self._server: Server | None = None
        self._requests: RemoteRequests | None = None
        self._watching: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[str | None] | None = None

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        try:
            await self._start()
        except StartupError as error:
            self._life.become(EngineState.FAILED, error.message)
            raise
        except (ServerError, EngineFailed, EngineUnavailable) as error:
            refusal = StartupError(f"The server at {self._options.url} cannot translate: {error}.")
            self._life.become(EngineState.FAILED, refusal.message)
            raise refusal from error
        if not self._life.become(EngineState.READY):
            raise StartupError(f"The engine was not started: {self._life.health.reason}.")
        self._watching = asyncio.create_task(self._watch(), name="watch over the server")

    async def _start(self) -> None:
        options = self._options
        self._say("loading the tokenizer")
        config, tokenizer = await asyncio.to_thread(_load, options.model)
        family = model_config.find_family(config, options.model, options.family)
        if self._life.over:
            return
        self._server = Server(options.url, api_key(options), options.ca_file, options.stall_s)
        found = await self._examined(self._server, tokenizer)
        limits = [limit for limit in (options.max_model_len, found.max_model_len) if limit is not None]
        if not limits:
            raise StartupError(f"The server at {options.url} does not say its limit: set engine.max_model_len.")
        self._model = model = await asyncio.to_thread(prompted_model, options, tokenizer, family, min(limits))
        self._profile = model.profile()
        self._requests = RemoteRequests(
            self._server,
            model=found.model,
            logprobs=found.logprobs,
            delta_interval_s=options.delta_interval_s,
            alive=self._answers,
            died=self._died,
        )
        await self._warm_up(tokenizer.encode("1 2 3", add_special_tokens=False), model.sampling)
        _log.info("engine ready: %s at %s, prompt family %s", self._profile.model, options.url, family.name)

    async def _examined(self, server: Server, tokenizer: Any) -> capabilities.Capabilities:
        """What the server can do, once it has loaded its model or was replaced. Raises `StartupError`."""
        options, said = self._options, None
        # Every client sees this, and need not know where the servers are.
        self._say("waiting for the vLLM server")
        try:
            async with asyncio.timeout(_WAIT_S):
                while True:
                    if (why := await capabilities.problem(server)) is None:
                        try:
                            return await capabilities.examine(server, options.url, options.model, tokenizer)
                        except (NotTaken, Lost) as error:  # of several replicas, one may be dead
                            why = str(error)
                    if why != said:
                        said = why
                        _log.warning("the server at %s takes no requests yet: %s", options.url, why)
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            raise StartupError(f"The server at {options.url} takes no requests: {said}.") from None

    async def stop(self) -> None:
        self._end_as_stopped()
        await cancelled(self._watching, self._looking)
        if self._server is not None:
            await self._server.close()

    # ------------------------------------------------------------ death

    async def _watch(self) -> None:
        """Find out that the server is gone also while nothing is generated."""
        while self._life.state is EngineState.READY:
            await asyncio.sleep(_WATCH_S)
            if (why := await self._problem()) is not None:
                self._died(why)

    async def _problem(self) -> str | None:
        """Why nothing answers any more; None if something does. All who ask at the same time share the answer."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="look at the server")
        return await asyncio.shield(self._looking)

    async def _look(self) -> str | None:
        assert self._server is not None  # noqa: S101 -- it is known before anything is generated
        why = None
        for pause_s in _PAUSES_S:
            await asyncio.sleep(pause_s)
            if (why := await capabilities.problem(self._server)) is None:
                return None
        return why

    async def _answers(self) -> bool:
        return await self._problem() is None

    def _died(self, why: str) -> None:
        self._life.become(EngineState.FAILED, f"the server at {self._options.url} is gone: {why}")
        self._generations.end("The server is gone.")

    # ------------------------------------------------------------ generations

    async def _complete(self, generation: Generation, prompt: Prompt, on_news: OnNews) -> None:
        assert self._requests is not None  # noqa: S101 -- made before anything is generated
        await Completing(self._requests, generation, prompt).run(on_news)

    # ------------------------------------------------------------ state

    def capacity(self) -> EngineCapacity:
        """The server counts the requests of others too, so these are counted here."""
        most, count = self._options.max_num_seqs, len(self._generations)
        return EngineCapacity(most, min(count, most), max(0, count - most))

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        own = await asyncio.to_thread(metrics.engine_exposition, names)
        if self._server is None or self._life.state is not EngineState.READY:
            return b""
        with contextlib.suppress(ServerError):
            status, page = await self._server.get("/metrics", _METRICS_S)
            if status == 200:
                own += _of_vllm(page, names)
        return own


# Longest wait for the server's metrics, in seconds; shorter than the gateway's for its engine.
_METRICS_S = 1.5


def _of_vllm(page: bytes, names: Sequence[str]) -> bytes:
    """vLLM's part of a page of metrics, without those of the server's process: all, or only these samples."""
    wanted = "|".join(map(re.escape, names)) if names else "vllm:.*?"
    line = re.compile(rf"^(?:# (?:HELP|TYPE) )?(?:{wanted})[ {{]".encode())
    return b"".join(each for each in page.splitlines(keepends=True) if line.match(each))


def api_key(options: RemoteOptions) -> str | None:
    """The API key. Raises `StartupError` if its file cannot be used."""
    if options.api_key_file is None:
        return options.api_key
    try:
        lines = Path(options.api_key_file).expanduser().read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise StartupError(f"engine.api_key_file {options.api_key_file} cannot be read: {why}.") from None
    if not lines:
        raise StartupError(f"engine.api_key_file {options.api_key_file} is empty.")
    return lines[0]


def _load(model: str) -> tuple[dict[str, Any], Any]:
    """A model's configuration and its tokenizer; takes seconds. Raises `StartupError`."""
    config = model_config.read_config(model)
    from transformers import AutoConfig, AutoTokenizer

    try:
        if config is None:
            config = AutoConfig.from_pretrained(model).to_dict()
            return config, AutoTokenizer.from_pretrained(model)
        return config, AutoTokenizer.from_pretrained(Path(model).expanduser(), local_files_only=True)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise StartupError(f"The tokenizer of {model} cannot be loaded: {first}") from error
