"""What the adapter itself decides; that it is an engine is in `tests/contract/test_engine_contract.py`."""

from __future__ import annotations

import pytest

from demo_model import SMALL_MODEL
from gateway.domain.errors import StartupError
from gateway.engines.vllm import hardware
from gateway.engines.vllm.engine import VllmEngine
from gateway.engines.vllm.options import VllmOptions
from tests.usual import usual


async def test_the_engine_is_refused_before_vllm_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    monkeypatch.setattr(hardware, "available_shared_mib", lambda: 64)
    engine = VllmEngine(usual(VllmOptions, model=str(SMALL_MODEL), kv_cache_gib=0.0))
    with pytest.raises(StartupError, match="--shm-size 1g"):
        await engine.start()
    # Its log is made where the import begins.
    assert engine.log_path is None
