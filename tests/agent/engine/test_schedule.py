"""What is due when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.engine.schedule import Rechecks, Schedule


def test_nothing_is_due_at_first() -> None:
    """An empty schedule has no next time and gives nothing."""
    schedule = Schedule()
    assert (schedule.next_us(), schedule.pop_due(10**18)) == (None, [])


def test_the_earliest_wish_holds() -> None:
    """A key that is wanted earlier moves; one that is wanted later stays."""
    schedule = Schedule()
    schedule.schedule("a", 10)
    schedule.schedule("a", 20)
    assert schedule.next_us() == 10
    schedule.schedule("a", 5)
    assert schedule.next_us() == 5
    assert schedule.pop_due(5) == ["a"]
    assert (schedule.next_us(), schedule.pop_due(100)) == (None, [])


def test_due_means_not_before() -> None:
    """Keys come in the order of their times, each once, and none too early."""
    schedule = Schedule()
    for key, at_us in (("late", 30), ("early", 10), ("mid", 20)):
        schedule.schedule(key, at_us)
    assert schedule.pop_due(9) == []
    assert schedule.pop_due(20) == ["early", "mid"]
    assert schedule.next_us() == 30


def test_a_dropped_key_is_forgotten() -> None:
    """Dropping frees the key for a later wish; dropping an unknown one is nothing."""
    schedule = Schedule()
    schedule.schedule("a", 10)
    schedule.drop("a")
    schedule.drop("b")
    assert schedule.next_us() is None
    schedule.schedule("a", 50)
    assert (schedule.pop_due(49), schedule.pop_due(50)) == ([], ["a"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["want", "drop", "take"]), st.sampled_from("abc"), st.integers(0, 20)),
        max_size=40,
    )
)
def test_it_agrees_with_a_plain_dictionary(steps: list[tuple[str, str, int]]) -> None:
    """Whatever the order of wishes, it knows what a dictionary of earliest times would know."""
    schedule = Schedule()
    plain: dict[str, int] = {}
    for step, key, at_us in steps:
        if step == "want":
            schedule.schedule(key, at_us)
            plain[key] = min(at_us, plain.get(key, at_us))
        elif step == "drop":
            schedule.drop(key)
            plain.pop(key, None)
        else:
            due = {known for known, when in plain.items() if when <= at_us}
            assert set(schedule.pop_due(at_us)) == due
            plain = {known: when for known, when in plain.items() if known not in due}
        assert schedule.next_us() == min(plain.values(), default=None)


def test_rechecks_come_at_every_distance() -> None:
    """A key is due at each distance after its change, then no more."""
    rechecks = Rechecks((10, 30))
    rechecks.restart("a", 100)
    assert rechecks.pop_due(109) == []
    assert rechecks.pop_due(110) == ["a"]
    assert (rechecks.next_us(), rechecks.pop_due(130)) == (130, ["a"])
    assert (rechecks.next_us(), rechecks.pop_due(10**6)) == (None, [])


def test_a_change_starts_again() -> None:
    """After a second change nothing is due by the first one."""
    rechecks = Rechecks((10, 30))
    rechecks.restart("a", 100)
    rechecks.restart("a", 105)
    assert rechecks.pop_due(110) == []
    assert rechecks.pop_due(115) == ["a"]
    rechecks.restart("a", 120)
    assert rechecks.pop_due(135) == ["a"]
    assert rechecks.pop_due(149) == []
    assert rechecks.pop_due(150) == ["a"]


def test_missed_rechecks_are_one() -> None:
    """A clock that jumps over several distances makes a key due once."""
    rechecks = Rechecks((10, 30, 90))
    rechecks.restart("a", 0)
    assert rechecks.pop_due(50) == ["a"]
    assert (rechecks.next_us(), rechecks.pop_due(90)) == (90, ["a"])


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 40)), max_size=12))
def test_rechecks_like_single_wishes(changes: list[tuple[str, int]]) -> None:
    """Woken at `next_us`, a key is due at exactly the distances after its last change before them."""
    rechecks, now_us = Rechecks((7, 20)), 0
    wishes: dict[str, int] = {}
    found: list[tuple[int, str]] = []
    expected: list[tuple[int, str]] = []
    for key, pause_us in [*changes, ("c", 100)]:
        until_us = now_us + pause_us
        while (due_us := rechecks.next_us()) is not None and due_us < until_us:
            found += [(due_us, name) for name in rechecks.pop_due(due_us)]
        expected += [
            (at, name)
            for name, since in wishes.items()
            for at in (since + 7, since + 20)
            if now_us <= at < until_us
        ]
        now_us = until_us
        wishes[key] = now_us
        rechecks.restart(key, now_us)
    assert sorted(found) == sorted(expected)
