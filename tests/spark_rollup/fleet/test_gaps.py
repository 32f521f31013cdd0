"""Where nobody was looking."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rollup.fleet.gaps import merged
from spark_rollup.fleet.pods import SILENT
from spark_rollup.fleet.rows import Gap
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us, story


@story
def two_records_lost(fleet: Fleet) -> None:
    # 1 started, 2 at 30 s, 3 at 60 s, 4 at 90 s, 5 at 120 s
    fleet.pod("pod-a").loses(3, 4)


@story
def two_records_dropped_and_said_so(fleet: Fleet) -> None:
    fleet.pod("pod-a").drops(119, 3, 4)


@story
def the_beginning_is_missing(fleet: Fleet) -> None:
    fleet.pod("pod-a").loses(1, 2, 3)


@story
def blind_and_sighted_again(fleet: Fleet) -> None:
    fleet.pod("pod-a").is_blind(100, 110)


@story
def blind_to_the_end(fleet: Fleet) -> None:
    fleet.pod("pod-a").is_blind(100, None, task_id="0_1", application_id="orders")


@story
def silent_in_the_middle(fleet: Fleet) -> None:
    fleet.pod("pod-a", ends_s=200, announces_end=False)
    fleet.pod("pod-a", boot="boot-2", begins_s=500)


@story
def restarted_in_order(fleet: Fleet) -> None:
    fleet.pod("pod-a", ends_s=200)
    fleet.pod("pod-a", boot="boot-2", begins_s=205)


@story
def gone_without_a_word(fleet: Fleet) -> None:
    fleet.pod("pod-a", ends_s=200, announces_end=False)


def only_gap(audited: Any, name: str) -> tuple[Any, ...]:
    (gap,) = audited.rows("gaps", name)
    return gap["cause"], (gap["from_us"] - at_us(0)) / 1e6, (gap["to_us"] - at_us(0)) / 1e6, gap["missing"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (two_records_lost, ("lost-events", 30, 120, 2)),
        (two_records_dropped_and_said_so, ("dropped-events", 30, 119, 2)),
        (the_beginning_is_missing, ("earlier-events-not-in-input", 90, 90, 3)),
        (blind_and_sighted_again, ("queue-overflow", 100, 110, None)),
        (blind_to_the_end, ("queue-overflow", 100, HORIZON_S, None)),
        (silent_in_the_middle, ("silent-agent", 180, 500, None)),
        (restarted_in_order, ("agent-not-running", 200, 205, None)),
        (gone_without_a_word, ("silent-agent", 180, HORIZON_S, None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_gap_has_its_cause_and_bounds(audited, name, expected):
    """Cause, interval (in seconds) and number of missing events are exact."""
    assert only_gap(audited, name) == expected


def test_a_blind_task_keeps_its_name(audited):
    """An interval that concerns one task does not concern the others."""
    (gap,) = audited.rows("gaps", blind_to_the_end)
    assert (gap["application_id"], gap["task_id"]) == ("orders", "0_1")


def test_coverage_counts_overlap_once(audited):
    """Lost time counts against the pod, a blind task does not."""
    (lost,) = audited.rows("coverage", two_records_lost)
    (task,) = audited.rows("coverage", blind_to_the_end)
    assert (lost["unknown_seconds"], lost["lost_events"]) == (90.0, 2)
    assert (task["unknown_seconds"], task["watched_ratio"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "state"),
    [(gone_without_a_word, "silent"), (restarted_in_order, "stopped")],
    ids=["silent", "stopped"],
)
def test_a_pod_says_how_its_agent_is(audited, name, state):
    """The pods table tells a silent agent from one that announced its end."""
    (pod,) = audited.rows("pods", name)
    assert pod["agent_state"] == state


def test_gaps_that_overlap_or_meet_are_one():
    """Rules ask whether a pod was watched, not how often it was not; what it is about stays apart."""
    whole = [(10, 20), (15, 17), (20, 30), (31, 40)]
    rows = [Gap("a", None, None, *times, SILENT, None) for times in whole]
    rows.append(Gap("a", "orders", "0_0", 12, 50, SILENT, None))
    found = merged("a", rows)
    assert sorted((x.task_id or "", x.from_us, x.until_us) for x in found) == [
        ("", 10, 30), ("", 31, 40), ("0_0", 12, 50),
    ]  # fmt: skip
