"""Two clusters with the same names in one place: nothing of one is said of the other."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

from agent.contract.codec import SCHEMA_VERSION, Encoder, decode
from agent.contract.events import Kind, Origin, Record
from spark_rollup.bronze import load
from spark_rollup.intake import ingest
from spark_rollup.sources.files import Directory, FileSource
from tests.spark_rollup.support.fleet import HORIZON_S, MORE, Fleet

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


CLUSTERS = ("eu-1", "us-1", "")


def region(boot: str, cluster: str = "", namespace: str = "shop") -> Fleet:
    """Tell of one holder of a task whose pod has the same name in every region."""
    fleet = Fleet(namespace, cluster=cluster)
    pod = fleet.pod("orders-0", uid=f"uid-{namespace}-{boot}", boot=boot)
    pod.configures(1, "3.9.2", num_standby_replicas=0, session_timeout_ms=6000)
    pod.holds("0_0", 5)
    for at in range(60, HORIZON_S, 60):
        pod.measures("0_0", at, identity="one", puts=at, offset=at, process_id="p-1")
    return fleet


MORE.append(lambda: [region(f"boot-{name}", name, "regions") for name in CLUSTERS])


def test_an_agent_names_its_cluster():
    """The member is there where it was set, and lines of contract 1.0 do without."""
    record = Record(Kind.LIFECYCLE, 1, {"phase": "started"})
    told = json.loads(Encoder(Origin("u", "b", "pod-a", cluster="eu-1")).encode(record, 1))["data"]
    assert (told["cluster"], told["schema_version"]) == ("eu-1", SCHEMA_VERSION)
    line = Encoder(Origin("u", "b", "pod-a")).encode(record, 1)
    assert "cluster" not in json.loads(line)["data"]
    assert decode(line.replace(f'"{SCHEMA_VERSION}"', '"1.0"'))


def test_namesakes_in_other_clusters_are_others(audited):
    """A pod of the same name, task and process id; as one application they would be split owners on a cloned volume."""
    places = dict.fromkeys(("eu-1/regions", "us-1/regions", "regions"), 1)
    for frame in ("held", "coverage"):
        assert (
            Counter(row["namespace"] for row in audited.frames[frame] if row["namespace"] in places) == places
        )
    found = [row for row in audited.frames["findings"] if row["namespace"] in places]
    assert [row for row in found if row["severity"] != "info"] == []


def test_one_bucket_for_each_cluster_or_one_for_both(spark, delta, tmp_path):
    """`ingest --cluster` names the clusters of buckets in which no agent names its own."""
    bronze = tmp_path / "bronze"
    for name in CLUSTERS:
        store = Directory(region(f"boot-{name}").write(tmp_path / f"in-{name}"))
        ingest.run(spark, FileSource(store, name or None), bronze)
    rows = load.load(spark, bronze).events.select("namespace").distinct().collect()
    assert {row[0] for row in rows} == {"eu-1/shop", "us-1/shop", "shop"}


def test_what_an_agent_says_of_its_cluster_wins(spark, delta, tmp_path):
    """`ingest --cluster` names what has no name."""
    lines = region("boot-1").lines()
    named = [line.replace('"namespace":"shop"', '"cluster":"own","namespace":"shop"') for line in lines[:3]]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl.gz").write_bytes(gzip.compress("\n".join([*named, *lines[3:]]).encode()))
    ingest.run(spark, FileSource(Directory(tmp_path / "in"), "given"), tmp_path / "bronze")
    rows = load.load(spark, tmp_path / "bronze").events.groupBy("namespace").count().collect()
    assert {row["namespace"]: row["count"] for row in rows} == {"own/shop": 3, "given/shop": len(lines) - 3}
