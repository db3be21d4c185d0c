"""What all tests share: how examples and workers are chosen, and one gateway with the real engine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import hypothesis
import pytest

from tests.processes import GatewayProcess, gateway_process

# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile("without deadlines", deadline=None)
hypothesis.settings.load_profile("without deadlines")


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: two for each core, as half of the time tests wait; of more than 16 most would only start."""
    return min(2 * len(os.sched_getaffinity(0)), 16)


@pytest.fixture(scope="session")
def real_gateway() -> Iterator[GatewayProcess]:
    """One gateway with the bundled model on the real engine, shared by the tests that leave it as it was."""
    with gateway_process() as process:
        yield process.ready()
        # A terminal that is closed ends it in order, too.
        assert process.end(signal.SIGHUP) == 0
