"""What is due when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.engine.schedule import Rechecks, Schedule


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
            due = [
                known
                for when, known in sorted((when, known) for known, when in plain.items())
                if when <= at_us
            ]
            assert schedule.pop_due(at_us) == due
            plain = {known: when for known, when in plain.items() if known not in due}
        assert schedule.next_us() == min(plain.values(), default=None)


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
