"""Makes a release, up to what only its maintainer can do: publish it.

    python -m scripts.release VERSION          try it: build everything in dist/VERSION, and change nothing else
    python -m scripts.release VERSION --tag    do it: commit the release on main, too, and tag it, here only

All work is done in a clone of the last commit, so a release that fails leaves no trace. There the version is
set, what is unreleased in CHANGELOG.md and docs/upgrading.md becomes that version, and this is committed.
Everything is built twice, and both have to be equal; the gateway's wheel has to start and serve its page.
docs/releasing.md has the steps before and after.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import venv
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
# The only place that the version is read from.
VERSION_FILE = "gateway/__init__.py"
# Both have a section of what is not released yet.
NOTES = ("CHANGELOG.md", "docs/upgrading.md")
UNRELEASED = "## Unreleased\n"
# Pages that name the packages of the newest version. One has another version as its example.
NAMING = ("*.md", "examples", ":!docs/releasing.md")
NAMED = re.compile(r"(translation[-_]gateway(?:[-_]client)?[- ])\d+\.\d+\.\d+")


class ReleaseError(Exception):
    """There can be no release. The text says why."""


# -- Texts ---------------------------------------------------------------------------------------------------


def with_version(text: str, version: str) -> str:
    """The module's text with another version. Raises `ReleaseError` if it has not exactly one."""
    text, count = re.subn(r'^__version__ = ".*"$', f'__version__ = "{version}"', text, flags=re.MULTILINE)
    if count != 1:
        raise ReleaseError(f"{VERSION_FILE} has {count} versions.")
    return text


def with_packages(text: str, version: str) -> str:
    """A text with this version in the names of packages, such as `translation-gateway-client-1.4.0.tgz`."""
    return NAMED.sub(rf"\g<1>{version}", text)


def with_released(text: str, version: str, day: date) -> str:
    """The page with what was unreleased below the version's heading, and nothing unreleased.

    A page that has the version's heading already, and nothing unreleased, stays as it is: its release was prepared
    by hand. Raises `ReleaseError` if nothing is unreleased, or something beside a version that was prepared.
    """
    before, heading, after = text.partition(UNRELEASED)
    unreleased, _, _ = after.partition("\n## ")
    if f"\n## {version} - " in text:
        if unreleased.strip():
            raise ReleaseError(f"has lines below the heading Unreleased, beside those of {version}.")
        return text
    if not heading or not unreleased.strip():
        raise ReleaseError("has nothing below the heading Unreleased.")
    return f"{before}{heading}\n## {version} - {day.isoformat()}\n{after}"


def refusal(version: str, current: str, tags: list[str]) -> str | None:
    """Why there can be no release of this version, if there cannot."""
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        return f"{version} is not a version: three numbers, such as 1.4.0."
    if f"v{version}" in tags:
        return f"{version} is released already: there is a tag v{version}."
    if numbers(version) < numbers(current):
        return f"{version} is lower than the current version, {current}."
    return None


def numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


# -- Steps ---------------------------------------------------------------------------------------------------


def git(*arguments: str | Path, folder: Path) -> str:
    """What git prints. Raises `CalledProcessError`."""
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def release(version: str, *, tag: bool) -> None:
    """Raises `ReleaseError`, or `CalledProcessError` if a tool fails."""
    check(version, tag=tag)
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name) / "release"
        git("clone", "--quiet", "--no-tags", ROOT, clone, folder=ROOT)
        # What builds is the environment of this checkout; what is built is the clone.
        (clone / ".venv").symlink_to(ROOT / ".venv")
        commit(clone, version)
        say("building everything")
        first = built(clone, Path(name) / "first", umask=0o022)
        say("building it again, for a user with another umask, to compare")
        second = built(clone, Path(name) / "second", umask=0o077)
        if (first / "SHA256SUMS").read_text() != (second / "SHA256SUMS").read_text():
            kept = shutil.copytree(first.parent, tempfile.mkdtemp(), dirs_exist_ok=True)
            raise ReleaseError(f"The same commit gave different files: {kept}/first and {kept}/second.")
        say("starting the gateway's wheel")
        start(next(first.glob("translation_gateway-*.whl")), version)
        target = DIST / version
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(first, target)
        if tag:
            git("pull", "--quiet", "--ff-only", clone, "HEAD", folder=ROOT)
            git("tag", "--annotate", "--message", f"Release {version}", f"v{version}", folder=ROOT)
    for file in sorted(target.iterdir()):
        print(f"  {file.relative_to(ROOT)}  {file.stat().st_size / 1000:,.0f} kB")
    if tag:
        print(f"v{version} is committed and tagged here. docs/releasing.md says how to publish it.")
    else:
        print(f"This was a trial. To commit and tag it: make release VERSION={version} TAG=1")


