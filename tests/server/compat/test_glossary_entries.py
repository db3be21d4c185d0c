"""Entries of glossaries, as DeepL's clients write them."""

from __future__ import annotations

import pytest
from deepl import util
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import GatewayError
from gateway.protocol.limits import Limits
from gateway.server.compat.glossary_entries import MOST_ENTRIES, Format, read_entries, tab_separated

TERMS = st.text(st.characters(categories=["L", "N", "P"], include_characters=" "), min_size=1, max_size=20).filter(
    lambda term: term.strip() == term
)


@given(st.dictionaries(TERMS, TERMS, min_size=1))
def test_what_was_read_is_written_as_deepls_client_reads_it(terms: dict[str, str]) -> None:
    assert read_entries(util.convert_dict_to_tsv(terms), "tsv", Limits()) == terms
    assert util.convert_tsv_to_dict(tab_separated(terms)) == terms


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("a b\tc\nd\te", "tsv"),
        (" a b \tc\r\n\r\nd\te\r\n", "tsv"),
        ('"a b",c\nd,e\n', "csv"),
        ("a b,c,en,de\r\nd,e,en,de\r\n", "csv"),
    ],
)
def test_both_formats(text: str, format: Format) -> None:
    assert read_entries(text, format, Limits()) == {"a b": "c", "d": "e"}


@pytest.mark.parametrize(
    ("text", "format", "said"),
    [
        ("", "tsv", "needs an entry"),
        ("a", "tsv", "Line 1"),
        ("a\tb\nc\td\te", "tsv", "Line 2"),
        ("a,b,c", "csv", "Line 1"),
        ("a\tb\na\tc", "tsv", "Entry 2: 'a' is there twice"),
        ("a\t", "tsv", "empty"),
        ("a\tb\x07", "tsv", "printed"),
        ("a\t" + "b" * 81, "tsv", "81 characters"),
        ("a," + "b" * 200_000, "csv", "CSV"),
        ("\n".join(f"{n}\tb" for n in range(MOST_ENTRIES + 1)), "tsv", "5001 entries"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, format: Format, said: str) -> None:
    with pytest.raises(GatewayError, match=said) as caught:
        read_entries(text, format, Limits())
    assert caught.value.field == "entries"
