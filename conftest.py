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

from tests.patience import PATIENCE_MS
from tests.processes import GatewayProcess, gateway_process

# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile("without deadlines", deadline=None)
hypothesis.settings.load_profile("without deadlines")

# Left to themselves, two engines bind their threads to the same cores, and wait for each other in loops.
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
os.environ.setdefault("OMP_NUM_THREADS", "1")

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

WITH_REAL_GATEWAY = (
    *("test_real_engine.py", "test_page_meeting.py", "test_page.py", "test_page_and_cli.py", "test_baselines.py"),
    "test_dashboards.py",
)

expect.set_options(timeout=PATIENCE_MS)

# The first is the same browser without windows: a page costs a third less.
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
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
    """A file's tests stay in one process, and so do all that share `real_gateway`, or each would start one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "real_gateway" if Path(file).name in WITH_REAL_GATEWAY else file


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
def real_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway with the bundled model on the real engine, shared by the tests that leave it as it was.

    As `make demo` starts it, but on a free port, and open to pages of other origins.
    """
    file = tmp_path_factory.mktemp("real_gateway") / "gateway.toml"
    file.write_text('allowed_origins = ["*"]\n')
    with gateway_process("--host", "127.0.0.1", "--config", str(file)) as process:
        yield process.ready()
        # A terminal that is closed ends it in order, too.
        assert process.end(signal.SIGHUP) == 0
