"""What is said of a copy that differs; no Spark."""

from __future__ import annotations

import pytest

from agent.contract.buckets import StoreKind, StoreState
from spark_rollup.verify.digests import Copy, Place
from spark_rollup.verify.findings import repair
from spark_rollup.verify.verdicts import Verdict, Word

MADE_US = 1_800_000_000_000_000
COPY = Copy(
    1, "shop", "pod-0", "orders", "0_0", "counts", StoreKind.KEY_VALUE, StoreState.CLOSED,
    ("orders-counts-changelog", 0), 99, MADE_US, 4096, (Place(0, 99, True, MADE_US - 1, 5),),
)  # fmt: skip


@pytest.mark.parametrize(("extra", "may_be_the_last"), [(0, False), (3, True)])
def test_nothing_is_removed_that_may_be_the_last_of_its_kind(extra: int, may_be_the_last: bool) -> None:
    """The copy is kept first; what the changelog may have lost is not removed without a look."""
    verdict = Verdict(COPY, Word.DIFFERS, counts={"missing": 2, "extra": extra, "different": 0})
    kept, keys, removed = map(
        repair(verdict, "b:9092").index, ("Keep a copy of 0_0 on pod-0", "--explain", "remove the store's")
    )
    assert kept < keys < removed
    condition = repair(verdict, "b:9092").find("do not remove it")
    assert (keys < condition < removed) if may_be_the_last else condition == -1
