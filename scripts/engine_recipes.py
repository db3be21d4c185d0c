"""Replicas of a model behind one address, a gateway in front of them, and a replica that is killed under load.

    .venv/bin/python scripts/engine_recipes.py router     # two `vllm serve` behind vllm-router
    .venv/bin/python scripts/engine_recipes.py ray        # two replicas of Ray Serve LLM

Each is the recipe of docs/engines.md with the bundled model. It starts everything, translates, kills one replica's
engine while translations run, and goes on. It ends with 0 if every accepted utterance was translated. The packages
of a recipe (`vllm-router`, `ray[serve]`) are not in our locks: install them beside the gateway, or into a folder
that PYTHONPATH names.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from demo_model import SMALL_MODEL  # noqa: E402
from gateway.client import connect  # noqa: E402
from gateway.engines.host import processes  # noqa: E402
from gateway.protocol.messages import TranslationFailed, TranslationFinal  # noqa: E402
from loadtest.systems.gateway import gateway_process  # noqa: E402
from loadtest.systems.server import Server, free_port, serving  # noqa: E402
from tests.vllm_server import FLAGS, vllm_server  # noqa: E402

REPLICAS = 2
# Sequences that each replica runs together.
MAX_NUM_SEQS = 8
# Speakers, and seconds of load before and after the kill.
SPEAKERS = 12
BEFORE_S, AFTER_S = 5.0, 15.0

SENTENCES = [
    "Let's move the launch to Friday.",
    "Good morning, everyone.",
    "Please update ticket CRM-8868 before Monday.",
    "Can you see my screen?",
    "The meeting starts at three o'clock in room forty-two.",
]


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


# ---------------------------------------------------------------- the recipes

# In a folder: the address of the replicas, and what kills one of them.
Recipe = Callable[[Path], contextlib.AbstractAsyncContextManager[tuple[str, Callable[[], None]]]]


@asynccontextmanager
async def router(folder: Path) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """Two `vllm serve` behind vllm-router, which leaves out a server that is not healthy."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(vllm_server(MAX_NUM_SEQS)) for _ in range(REPLICAS)]
        say(f"vllm serve at {', '.join(server.url for server in servers)}")
        port = free_port()
        command = [
            *(sys.executable, "-m", "vllm_router.launch_router", "--host", "127.0.0.1", "--port", str(port)),
            *("--worker-urls", *(server.url for server in servers), "--policy", "power_of_two"),
            # A gateway repeats what is lost, from where it was; a router would begin again.
            *("--disable-retries", "--health-check-interval-secs", "1", "--health-failure-threshold", "1"),
            *("--prometheus-port", str(free_port())),
        ]
        started = Server("vllm-router", command, port, folder / "router.log", ready_path="/health")
        await stack.enter_async_context(serving(started, "vllm-router", lambda _: None))
        yield started.url, lambda: servers[0].signal_engine(signal.SIGKILL)


RAY = f"""
import sys
import ray
from ray import serve
from ray.serve.llm import LLMConfig, build_openai_app

port, model, *_ = sys.argv[1:]
config = LLMConfig(
    model_loading_config=dict(model_id="translator", model_source=model),
    # On GPUs, leave this out, and the three arguments after max_num_seqs.
    accelerator_config=dict(kind="cpu"),
    deployment_config=dict(num_replicas={REPLICAS}),
    engine_kwargs=dict(
        max_num_seqs={MAX_NUM_SEQS}, dtype="float32", enforce_eager=True, block_size=32,
        distributed_executor_backend="mp", **{FLAGS!r}
    ),
)
# It reserves more CPUs than there are here.
ray.init(num_cpus=2 * {REPLICAS} + 1, include_dashboard=False)
serve.start(http_options=dict(host="127.0.0.1", port=int(port)))
serve.run(build_openai_app(dict(llm_configs=[config])), blocking=True)
"""


