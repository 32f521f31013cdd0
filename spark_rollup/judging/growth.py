"""How much was put into a store between two of its readings: one store at a time, by the agents' own arithmetic.

How many puts a record makes depends on the kind of store; agents send what follows from it (`unsaved_puts`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rollup.columns import TASK


def counted(sizes: DataFrame) -> DataFrame:
    """Take the summaries that say how much was put into a store.

    Input columns: those of `sizes.sizes`.
    Output columns: `TASK`, pod, store, at_us, puts, unsaved_puts.
    """
    rows = sizes.where(~F.col("anchor") & F.col("puts").isNotNull())
    return rows.select(*TASK, "pod", "store", "at_us", "puts", "unsaved_puts")


def course(at_us: str, puts: str) -> Column:
    """Collect the readings of one store, in order of time: array of (at_us, puts)."""
    reading = F.when(
        F.col(puts).isNotNull(), F.struct(F.col(at_us).alias("at_us"), F.col(puts).alias("puts"))
    )
    return F.array_sort(F.collect_list(reading))


def growth(readings: Column) -> Column:
    """Say by how much the last reading is more than the first; null without any.

    The sum of a windowed store's segments shrinks when one expires: then it is less than what was put.
    """
    ends = (F.try_element_at(readings, F.lit(end))["puts"] for end in (-1, 1))
    return next(ends) - next(ends)


def unsaved_limit(unsaved_puts: str) -> Column:
    """Return the largest limit that a store's readings name; null where one of them knows none."""
    return F.when(F.count(unsaved_puts) == F.count("*"), F.max(unsaved_puts))


def went_on_unsaved(readings: Column, limit: Column, commits_us: Column) -> Column:
    """Return whether more than 10,000 records were put in, and the store went on when a commit had passed since.

    A standby writes its checkpoint at that commit; one that is frozen writes it when it goes on.

    Args:
        readings: `course`.
        limit: Puts that 10,000 records make at most; null = not known.
        commits_us: After how long a commit has passed for sure (microseconds).
    """
    first = F.try_element_at(readings, F.lit(1))["puts"]
    due = F.try_element_at(F.filter(readings, lambda one: one["puts"] - first > limit), F.lit(1))
    later = F.exists(
        readings,
        lambda one: (one["at_us"] >= due["at_us"] + commits_us) & (one["puts"] > due["puts"]),
    )
    return F.coalesce(later, F.lit(False))
