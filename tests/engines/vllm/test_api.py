"""Names of vLLM that not every release has."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from gateway.engines.vllm.api import VllmApi


@pytest.fixture
def envs(monkeypatch: pytest.MonkeyPatch) -> Any:
    vllm: Any = types.ModuleType("vllm")
    vllm.envs = types.ModuleType("vllm.envs")
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    monkeypatch.setitem(sys.modules, "vllm.envs", vllm.envs)
    return vllm.envs


@pytest.mark.parametrize(("on", "called"), [(True, ["enabled"]), (False, ["disabled"])])
def test_the_environment_is_cached_or_not(envs: Any, on: bool, called: list[str]) -> None:
    calls: list[str] = []
    envs.enable_envs_cache = lambda: calls.append("enabled")
    envs.disable_envs_cache = lambda: calls.append("disabled")
    VllmApi.cache_environment(object.__new__(VllmApi), on)
    assert calls == called


@pytest.mark.usefixtures("envs")
def test_a_release_without_such_a_cache_does_without() -> None:
    for on in (True, False):
        VllmApi.cache_environment(object.__new__(VllmApi), on)
