"""Rows of agents that leave parts out: nothing breaks, and what is not known puts more in doubt, not less."""

from __future__ import annotations

import pytest

from spark_rollup.correlate import RULES
from spark_rollup.fleet.gathered import application_of, pods_of, row_of
from spark_rollup.fleet.judge import judge
from spark_rollup.fleet.rows import Entry
from tests.spark_rollup.fleet.test_alone import said

AS_OF_US = 1_000_000_000


def test_evidence_without_a_place_is_evidence():
    """The event of a finding is read with what it has."""
    told = said(
        "a" * 32, detector="skipped-eos-wipe", evidence=[("2026-11-18T00:00:00.000000Z", "seen", None)]
    )
    row = row_of("said", tuple(told))
    assert row.evidence == [Entry("2026-11-18T00:00:00.000000Z", "seen", "")]
    found = [
        x for _, x in judge(application_of(("shop", "orders"), [("said", row)], {}, AS_OF_US, 0, None), RULES)
    ]
    assert {x["detector"] for x in found if "detector" in x} == {"stale-eos-state"}


@pytest.mark.parametrize("field", ["gaps", "unwatched"])
def test_a_gap_without_a_begin_is_one_from_the_start(field):
    """All that is known of the pod up to its end is in doubt."""
    values = ("pod-a", None, None, None, 500, *(("queue-overflow", None) if field == "gaps" else ()))
    pods = pods_of([("shop", "orders", "pod-a")], [("shop", field, row_of(field, values))])["shop"]
    app = application_of(("shop", None), [], pods, AS_OF_US, 0, None)
    assert app.was_unwatched("pod-a", None, 1, 2) == (field == "unwatched")
    assert [x["pod"] for _, x in judge(app, RULES)] == (["pod-a"] if field == "gaps" else [])
