"""An audit of its look-back and one snapshot says what an audit of all events says."""

from __future__ import annotations

import importlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from agent.contract.events import Change
from spark_rollup import audit
from spark_rollup.bronze import snapshots
from spark_rollup.config import FLEET, AuditOptions
from spark_rollup.fleet.judge import FINDINGS
from spark_rollup.history import condense, day
from spark_rollup.intake import ingest
from spark_rollup.judging.asks import PASTS
from tests.spark_rollup.support import stretched
from tests.spark_rollup.support.drawn import fleet_of
from tests.spark_rollup.support.fleet import HORIZON_S, STORIES, Fleet, at_us
from tests.spark_rollup.support.stretched import DAY_US, FIRST_US, Event, S
from tests.support.recorded_fleet import EXPECTED, replayed

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("delta"),
]

FLEETS = int(os.environ.get("STATEWARDEN_CARRY_FLEETS", "16"))
MANY = int(os.environ.get("STATEWARDEN_CARRY_MANY", "200"))

RETURN = "kafka-8187-stage2-2.0.1"
"""Stretched where its directories are gone."""

QUICK = ("kafka-8187-stage1-2.2.1", "kafka-20685-4.1.2", "benign-move-3.9.2", RETURN)
"""Stretched over four days in every run of `make check`; the others only by `make prove`."""

SUSPECTED = {"kafka-20685-4.1.2": "suspected"}
"""Recordings that end before the agent can be sure: too little was flushed after the restart."""

SAID = (
    "id", "detector", "application_id", "task_id", "store", "pod", "severity", "confidence", "status", "opened_at",
    "pods", "confirms", "refutes", "explains", "summary",
)  # fmt: skip

OPEN_RULES = {
    "diverged-replica", "missing-standby", "resurrected-checkpoint", "split-owner", "stale-eos-state",
    "unprotected-task", "unrestored-task",
}  # fmt: skip
"""Rules whose findings stay open when nobody is heard any more."""

Finding = Mapping[str, Any]


@dataclass(frozen=True)
class Audits:
    """What audits of the same events found, and which recording each application is of.

    Args of the dataclass:
        whole: Findings of an audit that read all events.
        spared: Findings of an audit that read its look-back and one snapshot.
        ever: Findings of an audit of all events some days later, without a look-back.
        later: Findings of an audit then of one snapshot, and of a look-back in which nothing happened. Empty, as
            `ever`, where nobody asked for it.
        recordings: Application -> recording.
    """

    whole: Sequence[Finding]
    spared: Sequence[Finding]
    ever: Sequence[Finding]
    later: Sequence[Finding]
    recordings: Mapping[str, str]

    def of(self, name: str) -> tuple[Counter[str], Counter[str]]:
        """Take what both say of one recording."""
        whole, spared = (
            [row for row in rows if self.recordings.get(row["application_id"]) == name]
            for rows in (self.whole, self.spared)
        )
        return said(whole), said(spared)

    def criticals(self, name: str) -> set[tuple[str, str, str]]:
        """Take rule, task and confidence of what is critical of one recording."""
        return {
            (row["detector"], row["task_id"], row["confidence"])
            for row in self.whole
            if self.recordings.get(row["application_id"]) == name and row["severity"] == "critical"
        }


def audits(
    spark: SparkSession, work: Path, recordings: Mapping[str, str], *, is_long: bool = False
) -> Audits:
    """Take in what was written, and audit the last two of four days before and after `compact` sums the others up.

    If it is long, let a few days pass in which another fleet is heard only, and audit again.
    """
    bronze = work / "bronze [a]*"
    ingest.run(spark, work / "in", bronze)
    days = snapshots.days(bronze)
    options = AuditOptions(bronze, work / "out", look_back_days=1)
    assert (len(days), audit.reading(options).missing) == (4, tuple(days[:2]))
    whole = findings(spark, options)
    assert day.run(spark, bronze, PASTS) == days[:2]
    assert audit.reading(options).after == days[1]
    spared = findings(spark, options)
    if not is_long:
        return Audits(whole, spared, (), (), recordings)
    ingest.run(spark, write_later(work / "later"), bronze)
    assert day.run(spark, bronze, PASTS) == days[2:]
    assert (audit.reading(options).after, audit.reading(options).missing) == (days[3], ())
    ever = findings(spark, AuditOptions(bronze, work / "out"))
    return Audits(whole, spared, ever, findings(spark, options), recordings)


