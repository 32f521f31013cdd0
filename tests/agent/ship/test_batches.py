"""Names of segments."""

from __future__ import annotations

import pytest

from agent.ship.batches import Batch, segment_name


@pytest.mark.parametrize(
    ("last", "records", "name"),
    [
        (7, 3, "b-000000000005-000000000007"),
        (7, 2, "b-000000000005-000000000007-k2"),
        (1_000_000_000_004, 1_000_000_000_000, "b-000000000005-1000000000004"),
    ],
)
def test_a_name_says_range_and_what_is_left(last: int, records: int, name: str) -> None:
    """Another content has another name: what was given up changes the number of records that are left."""
    assert segment_name("b", 5, last, records) == name
    assert Batch(1, "uid", "b", 5, last, records).name == name
