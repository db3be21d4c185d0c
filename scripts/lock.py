"""Write locks/*.txt and locks/package-lock.json: every package the product runs on, pinned.

Run it as `make lock`. It needs uv, packaging and npm (all in .venv after `make install-dev`), a package index and
an npm registry. It changes only locks/. Versions that are already pinned are kept, unless `--upgrade` is given.

It writes five files for Python. An environment is made of `cpu.txt` or `cuda.txt`, then `tools.txt` and
`demo.txt`, then, for developers, `dev.txt`. So packages that are in several files must have the same version; if
not, this script fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

from packaging.markers import Marker

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "locks"
# The supported Python versions and machines; [tool.uv] in pyproject.toml sets the same limits for the resolver.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
# Its CPU build is another file on every index; see locks/README.md.
NOT_HASHED = "torch"
HEADER = "# Written by `make lock` from {sources}. Do not edit; see locks/README.md.\n"


def compile_lock(name: str, *sources: str, extra: list[str], upgrade: bool) -> list[str]:
    """Resolve `sources` for every supported machine and Python; return the requirement lines, each with hashes."""
    output = LOCKS / f"{name}.txt"
    command = [
        *("uv", "pip", "compile", *sources, *extra),
        *("--universal", "--python-version", PYTHONS[0]),
        *("--no-annotate", "--no-header", "--quiet", "--generate-hashes", "--output-file", str(output)),
        *(["--upgrade"] if upgrade else []),
    ]
    print(f"  {name}: resolving", flush=True)
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    # One line for each requirement: the resolver puts each hash on a line of its own.
    text = output.read_text().replace(" \\\n    --hash=", " --hash=")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    plain = [short for line in lines if (short := with_plain_marker(line))]
    return [
        line.partition(" --hash=")[0] if name == "cpu" and project(line) == NOT_HASHED else line for line in plain
    ]


def with_plain_marker(line: str) -> str | None:
    """The requirement with its shortest marker and its hashes; None if it applies to no supported platform.

    The resolver repeats all supported platforms in every marker, which is hard to read.
    """
    requirement, _, hashes = (part.strip() for part in line.partition(" --hash="))
    pin, _, marker = (part.strip() for part in requirement.partition(";"))
    hashes = f" --hash={hashes}" if hashes else ""
    if not marker:
        return pin + hashes
    applies = {
        (python, machine)
        for python, machine in product(PYTHONS, MACHINES)
        if Marker(marker).evaluate(
            {
                "python_version": python,
                "python_full_version": f"{python}.0",
                "platform_machine": machine,
                "sys_platform": "linux",
                "platform_system": "Linux",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
            }
        )
    }
    if not applies:
        return None
    pythons = [python for python in PYTHONS if any(python == p for p, _ in applies)]
    machines = [machine for machine in MACHINES if any(machine == m for _, m in applies)]
    first, last = PYTHONS.index(pythons[0]), PYTHONS.index(pythons[-1])
    if applies != set(product(PYTHONS[first : last + 1], machines)):
        return requirement + hashes
    terms = []
    if first > 0:
        terms.append(f"python_version >= '{pythons[0]}'")
    if last < len(PYTHONS) - 1:
        terms.append(f"python_version < '{PYTHONS[last + 1]}'")
    if len(machines) < len(MACHINES):
        terms.append(f"platform_machine == '{machines[0]}'")
    return (f"{pin} ; {' and '.join(terms)}" if terms else pin) + hashes


def project(line: str) -> str:
    """The normalised project name at the start of a requirement line."""
    match = re.match(r"[A-Za-z0-9._-]+", line)
    if match is None:
        raise ValueError(f"not a requirement: {line!r}")
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def pins(lines: list[str]) -> dict[str, set[str]]:
    """Project → its pins without markers and hashes (a project may be pinned twice, by Python version)."""
    found: dict[str, set[str]] = {}
    for line in lines:
        found.setdefault(project(line), set()).add(line.split(" --hash=")[0].split(";")[0].strip())
    return found


def write(name: str, lines: list[str], sources: str) -> None:
    (LOCKS / f"{name}.txt").write_text(HEADER.format(sources=sources) + "\n".join(lines) + "\n")
    print(f"  {name}: {len(lines)} packages", flush=True)


def lock_page_tools(*, upgrade: bool) -> None:
    """Lock the page's tools. The lock names no registry, so that it is valid on every machine, with any mirror."""
    wanted: dict[str, str] = json.loads((LOCKS / "package.json").read_text())["devDependencies"]
    newest = ["--save-dev", "--save-exact", *(f"{name}@latest" for name in wanted)] if upgrade else []
    command = [
        *("npm", "install", *newest, "--package-lock-only", "--omit-lockfile-registry-resolved"),
        *("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel", "error"),
    ]
    print("  package-lock: resolving", flush=True)
    # Makes npm trust the certificates of this machine, as pip does.
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ}
    subprocess.run(command, cwd=LOCKS, env=environment, check=True, stdout=subprocess.DEVNULL)
    print(f"  package-lock: {', '.join(sorted(wanted))} and what they need", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Pin every package in locks/.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    upgrade: bool = parser.parse_args().upgrade

    cpu = compile_lock(
        *("cpu", "pyproject.toml", "locks/cpu.in"),
        extra=[
            *("--extra", "cpu"),
            *("--overrides", "locks/cpu-overrides.txt", "--excludes", "locks/cpu-excludes.txt"),
        ],
        upgrade=upgrade,
    )
    write("cpu", cpu, "pyproject.toml [cpu] and cpu.in")

    # Prefer the CPU lock's versions wherever CUDA vLLM allows: uv keeps what the output file already pins.
    (LOCKS / "cuda.txt").write_text("\n".join(cpu) + "\n")
    cuda = compile_lock(
        *("cuda", "pyproject.toml", "locks/cuda.in"),
        extra=["--extra", "cuda"],
        upgrade=False,
    )
    write("cuda", cuda, "pyproject.toml [cuda] and cuda.in")

    tools = compile_lock("tools", "locks/tools.in", extra=["-c", "locks/cpu.txt"], upgrade=upgrade)
    write("tools", tools, "tools.in")

    dev = compile_lock(
        *("dev", "pyproject.toml"),
        extra=[
            *("--extra", "dev", "-c", "locks/cpu.txt", "-c", "locks/tools.txt"),
            *("--overrides", "locks/dev-overrides.txt"),
        ],
        upgrade=upgrade,
    )
    # Packages of both engines are pinned only by the engines' locks, so that neither of these changes them.
    in_both = pins(cpu).keys() & pins(cuda).keys()
    demo = compile_lock(
        *("demo", "pyproject.toml"),
        extra=["--extra", "demo", "-c", "locks/cpu.txt"],
        upgrade=upgrade,
    )
    demo = [line for line in demo if project(line) not in in_both]
    write("demo", demo, "pyproject.toml [demo], less what cpu.txt and cuda.txt both pin")
    dev = [line for line in dev if project(line) not in in_both]
    write("dev", dev, "pyproject.toml [dev], less what cpu.txt and cuda.txt both pin")

    lock_page_tools(upgrade=upgrade)

    clashes = [
        f"{name}: {engine} has {sorted(ours[name])}, {other} has {sorted(theirs[name])}"
        for engine, ours in (("cpu.txt", pins(cpu)), ("cuda.txt", pins(cuda)))
        for other, theirs in (("tools.txt", pins(tools)), ("dev.txt", pins(dev)))
        for name in ours.keys() & theirs.keys()
        if ours[name] != theirs[name]
    ]
    for clash in clashes:
        print(f"clash: {clash}", file=sys.stderr)
    return 1 if clashes else 0


if __name__ == "__main__":
    sys.exit(main())
