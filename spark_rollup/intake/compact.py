"""Upkeep of bronze: join the small files of finished days, remove old days, remove files that no one reads any more.

Readers can use the version that they started with for a day. Whatever step is cut off, the tables are as before or as
after it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import takewhile

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rollup.bronze import snapshots, table
from spark_rollup.bronze.load import AWAITED
from spark_rollup.bronze.place import Place
from spark_rollup.bronze.snapshots import DAY_US
from spark_rollup.bronze.store import (
    AT,
    EVENTS,
    REJECTED,
    check_format,
    read_dated_quarantine,
    read_events,
    replace_quarantine,
)

KEEP_DAYS = 31
"""How many days the quarantine keeps a line or file of which no other version will make more."""

_DAY = re.compile(r"/day=([^/]+)")


def run(spark: SparkSession, bronze: Place) -> int:
    """Join the files of each day, except the newest, that has more of them than needed.

    Returns:
        Number of days compacted.

    Raises:
        UsageError: bronze was made by an older version.
    """
    check_format(bronze)
    days = scattered(read_events(spark, bronze).inputFiles())
    for day in days:
        table.join_files(spark, bronze / EVENTS, f"day = '{day}'")
    return len(days)


def scattered(paths: Sequence[str]) -> list[str]:
    """List the days, except the newest, of which a partition has more than one file, though it would fit in one."""
    partitions = Counter(path.rpartition("/")[0] for path in paths)
    found = {place: _DAY.search(place) for place in partitions}
    days = {place: match[1] for place, match in found.items() if match}
    return sorted({days[place] for place in days if partitions[place] > 1} - {max(days.values(), default="")})


def tidy(spark: SparkSession, bronze: Place, now_us: int) -> int:
    """Join the files of the quarantine; drop, and count, what has been there for longer than `KEEP_DAYS`.

    What waits for another version of the rollup stays.

    Returns:
        Number of lines and files that were dropped.
    """
    rows = read_dated_quarantine(spark, bronze)
    files = len(rows.inputFiles())
    dated = rows.withColumn(AT, F.coalesce(AT, F.lit(now_us)))
    stays = F.col("reason").isin(*AWAITED) | (F.col(AT) >= now_us - KEEP_DAYS * DAY_US)
    dropped = dated.where(~stays).count() if files else 0
    if files > 1 or dropped:
        replace_quarantine(dated.where(stays), bronze)
    return dropped


def retain(spark: SparkSession, bronze: Place, days: int) -> str | None:
    """Remove days, as far as all of them have snapshots, but for the newest ones.

    Returns:
        The last day that was removed, `YYYY-MM-DD`; None = none could be.
    """
    known, made = snapshots.days(bronze), snapshots.note(bronze).days
    if not known:
        return None
    first = (date.fromisoformat(known[-1]) - timedelta(days=days - 1)).isoformat()
    gone = list(takewhile(lambda day: day < first and day in made, known))
    if not gone:
        return None
    snapshots.remove_up_to(bronze, gone[-1])  # first: from here on no run asks for these days
    table.drop(spark, bronze / EVENTS, f"day <= '{gone[-1]}'")
    return gone[-1]


def clean(spark: SparkSession, bronze: Place) -> None:
    """Remove files that were replaced more than a day ago, and those of runs that were cut off."""
    for name in (EVENTS, REJECTED, snapshots.KEPT):
        if table.version(bronze / name) is not None:
            table.clean(spark, bronze / name)
