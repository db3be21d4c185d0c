"""`gateway doctor`: what a gateway would find where it is to be started; `gateway config check`: a part of it.

Knows: how findings are printed. Must not know: what is looked at (`gateway.doctor`), how flags are spelled.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from gateway import config
from gateway.cli.terminal.drawing import printable
from gateway.config import Settings
from gateway.doctor import Finding, examine
from gateway.domain.errors import StartupError


def print_findings(
    config_file: Path | None,
    overrides: Mapping[str, object],
    workers: int | None,
    state_dir: Path | None = None,
) -> int:
    """A line for each: its state, what it is about, and a sentence, with tabs between. Returns the exit status."""
    settings, finding = _settings(config_file, overrides)
    findings = [finding]
    if settings is not None:
        findings += asyncio.run(examine(settings, workers=workers, state_dir=state_dir))
    for finding in findings:
        print("\t".join(printable(part) for part in finding))
    return 1 if any(finding.state == "problem" for finding in findings) else 0


def print_whether_settings_are_right(config_file: Path) -> int:
    """The first of these lines alone. Returns the exit status."""
    settings, finding = _settings(config_file, {})
    print("\t".join(printable(part) for part in finding))
    return 1 if settings is None else 0


def _settings(config_file: Path | None, overrides: Mapping[str, object]) -> tuple[Settings | None, Finding]:
    try:
        settings = config.load(config_file, os.environ, overrides)
    except StartupError as error:
        return None, Finding("problem", "settings", error.message)
    return settings, Finding("ok", "settings", f"{config_file or 'The settings'} can be used.")
