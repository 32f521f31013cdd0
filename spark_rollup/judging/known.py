"""Which agents' incidents the findings of the fleet are about: what `lineage` needs to know of agents' findings."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.grouping import CONFIRMS, EXPLAINS, IS, REFUTES, incident_of
from spark_rollup.config import AGENT
from spark_rollup.schemas import FINDING, LOCAL_INCIDENT

_FINDING = ("namespace", "finding_id")
_ROW = ("namespace", "id")


def with_local_incidents(findings: DataFrame, said: DataFrame) -> DataFrame:
    """Add `local_incidents`: those of the findings that a row names, and of an agent's finding its own.

    An agent of contract 1.0 or 1.1 says nothing of incidents: each of its findings is one by itself.

    Args:
        findings: `FINDING`.
        said: `last_local_findings`.

    Output columns: `FINDING`.
    """
    named = reduce(
        DataFrame.unionByName, (_named(findings, relation) for relation in (IS, CONFIRMS, REFUTES, EXPLAINS))
    )
    of = said.select(
        *_FINDING,
        F.coalesce("incident_id", _made_from(F.col("finding_id"))).alias("incident_id"),
        F.coalesce("mechanism", "detector").alias("mechanism"),
        "opened_at_us",
    )
    since = of.groupBy("namespace", "incident_id").agg(F.min("opened_at_us").alias("since_us"))
    about = named.join(of.drop("opened_at_us").distinct(), list(_FINDING), "inner").join(
        since, ["namespace", "incident_id"], "inner"
    )
    listed = about.groupBy(*_ROW).agg(
        F.array_sort(F.collect_set(F.struct(*LOCAL_INCIDENT.names))).alias("about")
    )
    rows = findings.join(listed, list(_ROW), "left").withColumn("local_incidents", F.col("about"))
    return rows.select(*FINDING.names)


def _named(findings: DataFrame, relation: str) -> DataFrame:
    """List the agents' findings that rows name in one way: `_ROW`, finding_id, relation."""
    if relation == IS:
        rows = findings.where(F.col("reported_by") == AGENT).withColumn("finding_id", F.col("id"))
    else:
        rows = findings.withColumn("finding_id", F.explode(relation))
    return rows.select(*_ROW, "finding_id", F.lit(relation).alias("relation")).distinct()


def _made_from(finding_id: Column) -> Column:
    """Make the id as `incident_of` does."""
    prefix = incident_of("")
    return F.concat(F.lit(prefix), F.substring(finding_id, 1, len(incident_of("0" * 64)) - len(prefix)))
