"""Which move of a checkpoint is a step of a task that goes on as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.inventory.model import CheckpointFact
from agent.layout.checkpoint import OffsetEntry
from agent.quantities.steady import is_step

BEFORE = CheckpointFact(100, 110, {"a": 5, "b": 7}, (), 1, True)
AFTER = CheckpointFact(200, 210, {"a": 5, "b": 10_007}, (), 1, True)


def test_a_move_forward_of_any_store_is_a_step() -> None:
    """Up to 10,000 in all, where none of them goes back."""
    assert is_step(BEFORE, AFTER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, replace(AFTER, offsets={"a": 6, "b": 10_007})),
        (BEFORE, replace(AFTER, offsets={"a": 4, "b": 9_000})),
        (BEFORE, replace(AFTER, offsets=BEFORE.offsets)),
        (BEFORE, replace(AFTER, offsets={"a": 9})),
        (BEFORE, replace(AFTER, offsets={**AFTER.offsets, "c": 1})),
        (replace(BEFORE, offsets={"a": -4, "b": 7}), AFTER),
        (replace(BEFORE, offsets={}), replace(AFTER, offsets={})),
        (BEFORE, replace(AFTER, foreign=(OffsetEntry("topic", 0, 1),))),
        (BEFORE, replace(AFTER, written_us=100)),
        (BEFORE, replace(AFTER, incarnation=2)),
        (BEFORE, replace(AFTER, held=False)),
        (replace(BEFORE, deleted=True), AFTER),
    ],
    ids=[
        "more than 10,000",
        "one goes back",
        "nothing moves",
        "a store less",
        "a store more",
        "from unknown",
        "of no store",
        "another topic",
        "no later",
        "another life of the directory",
        "released",
        "deleted before",
    ],
)
def test_everything_else_is_none(before: CheckpointFact, after: CheckpointFact) -> None:
    """What may decide something."""
    assert not is_step(before, after)
