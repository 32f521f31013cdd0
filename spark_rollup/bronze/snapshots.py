"""Where snapshots are, which are valid, and what an audit reads: its look-back, and one snapshot of what was before.

A snapshot of a day is the sum of that day and all before it, as far as later audits need it (`carry`): three Delta
tables, and a marker that is written last and names their versions. Before a run adds events of a day, it removes the
markers from that day on; only one writer works at a time, so no valid snapshot lacks an event of its time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from agent.contract.codec import FIRST_US, LAST_US
from spark_rollup.bronze import table
from spark_rollup.bronze.place import ObjectPath, Place, below, put
from spark_rollup.columns import MICROS, ROUTINE
from spark_rollup.errors import DamagedError, UsageError
from spark_rollup.schemas import EVENT_ROW, HEARD, UNWATCHED

FOLDER = "snapshots"

FORMAT = 2
"""What a snapshot carries, and how; one of another format is made again."""

MADE = "_made.json"

BASE = "_base.json"
"""Names the day up to which bronze was removed."""

TABLES: Mapping[str, T.StructType] = {
    "events": T.StructType([*EVENT_ROW.fields, T.StructField(ROUTINE, T.BooleanType())]),
    "heard": HEARD,
    "unwatched": UNWATCHED,
}

DAY_US = 86_400 * MICROS

P = TypeVar("P", Path, ObjectPath, Place)


@dataclass(frozen=True, slots=True)
class Carried:
    """What is known from before the first event that is read.

    Args of the dataclass:
        events: `EVENT_ROW` and routine: events that still matter, and what many of them come down to.
        heard: `HEARD`: how far each boot of an agent has come.
        unwatched: `UNWATCHED`: times in which no agent watched.
    """

    events: DataFrame
    heard: DataFrame
    unwatched: DataFrame


@dataclass(frozen=True, slots=True)
class Reading:
    """What an audit reads.

    Args of the dataclass:
        snapshot: Directory of the snapshot; None = none can be used.
        after: Days of bronze after this one are read (`YYYY-MM-DD`); None = all.
        missing: Days before the look-back that are read event by event, as they have no snapshots.
    """

    snapshot: Place | None = None
    after: str | None = None
    missing: tuple[str, ...] = ()

    def places(self, source: Place) -> list[Place]:
        """List what is read."""
        if self.snapshot is None or self.after is None:
            return [source]
        days_read = [day for day in below(source / "events") if day.name > f"day={self.after}"]
        return [self.snapshot, *(day for day in days_read if day.name.startswith("day="))]


EVERYTHING = Reading()
"""All of bronze, and no snapshot."""


def since_us(as_of_us: int, look_back_days: int | None) -> int:
    """Return when the look-back begins: at midnight (UTC), so many days before the day of the audit; 0 = no limit."""
    if look_back_days is None:
        return 0
    return max(as_of_us // DAY_US - look_back_days, 0) * DAY_US


def reading(bronze: Place, since: int) -> Reading:
    """Choose the newest snapshot before a time (microseconds since the epoch), or the one that replaces removed days.

    Raises:
        DamagedError: days were removed, and the snapshot that replaces them is gone.
        UsageError: they were, and another version made it.
    """
    first, base = day_of(since), base_day(bronze)
    made = [day for day in days_made(bronze) if day < first or day == base]
    if base is not None and base not in made:
        _refuse_other_format(folder(bronze, base))
        raise DamagedError(
            f"{folder(bronze, base)} is gone; it replaces all days up to {base}: restore it, or remove "
            f"{bronze / BASE} and lose those days"
        )
    after = made[-1] if made else None
    missing = tuple(day for day in days(bronze) if (after or "") < day < first)
    return Reading(folder(bronze, after) if after else None, after, missing)


def _refuse_other_format(place: Place) -> None:
    """Refuse a snapshot that cannot be made again and that only another version can read.

    Raises:
        UsageError: it is one.
    """
    try:
        written = _marker(place)["format"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if written != FORMAT:
        raise UsageError(
            f"{place} replaces days that were removed, and another version of statewarden-rollup made it (format "
            f"{written}, this one knows {FORMAT}): use that version; nothing was changed or lost"
        )


def base_day(bronze: Place) -> str | None:
    """Return the last of the days that were removed from bronze: its snapshot replaces them. None = none was."""
    try:
        return str(json.loads((bronze / BASE).read_text(encoding="ascii"))["day"])
    except FileNotFoundError:
        return None


def set_base_day(bronze: Place, day: str) -> None:
    """Let a snapshot replace its day and all before it, for good."""
    put(bronze / BASE, json.dumps({"day": day}) + "\n")


def read(spark: SparkSession, place: Place) -> Carried:
    """Read one snapshot, as it was when its marker was written.

    Raises:
        DamagedError: one of its tables cannot be read.
    """
    versions = _marker(place)["versions"]
    tables = {
        name: table.read(spark, place / name, schema, versions[name]) for name, schema in TABLES.items()
    }
    return Carried(**tables)


def finish(place: Place) -> None:
    """Make a snapshot valid, now that its tables are written."""
    versions = {name: table.version(place / name) for name in TABLES}
    put(place / MADE, json.dumps({"format": FORMAT, "versions": versions}) + "\n")


def folder(bronze: P, day: str) -> P:
    """Return where the snapshot of a day is."""
    return bronze / FOLDER / f"day={day}"


def days(bronze: Place) -> list[str]:
    """List the days that bronze has files of; events with impossible times that an older version took are on no day."""
    names = (path.name.removeprefix("day=") for path in below(bronze / "events"))
    return sorted(name for name in names if re.fullmatch(r"\d{4}-\d\d-\d\d", name))


def days_made(bronze: Place) -> list[str]:
    """List the days whose snapshots are valid."""
    return [place.name.removeprefix("day=") for place in below(bronze / FOLDER) if _is_known(place)]


def _is_known(place: Place) -> bool:
    try:
        return bool(_marker(place)["format"] == FORMAT)
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # withdrawn a moment ago, or torn
        return False


def _marker(place: Place) -> Any:
    return json.loads((place / MADE).read_text(encoding="ascii"))


def withdraw(bronze: Place, first_day: str) -> None:
    """Make the snapshots of a day and of all later days invalid, except the one that replaces removed days."""
    base = base_day(bronze) or ""
    for place in below(bronze / FOLDER):
        if place.name.removeprefix("day=") >= first_day and place.name.removeprefix("day=") > base:
            (place / MADE).unlink(missing_ok=True)


def day_of(at_us: int) -> str:
    """Return the day (UTC) of a time."""
    known_us = min(max(at_us, FIRST_US), LAST_US)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=known_us)).date().isoformat()


def end_us(day: str) -> int:
    """Return when a day ends, in microseconds since the epoch."""
    return (date.fromisoformat(day).toordinal() - date(1970, 1, 1).toordinal() + 1) * DAY_US
