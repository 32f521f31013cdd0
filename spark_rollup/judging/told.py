"""What an audit tells: rows of every table, and a frame where there are too many of them for the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import TIMELINES
from spark_rollup.spark.rows import rows_of


@dataclass(frozen=True, slots=True)
class Told:
    """Rows by table; `timelines` has those of the table that are not in `rows`, `TIMELINE`."""

    rows: Mapping[str, Sequence[Row]]
    timelines: DataFrame | None = None

    def lanes(self, task: str) -> Sequence[Row]:
        """Take the rows of `timelines` about a task, and those about whole pods."""
        if self.timelines is None:
            return self.of(TIMELINES)
        own = F.col("task_id").isNull() | (F.col("task_id") == task)
        return [*self.of(TIMELINES), *rows_of(self.timelines.where(own))]

    def of(self, table: str) -> Sequence[Row]:
        """Take one table's."""
        return self.rows.get(table, ())