@asynccontextmanager
async def ray(folder: Path) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """Two replicas of Ray Serve LLM, with direct streaming: its default ingress lacks the route."""
    port = free_port()
    app = folder / "app.py"
    app.write_text(RAY)
    environment = os.environ | {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "TORCHDYNAMO_DISABLE": "1",
    }
    command = [sys.executable, str(app), str(port), str(SMALL_MODEL)]
    started = Server(
        "Ray Serve", command, port, folder / "ray.log", environment=environment, ready_path="/v1/models"
    )

    def kill() -> None:
        below = processes.descendants(processes.with_pids(started.pid))
        victim = next(process for process in sorted(below, key=lambda each: each.pid) if _is_engine(process.pid))
        os.kill(victim.pid, signal.SIGKILL)

    async with serving(started, "Ray Serve", lambda _: None):
        yield started.url, kill
        # Its processes have sessions of their own, and engines outlive the replicas that started them.
        below = processes.descendants(processes.with_pids(started.pid))
        await started.end()
        await asyncio.to_thread(processes.kill, below, 10.0)


def _is_engine(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"EngineCore" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


RECIPES: dict[str, tuple[str, Recipe]] = {"router": ("vllm_router", router), "ray": ("ray", ray)}


# ---------------------------------------------------------------- load


class Load:
    """Speakers who say one sentence after another, and what became of them."""

    def __init__(self) -> None:
        self.accepted = self.translated = 0
        self.failed: list[str] = []
        self.slowest_s = 0.0
        self._ends = asyncio.Event()

    def end(self) -> None:
        self._ends.set()

    async def speak(self, url: str, speaker: int) -> None:
        async with connect(url, speaks="en", reads=["de", "ja"]) as session:
            number = speaker
            while not self._ends.is_set():
                began_s = time.monotonic()
                await session.final(f"{SENTENCES[number % len(SENTENCES)]} {number}")
                self.accepted += 1
                number += 1
                await self._outcomes(session, 2)
                self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)

    async def _outcomes(self, session: object, count: int) -> None:
        async for message in session:  # type: ignore[attr-defined]
            if isinstance(message, TranslationFailed):
                self.failed.append(f"{message.code}: {message.message}")
            elif isinstance(message, TranslationFinal):
                self.translated += 1
            else:
                continue
            count -= 1
            if not count:
                return


async def run(name: str) -> int:
    package, recipe = RECIPES[name]
    if importlib.util.find_spec(package) is None:
        say(f"This recipe needs the package {package}; see docs/engines.md.")
        return 2
    with tempfile.TemporaryDirectory(prefix=f"recipe-{name}-") as folder:
        try:
            return await _run(recipe, Path(folder))
        except BaseException:
            _show_logs(Path(folder))
            raise


def _show_logs(folder: Path) -> None:
    for log in folder.glob("*.log"):
        print(f"--- {log.name}", *log.read_text(errors="replace").splitlines()[-40:], sep="\n")


async def _run(recipe: Recipe, folder: Path) -> int:
    began_s = time.monotonic()
    async with recipe(folder) as (url, kill):
        say(f"the engine is at {url}, after {time.monotonic() - began_s:.0f} s")
        engine = {"kind": "remote", "url": url, "max_num_seqs": REPLICAS * MAX_NUM_SEQS}
        gateway = gateway_process({"engine": engine}, folder)
        async with serving(gateway, "gateway", lambda _: None):
            say("the gateway is ready")
            load = Load()
            async with asyncio.TaskGroup() as tasks:
                for speaker in range(SPEAKERS):
                    tasks.create_task(load.speak(gateway.url, speaker))
                await asyncio.sleep(BEFORE_S)
                say(f"{load.translated} translations in {BEFORE_S:g} s; now a replica is killed")
                kill()
                before = load.translated
                await asyncio.sleep(AFTER_S)
                load.end()
            say(f"{load.translated - before} translations in {AFTER_S:g} s after it")
            say(
                f"{load.accepted} utterances accepted, {load.translated} of {2 * load.accepted} translations, "
                f"{len(load.failed)} failed; the slowest utterance took {load.slowest_s:.1f} s"
            )
            for each in sorted(set(load.failed)):
                say(each)
        for line in (folder / "gateway.log").read_text().splitlines():
            if " WARNING " in line or " ERROR " in line:
                print(line)
    return 0 if load.translated == 2 * load.accepted else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe", choices=RECIPES)
    return asyncio.run(run(parser.parse_args().recipe))


if __name__ == "__main__":
    raise SystemExit(main())
