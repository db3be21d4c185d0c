"""The entries of a glossary as DeepL's clients send and get them: lines with tabs, or CSV.

Knows: these formats, how many entries there may be. Must not know: where glossaries are kept, requests.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Literal

from gateway.domain.errors import InvalidValue
from gateway.protocol import checks
from gateway.protocol.limits import Limits

Format = Literal["tsv", "csv"]

MOST_ENTRIES = 5_000
"""Of one dictionary."""


def read_entries(text: str, format: Format, limits: Limits) -> dict[str, str]:
    """Source term → target term. Raises `InvalidValue` or `LimitExceeded`."""
    terms: dict[str, str] = {}
    for number, (source, target) in enumerate(_pairs(text, format), start=1):
        if source in terms:
            raise InvalidValue(f"Entry {number}: {source[:40]!r} is there twice.", field="entries")
        if not (source + target).isprintable():
            raise InvalidValue(f"Entry {number} has a character that cannot be printed.", field="entries")
        terms[source] = target
        checks.check_count(len(terms), MOST_ENTRIES, "entries", "entries")
    if not terms:
        raise InvalidValue("A dictionary needs an entry.", field="entries")
    checks.check_terms(terms, limits, "entries")
    return terms


def tab_separated(terms: dict[str, str]) -> str:
    """As `read_entries` reads them."""
    return "\n".join(f"{source}\t{target}" for source, target in terms.items())


def _pairs(text: str, format: Format) -> Iterable[tuple[str, str]]:
    try:
        rows = csv.reader(io.StringIO(text, newline="")) if format == "csv" else _tabs(text)
        for number, row in enumerate(rows, start=1):
            if not any(map(str.strip, row)):
                continue
            # In CSV, the languages of each entry may follow.
            if len(row) not in ((2, 4) if format == "csv" else (2,)):
                raise InvalidValue(f"Line {number} of the entries has not two terms.", field="entries")
            yield row[0].strip(), row[1].strip()
    except csv.Error as error:
        raise InvalidValue(f"The entries are not CSV: {error}.", field="entries") from None


def _tabs(text: str) -> Iterable[list[str]]:
    return (line.split("\t") for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
