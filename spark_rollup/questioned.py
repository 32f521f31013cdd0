"""Which tasks the rules look at one by one; of all the others a summary is enough."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Change
from spark_rollup.columns import TASK
from spark_rollup.correlate import RULES
from spark_rollup.correlate.split_owner import overlaps

FREQUENT = (Change.CHECKPOINT_WRITTEN.value, Change.STORE_FLUSHED.value)
"""Transitions that every working task tells with every commit."""


def questioned(local: DataFrame, held: DataFrame, marks: DataFrame, settings: DataFrame) -> DataFrame:
    """List the tasks of which some rule needs every look and every transition.

    A rule asks about agents' findings (`RuleMeta.asks`), about directories that were deleted under an offset
    (`resurrected-checkpoint`), and about tasks with more holders than promised (`split-owner`).

    Output columns: `TASK`.
    Grain: one row per task.
    """
    detectors = sorted({detector for rule in RULES for detector in rule.meta.asks})
    accused = local.where(F.col("detector").isin(detectors) & F.col("task_id").isNotNull())
    deleted = marks.where((F.col("change") == Change.TASK_DELETED.value) & (F.col("offset_before") > 0))
    crowded = overlaps(held, settings)
    return (
        accused.select(*TASK).unionByName(deleted.select(*TASK)).unionByName(crowded.select(*TASK)).distinct()
    )
