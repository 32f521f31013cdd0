"""Of a task with too many rows the oldest are left out: that is told as a gap, and nothing gets surer by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from agent.contract.audited import FLEET
from agent.contract.events import Confidence, Severity
from spark_rollup.columns import TASK
from spark_rollup.fleet import sizes
from spark_rollup.fleet.answers import DAMAGED, UNKNOWN
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.pods import TOO_MANY
from spark_rollup.fleet.rows import Gap
from spark_rollup.judging import copies
from tests.spark_rollup.fleet.test_folded import frame, reading
from tests.spark_rollup.fleet.test_keep import QUICK
from tests.spark_rollup.support import over_days
from tests.spark_rollup.support.drawn import FLEETS, fleet_of
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import events_of, events_of_data, tables, texts

WHOSE = ("detector", "namespace", "application_id", "task_id", "store", "pod", "identity", "status")

Task = tuple[str, str | None, str | None]


def _task(row: Row) -> Task:
    return row["namespace"], row["application_id"], row["task_id"]


def cut(
    events: Sequence[Event], as_of_us: int, most: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> set[str]:
    """Audit with room for all rows and for few of each application; say of which rules' findings some changed."""
    whole, changed = tables(events, as_of_us), set()
    for number in most:
        with monkeypatch.context() as patch:
            patch.setattr(sizes, "MOST_ROWS", number)
            less = tables(events, as_of_us)
        changed |= compared(whole, less)
    return changed


def compared(whole: Mapping[str, list[Row]], less: Mapping[str, list[Row]]) -> set[str]:
    """Nothing is surer than it was, and of tasks without a gap the same is said."""
    tasks = {_task(row) for row in less["gaps"] if row["cause"] == TOO_MANY}
    told = {(row["namespace"], row["pod"]) for row in less["findings"] if row["identity"] == TOO_MANY}
    assert told == {(row["namespace"], row["pod"]) for row in less["gaps"] if row["cause"] == TOO_MANY}
    for word, kind in (("confidence", Confidence.CONFIRMED), ("severity", Severity.CRITICAL)):
        sure, more = (
            {tuple(row[name] for name in WHOSE) for row in found["findings"]
             if row[word] == kind.value and row["reported_by"] == FLEET and row["identity"] != TOO_MANY}
            for found in (whole, less)
        )  # fmt: skip
        assert more <= sure
    for table in ("findings", "restarts"):
        here, there = (
            texts(x for x in found[table] if _task(x) not in tasks and x.get("identity") != TOO_MANY)
            for found in (whole, less)
        )  # fmt: skip
        assert here == there, table
    for row in less["restarts"]:
        assert _task(row) not in tasks or row["answer"] in (UNKNOWN, DAMAGED)
    before, after = (
        Counter((row["detector"], row["confidence"]) for row in found["findings"]) for found in (whole, less)
    )
    return {detector for detector, _ in before - after}


def had_more() -> Fleet:
    """A store that had come as far as the previous owner's before that one took the task."""
    fleet = Fleet("had-more")
    a, b = fleet.pod("pod-a").holds("0_0", 200), fleet.pod("pod-b").holds("0_0", 10).releases("0_0", 190)
    b.measures("0_0", 100, identity="two", offset=2000, puts=1900)
    for at in (580, 590):
        a.measures("0_0", at, identity="one", offset=1900, puts=at + 1000, entries_low=at + 900)
    a.releases("0_0", 600)
    b.holds("0_0", 602).measures("0_0", 610, identity="two", offset=1950, puts=5)
    b.finds("unrestored-store", "0_0", 605, store="s", identity="two", confidence="suspected")
    return fleet


