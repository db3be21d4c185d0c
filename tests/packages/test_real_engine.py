"""The packages against the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packages.node import output_of
from tests.packages.test_npm_package import ADDRESS, EXAMPLES
from tests.processes import GatewayProcess

pytestmark = [pytest.mark.engine, pytest.mark.slow]


async def test_the_first_example_of_the_npm_package_translates(
    node_project: Path, real_gateway: GatewayProcess
) -> None:
    printed = await output_of(node_project, EXAMPLES[0].replace(ADDRESS, real_gateway.url))
    assert sorted(line[:2] for line in printed) == ["de", "ja"]
    assert any("Guten Morgen" in line for line in printed), printed
