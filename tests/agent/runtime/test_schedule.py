"""What is due when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.runtime.schedule import Schedule


def test_nothing_is_due_at_first() -> None:
    """An empty schedule has no next time and gives nothing."""
    schedule: Schedule[str] = Schedule()
    assert (len(schedule), schedule.next_us(), schedule.take(10**18)) == (0, None, [])


def test_the_earliest_wish_holds() -> None:
    """A key that is wanted earlier moves; one that is wanted later stays."""
    schedule: Schedule[str] = Schedule()
    schedule.want("a", 10)
    schedule.want("a", 20)
    assert schedule.next_us() == 10
    schedule.want("a", 5)
    assert (schedule.next_us(), len(schedule)) == (5, 1)
    assert schedule.take(5) == ["a"]
    assert (schedule.next_us(), schedule.take(100)) == (None, [])


def test_due_means_not_before() -> None:
    """Keys come in the order of their times, each once, and none too early."""
    schedule: Schedule[str] = Schedule()
    for key, at_us in (("late", 30), ("early", 10), ("mid", 20)):
        schedule.want(key, at_us)
    assert schedule.take(9) == []
    assert schedule.take(20) == ["early", "mid"]
    assert schedule.has("late")
    assert not schedule.has("mid")


def test_a_dropped_key_is_forgotten() -> None:
    """Dropping frees the key for a later wish; dropping an unknown one is nothing."""
    schedule: Schedule[str] = Schedule()
    schedule.want("a", 10)
    schedule.drop("a")
    schedule.drop("b")
    assert schedule.next_us() is None
    schedule.want("a", 50)
    assert (schedule.take(49), schedule.take(50)) == ([], ["a"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["want", "drop", "take"]), st.sampled_from("abc"), st.integers(0, 20)),
        max_size=40,
    )
)
def test_it_agrees_with_a_plain_dictionary(steps: list[tuple[str, str, int]]) -> None:
    """Whatever the order of wishes, it knows what a dictionary of earliest times would know."""
    schedule: Schedule[str] = Schedule()
    plain: dict[str, int] = {}
    for step, key, at_us in steps:
        if step == "want":
            schedule.want(key, at_us)
            plain[key] = min(at_us, plain.get(key, at_us))
        elif step == "drop":
            schedule.drop(key)
            plain.pop(key, None)
        else:
            due = {known for known, when in plain.items() if when <= at_us}
            assert set(schedule.take(at_us)) == due
            plain = {known: when for known, when in plain.items() if known not in due}
        assert len(schedule) == len(plain)
        assert schedule.next_us() == min(plain.values(), default=None)
