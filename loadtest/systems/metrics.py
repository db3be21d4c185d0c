"""What a server says of itself: Prometheus' text over HTTP.

Knows: that format. Must not know: what the names mean.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable

_HTTP_S = 10.0

# Ours alone is asked: no proxy that the environment names.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def only(url: str, names: Iterable[str]) -> str:
    """Where these metrics alone are told, if the server knows how: a thousand series take it a while."""
    return f"{url}?{urllib.parse.urlencode([('name[]', name) for name in names])}"


def get(url: str, timeout_s: float = _HTTP_S) -> tuple[int, str]:
    """Status and body; status 0 when nothing answers. Blocks."""
    try:
        with _opener.open(url, timeout=timeout_s) as response:
            return int(response.status), response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")
    except (OSError, ValueError):
        return 0, ""


def metric(text: str, name: str, **labels: str) -> float | None:
    """The sum of a metric over its series with these labels; None when it has none."""
    values = [
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith(name)
        and re.match(r"[{\s]", line[len(name) :])
        and all(f'{label}="{value}"' in line for label, value in labels.items())
    ]
    return sum(values) if values else None


def buckets(text: str, name: str) -> dict[float, float]:
    """A histogram: upper bound → so many not above it, over all series; empty when there is none."""
    counts: dict[float, float] = {}
    for line in text.splitlines():
        if line.startswith(f"{name}_bucket{{") and (found := re.search(r'le="([^"]+)"', line)):
            bound = float(found[1].replace("+Inf", "inf"))
            counts[bound] = counts.get(bound, 0.0) + float(line.rsplit(" ", 1)[1])
    return counts
