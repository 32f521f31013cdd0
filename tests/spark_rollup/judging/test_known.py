"""What the fleet's findings know of agents' incidents; and what `verify` refutes, no rule says again."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rollup.judging import alone, known, verified
from spark_rollup.judging.incidents import gather
from spark_rollup.schemas import FINDING
from tests.spark_rollup.judging.test_incidents import UNEQUAL, by_agent, row

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

A, B, C, D = "a" * 32, "b" * 32, "c" * 32, "d" * 32

SAID = (
    "namespace string, finding_id string, incident_id string, mechanism string, detector string, opened_at_us long, "
    "identity string"
)


def table(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """A table `findings`, before anything is known of incidents."""
    plain = [tuple((each | {"local_incidents": None})[name] for name in FINDING.names) for each in rows]
    return spark.createDataFrame(plain, FINDING)


@pytest.fixture(scope="module")
def said(spark) -> DataFrame:
    """Findings of agents: two of one incident, one by an agent of an older version, one of no known incarnation."""
    rows = [
        ("shop", A, "i-crash", "offset-without-data", "resurrected-checkpoint", 5, "i"),
        ("shop", B, "i-crash", "offset-without-data", "unrestored-store", 3, "i"),
        ("shop", C, None, None, "orphaned-task", 7, None),
        ("shop", D, "i-wipe", "offset-without-data", "store-shrank", 7, None),
        ("test", A, "i-other", "offset-without-data", "resurrected-checkpoint", 1, "i"),
    ]
    return spark.createDataFrame(rows, SAID)


def test_rows_name_the_incidents_of_what_they_are_about(spark, said):
    """Once each, with the begin of the whole incident; without an incident of its own an agent's finding is one."""
    rows = [
        row("f", confirms=[A, B]), by_agent(A, "i-crash"), row("e", refutes=[C], explains=[A]),
        row("n", namespace="test", confirms=[A]), row("o"),
    ]  # fmt: skip
    found = {
        x["id"][:1]: x["local_incidents"]
        for x in known.with_local_incidents(table(spark, *rows), said).collect()
    }
    crash = {"incident_id": "i-crash", "mechanism": "offset-without-data", "since_us": 3}
    assert [x.asDict() for x in found["f"]] == [crash | {"relation": "confirms"}]
    assert [x.asDict() for x in found["a"]] == [crash | {"relation": "is"}]
    assert [(x["incident_id"], x["relation"], x["mechanism"], x["since_us"]) for x in found["e"]] == [
        (f"i-{C[:12]}", "refutes", "orphaned-task", 7),
        ("i-crash", "explains", "offset-without-data", 3),
    ]
    assert [x["incident_id"] for x in found["n"]] == ["i-other"]
    assert found["o"] is None


def test_a_suspicion_that_is_refuted_is_not_open_in_a_rules_words(spark, said):
    """What a rule only says again is over; what it knows itself, or was confirmed, or is refuted in part is not."""
    suspected: dict[str, Any] = {"confidence": "suspected", "severity": "warning"}
    rules = table(
        spark,
        row("1", confirms=[A], **suspected),
        row("2", confirms=[A], mechanism=UNEQUAL, detector="diverged-replica", **suspected),
        row("3", confirms=[A]),
        row("4", confirms=[A, B], **suspected),
        row("5", **suspected),
        row("6", confirms=[A], pod="pod-b", **suspected),
        row("7", confirms=[D], **suspected),
        row("8", confirms=[D], pod="pod-b", **suspected),
    )
    equal = row(
        "e", 9, detector="state-equal", mechanism=UNEQUAL, severity="info", status="resolved", refutes=[A],
        level="event",
    )  # fmt: skip
    proofs = table(spark, equal)
    found = verified.settled(rules, table(spark, equal, equal | {"id": "g", "refutes": [D]}), said)
    # the same incarnation on another pod is the same; without one nothing is known of that pod
    assert {x["id"][:1] for x in found.collect() if x["status"] == "resolved"} == {"1", "6", "7"}
    whole = known.with_local_incidents(found.where("id like '1%'").unionByName(proofs), said)
    (one,) = gather(x.asDict(recursive=True) for x in whole.collect())
    assert (one.id, one.status.value, one.ended_us) == ("i-crash", "resolved", 9)
    assert one.findings[-1][0].value == "refutation"


def test_what_is_refuted_on_one_pod_stays_open_on_another(spark):
    """Agents made one id of what they found at their start; the incarnation alone says that it is the same."""
    pods = [row("d", pod=pod) for pod in ("pod-a", "pod-b")]
    said = table(spark, *pods).withColumns({"finding_id": F.col("id"), "opened_at_us": F.lit(1)})
    refuting = table(spark, row("e", refutes=[pods[0]["id"]], status="resolved", severity="info"))
    for identity, left in ((None, ["pod-b"]), ("i", [])):
        local = said.withColumn("identity", F.lit(identity).cast("string"))
        assert [x["pod"] for x in alone.alone(local, refuting).collect()] == left
