#!/bin/sh
# Find a Python that can build .venv, and run scripts/install.py with it.
# PYTHON=/path/to/python chooses another one.
set -eu
cd "$(dirname "$0")/.."

suits() { # Whether this Python runs and has a version that the locks cover. (A name on the PATH may be a stub.)
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

if [ -n "${PYTHON:-}" ]; then
    suits "$PYTHON" || {
        echo "install: PYTHON=$PYTHON is not a working Python 3.11, 3.12, 3.13 or 3.14." >&2
        exit 1
    }
    exec "$PYTHON" scripts/install.py --chosen "$@"
fi

without_venv=
for python in python3 python3.13 python3.12 python3.11 python3.14; do
    suits "$python" || continue
    if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        exec "$python" scripts/install.py "$@"
    fi
    without_venv="${without_venv:-$python}"
done

if [ -n "$without_venv" ]; then
    version=$("$without_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    cat >&2 <<MESSAGE
install: $without_venv (Python $version) cannot make virtual environments. Debian and Ubuntu have a separate package
         for this. Install it, then run the same command again:
             sudo apt-get install python3-venv          (or python$version-venv)
MESSAGE
else
    cat >&2 <<MESSAGE
install: no Python 3.11, 3.12, 3.13 or 3.14 found on the PATH ($(python3 --version 2>/dev/null || echo "nor any python3")).
         Debian 12 or Ubuntu 24.04 and newer:  sudo apt-get install python3 python3-venv
         Fedora:                               sudo dnf install python3.12
         Elsewhere, with uv:                   uv python install 3.12 && PYTHON="\$(uv python find 3.12)" make install
MESSAGE
fi
exit 1
