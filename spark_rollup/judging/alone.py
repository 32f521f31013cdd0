"""Agents' open findings that no rule settles: they count like those of the rules, or an all-clear would be a lie."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Severity, Status
from spark_rollup.columns import no_texts, rfc3339
from spark_rollup.config import AGENT
from spark_rollup.schemas import FINDING

_KEY = ["namespace", "finding_id"]
"""Names a finding of agents: an id names the finding, not the pod; of another namespace it is another one."""


def alone(local: DataFrame, found: DataFrame) -> DataFrame:
    """List agents' open criticals and warnings that the rules' findings leave as they are.

    Settled is what a rule refutes, and what an open finding that is at least as severe confirms or takes into account.
    A quieter one is no answer: that a copy is missing does not make the damage of the other one known.

    Input columns: those of `last_local_findings`; `FINDING`.
    Output columns: `FINDING`, reported_by `agent`.
    Grain: one row per finding and pod.
    """
    mine = F.col("status") == Status.OPEN.value
    urgent = local.where(mine & (rank(F.col("severity")) > Severity.INFO.rank))
    borne_out = found.where(mine).select(
        "namespace",
        F.explode(F.concat("confirms", "explains")).alias("finding_id"),
        rank(F.col("severity")).alias("settled"),
    )
    settled = borne_out.groupBy(*_KEY).agg(F.max("settled").alias("settled"))
    said = unrefuted(urgent, refutations(found)).join(settled, _KEY, "left")
    left = F.coalesce("settled", F.lit(-1)) < rank(F.col("severity"))
    return said.where(left).select(*_columns())


def refutations(found: DataFrame) -> DataFrame:
    """Collect which of agents' findings are refuted, and where.

    Input columns: `FINDING`.
    Output columns: namespace, finding_id, refuted_on (pods).
    """
    return refuted_on(found.select("namespace", F.explode("refutes").alias("finding_id"), "pods"), _KEY)


def unrefuted(local: DataFrame, refuted: DataFrame | None) -> DataFrame:
    """Leave out what is refuted.

    Args:
        local: Columns of `last_local_findings`.
        refuted: What `refutations` gives; None = nothing is refuted.

    Output columns: those of `local`.
    """
    if refuted is None:
        return local
    return local.join(refuted, _KEY, "left").where(~is_refuted()).drop("refuted_on")


def refuted_on(refuted: DataFrame, key: Sequence[str], *more: Column) -> DataFrame:
    """Collect where each agents' finding is refuted.

    Args:
        refuted: `key` and `pods` of what refutes.
        key: Names of the columns that name an agents' finding.
        more: Further aggregates.

    Output columns: `key`, refuted_on (pods), and `more`.
    """
    pods = F.array_distinct(F.flatten(F.collect_list("pods")))
    return refuted.groupBy(*key).agg(pods.alias("refuted_on"), *more)


def is_refuted() -> Column:
    """Return whether a finding (identity, pod) is what was refuted (`refuted_on`; null = nothing was).

    Agents on several pods may have given one id to what they found. Of one incarnation of a store it is the same;
    without an identity only a word about that pod is about it.
    """
    here = F.col("identity").isNotNull() | F.array_contains("refuted_on", F.col("pod"))
    return F.col("refuted_on").isNotNull() & F.coalesce(here, F.lit(False))


def rank(severity: Column) -> Column:
    """Order severities; one that is not known counts as the most severe."""
    ranks = F.lit(max(level.rank for level in Severity))
    for level in Severity:
        ranks = F.when(severity == level.value, F.lit(level.rank)).otherwise(ranks)
    return ranks


def _columns() -> list[Column]:
    known = F.col("severity").isin([level.value for level in Severity])
    given = {
        "id": F.col("finding_id"),
        # of a later minor version: where its severity is not known it must not be taken for a low one
        "severity": F.when(known, F.col("severity")).otherwise(F.lit(Severity.CRITICAL.value)),
        "opened_at": rfc3339("opened_at_us"),
        "pods": F.array("pod"),
        "confirms": no_texts(),
        "refutes": no_texts(),
        "explains": no_texts(),
        "reported_by": F.lit(AGENT),
        "resolved_at": F.lit(None),
        "mechanism": F.coalesce("mechanism", "detector"),
        "lineage": F.lit(None),
        "local_incidents": F.lit(None),
    }
    return [
        given.get(field.name, F.col(field.name)).cast(field.dataType).alias(field.name)
        for field in FINDING.fields
    ]
