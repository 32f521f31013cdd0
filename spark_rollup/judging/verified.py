"""What `verify` found, beside what the rules of an audit find."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from pyspark.sql import SparkSession

from agent.contract.codec import rfc3339
from spark_rollup.errors import UsageError
from spark_rollup.fleet.application import Place
from spark_rollup.fleet.meta import Row
from spark_rollup.schemas import FINDING
from spark_rollup.spark.outputs import MARKER, VERIFY, is_ours
from spark_rollup.spark.rows import rows_of


def check(output: Path) -> None:
    """Refuse what `verify` did not write.

    Raises:
        UsageError: it is something else.
    """
    if not is_ours(output, VERIFY) or not (output / MARKER).exists():
        raise UsageError(f"--verified {output} is not an output of `verify`")


def verified(spark: SparkSession, output: Path, as_of_us: int) -> Mapping[Place, list[Row]]:
    """Read the findings of `verify` up to a time, by namespace and application."""
    found: dict[Place, list[Row]] = defaultdict(list)
    for row in rows_of(spark.read.schema(FINDING).parquet(str(output / "findings"))):
        if str(row["opened_at"]) <= rfc3339(as_of_us):
            found[str(row["namespace"]), cast("str | None", row["application_id"])].append(row)
    return found
