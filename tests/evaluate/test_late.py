"""Agents that start while a task was closed dirty, and its own process has not wiped it yet."""

from __future__ import annotations

import pytest

from tests.evaluate.late import criticals


@pytest.mark.parametrize(
    ("scenario", "moments"),
    [("benign-eos-fencing-4.1.2", range(147, 150)), ("control-dirty-close-wiped-4.3.1", range(349, 355))],
)
def test_nothing_is_critical_of_a_store_that_waits_for_its_wipe(scenario: str, moments: range) -> None:
    """Milliseconds after its close, and seconds after it."""
    assert set[str]().union(*(criticals((scenario, "pod-a", moment, None)) for moment in moments)) == set()
