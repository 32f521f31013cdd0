"""What is read out of Spark's event log."""

from __future__ import annotations

import json

import pytest

from tests.bench.bench_skew import stages


def ended(stage: int, at_ms: int, took_ms: int) -> str:
    """Write a line as Spark does when a task has ended."""
    told = {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task Info": {"Launch Time": at_ms},
        "Task Metrics": {"Executor Run Time": took_ms},
    }
    return json.dumps(told, separators=(",", ":"))


def test_the_longest_task_of_each_stage_is_reported():
    """Stages before the audit do not count, and short ones or those of one task are never the worst."""
    log = [
        '{"Event":"SparkListenerApplicationStart"}',
        ended(1, 50, 90_000),
        ended(2, 100, 3_000), ended(2, 110, 1_000),
        ended(3, 120, 9_000),
        ended(4, 130, 100), ended(4, 130, 300),
    ]  # fmt: skip
    found = stages(log, since_ms=100)
    assert (found.total_s, found.longest_s) == pytest.approx((13.4, 12.3))
    assert found.worst == pytest.approx(0.75)


def test_an_empty_log_has_no_stages():
    """Nothing was started: nothing took time."""
    assert stages([], since_ms=0).worst == 0.0
