"""Two clusters with the same names in one place: nothing of one is said of the other."""

from __future__ import annotations

import gzip
import json

import pytest
from pyspark.sql import functions as F

from agent.contract.codec import decode, encode
from agent.contract.events import Kind, Origin, Record
from spark_rollup import audit
from spark_rollup.bronze import load
from spark_rollup.config import AuditOptions
from spark_rollup.intake import ingest
from spark_rollup.sources.files import Directory, FileSource
from spark_rollup.sources.labelled import labelled
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def region(boot: str) -> Fleet:
    """Tell of one holder of a task whose pod has the same name in every region."""
    fleet = Fleet("shop")
    pod = fleet.pod("orders-0", uid=f"uid-{boot}", boot=boot)
    pod.configures(1, "3.9.2", num_standby_replicas=0, session_timeout_ms=6000)
    pod.holds("0_0", 5)
    for at in range(60, HORIZON_S, 60):
        pod.measures("0_0", at, identity="one", puts=at, offset=at, process_id="p-1")
    return fleet


def test_an_agent_names_its_cluster():
    """The member is there where it was set, and lines of contract 1.0 do without."""
    record = Record(Kind.LIFECYCLE, 1, {"phase": "started"})
    told = json.loads(encode(record, Origin("u", "b", "pod-a", cluster="eu-1"), 1))["data"]
    assert (told["cluster"], told["schema_version"]) == ("eu-1", "1.1")
    line = encode(record, Origin("u", "b", "pod-a"), 1)
    assert "cluster" not in json.loads(line)["data"]
    assert decode(line.replace('"1.1"', '"1.0"'))


def test_clusters_are_kept_apart(spark, delta, tmp_path):
    """One bucket per cluster, or one for both: a pod of the same name, task and process id is another one."""
    bronze = tmp_path / "bronze"
    for name in ("eu-1", "us-1", ""):
        source = FileSource(Directory(region(f"boot-{name}").write(tmp_path / f"in-{name}")))
        ingest.run(spark, labelled(source, name) if name else source, bronze)
    loaded = load.load(spark, bronze)
    assert {row[0] for row in loaded.events.select("namespace").distinct().collect()} == {
        "eu-1/shop",
        "us-1/shop",
        "shop",
    }
    options = AuditOptions(bronze, tmp_path / "out", at_us(HORIZON_S))
    events, loaded, as_of_us = audit.prepare(spark, options)
    facts = audit.gather(events, options, as_of_us)
    tables = audit.tables(events, loaded, options, as_of_us)
    assert facts.held.select("namespace").distinct().count() == 3
    assert tables.coverage.count() == 3
    # as one application they would be split owners on a cloned volume
    assert tables.findings.where(F.col("severity") != "info").collect() == []


def test_what_an_agent_says_of_its_cluster_wins(spark, delta, tmp_path):
    """`ingest --cluster` names what has no name."""
    lines = region("boot-1").lines()
    named = [line.replace('"namespace":"shop"', '"cluster":"own","namespace":"shop"') for line in lines[:3]]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl.gz").write_bytes(gzip.compress("\n".join([*named, *lines[3:]]).encode()))
    ingest.run(spark, labelled(FileSource(Directory(tmp_path / "in")), "given"), tmp_path / "bronze")
    rows = load.load(spark, tmp_path / "bronze").events.groupBy("namespace").count().collect()
    assert {row["namespace"]: row["count"] for row in rows} == {"own/shop": 3, "given/shop": len(lines) - 3}
