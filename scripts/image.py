"""Build the container image: with Docker where its daemon answers, else with buildah, to be run by podman.

Run it through `make image`; `make image-test` runs what it built. It knows the command lines of these tools and,
where there is no Docker, how pip finds packages on this machine: in the build it has to find them in the same way.
It uses the standard library alone, because .venv need not be there.

The fallback is for machines on which no daemon can run, as in continuous integration: buildah needs nothing but
root (`--isolation chroot`). Where the image that the Dockerfile begins with cannot be pulled, one like it is made
of Debian's packages.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
IMAGE = "translation-gateway"
TARGETS = ("cpu", "cuda")
# What was built is known by it when a later build has taken over its name.
LABEL = f"org.opencontainers.image.title={IMAGE}"
# Made where the image that the Dockerfile names cannot be pulled; never taken for that one, having its own name.
BASE_IMAGE = "localhost/translation-gateway-base:bookworm"
# Debian's package → what it brings.
PACKAGES = {
    "buildah": ("buildah",),
    "podman": ("podman",),
    "runc": ("runc", "crun"),
    "catatonit": ("catatonit", "/usr/libexec/podman/catatonit"),  # --init
}
BASE_PACKAGES = {
    "debootstrap": ("debootstrap", "/usr/sbin/debootstrap"),
    "debian-archive-keyring": ("/usr/share/keyrings/debian-archive-keyring.gpg",),
}

BUILD_LIMIT_S = 3_600
PULL_LIMIT_S = 600
BASE_LIMIT_S = 900


class ImageError(Exception):
    """The image cannot be built. The text says what happened and what to do about it."""


class Tool(ABC):
    """What builds images and runs containers; `command` is its command line, which for both tools is Docker's."""

    command: str

    @abstractmethod
    def build(self, target: str, tag: str) -> None:
        """Build a target of the Dockerfile."""

    @abstractmethod
    def run(self, tag: str, name: str, port: int, *arguments: str, shm_size: str | None = None) -> list[str]:
        """The command that runs a gateway read-only, as docs/operations.md says, on a port of loopback.

        arguments: for `gateway serve`.
        """

    def clean(self) -> None:
        """Remove the images that were built, and what they were built upon."""
        for tag in (f"{IMAGE}:cpu", f"{IMAGE}:cuda"):
            self.remove(tag)
        prune = [self.command, "image", "prune", "--force", "--filter", f"label={LABEL}"]
        check(prune, limit_s=300, what="remove earlier builds")

    def remove(self, tag: str) -> None:
        if succeeds(self.command, "image", "inspect", tag):
            check([self.command, "image", "rm", tag], limit_s=300, what=f"remove {tag}")


class Docker(Tool):
    command = "docker"

    def build(self, target: str, tag: str) -> None:
        build = [self.command, "build", "--target", target, "--label", LABEL, "--tag", tag, str(ROOT)]
        check(build, limit_s=BUILD_LIMIT_S, what="build the image")

    def run(self, tag: str, name: str, port: int, *arguments: str, shm_size: str | None = None) -> list[str]:
        options = [*hardened(name, shm_size), "--publish", f"127.0.0.1:{port}:8000"]
        return [self.command, "run", *options, tag, *arguments]


class Podman(Tool):
    command = "podman"

    def build(self, target: str, tag: str) -> None:
        install(PACKAGES, "There is no Docker daemon here: buildah builds the image, and podman runs it.")
        base = find_base()
        with pip_settings() as mounts:
            options = [f"--volume={path}:{inside}:ro" for path, inside in mounts.items()]
            if base is not None:
                options.append(f"--from={base}")
            build = [
                *("buildah", "build", "--isolation", "chroot", "--network", "host"),
                # In this format an image has a health check; --layers keeps the engine between builds.
                *("--format", "docker", "--layers", "--target", target, "--label", LABEL, "--tag", tag),
                *(*options, str(ROOT)),
            ]
            check(build, limit_s=BUILD_LIMIT_S, what="build the image")

    def run(self, tag: str, name: str, port: int, *arguments: str, shm_size: str | None = None) -> list[str]:
        # The limits that podman would set may be above those of this machine, which it may not raise then.
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        processes = min(32_768, *(limit for limit in resource.getrlimit(resource.RLIMIT_NPROC) if limit > 0))
        options = [
            *hardened(name, shm_size),
            "--read-only-tmpfs=false",  # as Docker does it: what is to be writable has to be named
            *("--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}"),
            # Networks of containers take rights that are missing where there is no daemon.
            *("--network", "host"),
        ]
        manager: list[str] = []
        if not Path("/run/systemd/system").is_dir():
            manager = ["--cgroup-manager", "cgroupfs"]
            options.append("--no-healthcheck")  # it is systemd that would ask
        return [self.command, *manager, "run", *options, tag, "--port", str(port), *arguments]

    def clean(self) -> None:
        super().clean()
        self.remove(BASE_IMAGE)


