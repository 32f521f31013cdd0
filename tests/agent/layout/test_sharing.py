"""Equal values, one object."""

from __future__ import annotations

from agent.layout.sharing import KEPT, shared


def test_the_first_of_equal_values_represents_all() -> None:
    """Ten thousand equal listings take the memory of one."""
    first, second = (shared(frozenset({f"{head[:1]}checkpoint", "rocksdb"})) for head in ("..", ".-"))
    assert first is second


def test_more_values_than_are_kept_stay_right() -> None:
    """A value that was forgotten is given back as it is."""
    values = [frozenset({f"task-{number}"}) for number in range(KEPT + 10)]
    assert [shared(value) for value in values] == values
    assert shared(frozenset({"task-0"})) == values[0]
