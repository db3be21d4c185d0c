"""One meeting's publications for this gateway's subscribers, by pushes and by reading."""

from __future__ import annotations

import pytest

from gateway.domain.log import Page, Publication
from gateway.stores.redis.entries import Position, Push
from gateway.stores.redis.topic import Subscriber, Topic
from tests.logs import said


def publication(offset: int) -> Publication:
    return Publication(offset, 1_000 + offset, said(str(offset)))


def push(offset: int, epoch: str = "e1") -> Push:
    return Push(epoch, offset, publication(offset))


def page(*offsets: int, epoch: str = "e1") -> Page:
    return Page(epoch, 1, offsets[-1], tuple(map(publication, offsets)))


class Heard:
    """A subscriber, and the offsets that it got."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.subscriber = Subscriber(lambda publication: self.offsets.append(publication.offset))


@pytest.fixture
def topic() -> Topic:
    return Topic("standup", "", recorded=True)


@pytest.fixture
def heard(topic: Topic) -> Heard:
    """Subscribed when the meeting was at 3."""
    heard = Heard()
    assert topic.add(heard.subscriber, Position("e1", 0, 1, 3)) == Page("e1", 1, 3)
    return heard


def test_pushes_are_delivered_as_they_come(topic: Topic, heard: Heard) -> None:
    assert not topic.push(push(4))
    assert not topic.push(push(5))
    assert not topic.push(push(5)), "again"
    assert heard.offsets == [4, 5]


def test_a_gap_is_filled_by_reading_and_what_came_early_follows(topic: Topic, heard: Heard) -> None:
    assert topic.push(push(6)), "4 and 5 are missing"
    assert heard.offsets == []
    topic.fill(page(4, 5), 5)
    assert heard.offsets == [4, 5, 6]
    assert not topic.push(push(7))
    assert heard.offsets == [4, 5, 6, 7]


def test_reading_may_give_what_a_push_has_given(topic: Topic, heard: Heard) -> None:
    topic.push(push(4))
    topic.fill(page(3, 4, 5), 5)
    assert not topic.push(push(5))
    assert heard.offsets == [4, 5]


def test_what_was_trimmed_is_passed_over(topic: Topic, heard: Heard) -> None:
    topic.fill(page(8, 9), 9)
    assert not topic.push(push(10))
    assert heard.offsets == [8, 9, 10]


def test_a_push_may_come_before_the_answer_to_the_first_subscriber(topic: Topic) -> None:
    heard = Heard()
    assert not topic.push(push(3))
    assert not topic.push(push(4))
    assert topic.add(heard.subscriber, Position("e1", 0, 1, 3)) == Page("e1", 1, 4)
    assert not topic.push(push(5))
    assert heard.offsets == [5]


def test_a_second_subscriber_begins_where_the_first_one_is(topic: Topic, heard: Heard) -> None:
    second = Heard()
    topic.push(push(4))
    assert topic.add(second.subscriber, Position("e1", 0, 1, 5)) == Page("e1", 1, 5)
    topic.push(push(5))
    topic.push(push(6))
    assert (heard.offsets, second.offsets) == ([4, 5, 6], [6])
    topic.remove(second.subscriber)
    topic.push(push(7))
    assert second.offsets == [6]


def test_a_log_that_was_begun_again_is_delivered_from_its_beginning(topic: Topic, heard: Heard) -> None:
    assert topic.push(push(1, "e2"))
    assert heard.offsets == []
    assert not topic.agree(Position("e2", 0, 1, 1))
    assert topic.push(push(4, "e1")), "an old one: the store is asked again"
    assert not topic.push(push(2, "e2"))
    assert heard.offsets == [1, 2]


def test_a_log_that_goes_on_from_an_older_copy_is_delivered_from_there(topic: Topic, heard: Heard) -> None:
    assert topic.agree(Position("e2", 2, 1, 4)), "3 and 4 are missing"
    topic.fill(page(3, 4, epoch="e2"), 4)
    assert heard.offsets == [3, 4]


def test_a_publication_that_cannot_be_read_is_passed_over(topic: Topic, heard: Heard) -> None:
    topic.push(Push("e1", 4, None))
    topic.push(push(5))
    assert heard.offsets == [5]


def test_a_subscriber_that_raises_harms_no_other(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    def deliver(publication: Publication) -> None:
        raise LookupError("a secret")

    heard = Heard()
    topic.add(Subscriber(deliver), Position("e1", 0, 1, 0))
    topic.add(heard.subscriber, Position("e1", 0, 1, 0))
    topic.push(push(1))
    assert heard.offsets == [1]
    assert "LookupError" in caplog.text
    assert "secret" not in caplog.text


def test_what_this_gateway_knows_of_is_what_it_has_seen(topic: Topic, heard: Heard) -> None:
    topic.know("e1", 9)
    topic.know("e0", 12)
    assert topic.newest == 9


def test_a_subscription_is_dead_when_what_was_read_is_never_pushed(topic: Topic, heard: Heard) -> None:
    assert not topic.has_dead_subscription()
    topic.push(push(4))
    assert not topic.has_dead_subscription()
    topic.fill(page(5), 5)
    assert not topic.has_dead_subscription(), "its push may be on its way"
    assert topic.has_dead_subscription()
    assert not topic.has_dead_subscription(), "the next one has time as well"
    topic.push(push(6))
    assert not topic.has_dead_subscription()


def test_languages_are_those_of_all_subscribers(topic: Topic, heard: Heard) -> None:
    second = Heard()
    topic.add(second.subscriber, Position("e1", 0, 1, 3))
    assert topic.languages == ""
    heard.subscriber.languages, second.subscriber.languages = frozenset({"ja", "de"}), frozenset({"ja", "fr"})
    assert topic.languages == "de,fr,ja"
