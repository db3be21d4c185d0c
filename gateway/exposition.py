"""The metrics of several processes as one page, with a label that says whose each sample is.

Knows: Prometheus' text format. Must not know: what is measured, who asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

__all__ = ["merged"]

_ABOUT = re.compile(r"# (?:HELP|TYPE) (\S+)")
# A name, labels if there are any, and the rest.
_SAMPLE = re.compile(r"([^\s{]+)(?:\{(.*)\})?( .*)")


def merged(
    pages: Iterable[tuple[str, bytes]],
    *,
    label: str,
    wanted: Callable[[str, str], bool] = lambda _whose, _name: True,
) -> bytes:
    """One page, in which each metric is described once and every sample says in `label` whose it is.

    pages: whose it is, and the page; pages of "" keep their samples as they are.
    wanted: whether a metric, given whose page it is on and its name, is taken.
    """
    about: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for whose, page in pages:
        name = ""
        for line in page.decode().splitlines():
            if (described := _ABOUT.match(line)) is not None:
                name = described.group(1)
                if wanted(whose, name):
                    lines = about.setdefault(name, [])
                    # As the first of them describes it.
                    if line.split(" ", 2)[1] not in {known.split(" ", 2)[1] for known in lines}:
                        lines.append(line)
            elif line and not line.startswith("#") and wanted(whose, name):
                samples.setdefault(name, []).append(_labelled(line, label, whose))
    lines = [line for name in about for line in (*about[name], *samples.get(name, ()))]
    return "".join(f"{line}\n" for line in lines).encode()


def _labelled(line: str, label: str, whose: str) -> str:
    sample = _SAMPLE.fullmatch(line)
    if not whose or sample is None:
        return line
    name, labels, rest = sample.groups()
    own = f'{label}="{whose}"'
    # What the process itself says of whose it is gives way: it does not know the others. A number but 0 tells
    # several of its own apart.
    labels = re.sub(rf'(?:^|(?<=,)){label}="(?=[1-9])', f'exported_{label}="', labels or "")
    labels = re.sub(rf'(?:^|(?<=,)){label}="[^"]*",?', "", labels).rstrip(",")
    return f"{name}{{{f'{own},{labels}' if labels else own}}}{rest}"
