"""The first walk tells of changes as it goes; what it tells does not depend on how many it gathers at a time."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind, Record
from agent.engine import directory_reader
from tests.agent.engine.playing import Run, operations_of, sets_of


def first_walk(scenario: str) -> list[Record]:
    """Walk over what a recorded run left, for the first time."""
    operations = operations_of(scenario, "pod-a")
    run = Run(operations[-1].at_us + 1, sets_of(scenario))
    for operation in operations:
        run.disk.apply(operation)
    run.records.clear()
    run.pipeline.scan(run.now_us)
    run.rest()
    return run.records


@pytest.mark.parametrize(
    "scenario",
    ["benign-rolling-standby-3.9.2", "torn-clean-3.9.2", "dirty-close-kill-4.3.1", "benign-global-4.3.1"],
)
def test_reported_one_by_one_or_all_at_once_is_the_same(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every record is the same, in the same order; only settings may be told once more, with what was found later."""
    at_once = first_walk(scenario)
    monkeypatch.setattr(directory_reader, "REPORTED_AT_ONCE", 1)
    one_by_one = first_walk(scenario)
    assert [x for x in one_by_one if x.kind is not Kind.CONFIGURATION] == [
        x for x in at_once if x.kind is not Kind.CONFIGURATION
    ]
    told, told_later = (
        [x.body for x in each if x.kind is Kind.CONFIGURATION] for each in (at_once, one_by_one)
    )
    assert told
    assert told_later[-1] == told[-1]
