"""What `verify` found, beside what the rules of an audit find."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.codec import rfc3339
from agent.contract.events import Confidence, Level, Severity, Status
from spark_rollup.columns import TASK
from spark_rollup.errors import UsageError
from spark_rollup.judging.alone import is_refuted, refuted_on
from spark_rollup.schemas import FINDING
from spark_rollup.spark.outputs import MARKER, VERIFY, is_ours


def check(output: Path) -> None:
    """Refuse what `verify` did not write.

    Raises:
        UsageError: it is something else.
    """
    if not is_ours(output, VERIFY) or not (output / MARKER).exists():
        raise UsageError(f"--verified {output} is not an output of `verify`")


def verified(spark: SparkSession, output: Path, said: DataFrame, as_of_us: int) -> DataFrame:
    """Read the findings of `verify`. What an agent has confirmed since is no longer refuted.

    Args:
        spark: The session.
        output: Where `verify` wrote.
        said: `last_local_findings`.
        as_of_us: What was found later is left out.

    Output columns: `FINDING`.
    """
    found = spark.read.schema(FINDING).parquet(str(output / "findings"))
    found = found.where(F.col("opened_at") <= rfc3339(as_of_us))
    sure = said.where(F.col("confidence") == Confidence.CONFIRMED.value).select(
        F.col("namespace").alias("of"), F.col("finding_id").alias("sure")
    )
    refuted = found.select("id", "namespace", F.explode("refutes").alias("refuted"))
    is_same = (F.col("namespace") == F.col("of")) & (F.col("refuted") == F.col("sure"))
    left = (
        refuted.join(sure, is_same, "left_anti")
        .groupBy("id")
        .agg(F.sort_array(F.collect_set("refuted")).alias("left"))
    )
    # a finding that refutes nothing any more has nothing to say
    rows = found.join(left, "id", "left").where((F.size("refutes") == 0) | F.col("left").isNotNull())
    return rows.withColumn("refutes", F.coalesce("left", "refutes")).select(*FINDING.names)


def wrong_copies(proofs: DataFrame) -> DataFrame:
    """List the copies that their changelog proves wrong; of two that differ from each other it is not known which.

    Input columns: `FINDING`, of `verify`.
    Output columns: `TASK`, pod.
    Grain: one row per copy.
    """
    proved = (
        (F.col("level") == Level.DAMAGE.value)
        & (F.col("status") == Status.OPEN.value)
        & (F.col("severity") == Severity.CRITICAL.value)
        & F.col("task_id").isNotNull()
        & (F.size("pods") == 1)
    )
    return proofs.where(proved).select(*TASK, "pod").distinct()


def settled(found: DataFrame, proofs: DataFrame, said: DataFrame) -> DataFrame:
    """Close what only says again what agents suspected, where `verify` refutes all of that.

    A rule with evidence of another mechanism has more to say than its agents; and so has what is confirmed.

    Args:
        found: `FINDING`, of the rules.
        proofs: What `verified` gives.
        said: `last_local_findings`.

    Output columns: `FINDING`.
    """
    of = ["namespace", "of"]
    wrongs = proofs.select("namespace", F.explode("refutes").alias("of"), "opened_at", "pods")
    refuted = refuted_on(wrongs, of, F.max("opened_at").alias("refuted_at"))
    same = F.coalesce("mechanism", "detector").alias("same")
    known = said.select("namespace", F.col("finding_id").alias("of"), same, "identity").distinct()
    again = found.where(
        (F.col("status") == Status.OPEN.value) & (F.col("confidence") != Confidence.CONFIRMED.value)
    ).select("namespace", "id", "pod", "mechanism", F.explode("confirms").alias("of"))
    judged = again.join(refuted, of, "left").join(known, of, "left")
    wrong = is_refuted() & F.coalesce(F.col("same") == F.col("mechanism"), F.lit(True))
    over = (
        judged.groupBy("namespace", "id")
        .agg(F.bool_and(wrong).alias("wrong"), F.max("refuted_at").alias("refuted_at"))
        .where("wrong")
        .select("namespace", "id", "refuted_at")
    )
    is_over = F.col("refuted_at").isNotNull()
    rows = found.join(over, ["namespace", "id"], "left").withColumns(
        {
            "status": F.when(is_over, F.lit(Status.RESOLVED.value)).otherwise(F.col("status")),
            "resolved_at": F.coalesce("refuted_at", "resolved_at"),
        }
    )
    return rows.select(*FINDING.names)
