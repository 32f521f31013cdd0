"""Snapshots of days: which days, cut off between any two steps, late events, and what an audit makes of them."""

from __future__ import annotations

import json
import shutil
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
from tests.spark_rollup.intake.conftest import fleet
from tests.spark_rollup.support import over_days, stretched
from tests.spark_rollup.support.plain import events_of_data

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DAYS = ("2026-11-18", "2026-11-19", "2026-11-20")


class CutOffError(Exception):
    """Stands for kill -9."""


def cut(*_: object, **__: object) -> None:
    raise CutOffError


@pytest.fixture
def bronze(spark, made, tmp_path) -> Path:
    """Three days; the newest two rest."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    ingest.run(spark, fleet("four", 2).write(tmp_path / "in"), tmp_path / "bronze")
    return tmp_path / "bronze"


def kept(spark, bronze: Path) -> Counter[str]:
    """Count what is kept, by namespace."""
    carried = snapshots.read(spark, bronze, snapshots.note(bronze).days)
    return Counter(str(row["namespace"]) for row in carried.events.collect())


@pytest.mark.parametrize(
    ("owner", "step"),
    [(table, "append"), (snapshots, "_put")],
    ids=["before", "after"],
)
def test_a_run_that_is_cut_off_leaves_nothing_that_holds(spark, bronze, monkeypatch, owner, step):
    """Neither before the table, nor before the note; the repeat makes it whole, once, and then has nothing to do."""
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, cut)
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
        ingest.run(spark, fleet(f"day {number}", number).write(tmp_path / "more"), bronze)
    assert closed.run(spark, bronze) == [*DAYS]
    late = fleet("late", 1)
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "write_events", cut)
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
    """Of recordings over four days: the same events, the same that was said; read in both ways they say the same."""
    trace = repository / "tests" / "data" / "traces" / over_days.RETURN
    told = [*over_days.recording(trace, tmp_path / "replayed")]
    told += [event for _, story in list(over_days.fleets(3)) for event in story]
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
    for name in here.rows.keys() - {"timelines"}:
        rows = [Counter(json.dumps(row, sort_keys=True) for row in one.of(name)) for one in (here, others)]
        assert rows[0] == rows[1], name
    assert len(here.of("findings")) > 4