def wrote_once() -> Fleet:
    """A standby beside a crash that wrote a checkpoint before it put in very much."""
    fleet = Fleet("wrote-once")
    a, b = fleet.pod("pod-a").holds("0_0", 10), fleet.pod("pod-b").holds("0_0", 12)
    a.configures(1, "3.9.2", num_standby_replicas=1, processing_guarantee="exactly_once_v2")
    b.writes_checkpoint("0_0", 50, offset=100)
    for at in (200, 250, 350):
        b.measures("0_0", at, puts=at * 1000)
    a.releases("0_0", 400).finds("skipped-eos-wipe", "0_0", 410, store="s", confidence="suspected")
    return fleet


def was_ahead() -> Fleet:
    """A holder that stands still had come further than the one that works beside it."""
    fleet = Fleet("was-ahead")
    a, b = fleet.pod("pod-a").holds("0_0", 5), fleet.pod("pod-b").holds("0_0", 100)
    a.configures(1, "2.4.0", num_standby_replicas=0, session_timeout_ms=10_000)
    a.measures("0_0", 50, offset=50_000, puts=50_000).measures("0_0", 300, offset=10, puts=10)
    b.measures("0_0", 200, offset=300, puts=300).measures("0_0", 400, offset=30_000, puts=30_000)
    return fleet


@pytest.mark.slow
def test_no_rule_gets_surer(monkeypatch: pytest.MonkeyPatch) -> None:
    """In random fleets and the stories of all rules, however little is read."""
    fleets = [*over_days.of_all_rules().values(), had_more(), wrote_once(), was_ahead()]
    fleets += [fleet_of(f"cut-{number}") for number in range(FLEETS)]
    events = events_of(line for fleet in fleets for line in fleet.lines())
    changed = cut(events, at_us(HORIZON_S), (1, 3, 6, 12), monkeypatch)
    assert {"resurrected-checkpoint", "unrestored-task", "stale-eos-state", "split-owner"} <= changed


@pytest.mark.parametrize("name", QUICK)
def test_no_recorded_bug_gets_surer(repository, tmp_path, monkeypatch, name):
    """Nor does anything that was recorded of a fleet."""
    told = over_days.recording(repository / "tests" / "data" / "traces" / name, tmp_path)
    events = events_of_data(told)
    cut(events, max(x.observed_at_us for x in events), (1, 10, 40, 160), monkeypatch)


def test_only_the_newest_are_left():
    """Of all pods up to one time: never more than there is room for, even where many are of that time."""
    rows = [reading(at, pod) for at in range(10) for pod in ("pod-a", "pod-b")]
    assert sizes.left_out(rows, 20) == []
    assert sizes.left_out(rows, 5) == [Gap(pod, None, "0_0", 0, 7, TOO_MANY, 8) for pod in ("pod-a", "pod-b")]
    assert sizes.left_out([reading(7)] * 3, 2) == [Gap("pod-a", None, "0_0", 7, 7, TOO_MANY, 3)]


def test_tasks_in_question_share_the_room():
    """However many they are, an application needs no more."""
    assert sizes.most_rows(0) == sizes.most_rows(1) == sizes.MOST_ROWS
    assert sizes.most_rows(3) == sizes.MOST_ROWS // 3
    assert sizes.most_rows(sizes.MOST_ROWS + 1) == 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_spark_leaves_out_what_the_driver_does(spark: SparkSession) -> None:
    """With rows at one time, and marks beside readings."""
    dice = Random(8)
    known = [reading(dice.randint(0, 60), dice.choice("ab")) for _ in range(300)]
    readings = frame(spark, known[:200])
    marks = frame(spark, known[200:])
    for most in (0, 40, 299, 300):
        asked = readings.select(*TASK).distinct().withColumn("most", F.lit(most))
        left_out = copies.left_out(readings, marks, asked)
        here = sizes.left_out(known, most)
        found = [Gap(**row.asDict()) for row in left_out.drop("namespace").collect()]
        assert Counter(x._replace(application_id=None) for x in found) == Counter(here)
        cut_us = max((x.to_us for x in here), default=-1)
        assert copies.newest(readings, left_out).count() == sum(x.at_us > cut_us for x in known[:200])
