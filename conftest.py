"""What all tests share: how examples and workers are chosen, one Chromium, one gateway with the real engine."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from demo_model import SMALL_MODEL
from gateway.bundled.folder import VARIABLE
from tests.patience import PATIENCE_MS
from tests.processes import IN_A_TERMINAL, UNHURRIED, GatewayProcess, gateway_process
from tests.vllm_server import VllmServer, vllm_server

# How long an example takes says something about the machine, not the code. `make test-long` looks for longer.
hypothesis.settings.register_profile("short", deadline=None, max_examples=50)
hypothesis.settings.register_profile("long", deadline=None, max_examples=1_000)
hypothesis.settings.load_profile("short")

# Left to themselves, two engines bind their threads to the same cores, and wait for each other in loops.
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Where a gateway is to have the bundled model, here and in processes of their own, it gets the small one.
os.environ[VARIABLE] = str(SMALL_MODEL)

# A shell's background jobs ignore Ctrl-C, and so would every program that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent


# `jsonschema` imports it, which compiles 38 grammars of addresses: 4 s in each process, for hardly any test.
_ADDRESSES = ModuleType("rfc3987_syntax")


def _is_valid_syntax(term: str, value: str) -> bool:
    if sys.modules.get(_ADDRESSES.__name__) is _ADDRESSES:
        del sys.modules[_ADDRESSES.__name__]
    return bool(import_module(_ADDRESSES.__name__).is_valid_syntax(term, value))


vars(_ADDRESSES)["is_valid_syntax"] = _is_valid_syntax
if find_spec(_ADDRESSES.__name__) is not None:
    sys.modules.setdefault(_ADDRESSES.__name__, _ADDRESSES)

# File → what its tests share with those of other files, as it takes half a minute to start. The tests that need an
# engine run in this order, those that take longest first; all others before them.
SHARED = {
    "test_remote_engine.py": "vLLM's server",
    "test_engine_contract.py": "vLLM's server",
    "test_page_and_cli.py": "real_gateway",
    "test_real_engine.py": "real_gateway",
    "test_page_meeting.py": "real_gateway",
    "test_dashboards.py": "real_gateway",
    # Its last test with `real_gateway` ends it.
    "test_process.py": "real_gateway",
    "test_faults.py": "faults",
    "test_pool.py": "pool",
}

expect.set_options(timeout=PATIENCE_MS)

# Not `chromium-headless-shell`, though a page costs a third less there: people who left or loaded the page again
# were still seen in the meeting.
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Chromium draws the popup of its address bar as two pages of its own for every window, which nobody sees here and
# which take as long as the page under test. The last list holds, so it names what Playwright turns off, too.
NOT_NEEDED = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
)


@pytest.fixture(autouse=True)
def _logs_as_it_did() -> Iterator[None]:
    """What a test has started in this process logged to the test's own terminal, which is closed by now."""
    loggers = [logging.getLogger(name) for name in ("gateway", "uvicorn.error")]
    before = [(each.handlers, each.propagate, each.level, list(each.filters)) for each in loggers]
    yield
    for logger, (handlers, propagate, level, filters) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate, logger.filters = handlers, propagate, filters
        logger.setLevel(level)


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: two for each core, as half of the time tests wait; of more than 16 most would only start."""
    return min(2 * len(os.sched_getaffinity(0)), 16)


class _Together(LoadFileScheduling):
    """A file's tests stay in one process, and so do all that share an engine, or each would start one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return SHARED.get(Path(file).name, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    # By marks, as this is documented for, it does nothing since pytest 9.2.
    return _Together(config, log) if config.getoption("dist") == "loadgroup" else None


_MARK = "(browser|engine|image|long|slow)"
_ALL_MARKED = re.compile(r"^pytestmark = (pytest\.mark\.\w+(\(.*\))?|\[[^]]*\])$", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test that is wanted are not read: to collect all takes 10 s, in each process.

    With `-m engine` and its like, those without such a mark; with `-m "not engine"`, those that are so as a whole.
    """
    if not re.fullmatch(r"test_\w+\.py", collection_path.name):
        return None
    expression: str = config.getoption("markexpr")
    if re.fullmatch(rf"\(?{_MARK}( or {_MARK})*\)?( and not {_MARK})*", expression):
        text = collection_path.read_text()
        wanted = re.findall(rf"(?<!not )\b{_MARK}", expression)
        return True if not any(f"mark.{mark}" in text for mark in wanted) else None
    if re.fullmatch(rf"not {_MARK}( and not {_MARK})*", expression):
        marks = _ALL_MARKED.search(collection_path.read_text())
        unwanted = set(re.findall(_MARK, expression))
        return True if marks and unwanted & set(re.findall(rf"mark\.{_MARK}\b", marks[0])) else None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begin = {name: place for place, name in enumerate(SHARED)}
    items.sort(key=lambda item: begin.get(item.path.name, len(begin)) if "engine" in item.keywords else -1)
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            # What Playwright gives can only be used in the event loop that it began in.
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One Chromium for all tests; each has contexts of its own, which share no storage, cache or cookies."""
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        pytest.fail("There is no Chromium on the PATH; scripts/system_packages.sh installs one.")
    async with async_playwright() as playwright:
        args = [*CHROMIUM_ARGS, f"--disable-features={','.join(NOT_NEEDED)}"]
        chromium = await playwright.chromium.launch(executable_path=path, args=args, timeout=PATIENCE_MS)
        yield chromium
        await chromium.close()


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the test names no proxy, whatever that of the tests does."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Where screenshots go."""
    folder = ROOT / "artifacts"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def starting_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """What becomes `real_gateway`: its engine still loads for the first test that asks for it.

    As `make demo` starts it, in a terminal, but on a free port, and open to pages of other origins.
    """
    file = tmp_path_factory.mktemp("real_gateway") / "gateway.toml"
    file.write_text('allowed_origins = ["*"]\n')
    arguments = ("--host", "127.0.0.1", "--config", str(file))
    with gateway_process(*arguments, env=UNHURRIED, prefix=IN_A_TERMINAL) as process:
        yield process.listening()


@pytest.fixture(scope="session")
def real_gateway(starting_gateway: GatewayProcess) -> GatewayProcess:
    """One gateway with the bundled model on the real engine, shared by the tests that leave it as it was."""
    return starting_gateway.ready()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_server() -> AsyncIterator[VllmServer]:
    """One `vllm serve` with the bundled model, shared by tests that may kill its engine: `VllmServer.revive`."""
    async with vllm_server(max_num_seqs=4, api_key="secret") as server:
        yield server