def hardened(name: str, shm_size: str | None) -> list[str]:
    shared = [] if shm_size is None else ["--shm-size", shm_size]
    rights = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]  # noqa: S108
    return ["--rm", "--init", "--name", name, *shared, *rights]


def find_tool() -> Tool:
    """Docker if its daemon answers, else podman, with buildah."""
    return Docker() if succeeds("docker", "version", "--format", "{{.Server.Version}}") else Podman()


# -- What the fallback needs -------------------------------------------------------------------------------------


def install(packages: Mapping[str, tuple[str, ...]], why: str) -> None:
    """Install what is missing of these packages of Debian or Ubuntu, having said so."""
    say(why)
    missing = [
        name for name, brings in packages.items() if not any(map(shutil.which, brings)) and not any_file(brings)
    ]
    if not missing:
        return
    by_hand = f"apt-get install --no-install-recommends {' '.join(missing)}"
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ImageError(
            f"{' '.join(missing)} must be installed, which this needs root and apt-get for. "
            f"Do it by hand, or start Docker:\n    sudo {by_hand}"
        )
    say(f"Installing with apt-get: {' '.join(missing)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ("apt-get -q update", by_hand.replace("install", "-q -y install", 1)):
        check(command.split(), limit_s=600, what=f"install {' '.join(missing)}", env=quiet)


def any_file(paths: tuple[str, ...]) -> bool:
    return any(path.startswith("/") and Path(path).exists() for path in paths)


def find_base() -> str | None:
    """The image to begin with, if it is not the one that the Dockerfile names and that can be pulled."""
    name = base_name((ROOT / "Dockerfile").read_text())
    say(f"Looking for {name} …")
    pulled = subprocess.run(
        bounded(["podman", "pull", "--quiet", name], PULL_LIMIT_S), capture_output=True, text=True, check=False
    )
    if pulled.returncode == 0:
        return None
    say(f"{name} cannot be pulled: {(pulled.stderr.strip() or 'it took too long').splitlines()[-1]}")
    if succeeds("podman", "image", "exists", BASE_IMAGE):
        say(f"{BASE_IMAGE}, made earlier of Debian's packages, takes its place.")
    else:
        make_base()
    return BASE_IMAGE


def base_name(dockerfile: str) -> str:
    """The image that a Dockerfile begins with, its arguments filled in."""
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)$", dockerfile, re.MULTILINE))
    first = re.search(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    if first is None:
        raise ImageError("The Dockerfile has no FROM.")
    return re.sub(r"\$\{(\w+)\}", lambda match: arguments[match.group(1)], first.group(1))


def make_base() -> None:
    """Debian 12 with its Python, which is the version that the Dockerfile asks for, and as there with its headers.

    With them the engine compiles its launchers of kernels.
    """
    install(BASE_PACKAGES, f"Making {BASE_IMAGE} of Debian's packages with debootstrap, in about a minute …")
    folder = Path(tempfile.mkdtemp(prefix="image-base-"))
    try:
        root = folder / "root"
        debootstrap = [
            *(shutil.which("debootstrap") or "/usr/sbin/debootstrap", "--variant=minbase"),
            *("--include=python3,python3-venv,libpython3-dev,ca-certificates", "bookworm", str(root)),
            *debian_mirror(),
        ]
        check(debootstrap, limit_s=BASE_LIMIT_S, what="make a base image", log=folder / "debootstrap.log")
        (root / "usr/bin/python").symlink_to("python3")
        archive = folder / "root.tar"
        check(["tar", "-C", str(root), "-cf", str(archive), "."], limit_s=300, what="pack the base image")
        check(["podman", "import", "--quiet", str(archive), BASE_IMAGE], limit_s=300, what="import the base image")
    finally:
        # What an interrupted debootstrap leaves mounted is not for us to delete.
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)


