"""Which part of a marked-up text is what. Translations with tags: `test_tagged.py`."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import InvalidValue
from gateway.server.compat.markup import Rules, tokens
from gateway.server.compat.tagged import Tagged

HTML = Rules("html")
XML = Rules("xml")

PIECES = [
    "<b>",
    "</b>",
    "<p>",
    "</p>",
    "<br>",
    "<x/>",
    "&amp;",
    "&nbsp;",
    "a < b",
    "é ",
    "\n",
    "<!-- c -->",
    "<",
    ">",
]
MORE = [
    "<script>",
    "</script>",
    "<?pi?>",
    "<!DOCTYPE html>",
    "<![CDATA[x]]>",
    '<i class="notranslate">',
    "</i>",
    "&#39;",
    # As nobody should write it.
    "<a ",
    "<a b=",
    '<a b="',
    "<a b='>",
    "</>",
    "</ ",
    "<![x",
    "<! ",
    "<!--",
    "<svg>",
    "<pre>",
]


def kinds(text: str, rules: Rules) -> list[tuple[str, str]]:
    return [(token.kind, token.raw) for token in tokens(text, rules)]


def dividing(text: str, rules: Rules) -> list[str]:
    return [token.raw for token in tokens(text, rules) if token.divides]


@given(st.lists(st.sampled_from(PIECES + MORE)).map("".join) | st.text())
def test_nothing_of_html_is_lost_whatever_it_is(text: str) -> None:
    assert "".join(token.raw for token in tokens(text, HTML)) == text


@given(st.lists(st.sampled_from(PIECES + MORE)).map("".join) | st.text())
def test_nothing_of_xml_is_lost_or_it_is_refused(text: str) -> None:
    try:
        found = tokens(text, XML)
    except InvalidValue:
        return
    assert "".join(token.raw for token in found) == text


def test_html() -> None:
    assert kinds("<P>a &lt; b<br>c<img src='>'><b>d</b><!-- e --><i/>", HTML) == [
        ("start", "<P>"),
        ("text", "a &lt; b"),
        ("point", "<br>"),
        ("text", "c"),
        ("point", "<img src='>'>"),
        ("start", "<b>"),
        ("text", "d"),
        ("end", "</b>"),
        ("point", "<!-- e -->"),
        ("point", "<i/>"),
    ]
    (text,) = tokens("&lt;&eacute;&#39;&amp;amp;", HTML)
    assert text.text == "<é'&amp;"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("</>Hello", [("point", "</>"), ("text", "Hello")]),
        ("a </ b>c", [("text", "a "), ("point", "</ b>"), ("text", "c")]),
        ("a <![x <!> b", [("text", "a "), ("point", "<![x <!>"), ("text", " b")]),
        ("hello <![ <! x", [("text", "hello <![ <! x")]),
        ("1 <2 & a <b, c", [("text", "1 <2 & a <b, c")]),
        ('<a\nb="\'>" c>d', [("start", '<a\nb="\'>" c>'), ("text", "d")]),
        # A quotation mark without its other half.
        ('<a b="c>d</a>', [("start", '<a b="c>'), ("text", "d"), ("end", "</a>")]),
        ('a<b c="d>"', [("text", "a"), ("point", '<b c="d>"')]),
        ("a<!-- b>c", [("text", "a"), ("point", "<!-- b>c")]),
        ("<!-->a<!-- > --!>b", [("point", "<!-->"), ("text", "a"), ("point", "<!-- > --!>"), ("text", "b")]),
        ("<![CDATA[ > ]]>a", [("point", "<![CDATA[ > ]]>"), ("text", "a")]),
        ("<a b=c/>d<a b/>", [("start", "<a b=c/>"), ("text", "d"), ("point", "<a b/>")]),
        ("<script>a<b></p>", [("start", "<script>"), ("point", "a<b></p>")]),
    ],
)
def test_html_as_people_write_it(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text, HTML) == expected


@pytest.mark.parametrize("end", ["", ">", '">', "</x>"])
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "<a ",
            "<svg>",
            "<x>",
            '<a b="',
            "<a b=c",
            "<![x",
            "</>",
            "<!--",
            "<script>",
            "<x></a>",
            '<a b=">"',
            "</x>",
        ),
        *("<a/", "<pre>a\n", "<x/>", "{1}<x/>", "<b>a<i>", "<b><i></b>"),
    ],
)
def test_doubling_the_text_at_most_doubles_the_work(piece: str, end: str) -> None:
    rules = Rules("html", ignored=frozenset("x"))
    assert lines_run(piece * 400 + end, rules) < 2.5 * lines_run(piece * 200 + end, rules)
    # What regular expressions do is not seen above. If it were not linear, this would take minutes.
    tokens(piece * (65_536 // len(piece)) + end, rules)


def lines_run(text: str, rules: Rules) -> int:
    """How many lines of code are run to read a text."""
    count = 0

    def traced(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    def run() -> None:
        # In a thread of its own, as what is measured elsewhere goes on.
        sys.settrace(traced)
        Tagged(text, rules)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return count


def test_xml() -> None:
    document = "<?xml version='1.0'?>\n<!DOCTYPE a><a é='1'>é<b/><![CDATA[<&]]><!-- c --><?p i?></a>"
    assert kinds(document, XML) == [
        ("point", "<?xml version='1.0'?>\n<!DOCTYPE a>"),
        ("start", "<a é='1'>"),
        ("text", "é"),
        ("point", "<b/>"),
        ("point", "<![CDATA[<&]]>"),
        ("point", "<!-- c -->"),
        ("point", "<?p i?>"),
        ("end", "</a>"),
    ]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <b translate=no>c <b>d</b></b> e", "<b translate=no>c <b>d</b></b>"),
        ("a <i class='x notranslate'>c</i> e", "<i class='x notranslate'>c</i>"),
        ("a <x>c</x> e", "<x>c</x>"),
        ("a<script>if (a<b) {}</script>", "<script>if (a<b) {}</script>"),
    ],
)
def test_an_element_that_is_not_translated_is_one_token(text: str, kept: str) -> None:
    found = tokens(text, Rules("html", ignored=frozenset({"x"})))
    assert [token.raw for token in found if token.kind == "kept"] == [kept]


@pytest.mark.parametrize("rules", [Rules("html", ignored=frozenset("x")), Rules("xml", ignored=frozenset("x"))])
def test_what_an_element_that_is_not_translated_says(rules: Rules) -> None:
    (token,) = tokens("<x t='a > b'>c &lt;<!-- d > e --><b>f</b><![CDATA[g > h]]></x>", rules)
    assert (token.kind, token.text) == ("kept", "c <f")


def test_numbers_of_any_length() -> None:
    zeros, digits = f"&#{'0' * 5_000}65;", f"&#{'9' * 5_000};"
    (token,) = tokens(f"{zeros}{digits}&#0;&#x41;&#1114111;", HTML)
    assert token.text == "A\ufffd\ufffdA"
    (token,) = tokens(zeros, XML)
    assert token.text == "A"


def test_kept_element_without_end_is_a_start() -> None:
    assert kinds("a <x> b", Rules("html", ignored=frozenset({"x"}))) == [
        ("text", "a "),
        ("start", "<x>"),
        ("text", " b"),
    ]


@pytest.mark.parametrize(
    ("text", "rules", "expected"),
    [
        # Where elements stand beside each other without text, they are structure; within text, they are not.
        ("<d><t>a</t><p>b <i>c</i></p></d>", XML, ["<d>", "<t>", "</t>", "<p>", "</p>", "</d>"]),
        ("a <i>b</i>", XML, []),
        ("<d><t>a</t></d>", Rules("xml", outline=False), []),
        ("a <i>b</i>", Rules("xml", splitting=frozenset({"i"})), ["<i>", "</i>"]),
        ("<d><t>a</t></d>", Rules("xml", non_splitting=frozenset({"t"})), ["<d>", "</d>"]),
        ("<div>a <b>b</b><br>c<my-tag>d</my-tag></div>", HTML, ["<div>", "<br>", "</div>"]),
        (
            "a <b>b</b><br>c",
            Rules("html", splitting=frozenset({"b"}), non_splitting=frozenset({"br"})),
            ["<b>", "</b>"],
        ),
    ],
)
def test_where_a_sentence_ends(text: str, rules: Rules, expected: list[str]) -> None:
    assert dividing(text, rules) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("é<a>", "mismatched tag, at character 4"),
        ("a & b", "at character"),
        ("</r><r>", "at character"),
        ("&nbsp;", "undefined entity, at character 1"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "at character"),
    ],
)
def test_xml_that_is_none_is_refused_and_declares_nothing(text: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        tokens(text, XML)


@pytest.mark.parametrize("text", ["a <x/> b <!-- c --> <![CDATA[d]]>", "a <x>"])
def test_nothing_waits_for_the_garbage_collector(text: str) -> None:
    """A call with many tags would leave megabytes until then."""
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(InvalidValue):
            tokens(text, XML)
        assert gc.collect() == 0
    finally:
        gc.enable()
