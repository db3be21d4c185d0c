"""Metrics of several processes on one page."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families

from gateway.exposition import as_open_metrics, as_text, from_open_metrics, merged

ONE = b"""# HELP a_total Things.
# TYPE a_total counter
a_total 1.0
# HELP b_seconds Times, with a {brace} and a "quote".
# TYPE b_seconds histogram
b_seconds_bucket{lang="a } b",le="0.1"} 2.0
b_seconds_count{lang="a } b"} 3.0
"""
TWO = ONE.replace(b"1.0", b"7.0") + b'# HELP c Only here.\n# TYPE c gauge\nc{x=""} 1e+16\n'


def test_samples_name_owners_and_metrics_are_described_once() -> None:
    page = merged([("1", ONE), ("2", TWO)], label="worker").decode()
    assert page.splitlines() == [
        "# HELP a_total Things.",
        "# TYPE a_total counter",
        'a_total{worker="1"} 1.0',
        'a_total{worker="2"} 7.0',
        '# HELP b_seconds Times, with a {brace} and a "quote".',
        "# TYPE b_seconds histogram",
        'b_seconds_bucket{worker="1",lang="a } b",le="0.1"} 2.0',
        'b_seconds_count{worker="1",lang="a } b"} 3.0',
        'b_seconds_bucket{worker="2",lang="a } b",le="0.1"} 2.0',
        'b_seconds_count{worker="2",lang="a } b"} 3.0',
        "# HELP c Only here.",
        "# TYPE c gauge",
        'c{worker="2",x=""} 1e+16',
    ]
    assert len([*text_string_to_metric_families(page)]) == 3


def test_ownerless_pages_stay_and_unwanted_metrics_go() -> None:
    page = merged(
        [("", ONE), ("2", TWO)], label="worker", wanted=lambda whose, name: (whose == "") is name.startswith("a")
    )
    assert b"\na_total 1.0\n" in page
    assert b'b_seconds_count{worker="2"' in page
    assert page.count(b"a_total 7.0") == page.count(b'"1"') == 0
    assert merged([("1", b"")], label="worker") == b""


def test_a_label_of_the_page_itself_gives_way() -> None:
    page = b'a{engine="0"} 1\na{engine="1"} 4\nb{lang="x",engine="default"} 2\nc{engine="0",my_engine="y"} 3\n'
    page = b"# TYPE a gauge\n" + page.replace(b"\nb", b"\n# TYPE b gauge\nb").replace(
        b"\nc", b"\n# TYPE c gauge\nc"
    )
    lines = merged([("two", page)], label="engine").decode().splitlines()
    assert [line for line in lines if line[0] != "#"] == [
        'a{engine="two"} 1',
        'a{engine="two",exported_engine="1"} 4',
        'b{engine="two",lang="x"} 2',
        'c{engine="two",my_engine="y"} 3',
    ]


def page_with_an_example(label: str) -> bytes:
    """In OpenMetrics' format."""
    registry = CollectorRegistry()
    Counter("a", "Things.", registry=registry).inc()
    histogram = Histogram("b_seconds", "Times.", ["lang"], buckets=(1,), registry=registry)
    histogram.labels("a } b").observe(0.5, {"trace_id": label})
    page: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
    return page


def test_examples_of_workers_appear_only_in_open_metrics() -> None:
    pages = [("1", page_with_an_example("ab} ")), ("2", page_with_an_example("cd"))]
    page = merged([(whose, from_open_metrics(page)) for whose, page in pages], label="worker")
    assert b'b_seconds_bucket{worker="1",lang="a } b",le="1.0"} 1.0 # {' in page
    assert b" # {" not in as_text(page)
    assert len([*text_string_to_metric_families(as_text(page).decode())]) == 2
    found = open_metrics_families(as_open_metrics(page).decode())  # type: ignore[no-untyped-call]
    families = {family.name: family for family in found}
    assert (families["a"].type, [sample.name for sample in families["a"].samples][:1]) == ("counter", ["a_total"])
    examples = [sample.exemplar for sample in families["b_seconds"].samples if sample.exemplar]
    assert [(example.labels["trace_id"], example.value) for example in examples] == [("ab} ", 0.5), ("cd", 0.5)]


def test_open_metrics_page_becomes_ours_and_back() -> None:
    page = page_with_an_example("ab")
    assert as_open_metrics(from_open_metrics(page)) == page
