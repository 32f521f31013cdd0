"""Snapshots of days: which days, cut off between any two steps, late events, and what an audit makes of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spark_rollup import audit
from spark_rollup.bronze import load, snapshots, table
from spark_rollup.bronze.snapshots import Reading
from spark_rollup.config import AuditOptions
from spark_rollup.fleet.beats import Beat
from spark_rollup.intake import closed, forget, ingest
from spark_rollup.judging import job
from spark_rollup.spark.rows import rows_of
from tests.spark_rollup.intake.conftest import CutOffError, cut, fleet
from tests.spark_rollup.support import over_days, stretched
from tests.spark_rollup.support.fleet import HORIZON_S
from tests.spark_rollup.support.plain import events_of_data, texts

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DAYS = ("2026-11-18", "2026-11-19", "2026-11-20")


@pytest.fixture
def bronze(spark, work) -> Path:
    """Three days; the newest two rest."""
    ingest.run(spark, fleet("four", 2).write(work / "in"), work / "bronze")
    return work / "bronze"


def kept(spark, bronze: Path) -> Counter[str]:
    """Count what is kept, by namespace."""
    carried = snapshots.read(spark, bronze, snapshots.note(bronze).days)
    return Counter(str(row["namespace"]) for row in carried.events.collect())


def test_a_run_that_is_cut_off_leaves_nothing_that_holds(spark, bronze, monkeypatch):
    """Neither before the table, nor before the note; the repeat makes it whole, once, and then has nothing to do."""
    for owner, step in ((table, "append"), (snapshots, "_put")):
        with monkeypatch.context() as patch:
            cut(patch, owner, step, after=False)
            with pytest.raises(CutOffError):
                closed.run(spark, bronze)
        assert snapshots.note(bronze).days == ()
    assert closed.run(spark, bronze) == [DAYS[0]]
    once = kept(spark, bronze)
    assert once.keys() == {"one", "two"}
    assert closed.run(spark, bronze) == []
    (part,) = snapshots.files(spark, bronze)
    assert forget.remove_file(spark, bronze, part) == 0
    assert kept(spark, bronze) == Counter()
    assert closed.run(spark, bronze) == [DAYS[0]]
    assert kept(spark, bronze) == once


def test_an_ingest_withdraws_before_it_adds(spark, bronze, tmp_path, monkeypatch):
    """Cut off before its events are there, the snapshot that will lack them holds no more; other days' do."""
    for number in (3, 4):
        fleet(f"day {number}", number).write(tmp_path / "more")
    ingest.run(spark, tmp_path / "more", bronze)
    assert closed.run(spark, bronze) == [*DAYS]
    late = fleet("late", 1)
    with monkeypatch.context() as patch:
        cut(patch, ingest, "write_events", after=False)
        with pytest.raises(CutOffError):
            ingest.run(spark, late.write(tmp_path / "late"), bronze)
    assert snapshots.note(bronze).days == (DAYS[0], DAYS[2])
    ingest.run(spark, tmp_path / "late", bronze)
    reader = snapshots.read(spark, bronze, (DAYS[0],)).events
    before = sorted(row["id"] for row in reader.collect())
    assert closed.run(spark, bronze) == [DAYS[1]]
    assert kept(spark, bronze)["late"] > 0
    # who began before goes on with what it chose
    assert sorted(row["id"] for row in reader.collect()) == before


@pytest.mark.usefixtures("delta")
def test_spark_keeps_what_the_plain_choice_keeps(spark, repository, tmp_path):
    """Of a recording over four days, drawn fleets and all stories: the same events, the same that was said.

    Read in both ways they say the same.
    """
    trace = repository / "tests" / "data" / "traces" / over_days.RETURN
    told = [*over_days.recording(trace, tmp_path / "replayed")]
    told += [event for _, story in list(over_days.fleets(3)) for event in story]
    for fleet_told in over_days.of_all_rules().values():
        told += over_days.over_midnight(over_days.told(fleet_told), HORIZON_S / 2)
    bronze = tmp_path / "bronze"
    ingest.run(spark, stretched.write(told, tmp_path / "in"), bronze)
    *days, _, _ = snapshots.days(bronze)
    assert closed.run(spark, bronze) == days

    options = AuditOptions(bronze, tmp_path / "out")
    what = audit.reading(options)
    assert what == Reading(tuple(days), "", what.missing)
    found = load.load(spark, bronze, what)
    assert found.carried is not None
    events = events_of_data(told)
    expected, heard = over_days.kept_of(events, snapshots.end_us(days[-1]))
    there = Counter((row["pod"], row["boot_id"], row["sequence"]) for row in found.carried.events.collect())
    assert there == Counter((x.pod, x.boot_id, x.sequence) for x in expected)
    assert Counter(Beat(*row) for row in found.carried.heard.select(*Beat._fields).collect()) == Counter(
        heard
    )

    read, about = audit.prepare(spark, options)
    asked = audit.asking(spark, options, about)
    wide = job.Wide(found.events.drop("line"), found.quarantine, found.carried).until(about.as_of_us)
    here, others = audit.tell(read, asked), audit.tell(wide, asked)
    assert others.timelines is not None
    for name in here.rows:
        rows = [*others.of(name), *(rows_of(others.timelines) if name == "timelines" else ())]
        assert texts(rows) == texts(here.of(name)), name
    assert len(here.of("findings")) > 4