def findings(spark: SparkSession, options: AuditOptions) -> list[Finding]:
    """Audit without writing anything."""
    read, about = audit.prepare(spark, options)
    found = audit.tell(read, audit.asking(spark, options, about)).of(FINDINGS)
    spark.catalog.clearCache()
    return [row for row in found if row["reported_by"] == FLEET]


def still_open(rows: Iterable[Finding]) -> Counter[str]:
    """Take what is open and does not speak of the time that is looked at: churn per hour, unwatched times."""
    return said(
        row for row in rows if row["status"] == "open" and row["detector"] not in ("task-churn", "unaudited")
    )


def write_later(target: Path) -> Path:
    """Let another fleet be heard on two later days."""
    told = Fleet("later")
    told.pod("pod-a").holds("0_0", 5).configures(1, num_standby_replicas=0)
    events = [json.loads(line)["data"] for line in told.lines()]
    days_us = (FIRST_US + number * DAY_US - at_us(0) for number in (7, 8))
    moved = [
        stretched.shifted(event, lambda at_us, by=by: at_us + by) | {"boot_id": f"boot-{by}"}  # type: ignore[misc]
        for by in days_us
        for event in events
    ]
    return stretched.write(moved, target)


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
    """Draw fleets, the same in every run."""
    return [fleet_of(f"drawn-{index}") for index in range(number)]


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


def write_stories(work: Path) -> None:
    """Write what the tests of all rules tell, with the midnight somewhere in it, and those of this module."""
    for path in sorted((Path(__file__).parents[1] / "correlate").glob("test_*.py")):
        importlib.import_module(f"tests.spark_rollup.correlate.{path.stem}")
    events: list[Event] = []
    for name, fleet in STORIES.items():
        told = [json.loads(line)["data"] for line in fleet.lines()]
        holds = Counter((e["pod"], e["task_id"]) for e in told if e.get("change") == Change.TASK_HELD.value)
        # of more changes of holder than a snapshot keeps, most must come after the midnight
        is_often_held = 2 * max(holds.values(), default=0) > condense.FLIPS
        part = 0 if is_often_held else zlib.crc32(name.encode()) % 5
        events += over_midnight(told, HORIZON_S * (0.1 + 0.2 * part))
    for tell in (thawed, left_alone, cloned_in_turn):
        fleet = Fleet(tell.__name__)
        tell(fleet)
        told = [json.loads(line)["data"] for line in fleet.lines()]
        events += stretched.stretched(told, (0.3, 0.6, 0.9))
    fleet = Fleet("wiped")
    wiped(fleet)
    events += over_midnight([json.loads(line)["data"] for line in fleet.lines()], 410)
    stretched.write(events, work / "in")


def wiped(fleet: Fleet) -> None:
    """A task that is wiped again and again under one hold, before midnight and after it."""
    pod = fleet.pod("pod-a").holds("0_0", 5)
    for at in (*range(100, 400, 20), 420, 440):
        pod.changes("store-deleted", "0_0", at, shape="owner-walk", store="s", identity=f"made-{at}")


