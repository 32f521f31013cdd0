"""An audit of its look-back and one snapshot says what an audit of all events says."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("spark"),
]  # fmt: skip

FLEETS = int(os.environ.get("STATEWARDEN_CARRY_FLEETS", "16"))

RETURN = "kafka-8187-stage2-2.0.1"
"""Stretched where its directories are gone."""

QUICK = ("kafka-8187-stage1-2.2.1", "kafka-20685-4.1.2", "benign-move-3.9.2", RETURN)
"""Stretched over four days in every run of `make check`; the others only by `pytest -m heavy`."""

SAID = (
    "id", "detector", "application_id", "task_id", "store", "pod", "severity", "confidence", "status", "opened_at",
    "pods", "confirms", "refutes", "explains", "summary",
)  # fmt: skip

Finding = Mapping[str, Any]


@dataclass(frozen=True)
class Audits:
    """What two audits of the same events found, and which recording each application is of.

    Args of the dataclass:
        whole: Findings of an audit that read all events.
        spared: Findings of an audit that read its look-back and one snapshot.
        recordings: Application -> recording.
    """

    whole: Sequence[Finding]
    spared: Sequence[Finding]
    recordings: Mapping[str, str]

    def of(self, name: str) -> tuple[Counter[str], Counter[str]]:
        """Take what both say of one recording."""
        whole, spared = (
            [row for row in rows if self.recordings.get(row["application_id"]) == name]
            for rows in (self.whole, self.spared)
        )
        return said(whole), said(spared)

    def confirmed(self, name: str) -> set[tuple[str, str]]:
        """Take rule and task of what is critical and confirmed of one recording."""
        return {
            (row["detector"], row["task_id"])
            for row in self.whole
            if self.recordings.get(row["application_id"]) == name
            and (row["severity"], row["confidence"]) == ("critical", "confirmed")
        }


def audits(spark: SparkSession, work: Path, recordings: Mapping[str, str]) -> Audits:
    """Take in what was written, and audit the last two of four days before and after `compact` sums the others up."""
    bronze = work / "bronze"
    ingest.run(spark, work / "in", bronze)
    days = snapshots.days(bronze)
    options = AuditOptions(bronze, work / "out", look_back_days=1)
    assert (len(days), audit.reading(options).missing) == (4, tuple(days[:2]))
    whole = audit.run(spark, options).findings
    assert snapshot.run(spark, bronze) == days[:2]
    assert audit.reading(options).after == days[1]
    return Audits(whole, audit.run(spark, options).findings, recordings)


def said(rows: Iterable[Finding]) -> Counter[str]:
    """Take what findings say, in a form that can be compared."""
    return Counter(json.dumps([row[name] for name in SAID], sort_keys=True) for row in rows)


def write_recordings(repository: Path, work: Path, names: Iterable[str]) -> dict[str, str]:
    """Write recordings, each stretched over four days; gives application -> recording."""
    found: dict[str, str] = {}
    for name in names:
        found |= replayed([repository / "tests" / "data" / "traces" / name], work / "replayed" / name)
        told = stretched.events_below(work / "replayed" / name)
        cuts = _absence(told) if name == RETURN else (0.25, 0.5, 0.75)
        stretched.write(stretched.stretched(told, cuts), work / "in")
    return found


def _absence(told: Sequence[Event]) -> tuple[float, float]:
    """Find where the first pod's directories are gone; two days pass there."""
    begin, end = (pick(event["observed_at_us"] for event in told) for pick in (min, max))
    gone = [e for e in told if e.get("change") == "task-deleted" and e["pod"].endswith("pod-a")]
    cut = (max(event["observed_at_us"] for event in gone) + S // 100 - begin) / (end - begin)
    return cut, cut


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


def over_midnight(told: Sequence[Event], second: float) -> list[Event]:
    """Move a story so that the midnight before the look-back falls on one of its seconds; nothing else changes."""
    begin = min(event["observed_at_us"] for event in told)
    shift_us = (FIRST_US // DAY_US + 2) * DAY_US - round(second * S) - begin
    return [stretched.shifted(event, lambda at_us: at_us + shift_us) for event in told]


def write_fleets(work: Path, number: int) -> None:
    """Write random fleets: every other one over midnight, the rest in three pieces on three days."""
    for index, fleet in enumerate(drawn(number)):
        told = [json.loads(line)["data"] for line in fleet.lines()]
        if index % 2:
            moved = stretched.stretched(told, (0.3, 0.6), beats=False)
        else:
            moved = over_midnight(told, HORIZON_S * (0.2 + 0.1 * (index % 7)))
        stretched.write(moved, work / "in")


@pytest.fixture(scope="module")
def audited_twice(spark, repository, tmp_path_factory) -> Audits:
    """Audit some recordings and random fleets with and without snapshots, all together."""
    work = tmp_path_factory.mktemp("four-days")
    write_fleets(work, FLEETS)
    return audits(spark, work, write_recordings(repository, work, QUICK))


@pytest.mark.parametrize("name", [name for name in QUICK if name != RETURN])
def test_a_recording_over_four_days(audited_twice, name):
    """Bugs that began three days before are found with the same id and confidence, and nothing is made up."""
    whole, spared = audited_twice.of(name)
    assert spared == whole
    expected = {(rule, task) for rule, task, _, loud in EXPECTED.get(name, ()) if loud == "critical"}
    assert audited_twice.confirmed(name) == expected


def test_a_directory_that_comes_back_two_days_later(audited_twice):
    """KAFKA-8187 stage 2: deleted on the first day, made anew under the old offset on the third; a day's look-back."""
    whole, spared = audited_twice.of(RETURN)
    assert spared == whole
    found = audited_twice.confirmed(RETURN)
    assert {("resurrected-checkpoint", f"0_{number}") for number in range(4)} <= found


def test_random_fleets(audited_twice):
    """Whatever happens before or after midnight, on one day or on three, both audits say the same."""
    whole, spared = said(audited_twice.whole), said(audited_twice.spared)
    assert spared - whole == Counter()
    assert whole - spared == Counter()
    drawn_only = {row["detector"] for row in audited_twice.whole if "drawn-" in str(row["namespace"])}
    assert {"resurrected-checkpoint", "unrestored-task", "stale-eos-state", "missing-standby"} <= drawn_only


def test_a_pod_that_was_not_heard_for_a_month_is_forgotten(spark, tmp_path):
    """Unless damage on it is still open."""
    told = Fleet("shop")
    told.pod("gone").holds("0_0", 5)
    told.pod("damaged").holds("0_1", 5).finds("resurrected-checkpoint", "0_1", 9)
    loaded = load.load(spark, told.write(tmp_path))
    events = loaded.events.drop("line").withColumn(ROUTINE, is_routine()).localCheckpoint()
    end_us = at_us(HORIZON_S) + (carry.REMEMBERED_DAYS + 1) * DAY_US
    carried = carry.carry(events, None, end_us - DAY_US, end_us)
    assert {row["pod"] for row in carried.heard.select("pod").collect()} == {"damaged"}


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_every_recording_and_many_random_fleets(spark, repository, tmp_path):
    """All recordings with more than one pod over four days, and two hundred fleets."""
    traces = repository / "tests" / "data" / "traces"
    names = [
        path.parent.name
        for path in sorted(traces.glob("*/scenario.json"))
        if len(json.loads(path.read_text())["pods"]) > 1 or path.parent.name in EXPECTED
    ]
    write_fleets(tmp_path, 200)
    found = audits(spark, tmp_path, write_recordings(repository, tmp_path, names))
    assert said(found.spared) == said(found.whole)