def check(version: str, *, tag: bool) -> None:
    """Whether there can be a release. Raises `ReleaseError`."""
    (current,) = re.findall(r'^__version__ = "(.*)"$', (ROOT / VERSION_FILE).read_text(), re.MULTILINE)
    if reason := refusal(version, current, git("tag", folder=ROOT).split()):
        raise ReleaseError(reason)
    if changed := git("status", "--porcelain", folder=ROOT):
        raise ReleaseError(f"There are changes that are not committed:\n{changed}")
    branch = git("branch", "--show-current", folder=ROOT)
    if tag and branch != "main":
        raise ReleaseError(f"Releases are made on main; this is {branch or 'no branch'}.")


def commit(clone: Path, version: str) -> None:
    """The commit of the release, in the clone."""
    module = clone / VERSION_FILE
    module.write_text(with_version(module.read_text(), version))
    for name in git("ls-files", *NAMING, folder=clone).splitlines():
        page = clone / name
        if (text := page.read_text()) != (named := with_packages(text, version)):
            page.write_text(named)
    today = datetime.now(UTC).date()
    for name in NOTES:
        page = clone / name
        try:
            page.write_text(with_released(page.read_text(), version, today))
        except ReleaseError as error:
            raise ReleaseError(f"{name} {error}") from None
    if not git("status", "--porcelain", folder=clone):
        return
    for key in ("user.name", "user.email"):
        # They may be set in the checkout alone.
        if value := git("config", "--default", "", key, folder=ROOT):
            git("config", key, value, folder=clone)
    git("commit", "--quiet", "--all", "--message", f"Release {version}", folder=clone)


def built(clone: Path, folder: Path, *, umask: int) -> Path:
    """The folder, with what is built from the clone. Raises `ReleaseError`."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.packages", folder],
        cwd=clone,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        umask=umask,
    )
    if done.returncode:
        raise ReleaseError(f"What it is made of could not be built:\n{done.stderr}")
    return folder


def start(wheel: Path, version: str) -> None:
    """Install the wheel where the checkout is not, start the gateway from it, and ask for its page.

    Raises `ReleaseError` if it does not come.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder, with_pip=False)
        (packages,) = folder.glob("lib/python*/site-packages")
        # What the wheel asks for is here already. The checkout is here, too, but it is not found this way.
        here = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "locked.pth").write_text("\n".join(here) + "\n")
        pip = [sys.executable, "-m", "pip", f"--python={folder}/bin/python", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "install", "--quiet", "--no-index", "--no-deps", "--ignore-installed", str(wheel)], check=True
        )
        gateway = f"{folder}/bin/gateway"
        # A checkout that the maintainer's environment names must not come before the wheel.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        said = subprocess.run(
            [gateway, "--version"], check=True, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        )
        if said.stdout.split()[-1] != version:
            raise ReleaseError(f"The wheel says that it is {said.stdout.strip()}.")
        process = subprocess.Popen(
            [
                gateway,
                "serve",
                "--engine",
                "simulated",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--log-format",
                "text",
            ],
            cwd=folder,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            addresses = (re.search(r"Ready: (http://\S+)", line) for line in process.stderr or ())
            address = next(filter(None, addresses), None)
            if address is None:
                raise ReleaseError("The gateway ended instead of starting.")
            try:
                with urllib.request.urlopen(address[1]) as answer:  # noqa: S310 -- our own address
                    if b"/built/" not in answer.read():
                        raise ReleaseError("The page is older than its sources; run `make page`.")
            except OSError as error:
                raise ReleaseError(f"The gateway does not serve its page: {error}") from None
        finally:
            process.terminate()
            process.communicate()


def say(what: str) -> None:
    print(f"release: {what}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make release", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("--tag", action="store_true", help="commit and tag it, here only")
    arguments = parser.parse_args()
    try:
        release(arguments.version, tag=arguments.tag)
    except (ReleaseError, subprocess.CalledProcessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