def thawed(fleet: Fleet) -> None:
    """A zombie that stands still for a day, flushes again on the third day, and goes on holding the task."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, "3.9.2", num_standby_replicas=0, session_timeout_ms=10_000)
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=5000, puts=5000)
    b.holds("0_0", 100)
    for at in range(110, 890, 10):
        b.changes("store-flushed", "0_0", at, store="s", puts=300 * at)
        if at > 300:
            a.changes("store-flushed", "0_0", at + 1, store="s", puts=5000 + at)


def left_alone(fleet: Fleet) -> None:
    """A zombie whose pod ends on the second day; shortly before that the other one gets beyond it, and works on."""
    a, b = fleet.pod("pod-a", ends_s=500), fleet.pod("pod-b")
    a.configures(1, "3.9.2", num_standby_replicas=0, session_timeout_ms=10_000)
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=5000, puts=5000)
    b.holds("0_0", 100)
    for at in range(110, 890, 10):
        b.changes("store-flushed", "0_0", at, store="s", puts=40 * at)
        b.writes_checkpoint("0_0", at + 1, offset=40 * at, puts=40 * at)


def cloned_in_turn(fleet: Fleet) -> None:
    """Two pods that show the same store on the first day, and after it another one only."""
    pods = [fleet.pod(name) for name in ("pod-a", "pod-b")]
    for at in range(10, 890, 10):
        for pod in pods:
            pod.measures("0_0", at, identity="first" if at < 200 else "second")


@pytest.fixture(scope="module")
def audited_twice(spark, repository, tmp_path_factory) -> Audits:
    """Audit some recordings and random fleets with and without snapshots, all together."""
    work = tmp_path_factory.mktemp("four-days")
    write_fleets(work, FLEETS)
    write_stories(work)
    return audits(spark, work, write_recordings(repository, work, QUICK))


@pytest.fixture(scope="module")
def audited_later(spark, repository, tmp_path_factory) -> Audits:
    """The same, and again some days later."""
    work = tmp_path_factory.mktemp("a-week")
    write_fleets(work, FLEETS)
    write_stories(work)
    return audits(spark, work, write_recordings(repository, work, QUICK), is_long=True)


@pytest.mark.parametrize("name", [name for name in QUICK if name != RETURN])
def test_a_recording_over_four_days(audited_twice, name):
    """Bugs that began three days before are found with the same id and confidence, and nothing is made up."""
    whole, spared = audited_twice.of(name)
    assert spared == whole
    expected = {
        (rule, task, SUSPECTED.get(name, "confirmed"))
        for rule, task, _, loud in EXPECTED.get(name, ())
        if loud == "critical"
    }
    assert audited_twice.criticals(name) == expected


def test_a_directory_that_comes_back_two_days_later(audited_twice):
    """KAFKA-8187 stage 2: deleted on the first day, recreated under the old offset on the third; a day's look-back."""
    whole, spared = audited_twice.of(RETURN)
    assert spared == whole
    found = audited_twice.criticals(RETURN)
    assert {("resurrected-checkpoint", f"0_{number}", "confirmed") for number in range(4)} <= found


def test_random_fleets(audited_twice):
    """Whatever happens before or after midnight, on one day or on three, both audits say the same."""
    whole, spared = said(audited_twice.whole), said(audited_twice.spared)
    assert spared - whole == Counter()
    assert whole - spared == Counter()
    drawn_only = {row["detector"] for row in audited_twice.whole if "drawn-" in str(row["namespace"])}
    assert {"resurrected-checkpoint", "unrestored-task", "stale-eos-state", "missing-standby"} <= drawn_only


@pytest.mark.heavy
def test_what_is_open_stays_however_old(audited_later):
    """With the same id and confidence: all of it was before the look-back, and its pods are not heard any more."""
    ever, later = still_open(audited_later.ever), still_open(audited_later.later)
    assert later - ever == Counter()
    assert ever - later == Counter()
    assert {json.loads(text)[1] for text in ever} >= OPEN_RULES


@pytest.mark.heavy
@pytest.mark.parametrize("story", ["thawed", "left_alone"])
def test_split_owners_are_reported_with_the_time_one_was_stalled(audited_later, story):
    """It stood still over a midnight; one flushed on every day since, of the other one nothing was heard."""
    told = [
        (row["status"], row["confidence"])
        for row in audited_later.later
        if (row["namespace"], row["detector"], row["pod"]) == (story, "split-owner", "pod-a")
    ]
    assert told == [("open", "confirmed")]


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_every_recording_and_many_random_fleets(spark, repository, tmp_path):
    """All recordings with more than one pod over four days, all stories, and two hundred fleets."""
    traces = repository / "tests" / "data" / "traces"
    names = [
        path.parent.name
        for path in sorted(traces.glob("*/scenario.json"))
        if len(json.loads(path.read_text())["pods"]) > 1 or path.parent.name in EXPECTED
    ]
    write_fleets(tmp_path, MANY)
    write_stories(tmp_path)
    found = audits(spark, tmp_path, write_recordings(repository, tmp_path, names), is_long=True)
    assert said(found.spared) == said(found.whole)
    assert still_open(found.later) == still_open(found.ever)
