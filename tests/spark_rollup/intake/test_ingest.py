"""Bronze: what is taken once, what a run that is cut off leaves, and compaction."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from agent.contract.codec import SCHEMA_VERSION
from spark_rollup.bronze import load, store, table, unpacked
from spark_rollup.bronze.store import read_events, read_quarantine
from spark_rollup.errors import UsageError
from spark_rollup.intake import ingest
from spark_rollup.schemas import EVENT_ROW
from spark_rollup.sources import files
from spark_rollup.sources.base import Batch
from tests.spark_rollup.intake.conftest import CutOffError, cut, fleet, ids

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.usefixtures("delta")]


def test_runs_that_are_cut_off_lose_and_double_nothing(spark, tmp_path, monkeypatch):
    """Cut off before and after each thing that is written, one after the other: the last repeat completes it."""
    source, bronze = fleet().write(tmp_path / "in"), tmp_path / "bronze"
    (source / "bad.jsonl").write_text("{broken")
    for name, after in (
        ("write_events", False), ("write_events", True), ("add_quarantine", True), ("put", True), ("_remember", False),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            cut(patch, ingest, name, after=after)
            with pytest.raises(CutOffError):
                ingest.run(spark, source, bronze)
    assert ingest.read_ends(bronze) == {}
    again = ingest.run(spark, source, bronze)
    assert (again.events, again.quarantined, again.files) == (0, 0, 2)
    assert len(ids(spark, bronze)) == len(set(ids(spark, bronze))) == len(fleet().lines())
    assert read_quarantine(spark, bronze).count() == 1
    assert ingest.run(spark, source, bronze) == ingest.Ingested(0, 0, 0)


def test_one_bad_file_stops_no_other(spark, tmp_path, monkeypatch):
    """A line without end, a name that is no text, a torn file whose name announces nothing: each is told, once."""
    monkeypatch.setattr(unpacked, "LINE_BYTES", 64 * 1024)
    source, bronze, job = fleet().write(tmp_path / "in"), tmp_path / "bronze", tmp_path / "job"
    job.mkdir()
    torn = gzip.compress("".join(f"{line}\n" for line in fleet("torn").lines()).encode())
    (source / "events.jsonl.gz").write_bytes(torn[: len(torn) * 2 // 3])
    (source / "boot-1-3.jsonl.gz").write_bytes(gzip.compress(b"x" * 100_000))
    (source / "odd-\udcff.jsonl").write_text(fleet("odd").lines()[0])
    (source / "2026-11-28T10:00.jsonl").write_text(fleet("odd").lines()[0])
    newer = fleet("newer").lines()[0].replace(f'"{SCHEMA_VERSION}"', '"1.99"')
    (source / "newer.jsonl").write_text(newer.replace('"lifecycle"', '"gossip"'))
    first = ingest.run(spark, job / ".." / "in", bronze)
    assert (first.unread, first.files, first.newer) == ({}, 6, 99)
    assert len(fleet().lines()) + 1 < first.events < len(fleet().lines()) + 1 + len(fleet("torn").lines())
    told = read_quarantine(spark, bronze).where("reason != 'not-json'").collect()
    rows = {Path(row["file"]).name: row for row in told}
    assert {name: row["reason"] for name, row in rows.items()} == {
        "events.jsonl.gz": "cut-off-file",
        "boot-1-3.jsonl.gz": "too-large",
        r"odd-\udcff.jsonl": "odd-name",
        "2026-11-28T10:00.jsonl": "odd-name",
    }
    assert "gzip data break off" in rows["events.jsonl.gz"]["detail"]
    assert ingest.run(spark, job / ".." / "in", bronze) == ingest.Ingested(0, 0, 0)
    assert load.load(spark, job / ".." / "in").quarantine.where("reason = 'cut-off-file'").count() == 1


def test_what_another_version_could_not_use_is_judged_again(spark, tmp_path, monkeypatch):
    """The whole line waits in the quarantine; what is an event now leaves it, the rest stays."""
    source, bronze = tmp_path / "in", tmp_path / "bronze"
    source.mkdir()
    (long := json.loads(fleet().lines()[0]))["data"]["later_field"] = "x" * 5000
    (source / "a.jsonl").write_text("\n".join([*fleet().lines()[1:], json.dumps(long), "{broken"]))
    with monkeypatch.context() as patch:
        patch.setattr(load, "SCHEMA_MAJOR", 0)
        patch.setattr(ingest, "JUDGE", "an older version")
        first = ingest.run(spark, source, bronze)
        assert (first.events, first.quarantined) == (0, len(fleet().lines()) + 1)
        assert ingest.run(spark, source, bronze) == ingest.Ingested(0, 0, 0)
    again = ingest.run(spark, source, bronze)
    assert (again.events, again.quarantined, again.files) == (len(fleet().lines()), 0, 0)
    assert [row["reason"] for row in read_quarantine(spark, bronze).collect()] == ["not-json"]
    assert ingest.run(spark, source, bronze) == ingest.Ingested(0, 0, 0)


def test_a_file_that_no_run_survives_stops_no_other(spark, tmp_path, monkeypatch):
    """Java dies with it again and again: all others are in bronze, and in the end it is in quarantine."""
    source, bronze = tmp_path / "in", tmp_path / "bronze"
    for name in ("good", "killer", "other"):
        fleet(name).write(source)
    (killer,) = (str(path) for path in source.rglob("*.gz") if "killer" in str(path))
    real = ingest.add_batch

    def add_batch(session: SparkSession, batch: Batch, place: Path) -> ingest.Ingested:
        rows = batch.loaded.quarantine.where("reason = 'deadly-file'")
        if killer in batch.ends and rows.isEmpty():
            raise ConnectionRefusedError(111, "Connection refused")
        return real(session, batch, place)

    monkeypatch.setattr(ingest, "add_batch", add_batch)
    runs = 0
    while killer not in ingest.read_ends(bronze):
        runs += 1
        assert runs < 8
        with suppress(ConnectionRefusedError):
            ingest.run(spark, source, bronze)
    assert {row["namespace"] for row in read_events(spark, bronze).collect()} == {"good", "other"}
    (row,) = read_quarantine(spark, bronze).collect()
    assert (row["file"], row["reason"]) == (killer, "deadly-file")
    assert ingest.run(spark, source, bronze) == ingest.Ingested(0, 0, 0)


def test_two_runs_that_nothing_keeps_apart_add_nothing_twice(spark, tmp_path, monkeypatch):
    """Another run adds the same events after they were compared: this one says so, and its repeat finds them."""
    source, bronze = fleet().write(tmp_path / "in"), tmp_path / "bronze"
    ingest.run(spark, fleet("first").write(tmp_path / "first"), bronze)
    real = store.write_events

    def late(*arguments: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(ingest, "write_events", real)
            ingest.run(spark, source, bronze)
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ingest, "write_events", late)
        with pytest.raises(UsageError, match=r"another run added to .* nothing is lost or doubled"):
            ingest.run(spark, source, bronze)
    assert ingest.run(spark, source, bronze).events == 0
    assert len(ids(spark, bronze)) == len(set(ids(spark, bronze))) == len(fleet().lines()) * 2


def test_what_was_taken_is_durable_turn_by_turn(spark, tmp_path, monkeypatch):
    """Cut off in the third turn, the files of two are taken for good."""
    monkeypatch.setattr(files, "FILES_PER_TURN", 1)
    source, bronze = tmp_path / "in", tmp_path / "bronze"
    for name in ("one", "two", "three"):
        fleet(name).write(source)
    real, turns = ingest.add_batch, []

    def add_batch(*arguments: object) -> ingest.Ingested:
        turns.append(arguments)
        if len(turns) == 3:
            raise CutOffError
        return real(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(ingest, "add_batch", add_batch)
        with pytest.raises(CutOffError):
            ingest.run(spark, source, bronze)
    assert len(ingest.read_ends(bronze)) == 2
    again = ingest.run(spark, source, bronze)
    assert (again.files, again.events) == (1, len(fleet("three").lines()))


def test_a_column_of_a_later_release_is_added(spark, tmp_path, monkeypatch):
    """What an older release did not store is null, in columns and in entries of lists; then it is stored."""
    source, bronze = fleet().write(tmp_path / "in"), tmp_path / "bronze"
    ingest.run(spark, source, bronze)
    new = T.StructField("brand_new", T.StringType())
    kind: Any = EVENT_ROW["stores"].dataType
    stores = T.ArrayType(T.StructType([*kind.elementType.fields, new]))
    wider = [T.StructField("stores", stores) if row.name == "stores" else row for row in store._STORED.fields]
    monkeypatch.setattr(store, "_STORED", T.StructType([*wider, new]))
    rows = read_events(spark, bronze)
    assert rows.select("brand_new", "stores.brand_new").distinct().collect() == [(None, None)]
    more = rows.limit(1).withColumns({"id": F.lit("x"), "brand_new": F.lit("y")})
    store.write_events(more.drop("routine"), bronze, 0, table.version(bronze / "events"))
    assert [row["brand_new"] for row in read_events(spark, bronze).where("id = 'x'").collect()] == ["y"]
