"""Where tags are in a translation. Whole calls with tags: `test_deepl.py`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.server.compat.markup import Rules
from gateway.server.compat.tagged import Tagged

HTML = Rules("html")
XML = Rules("xml")

GERMAN = {
    "We meet on Friday at noon.": "Am Freitag treffen wir uns zu Mittag.",
    "We meet on": "Wir treffen uns am",
    "Friday": "Freitag.",
    "at": "um",
    "noon": "Mittag",
}


def translated(text: str, engine: Callable[[str], str], rules: Rules = HTML) -> str:
    """What a call answers; the engine is asked for each text once."""
    tagged, said = Tagged(text, rules), dict[str, str]()
    said |= {each: engine(each) for each in tagged.texts}
    found, missing = tagged.translated(said)
    if missing:
        said |= {each: engine(each) for each in missing}
        found, missing = tagged.translated(said)
    assert not missing
    return found


def said(text: str, words: dict[str, str], rules: Rules = HTML) -> str:
    return translated(text, words.__getitem__, rules)


def in_capitals(text: str, rules: Rules = HTML) -> str:
    """By an engine that writes everything in capitals, and leaves marks."""
    return translated(text, str.upper, rules)


def test_tags_follow_words_that_are_found_again() -> None:
    assert (
        said("We meet on <b>Friday</b> at <i>noon</i>.", GERMAN)
        == "Am <b>Freitag</b> treffen wir uns zu <i>Mittag</i>."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We meet on <b> Friday</b> at <i>noon</i>.", "Am<b> Freitag</b> treffen wir uns zu <i>Mittag</i>."),
        ("We meet on <b>Friday </b>at <i>noon</i>.", "Am <b>Freitag </b>treffen wir uns zu <i>Mittag</i>."),
        ("  We meet on <b>Friday</b> at\n<i>noon</i>. ", "  Am <b>Freitag</b> treffen wir uns zu <i>Mittag</i>. "),
    ],
)
def test_blanks_at_the_edges_of_parts_are_kept(text: str, expected: str) -> None:
    assert said(text, GERMAN) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We meet on “<b>Friday</b>” at noon.", "Wir treffen uns am “<b>Freitag</b>” um Mittag."),
        ("On <b>«\u00a0Friday\u00a0»</b> at noon.", "Am <b>«\u00a0Freitag\u00a0»</b> um Mittag."),
    ],
)
def test_quotes_at_the_edges_of_parts_are_kept(text: str, expected: str) -> None:
    words = GERMAN | {"On": "Am", "at noon.": "um Mittag.", "«\u00a0Friday\u00a0»": "«\u00a0Freitag\u00a0»"}
    assert translated(text, lambda part: words.get(part, ""), XML) == expected


@pytest.mark.parametrize(
    "whole",
    [
        # Within a longer word, twice, in another word, and not there.
        "<b>Freitags</b> zu <i>Mittag</i>.",
        "Am Freitag, diesen <b>Freitag</b>, zu <i>Mittag</i>.",
        "Treffen am <b>Freitagabend</b> zur <i>Mittagszeit</i>.",
        "Am Tag nach <b>Donnerstag</b> zu <i>Mittag</i>.",
    ],
)
def test_the_sentence_stays_whole_where_parts_are_not_found(whole: str) -> None:
    words = GERMAN | {"We meet on Friday at noon.": re.sub("<.*?>", "", whole)}
    assert said("We meet on <b>Friday</b> at <i>noon</i>.", words) == whole


def test_what_is_beside_tags_is_asked_for_only_where_they_have_no_place() -> None:
    tagged = Tagged("Hello <x>Ana</x> and <b>all</b>.", Rules("xml", ignored=frozenset({"x"})))
    assert tagged.texts == ["Hello Ana and all.", "all"]
    words = {"Hello Ana and all.": "Hallo Ana und alle.", "all": "alle"}
    assert tagged.translated(words) == ("Hallo <x>Ana</x> und <b>alle</b>.", [])
    _, missing = tagged.translated(words | {"Hello Ana and all.": "Hallo Anna und alle."})
    assert missing == ["Hello", "and"]


def test_a_quotation_that_ends_behind_a_tag() -> None:
    assert in_capitals('He said <b>"Hello</b> to me"') == 'HE SAID "<b>HELLO</b> TO ME"'
    assert in_capitals('One <b>two <i>"three</i> four</b>" five') == 'ONE <b>TWO "<i>THREE</i> FOUR</b>" FIVE'


def test_no_word_belongs_to_two_parts() -> None:
    words = {"a b c": "x y z", "a": "x y", "b": "-", "c": "y z"}
    assert said("<i>a</i> b <b>c</b>", words) == "<i>x y</i> <b>z</b>"
    assert said("<i>a</i> b <b>c</b>", words | {"a b c": "x"}) == "<i>x y</i> - <b>y z</b>"


def test_a_tag_without_words_stands_where_it_was_in_proportion() -> None:
    words = {"We meet{1} on Friday.": "Wir treffen uns am Freitag.", "We meet": "Wir", "on Friday.": "am Freitag."}
    assert said("We meet<br-mark></br-mark> on Friday.", words) == "Wir treffen <br-mark></br-mark>uns am Freitag."
    # A mark that the engine has changed is not left in the text.
    words["We meet{1} on Friday."] = "Wir treffen uns {eins} am Freitag."
    assert said("We meet<br-mark></br-mark> on Friday.", words) == "Wir<br-mark></br-mark> am Freitag."


def test_what_is_kept_is_not_lost_where_the_engine_has_changed_it() -> None:
    words = {"Hello Ana, well.": "Hallo Anna, gut.", "Hello": "Hallo", ", well.": ", gut."}
    rules = Rules("xml", ignored=frozenset({"x"}))
    assert said("Hello <x>Ana</x>, well.", words, rules) == "Hallo <x>Ana</x>, gut."


def test_expected_number_of_parts_is_found_in_order() -> None:
    words = {"1 a 2 a": "a 2 a 1", "a": "a"}
    assert said("1 <i>a</i> 2 <b>a</b>", words) == "<i>a</i> 2 <b>a</b> 1"


def test_what_is_there_often_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[str] = []

    def noted(text: str) -> re.Pattern[str]:
        looked_for.append(text)
        return re.compile(text)

    monkeypatch.setattr("gateway.server.compat.tagged._pattern", noted)
    assert in_capitals("<i>a</i> <b>c</b> " * 100) == "<i>A</i> <b>C</b> " * 100
    assert looked_for == ["A", "C"]


def test_words_of_languages_without_spaces_are_found_within_others() -> None:
    words = {"Press OK now.": "今すぐ確定を押してください。", "Press": "押す", "OK": "確定。", "now.": "今。"}
    assert said("Press <b>OK</b> now.", words) == "今すぐ<b>確定</b>を押してください。"


def test_elements_within_each_other() -> None:
    assert (
        in_capitals("<p> <b>Hello <i>my <u>dear</u></i> friend</b> </p>")
        == "<p> <b>HELLO <i>MY <u>DEAR</u></i> FRIEND</b> </p>"
    )
    words = {"ab cd ef": "F D B", "ab": "B", "cd ef": "F D", "cd": "D", "ef": "F"}
    assert said("ab <b>cd <i>ef</i></b>", words) == "<b><i>F</i> D</b> B"


def test_what_is_not_translated_is_found_as_it_is() -> None:
    rules = Rules("xml", ignored=frozenset({"x"}))
    words = {"Hello Ana Lee, welcome": "Bienvenue Ana Lee", "Hello": "Bonjour", ", welcome": ", bienvenue"}
    assert said("Hello <x>Ana Lee</x>, welcome", words, rules) == "Bienvenue <x>Ana Lee</x>"
    lost = words | {"Hello Ana Lee, welcome": "Bienvenue Anna"}
    assert said("Hello <x>Ana Lee</x>, welcome", lost, rules) == "Bonjour <x>Ana Lee</x>, bienvenue"


def test_engine_gets_untranslated_parts_as_text() -> None:
    text = '<code class="notranslate" title="a > b">x<!-- > --></code> is good'
    assert Tagged(text, HTML).texts == ["x is good"]


def test_a_tag_without_content_is_where_its_mark_is() -> None:
    words = {"Wait {2} for {1} {3}.": "{3} {2} warte.", "Wait": "Warte", "for {1}": "auf {1}", ".": "."}
    assert said('Wait <x id="1"/> for {1} <x id="2"/>.', words, XML) == '<x id="2"/> <x id="1"/> warte.'
    lost = words | {"Wait {2} for {1} {3}.": "{1} {2} warte."}
    assert said('Wait <x id="1"/> for {1} <x id="2"/>.', lost, XML) == 'Warte <x id="1"/> auf {1} <x id="2"/>.'
    assert said("a<x/>b", {"a{1}b": "B{1}A", "a": "A", "b": "B"}, XML) == "B<x/>A"


def test_entities_are_decoded_and_written_again() -> None:
    assert in_capitals("&lt;b&gt; &amp;amp; it&#39;s&nbsp;&eacute;") == "&lt;B&gt; &amp;AMP; IT'S&nbsp;É"
    assert said("<p>a</p>", {"a": "1 < 2 & <script>\x0b"}) == "<p>1 &lt; 2 &amp; &lt;script&gt;</p>"


def test_part_the_engine_empties_stays() -> None:
    words = GERMAN | {"We meet on Friday at noon.": "Am Tag", "We meet on": "", "at": " "}
    # The last tag ends in another sentence.
    assert said("We meet on <b>Friday</b> at <i>noon", words) == "We meet on <b>Freitag</b> at <i>Mittag"


def test_only_text_is_translated_and_each_once() -> None:
    page = "<h1 title='no'>One</h1><p>One<br>42 — <script>var a = 'b'</script><!-- no --></p><p>Two <b>3</b></p>"
    tagged = Tagged(page, HTML)
    assert tagged.texts == ["One", "Two 3"]
    assert tagged.plain == "OneOne42 — Two 3"
    assert in_capitals(page) == page.replace("One", "ONE").replace("Two", "TWO")


def test_lines_that_are_written_as_such_stay_lines() -> None:
    text = "<pre>\n  one\r\n\n\ttwo <b>a</b>  \n<b>b\nc</b></pre>d\ne<pre>f\n<i translate=no>g\nh</i> i</pre>"
    assert Tagged(text, HTML).texts == ["one", "two a", "a", "b", "c", "d e", "f", "g h i"]
    assert in_capitals("<pre>\n  one\r\n\n\ttwo <b>a</b>  \n<b>b\nc</b></pre>d\ne") == (
        "<pre>\n  ONE\r\n\n\tTWO <b>A</b>  \n<b>B\nC</b></pre>D E"
    )
    # Where its writer says that it is not a block.
    assert Tagged("<pre>a\nb</pre>", Rules("html", non_splitting=frozenset({"pre"}))).texts == ["a b"]


def test_crossing_and_open_tags_stay_where_they_are() -> None:
    for text in ("<b>a<i>b</b>c</i>", "a <b>b", "a </b>b", "<b>a<p>b</b>c</p>", "<li>a<li>b <img src=x> c"):
        assert in_capitals(text) == re.sub(r"(?<![<\w/=])[abc]\b", lambda match: match[0].upper(), text)


def test_a_tag_whose_other_half_stays_is_not_moved() -> None:
    # As a whole it could come back in another order.
    assert Tagged("<b>a<i>b</b>c</i>", HTML).texts == ["a", "b", "c"]


def test_very_deep_elements_are_tags_like_others() -> None:
    text = "<b>" * 500 + "a b" + "</b>" * 500
    assert in_capitals(f"x {text}") == f"X {text.replace('a b', 'A B')}"


NAMES = st.sampled_from("abc")
NODES = st.recursive(
    st.sampled_from(["one", "two three", "4", " ", "&amp;", "<x/>", "<!-- c -->"]),
    lambda inner: st.tuples(NAMES, st.lists(inner, max_size=4)).map(
        lambda it: f"<{it[0]}>{' '.join(it[1])}</{it[0]}>"
    ),
    max_leaves=12,
)
# What engines may make of a text: all of it in another order, a part of it, something else.
ANSWERS = st.sampled_from(
    [
        str.upper,
        lambda text: " ".join(reversed(text.split())),
        lambda text: text[:3],
        lambda _: "<b> & one",
        lambda _: "",
    ]
)


@given(NODES, ANSWERS, ANSWERS, st.booleans())
def test_whatever_the_engine_says_the_markup_is_whole(text, long, short, outline) -> None:  # type: ignore[no-untyped-def]
    rules = Rules("xml", ignored=frozenset("c"), outline=outline)
    found = translated(text, lambda each: long(each) if " " in each else short(each), rules)
    ElementTree.fromstring(f"<r>{found}</r>")  # noqa: S314
    assert Counter(re.findall("<[^>]*>", found)) == Counter(re.findall("<[^>]*>", text))
