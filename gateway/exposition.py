"""The metrics of several processes as one page, with a label that says whose each sample is.

Pages are in Prometheus' text format. While there are traces, processes add examples to samples, in OpenMetrics'
way. Scrapers get them in that format only (`as_open_metrics`), and else none (`as_text`).
Knows: both formats. Must not know: what is measured, who asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

OPEN_METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_ABOUT = re.compile(r"# (?:HELP|TYPE) (\S+)")
# A name, labels if there are any, and the rest.
_SAMPLE = re.compile(r'([^\s{]+)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?( .*)')
# An example: its labels, value and time, at the end of a sample.
_EXAMPLE = re.compile(rb' # \{(?:[^"}\n]|"(?:[^"\\\n]|\\.)*")*\} [^\n]*$', re.MULTILINE)
# What describes a counter: in one format the name is that of its samples, in the other it is the stem.
_COUNTER = re.compile(rb"^# HELP (\S+) (.*)\n# TYPE \1 counter$", re.MULTILINE)


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


def has_examples(page: bytes) -> bool:
    """Whether a sample has one."""
    return _EXAMPLE.search(page) is not None if b" # {" in page else False


def as_text(page: bytes) -> bytes:
    """Without examples, which the text format does not have."""
    return _EXAMPLE.sub(b"", page) if b" # {" in page else page


def as_open_metrics(page: bytes) -> bytes:
    """The same in OpenMetrics' format, with examples."""

    def described(found: re.Match[bytes]) -> bytes:
        name, help = found.groups()
        if not name.endswith(b"_total"):
            return b"# HELP %b %b\n# TYPE %b unknown" % (name, help, name)
        stem = name.removesuffix(b"_total")
        return b"# HELP %b %b\n# TYPE %b counter" % (stem, help, stem)

    page = _COUNTER.sub(described, page)
    return re.sub(rb"^(# TYPE \S+) untyped$", rb"\1 unknown", page, flags=re.MULTILINE) + b"# EOF\n"


def from_open_metrics(page: bytes) -> bytes:
    """A page that is in OpenMetrics' format, as the pages here are: with its examples."""
    page = _COUNTER.sub(rb"# HELP \1_total \2\n# TYPE \1_total counter", page)
    page = re.sub(rb"^(# TYPE \S+) unknown$", rb"\1 untyped", page, flags=re.MULTILINE)
    return page.removesuffix(b"# EOF\n")


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
