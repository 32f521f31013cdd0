"""Where snapshots lie, which of them hold, and what an audit reads: its look-back, and one snapshot of what was before.

A snapshot of a day is the sum of that day and all before it, as far as later audits need it (`carry`). It holds from
the moment its token is renamed to the marker. Whoever adds events of a day takes both away, from that day on, before
and after adding: a snapshot that was being made meanwhile finds its token gone, and one is never trusted that lacks an
event of its time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from agent.contract.codec import FIRST_US, LAST_US
from spark_rollup.columns import MICROS, ROUTINE
from spark_rollup.config import literal
from spark_rollup.schemas import EVENT_ROW, HEARD, UNWATCHED

FOLDER = "snapshots"

FORMAT = 1
"""What a snapshot carries, and how; one of another format is made anew."""

TOKEN, MADE = "_making", "_made.json"

DAY_US = 86_400 * MICROS


@dataclass(frozen=True, slots=True)
class Carried:
    """What is known from before the first event that is read.

    Args of the dataclass:
        events: `EVENT_ROW` and routine: events that still matter, and what many of them come down to.
        heard: `HEARD`: where each boot of an agent stands.
        unwatched: `UNWATCHED`: times in which nobody looked.
    """

    events: DataFrame
    heard: DataFrame
    unwatched: DataFrame


@dataclass(frozen=True, slots=True)
class Reading:
    """What an audit reads.

    Args of the dataclass:
        snapshot: Directory of the snapshot; None = there is none that could be used.
        after: Days of bronze after this one are read (`YYYY-MM-DD`); None = all.
        missing: Days before the look-back that are read event by event, for want of their snapshots.
    """

    snapshot: Path | None = None
    after: str | None = None
    missing: tuple[str, ...] = ()

    def places(self, source: Path) -> list[Path]:
        """List the directories that are read."""
        if self.snapshot is None or self.after is None:
            return [source]
        days_read = sorted((source / "events").glob("day=*"))
        return [self.snapshot, *(day for day in days_read if day.name > f"day={self.after}")]


EVERYTHING = Reading()
"""All of bronze, and no snapshot."""


def since_us(as_of_us: int, look_back_days: int | None) -> int:
    """Tell when the look-back begins: at midnight (UTC), so many days before the day of the audit; 0 = never."""
    if look_back_days is None:
        return 0
    return max(as_of_us // DAY_US - look_back_days, 0) * DAY_US


def reading(bronze: Path, since: int) -> Reading:
    """Choose the newest snapshot from before a time (microseconds since the epoch)."""
    first = day_of(since)
    made = [day for day in days_made(bronze) if day < first]
    after = made[-1] if made else None
    missing = tuple(day for day in days(bronze) if (after or "") < day < first)
    return Reading(folder(bronze, after) if after else None, after, missing)


def read(spark: SparkSession, place: Path) -> Carried:
    """Read one snapshot."""
    rows = T.StructType([*EVENT_ROW.fields, T.StructField(ROUTINE, T.BooleanType())])
    return Carried(
        read_parquet(spark, place / "events", rows),
        read_parquet(spark, place / "heard", HEARD),
        read_parquet(spark, place / "unwatched", UNWATCHED),
    )


def read_parquet(spark: SparkSession, place: Path | Sequence[Path], schema: T.StructType) -> DataFrame:
    """Read what the rollup wrote itself: a file that cannot be read is an error, whatever the session is set to."""
    strict = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
    places = [place] if isinstance(place, Path) else place
    return spark.read.options(**strict).schema(schema).parquet(*(literal(path) for path in places))


def folder(bronze: Path, day: str) -> Path:
    """Tell where the snapshot of a day lies."""
    return bronze / FOLDER / f"day={day}"


def days(bronze: Path) -> list[str]:
    """List the days that bronze has events of; what an older version took of a wild time is on no day."""
    names = (path.name.removeprefix("day=") for path in (bronze / "events").glob("day=*"))
    return sorted(name for name in names if re.fullmatch(r"\d{4}-\d\d-\d\d", name))


def days_made(bronze: Path) -> list[str]:
    """List the days whose snapshots hold."""
    places = sorted((bronze / FOLDER).glob(f"day=*/{MADE}"))
    return [place.parent.name.removeprefix("day=") for place in places if _is_known(place)]


def _is_known(marker: Path) -> bool:
    try:
        return bool(json.loads(marker.read_text(encoding="ascii"))["format"] == FORMAT)
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # withdrawn a moment ago, or torn
        return False


def withdraw(bronze: Path, first_day: str) -> None:
    """Let no snapshot hold, and none be finished, that should know events of a day."""
    for place in sorted((bronze / FOLDER).glob("day=*")):
        if place.name.removeprefix("day=") >= first_day:
            (place / MADE).unlink(missing_ok=True)
            (place / TOKEN).unlink(missing_ok=True)


def day_of(at_us: int) -> str:
    """Tell the day (UTC) of a time."""
    known_us = min(max(at_us, FIRST_US), LAST_US)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=known_us)).date().isoformat()


def end_us(day: str) -> int:
    """Tell when a day ends, in microseconds since the epoch."""
    return (date.fromisoformat(day).toordinal() - date(1970, 1, 1).toordinal() + 1) * DAY_US
