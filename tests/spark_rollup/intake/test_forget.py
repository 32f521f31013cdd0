"""What slipped into bronze is taken out again, and not lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_rollup.bronze import load, snapshots
from spark_rollup.bronze.store import read_events, read_quarantine
from spark_rollup.cli import main
from spark_rollup.intake import ingest
from tests.spark_rollup.support.fleet import Fleet, at_us

DAY_S = 86_400


def test_it_says_what_it_needs(tmp_path, capsys):
    """One line, code 2, and nothing is touched."""
    assert main(["forget", "--bronze", str(tmp_path), "--pod", "p"]) == 2
    assert "is not a bronze directory" in capsys.readouterr().err
    (tmp_path / "_bronze.json").touch()
    assert main(["forget", "--bronze", str(tmp_path)]) == 2
    assert "--id ID, --pod POD or --file FILE" in capsys.readouterr().err
    assert main(["forget", "--bronze", str(tmp_path), "--pod", "p", "--since", "soon"]) == 2
    assert "--since 'soon' is not an ISO 8601 time" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("delta")
def test_events_of_a_wild_clock_go_to_the_quarantine(spark, tmp_path, monkeypatch, capsys):
    """Of a version that took any time: their day goes, their snapshots are withdrawn; `--again` brings others back."""
    other = Fleet("staging")
    other.pod("pod-b", ends_s=50)
    fleet = Fleet("shop")
    fleet.pod("pod-a", ends_s=50)
    fleet.pod("pod-b", begins_s=8_000 * 365 * DAY_S, ends_s=8_000 * 365 * DAY_S + 50)
    source, bronze = fleet.write(other.write(tmp_path / "in")), tmp_path / "bronze"
    with monkeypatch.context() as patch:
        patch.setattr(load, "AHEAD_US", 1 << 61)
        patch.setattr(load, "MAX_NUMBER", 1 << 62)
        ingest.run(spark, source, bronze)
    days = ["2026-11-17", "2026-11-18"]
    note = {"format": snapshots.FORMAT, "days": days, "removed": ""}
    (bronze / snapshots.NOTE).write_text(json.dumps(note))
    assert read_events(spark, bronze).where("day like '+%'").count() == len(fleet.pods[1].lines())
    assert snapshots.days(bronze) == ["2026-11-18"]

    asked = ["forget", "--bronze", str(bronze), "--pod", "pod-b"]
    assert main(asked) == 2
    assert "name one with --namespace: shop, staging" in capsys.readouterr().err
    asked += ["--namespace", "shop"]
    assert main([*asked, "--until", "2026-01-01"]) == 2
    assert "holds no such event" in capsys.readouterr().err
    assert main(asked) == 0
    assert f"{len(fleet.pods[1].lines())} events moved" in capsys.readouterr().out
    assert read_events(spark, bronze).where("day like '+%'").count() == 0
    assert snapshots.note(bronze).days == tuple(days)
    left = {(row["namespace"], row["pod"]) for row in read_events(spark, bronze).collect()}
    assert left == {("shop", "pod-a"), ("staging", "pod-b")}
    put_aside = read_quarantine(spark, bronze).where("reason = 'forgotten'").collect()
    assert sorted(row["line"] for row in put_aside) == sorted(fleet.pods[1].lines())

    of_shop = "namespace = 'shop'"
    (one,) = read_events(spark, bronze).where(of_shop).where(f"observed_at_us = {at_us(30)}").collect()
    assert main(["forget", "--bronze", str(bronze), "--id", one["id"]]) == 0
    assert snapshots.note(bronze).days == ("2026-11-17",)
    assert read_events(spark, bronze).where(of_shop).count() == len(fleet.pods[0].lines()) - 1
    assert main(["ingest", "--input", str(source), "--bronze", str(bronze), "--again"]) == 0
    assert read_events(spark, bronze).where(of_shop).count() == len(
        fleet.pods[0].lines()
    )  # the wild ones are impossible now


def test_days_of_impossible_times_are_no_days(tmp_path: Path):
    """They belong to no snapshot and end no look-back."""
    for day in ("+10209-01-27", "-2000-01-01", "2026-11-18"):
        (tmp_path / "events" / f"day={day}").mkdir(parents=True)
    assert snapshots.days(tmp_path) == ["2026-11-18"]
