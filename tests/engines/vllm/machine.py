"""A machine as the test says it is."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest


def has_shared(monkeypatch: pytest.MonkeyPatch, free_mib: float) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=int(free_mib * 2**20)))
