"""What of the tables reaches the page."""

from __future__ import annotations

from typing import Any

from spark_rollup.fleet.reduce import TIMELINES
from spark_rollup.judging.told import Told
from spark_rollup.report import write
from tests.spark_rollup.report.page.page_rows import START_US, lane


def test_a_pod_that_is_blind_now_is_not_cut_off_behind_longer_gaps():
    """The page takes from these rows which pods are not seen now; a lossy pod has very many gaps."""
    whole: Any = {"application_id": None, "task_id": None}
    over = [lane("unknown", 100 * n, 100 * n + 90, **whole) for n in range(write.MAX_GAPS_DRAWN + 5)]
    now = lane("unknown", 9000, 9001, **whole)
    found = write._drawn(Told({TIMELINES: [*over, now]}), [], START_US + 9_001_000_000)
    assert len(found) == write.MAX_GAPS_DRAWN + 1
    assert found[-1]["to_us"] == now["to_us"]


def test_what_is_undecided_is_counted_apart():
    """As in the metrics: `_SUCCESS.json` said it was a warning."""
    words = {"status": "open", "reported_by": "agent", "severity": "warning"}
    found = [words | {"detector": "undecided"}, words | {"detector": "torn-store"}]
    assert write._open(found, "agent") == {"undecided": 1, "warning": 1}
