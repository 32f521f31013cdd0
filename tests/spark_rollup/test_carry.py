"""An audit of its look-back and one snapshot says what an audit of all events says."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession

from spark_rollup import audit, carry, ingest, load, snapshot, snapshots
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.config import AuditOptions
from tests.spark_rollup.support import stretched
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.stretched import DAY_US, FIRST_US, Event, S
from tests.spark_rollup.test_oracle import fleets
from tests.support.recorded_fleet import EXPECTED, replayed

pytestmark = [
    pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("spark"),
]  # fmt: skip

FLEETS = int(os.environ.get("STATEWARDEN_CARRY_FLEETS", "24"))

QUICK = ("kafka-8187-stage1-2.2.1", "kafka-20685-4.1.2", "kafka-9891-2.5.0", "benign-move-3.9.2")
"""Stretched over four days in every run; the others only by `pytest -m heavy`."""

RETURN = "kafka-8187-stage2-2.0.1"

SAID = (
    "id", "detector", "application_id", "task_id", "store", "pod", "severity", "confidence", "status", "opened_at",
    "pods", "confirms", "refutes", "explains", "summary",
)  # fmt: skip

Finding = Mapping[str, Any]


def findings(spark: SparkSession, bronze: Path, days: int, as_of_us: int | None = None) -> list[Finding]:
    """Audit and take what is found."""
    options = AuditOptions(bronze, bronze.parent / "out", as_of_us, look_back_days=days)
    return list(audit.run(spark, options).findings)


def said(rows: Sequence[Finding]) -> Counter[str]:
    """Take what findings say, in a form that can be compared."""
    return Counter(json.dumps([row[name] for name in SAID], sort_keys=True) for row in rows)


def recorded(spark: SparkSession, repository: Path, work: Path, cuts: Mapping[str, Sequence[float]]) -> Path:
    """Take recordings in, each stretched at its cuts."""
    for name, shares in cuts.items():
        replayed([repository / "tests" / "data" / "traces" / name], work / "replayed" / name)
        told = stretched.events_below(work / "replayed" / name)
        stretched.write(stretched.stretched(told, shares), work / "in")
    ingest.run(spark, work / "in", work / "bronze")
    return work / "bronze"


def confirmed(rows: Sequence[Finding]) -> set[tuple[str, str | None]]:
    """Take rule and task of what is critical and confirmed."""
    return {
        (row["detector"], row["task_id"])
        for row in rows
        if (row["severity"], row["confidence"]) == ("critical", "confirmed")
    }


def test_recorded_runs_over_four_days(spark, repository, tmp_path):
    """Every bug that began two days before is found with the same id and confidence, and nothing is made up."""
    bronze = recorded(spark, repository, tmp_path, dict.fromkeys(QUICK, (0.25, 0.5, 0.75)))
    whole = findings(spark, bronze, 1)
    assert snapshot.run(spark, bronze) == snapshots.days(bronze)[: -snapshot.RESTING]
    assert audit.reading(AuditOptions(bronze, tmp_path, look_back_days=1)).missing == ()
    assert said(findings(spark, bronze, 1)) == said(whole)
    expected = {
        (rule, task) for name in QUICK for rule, task, _, loud in EXPECTED.get(name, ()) if loud == "critical"
    }
    assert confirmed(whole) == expected


def test_a_directory_that_comes_back_two_days_later(spark, repository, tmp_path):
    """KAFKA-8187 stage 2: deleted on the first day, made anew on the third under the old offset; a day's look-back."""
    trace = repository / "tests" / "data" / "traces" / RETURN
    replayed([trace], tmp_path / "replayed")
    told = stretched.events_below(tmp_path / "replayed")
    begin, end = (pick(event["observed_at_us"] for event in told) for pick in (min, max))
    gone = max(
        e["observed_at_us"] for e in told if e.get("change") == "task-deleted" and e["pod"].endswith("a")
    )
    cut = (gone + S // 100 - begin) / (end - begin)
    stretched.write(stretched.stretched(told, (cut, cut)), tmp_path / "in")
    bronze = tmp_path / "bronze"
    ingest.run(spark, tmp_path / "in", bronze)
    whole = findings(spark, bronze, 1)
    assert snapshot.run(spark, bronze) == snapshots.days(bronze)[: -snapshot.RESTING]
    assert audit.reading(AuditOptions(bronze, tmp_path, look_back_days=1)).missing == ()
    assert said(findings(spark, bronze, 1)) == said(whole)
    assert {("resurrected-checkpoint", task) for task in ("0_0", "0_1", "0_2", "0_3")} <= confirmed(whole)


def drawn(number: int) -> list[Fleet]:
    """Let hypothesis draw fleets."""
    found: list[Fleet] = []

    @settings(
        max_examples=number, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(fleet=fleets())
    def collect(fleet: Fleet) -> None:
        fleet.name = f"drawn-{len(found)}"
        for pod in fleet.pods:
            pod.uid = f"{fleet.name}-{pod.name}"
        found.append(fleet)

    collect()
    return found


LAST_DAY_US = (FIRST_US // DAY_US + 2) * DAY_US
"""When the last day of random fleets begins."""


def over_midnight(told: Sequence[Event], second: float) -> list[Event]:
    """Move a story so that the last midnight falls on one of its seconds; nothing else changes."""
    begin = min(event["observed_at_us"] for event in told)
    shift_us = LAST_DAY_US - round(second * S) - begin
    return [stretched.shifted(event, lambda at_us: at_us + shift_us) for event in told]


def random_fleets(spark: SparkSession, work: Path, number: int) -> Path:
    """Take random fleets in: every other one over midnight, the rest in three pieces on three days."""
    told: list[Event] = []
    for index, fleet in enumerate(drawn(number)):
        told = [json.loads(line)["data"] for line in fleet.lines()]
        if index % 2:
            moved = stretched.stretched(told, (0.3, 0.6), beats=False)
        else:
            moved = over_midnight(told, HORIZON_S * (0.2 + 0.1 * (index % 7)))
        stretched.write(moved, work / "in")
    stretched.write([told[0] | {"pod_uid": "tomorrow", "observed_at_us": LAST_DAY_US + DAY_US}], work / "in")
    ingest.run(spark, work / "in", work / "bronze")
    return work / "bronze"


def agree(spark: SparkSession, bronze: Path) -> Counter[str]:
    """Compare an audit of one day alone with and without snapshots; gives the rules that spoke."""
    end_us = LAST_DAY_US + DAY_US - 1
    whole = findings(spark, bronze, 0, end_us)
    assert snapshot.run(spark, bronze) == snapshots.days(bronze)[: -snapshot.RESTING]
    assert audit.reading(AuditOptions(bronze, bronze, end_us, look_back_days=0)).missing == ()
    spared = findings(spark, bronze, 0, end_us)
    assert said(spared) - said(whole) == Counter()
    assert said(whole) - said(spared) == Counter()
    return Counter(row["detector"] for row in whole)


def test_random_fleets(spark, tmp_path):
    """Whatever happens before or after midnight, on one day or on three, both audits say the same."""
    spoken = agree(spark, random_fleets(spark, tmp_path, FLEETS))
    assert {"resurrected-checkpoint", "unrestored-task", "stale-eos-state", "missing-standby"} <= set(spoken)


def test_a_pod_that_was_not_heard_for_a_month_is_forgotten(spark, tmp_path):
    """Unless damage on it is still open."""
    told = Fleet("shop")
    told.pod("gone").holds("0_0", 5)
    told.pod("damaged").holds("0_1", 5).finds("resurrected-checkpoint", "0_1", 9)
    loaded = load.load(spark, told.write(tmp_path))
    events = loaded.events.drop("line").withColumn(ROUTINE, is_routine())
    for days, known in ((29, {"gone", "damaged"}), (31, {"damaged"})):
        end_us = at_us(HORIZON_S) + days * DAY_US
        carried = carry.carry(events, None, end_us - DAY_US, end_us)
        for frame in (carried.events, carried.heard):
            assert {row["pod"] for row in frame.select("pod").collect()} == known


@pytest.mark.heavy
def test_many_random_fleets(spark, tmp_path):
    """The same with two hundred fleets."""
    agree(spark, random_fleets(spark, tmp_path, 200))


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_every_recording_of_several_pods(spark, repository, tmp_path):
    """All recordings with more than one pod over four days."""
    traces = repository / "tests" / "data" / "traces"
    names = [
        path.parent.name
        for path in sorted(traces.glob("*/scenario.json"))
        if len(json.loads(path.read_text())["pods"]) > 1 or path.parent.name in EXPECTED
    ]
    bronze = recorded(spark, repository, tmp_path, dict.fromkeys(names, (0.25, 0.5, 0.75)))
    whole = findings(spark, bronze, 1)
    snapshot.run(spark, bronze)
    assert said(findings(spark, bronze, 1)) == said(whole)
