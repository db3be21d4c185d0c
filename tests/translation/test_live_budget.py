"""Who gives way when too much is being said at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.translation.live_budget import LiveBudget


def test_the_account_that_holds_the_most_gives_way_with_what_it_used_least_recently() -> None:
    budget = LiveBudget[str](max_bytes=10)
    budget.use("small", "s", 3)
    budget.use("large", "a", 3)
    budget.use("large", "b", 4)
    assert budget.excess() is None
    budget.use("large", "a", 4)
    assert budget.excess() == "b"
    budget.release("b")
    budget.release("b")
    assert (budget.excess(), budget.bytes) == (None, 7)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["use", "use", "release"]),
            st.sampled_from("xyz"),
            st.integers(0, 9),
            st.integers(0, 50),
        )
    )
)
def test_the_sum_is_that_of_what_is_held_and_stays_within_bounds(steps: list[tuple[str, str, int, int]]) -> None:
    budget = LiveBudget[int](max_bytes=100)
    held: dict[int, int] = {}
    for step, account, name, size in steps:
        if step == "release":
            budget.release(name)
            held.pop(name, None)
        else:
            budget.use(account, name, size)
            held[name] = size
        while (excess := budget.excess()) is not None:
            budget.release(excess)
            del held[excess]
        assert budget.bytes == sum(held.values()) <= 100
    for name in list(held):
        budget.release(name)
    assert not any(vars(budget)[name] for name in ("_bytes", "_held", "_bytes_of", "_accounts"))
