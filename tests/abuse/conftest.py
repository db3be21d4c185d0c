"""The honest session beside an attack, and the figures of all attacks, which `make abuse` writes down."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from gateway.client import ClientSession, Reconnecting, connect
from gateway.protocol.codec import JSON, Codec
from gateway.protocol.messages import Error, Pong, TranslationFinal
from tests.processes import GatewayProcess, gateway_process, resident_bytes

# How long each attack lasts, and where the figures go.
SECONDS = float(os.environ.get("ABUSE_S", "2"))
OUT = os.environ.get("ABUSE_OUT")

# What the honest session may wait for a pong beside any attack.
_MOST_P99_MS = 50.0
_P99 = "honest ping p99, ms"

Figures = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def figures() -> Iterator[Figures]:
    """Attack → what was measured."""
    found: Figures = {}
    yield found
    if OUT is not None:
        folder = Path(OUT)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(json.dumps({"seconds": SECONDS, "attacks": found}, indent=1) + "\n")
        (folder / "table.md").write_text(_table(found))
        _plot(found, folder / "plot.png")


def _table(found: Figures) -> str:
    names = list(dict.fromkeys(name for row in found.values() for name in row))
    lines = ["| attack | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += [
        f"| {attack} | " + " | ".join(str(row.get(name, "")) for name in names) + " |"
        for attack, row in found.items()
    ]
    return "\n".join(lines) + "\n"


def _plot(found: Figures, file: Path) -> None:
    """How long the honest session waited beside each attack, and what is too long."""
    from matplotlib.figure import Figure  # a second that the tests need not wait

    waits_ms = [row[_P99] for row in found.values()]
    drawn = Figure(figsize=(7.5, 1 + 0.28 * len(found)), layout="constrained")
    axes = drawn.subplots()
    axes.bar_label(axes.barh(list(found), waits_ms, color="#0072b2"), padding=3, fontsize=8)
    axes.axvline(_MOST_P99_MS, color="#d55e00", linestyle="--", label="longer fails")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlim=(0, 1.1 * max([_MOST_P99_MS, *waits_ms])), xlabel=_P99, title="Beside each attack")
    axes.legend(loc="lower right")
    drawn.savefig(file, dpi=110)


class Honest:
    """A session that does what people do, and what it got."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.events: list[Any] = []
        self.waits_ms: list[float] = []
        self._pong = asyncio.Event()

    async def read(self) -> None:
        async for event in self.session:
            self.events.append(event)
            if isinstance(event, Pong):
                self._pong.set()

    async def ping_on(self) -> None:
        """A ping every 50 ms, each answered."""
        while True:
            began_s = time.monotonic()
            self._pong.clear()
            await self.session.ping()
            await self._pong.wait()
            self.waits_ms.append((time.monotonic() - began_s) * 1_000)
            await asyncio.sleep(0.05)

    async def until(self, kind: type[Any], count: int) -> None:
        """Until so many of a kind have come; the suite's timeout is the bound."""
        while self.count(kind) < count:
            await asyncio.sleep(0.05)

    def count(self, *kinds: type[Any]) -> int:
        return sum(isinstance(event, kinds) for event in self.events)

    async def unharmed(self) -> None:
        """It was neither cut off nor refused anything, and what it says is translated."""
        before = self.count(TranslationFinal)
        await self.session.final("Still here.")
        await self.until(TranslationFinal, before + 1)
        assert not self.count(Error, Reconnecting)


class Scene:
    """A gateway as it comes, an honest session, and attacks from another process."""

    def __init__(self, gateway: GatewayProcess, honest: Honest, figures: Figures) -> None:
        self.gateway = gateway
        self.honest = honest
        self._figures = figures
        self._alone_ms: float | None = None

    async def alone(self) -> None:
        """How long the honest session waits without an attack, to compare with."""
        self.honest.waits_ms = []
        await asyncio.sleep(SECONDS / 2)
        self._alone_ms = round(_p99(self.honest.waits_ms), 1)

    async def attacked(self, name: str, seconds: float = SECONDS, *, row: str | None = None) -> dict[str, Any]:
        """What the attack found. What it did to the honest session and to the memory becomes a figure.

        row: its name there, where that is not the attack's.
        """
        before, self.honest.waits_ms = resident_bytes(self.gateway.process.pid), []
        attack = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.abuse.attacks", name, str(self.gateway.port), str(seconds)),
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await attack.communicate()
        assert attack.returncode == 0
        while not self.honest.waits_ms:
            await asyncio.sleep(0.05)
        grown = resident_bytes(self.gateway.process.pid) - before
        found: dict[str, Any] = json.loads(said)
        self._figures[row or name] = {
            _P99: round(_p99(self.honest.waits_ms), 1),
            **({} if self._alone_ms is None else {"alone, ms": self._alone_ms}),
            "longest, ms": round(max(self.honest.waits_ms), 1),
            "memory, MiB": round(grown / 2**20, 1),
            "found": ", ".join(f"{key} {value}" for key, value in found.items() if key != "answer"),
        }
        if OUT is not None:
            assert _p99(self.honest.waits_ms) < _MOST_P99_MS
        return {**found, "grown": grown}

    def note(self, attack: str, **figures: Any) -> None:
        """More that is to be told of an attack."""
        self._figures[attack] |= figures


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98] if len(values) > 1 else values[0]


@pytest.fixture
def scene(figures: Figures) -> Any:
    """`async with scene(env) as it: ...`; codec: in which the honest session speaks; token: of it.

    workers: of the gateway, if there are several. The memory is their parent's then.
    """

    @asynccontextmanager
    async def opened(
        env: dict[str, str] | None = None,
        codec: Codec = JSON,
        token: str | None = None,
        workers: int | None = None,
    ) -> Any:
        several = () if workers is None else ("--workers", str(workers))
        with gateway_process("--engine", "simulated", *several, env=env) as gateway:
            gateway.ready()
            async with (
                connect(
                    gateway.url, meeting="honest", speaks="en", reads=["ja"], codec=codec, token=token
                ) as honest,
                asyncio.TaskGroup() as tasks,
            ):
                somebody = Honest(honest)
                running = [tasks.create_task(somebody.read()), tasks.create_task(somebody.ping_on())]
                yield Scene(gateway, somebody, figures)
                for task in running:
                    task.cancel()
            assert gateway.end() == 0
            assert "Traceback" not in gateway.said, gateway.said.partition("Traceback")[2][:6000]

    return opened
