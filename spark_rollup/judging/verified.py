"""What `verify` found, beside what the rules of an audit find."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.codec import rfc3339
from agent.contract.events import Confidence
from spark_rollup.errors import UsageError
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
