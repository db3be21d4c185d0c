"""`gateway doctor`: what a gateway would find where it is to be started; `gateway config check`: a part of it.

Knows: how findings are printed. Must not know: what is looked at (`gateway.doctor`), how flags are spelled.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway import config
from gateway.cli.terminal.drawing import printable
from gateway.doctor import Finding, examine


def print_findings(
    config_file: Path | None,
    overrides: Mapping[str, object],
    workers: int | None,
    state_dir: Path | None = None,
) -> int:
    """A line for each: its state, what it is about, and a sentence, with tabs between. Returns the exit status."""
    findings = _about_settings(config_file, overrides)
    if findings[0].state == "ok":
        settings = config.load(config_file, os.environ, overrides)
        findings += asyncio.run(examine(settings, workers=workers, state_dir=state_dir))
    return _print(findings)


def print_whether_settings_are_right(config_file: Path) -> int:
    """Those of these lines that are about settings alone. Returns the exit status."""
    return _print(_about_settings(config_file, {}))


def _about_settings(config_file: Path | None, overrides: Mapping[str, object]) -> list[Finding]:
    """One for each mistake, or one that there is none."""
    mistakes = config.mistakes(config_file, os.environ, overrides)
    can_be_used = Finding("ok", "settings", f"{config_file or 'The settings'} can be used.")
    return [Finding("problem", "settings", mistake) for mistake in mistakes] or [can_be_used]


def _print(findings: Sequence[Finding]) -> int:
    for finding in findings:
        print("\t".join(printable(part) for part in finding))
    return 1 if any(finding.state == "problem" for finding in findings) else 0
