"""The seam between replay and live: every publication once, in order, whatever happens when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.log import Page, Publication, Untranslated
from gateway.meeting.replay import Seam


def publication(offset: int) -> Publication:
    return Publication(offset, 0, Untranslated("p", f"u{offset}", "", "ja", 1, "code", "message"))


class Log:
    """Publications made one after the other; `trim` drops the oldest."""

    def __init__(self) -> None:
        self.last = 0
        self.first = 1

    def append(self) -> Publication:
        self.last += 1
        return publication(self.last)

    def read(self, after: int, limit: int) -> Page:
        begin = max(self.first, after + 1)
        offsets = range(begin, min(self.last, begin + limit - 1) + 1)
        return Page("e", self.first, self.last, tuple(map(publication, offsets)))


def offsets(publications: list[Publication]) -> list[int]:
    return [each.offset for each in publications]


def test_what_is_published_during_the_replay_follows_it() -> None:
    log, seam = Log(), Seam(1)
    made = [log.append() for _ in range(3)]
    page = log.read(seam.position, 10)
    assert seam.publish(log.append()) == []
    assert offsets(seam.replay(page)) == [2, 3]
    assert not seam.live, "only an empty page shows that nothing was missed"
    assert offsets(seam.replay(log.read(seam.position, 10))) == [4]
    assert seam.publish(log.append()) == []
    assert offsets(seam.replay(log.read(5, 10))) == [5]
    assert seam.live
    assert offsets(seam.publish(log.append())) == [6]
    assert seam.publish(made[2]) == []


def test_what_was_trimmed_before_it_was_read_is_told() -> None:
    log, seam = Log(), Seam(0)
    for _ in range(5):
        log.append()
    log.first = 3
    assert seam.replay(log.read(0, 10)) == []
    assert seam.trimmed
    assert not seam.live


_steps = st.lists(st.sampled_from(["append", "ask", "answer"]), max_size=80)


@given(st.integers(0, 5), _steps, st.integers(1, 4), st.integers(1, 4))
def test_every_interleaving_gives_each_publication_once_in_order(
    before: int, steps: list[str], limit: int, held: int
) -> None:
    log = Log()
    for _ in range(before):
        log.append()
    after = before // 2
    seam = Seam(after, most_held=held)
    got: list[int] = []
    answer: Page | None = None
    for step in [*steps, *["ask", "answer"] * (len(steps) + before + 2)]:
        match step:
            case "append":
                got += offsets(seam.publish(log.append()))
            case "ask" if answer is None:
                answer = log.read(seam.position, limit)  # on its way while more is published
            case "answer" if answer is not None:
                got += offsets(seam.replay(answer))
                answer = None
    assert seam.live
    assert got == list(range(after + 1, log.last + 1))
