from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def torch() -> Any:
    """Imported when it is needed: two seconds that whoever only collects these tests need not wait."""
    pytest.importorskip("tokenizers")
    torch = pytest.importorskip("torch")
    # Several threads wait for each other in loops, for minutes where others use the cores, too.
    torch.set_num_threads(1)
    return torch
