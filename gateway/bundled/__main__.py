"""Says where the bundled model is, and assembles it if it is not there yet.

python -m gateway.bundled                   # in the cache, as the first start of a gateway does
python -m gateway.bundled --into FOLDER     # in a folder that is not there yet
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from gateway.bundled.folder import TERMS, assemble_into, model_folder
from gateway.domain.errors import StartupError


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m gateway.bundled", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="assemble it in this folder, not in the cache")
    into: Path | None = parser.parse_args().into
    tell = partial(print, file=sys.stderr, flush=True)
    try:
        if into is None:
            print(model_folder(tell))
        else:
            tell(f"Assembling the bundled model in {into}, in about 10 s … {TERMS}")
            assemble_into(into)
    except (StartupError, OSError) as error:
        tell(f"gateway.bundled: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
