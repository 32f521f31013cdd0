"""Up to when an audit looks, with Spark."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from agent.contract.codec import SCHEMA_VERSION
from agent.contract.events import Kind
from spark_rollup import audit
from spark_rollup.bronze import snapshots
from spark_rollup.bronze.latest import Latest
from spark_rollup.config import MARKER, AuditOptions
from spark_rollup.correlate import unaudited
from spark_rollup.fleet.beats import beats
from spark_rollup.fleet.gaps import gaps_of
from spark_rollup.fleet.judge import FINDINGS
from spark_rollup.fleet.pods import FAST
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import events_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def told(spark: SparkSession, source: Path) -> tuple[int, dict[str, str]]:
    """Give the audit's time, and what `unaudited` says of which pod."""
    options = AuditOptions(source, source)
    read, about = audit.prepare(spark, options)
    found = audit.tell(read, audit.asking(spark, options, about, [unaudited.RULE])).of(FINDINGS)
    assert all(row["severity"] == "warning" for row in found)
    return about.as_of_us, {row["pod"]: row["summary"] for row in found}


def test_one_fast_clock_silences_no_other_agent(spark, tmp_path):
    """A heartbeat one hour ahead: two healthy pods are not called silent, the third is named."""
    fleet = Fleet("shop")
    for name in ("pod-a", "pod-b", "pod-c"):
        fleet.pod(name, announces_end=False)
    fleet.pods[2].tells(Kind.HEARTBEAT, 4470, tasks=1)
    as_of_us, said = told(spark, fleet.write(tmp_path / "in"))
    assert as_of_us == at_us(870)
    assert said.keys() == {"pod-c"}
    assert "its clock is ahead of all others" in said["pod-c"]
    assert "3600 s" in said["pod-c"]


def test_agents_that_really_fell_silent_are_reported(spark, tmp_path):
    """One pod speaks on for an hour: the others are silent, and its clock is right."""
    fleet = Fleet("shop")
    for name in ("pod-a", "pod-b"):
        fleet.pod(name, announces_end=False)
    fleet.pod("pod-c", ends_s=4500, announces_end=False)
    as_of_us, said = told(spark, fleet.write(tmp_path / "in"))
    assert as_of_us == at_us(4470)
    assert said.keys() == {"pod-a", "pod-b"}
    assert all("the agent said nothing" in text for text in said.values())


@pytest.mark.parametrize("as_of_us", [None, at_us(600)])
def test_segments_of_a_later_contract_ask_for_an_upgrade(spark, tmp_path, capsys, as_of_us):
    """What is new in them is not looked at, and no `ingest` has said so: silence would be an all-clear."""
    fleet = Fleet("shop")
    fleet.pod("pod-a")
    source = fleet.write(tmp_path / "in")
    audit.prepare(spark, AuditOptions(source, source, as_of_us))
    assert capsys.readouterr().err == ""
    later = json.loads(fleet.lines()[-1])
    later["data"] |= {"schema_version": "1.99", "kind": "gossip"}
    (source / "later.jsonl").write_text(json.dumps(later | {"id": "of its own"}))
    audit.prepare(spark, AuditOptions(source, source, as_of_us))
    said = capsys.readouterr().err
    assert f"some events are of contract 1.99, and this version knows {SCHEMA_VERSION}: they are read" in said
    assert said.count("upgrade statewarden") == 1


def test_what_a_fast_clock_said_last_is_in_doubt():
    """It may have been earlier by as much as the clock is ahead, a day at most."""
    fleet = Fleet("shop")
    fleet.pod("pod-c")
    events, as_of_us, day_us = events_of(fleet.lines()), at_us(HORIZON_S), 86_400_000_000
    for ahead_us, doubted_us in ((5_000_000, 5_000_000), (2**60, day_us)):
        (gap,) = gaps_of(beats(events), [], [], as_of_us, ahead_us)
        assert (as_of_us - gap.from_us, gap.to_us, gap.cause) == (doubted_us, as_of_us, FAST)


def test_a_fast_clock_past_midnight_hides_no_day_of_the_look_back(tmp_path: Path, monkeypatch) -> None:
    """One pod is already in the next day: what is read goes by the day that the audit is about."""
    for day in ("18", "19", "20", "21"):
        (tmp_path / "events" / f"day=2026-11-{day}").mkdir(parents=True)
    (tmp_path / MARKER).touch()
    note = {"format": snapshots.FORMAT, "days": ["2026-11-18", "2026-11-19"], "removed": ""}
    (tmp_path / snapshots.NOTE).write_text(json.dumps(note))
    whole = SimpleNamespace(columns=(), drop=lambda _: None)
    read: list[tuple[str, ...]] = []

    def load(_: object, place: Path, what: snapshots.Reading) -> SimpleNamespace:
        read.append(what.kept)
        return SimpleNamespace(events=whole, quarantine=whole, carried=None, unique=True)

    about = Latest(snapshots.end_us("2026-11-20") - 1)
    monkeypatch.setattr(audit, "load", load)
    monkeypatch.setattr(audit, "newest", lambda *_: about)
    options = AuditOptions(tmp_path, tmp_path / "out", look_back_days=1)
    spark = SimpleNamespace(conf={"spark.sql.shuffle.partitions": "8"})
    assert audit.read_for_its_time(spark, options)[1] == about  # type: ignore[arg-type]
    assert read == [("2026-11-18", "2026-11-19"), ("2026-11-18",)]
