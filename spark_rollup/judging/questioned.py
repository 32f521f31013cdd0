"""Which tasks the rules read one by one; of all the others a summary is enough."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rollup.columns import TASK
from spark_rollup.judging.base import Rule


def questioned(
    rules: Sequence[Rule], local: DataFrame, held: DataFrame, marks: DataFrame, settings: DataFrame
) -> DataFrame:
    """List the tasks of which some rule needs every reading and every transition.

    Args:
        rules: Who asks: about agents' findings (`RuleMeta.asks`), and on its own (`Rule.questions`).
        local: `Facts.local`.
        held: `Facts.held`.
        marks: `timeline.marks` without the frequent ones.
        settings: `Facts.settings`.

    Returns:
        `TASK`, each once.
    """
    detectors = sorted({detector for rule in rules for detector in rule.meta.asks})
    suspects = local.where(F.col("detector").isin(detectors) & F.col("task_id").isNotNull())
    own = [rule.questions(held, marks, settings) for rule in rules if rule.questions]
    return reduce(DataFrame.unionByName, (frame.select(*TASK) for frame in (suspects, *own))).distinct()