def debian_mirror() -> list[str]:
    """Where this machine's apt finds Debian 12, if it does."""
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [line.split() for line in targets.stdout.splitlines()]
    return [row[2] for row in rows if row[:2] == ["bookworm", "main"]][:1]


# -- How this machine's pip finds packages -----------------------------------------------------------------------


@contextmanager
def pip_settings() -> Iterator[dict[Path, Path]]:
    """What to mount into the build, for pip to find packages there as it does here: path → path inside."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    settings = parse_settings(listing.stdout)
    with tempfile.TemporaryDirectory(prefix="image-pip-") as folder:
        file = Path(folder) / "pip.conf"
        file.write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
        yield {file: Path("/etc/pip.conf"), **{path: path for path in named_paths(settings)}}


def parse_settings(listing: str) -> dict[str, str]:
    """The settings that `pip config list` prints, by name; the environment wins over files."""
    found = re.findall(r"^(:env:|[\w-]+)\.([\w-]+)=(.+)$", listing, re.MULTILINE)
    in_order = sorted(found, key=lambda row: row[0] == ":env:")
    return {name: str(ast.literal_eval(value)) for _, name, value in in_order}


def named_paths(settings: Mapping[str, str]) -> list[Path]:
    """The files and folders of this machine that pip's settings name."""
    paths: set[Path] = set()
    for name, value in settings.items():
        for word in value.split():
            url = urlsplit(word)
            if url.scheme not in ("", "file") or not url.path.startswith("/"):
                continue
            path = Path(unquote(url.path))
            # The pages of an index lead to files beside it.
            if name.endswith("index-url") and path.parent != Path("/"):
                path = path.parent
            if path.exists():
                paths.add(path)
    return sorted(paths)


# -- Running and reporting ---------------------------------------------------------------------------------------


def bounded(command: list[str], limit_s: int) -> list[str]:
    """The same command, that ends with all it started after so long."""
    return ["timeout", "--kill-after=30", str(limit_s), *command]


def check(
    command: list[str], *, limit_s: int, what: str, env: Mapping[str, str] | None = None, log: Path | None = None
) -> None:
    """Run a command; its output goes to the terminal, or to a file of which the end is shown when it fails."""
    if log is None:
        status = subprocess.run(bounded(command, limit_s), env=env, check=False).returncode
    else:
        with log.open("w") as file:
            status = subprocess.run(
                bounded(command, limit_s), env=env, stdout=file, stderr=subprocess.STDOUT, check=False
            ).returncode
    if status != 0:
        said = "" if log is None else "\n" + "\n".join(log.read_text(errors="replace").splitlines()[-8:])
        reason = f"it took more than {limit_s} s" if status == 124 else f"exit status {status}"
        raise ImageError(f"Could not {what} ({reason}): {' '.join(command)}{said}")


def succeeds(*command: str) -> bool:
    try:
        return subprocess.run(bounded([*command], 30), capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/image.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["build", "clean"], help="build the image, or remove what was built")
    wish = os.environ.get("ENGINE") or "cpu"
    parser.add_argument("--target", choices=TARGETS, default=wish, help="which engine (default: $ENGINE, or cpu)")
    arguments = parser.parse_args()
    if arguments.target not in TARGETS:  # argparse does not check a default
        parser.error(f"ENGINE={arguments.target}: choose cpu or cuda")
    tag = f"{IMAGE}:{arguments.target}"
    try:
        tool = find_tool()
        if arguments.action == "clean":
            tool.clean()
            return 0
        began = time.monotonic()
        tool.build(arguments.target, tag)
        say(f"Built {tag} in {time.monotonic() - began:.0f} s.")
    except ImageError as error:
        print(f"\nimage: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
