"""Install Autobahn's fuzzing client for WebSocket servers into .venv/autobahn, and print the path of its `wstest`.

It runs on Python 2.7 only, which has to be on this machine: on the PATH as python2.7, or below pyenv. Run it with
.venv/bin/python; a second run does nothing. What it installs is used by a test alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".venv" / "autobahn"
WSTEST = FOLDER / "env" / "bin" / "wstest"
# The last version that makes environments of Python 2.7.
VIRTUALENV = "virtualenv==20.15.1"
SUITE = "autobahntestsuite==25.10.1"


def main() -> int:
    if not WSTEST.exists():
        python = find_python()
        if python is None:
            print("autobahn: no Python 2.7 found (python2.7 on the PATH, or below ~/.pyenv)", file=sys.stderr)
            return 2
        shutil.rmtree(FOLDER, ignore_errors=True)
        tools = FOLDER / "virtualenv"
        run(sys.executable, "-m", "pip", "install", "--target", str(tools), VIRTUALENV)
        environment = {**os.environ, "PYTHONPATH": str(tools)}
        run(sys.executable, "-m", "virtualenv", "-p", python, str(FOLDER / "env"), env=environment)
        run(str(FOLDER / "env" / "bin" / "pip"), "install", SUITE)
    print(WSTEST)
    return 0


def find_python() -> str | None:
    """A Python 2.7 that runs; a name on the PATH may be a stub."""
    pyenv = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/2.7*/bin/python2.7"))
    for python in filter(None, [*map(str, pyenv), shutil.which("python2.7")]):
        if subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def run(*command: str, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, env=env, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
