"""What is kept of days that are over, and what an audit reads: days as they are, or their snapshots.

A snapshot is what `fleet.keep` chooses of one day: a partition of one Delta table. A note lists the days that have one;
it is written after the table. Before a run adds events of a day, it takes that day off the list; only one writer works
at a time, so no snapshot that is listed lacks an event of its day.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from agent.contract.codec import FIRST_US, LAST_US
from spark_rollup.bronze import table
from spark_rollup.bronze.place import Place, below, put
from spark_rollup.columns import MICROS, ROUTINE
from spark_rollup.errors import DamagedError, UsageError
from spark_rollup.schemas import EVENT_ROW, HEARD

KEPT = "kept"
"""Directory of the table."""

FORMAT = 3
"""What is kept of a day, and how; days of another format are made again."""

NOTE = "_kept.json"

OLD_BASE = "_base.json"
"""By this file format 2 said which days it had removed; it carried them on from day to day."""

BEAT = "beat"
"""A row of the table is an event, or else says in this column what a boot of an agent said, counted."""

_STORED = T.StructType(
    [
        *EVENT_ROW.fields,
        T.StructField(ROUTINE, T.BooleanType()),
        T.StructField(BEAT, HEARD),
        T.StructField("day", T.StringType()),
    ]
)

DAY_US = 86_400 * MICROS


@dataclass(frozen=True, slots=True)
class Carried:
    """What is kept of days that are not read event by event.

    Args of the dataclass:
        events: `EVENT_ROW` and routine.
        heard: `HEARD`: what each boot of an agent said, counted.
    """

    events: DataFrame
    heard: DataFrame


@dataclass(frozen=True, slots=True)
class Note:
    """Which days have snapshots.

    Args of the dataclass:
        days: `YYYY-MM-DD`, in order.
        removed: Up to this day bronze has no events any more; empty = it has all.
        format: `FORMAT`.
    """

    days: tuple[str, ...] = ()
    removed: str = ""
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Reading:
    """What an audit reads.

    Args of the dataclass:
        kept: Days of which the snapshot is read; of all others after `removed` the events are.
        removed: Up to this day bronze has no events any more.
        missing: Days before the look-back that are read event by event, as they have no snapshots.
    """

    kept: tuple[str, ...] = ()
    removed: str = ""
    missing: tuple[str, ...] = ()

    def places(self, source: Place) -> list[Place]:
        """List what is read."""
        if not self.kept:
            return [source]
        gone = {f"day={day}" for day in self.kept}
        events = [place for place in below(source / "events") if place.name > f"day={self.removed}"]
        of_days = [place for place in events if place.name.startswith("day=") and place.name not in gone]
        return [*(source / KEPT / name for name in sorted(gone)), *of_days]


EVERYTHING = Reading()
"""All of bronze, and no snapshot."""


def since_us(as_of_us: int, look_back_days: int | None) -> int:
    """Return when the look-back begins: at midnight (UTC), so many days before the day of the audit; 0 = no limit."""
    if look_back_days is None:
        return 0
    return max(as_of_us // DAY_US - look_back_days, 0) * DAY_US


def reading(bronze: Place, since: int) -> Reading:
    """Choose the snapshots of days before a time (microseconds since the epoch), and those of removed days.

    Raises:
        DamagedError: the note cannot be read.
        UsageError: days were removed, and another version kept what is left of them.
    """
    first, known = day_of(since), note(bronze)
    kept = tuple(day for day in known.days if day < first or day <= known.removed)
    before = [day for day in days(bronze) if known.removed < day < first]
    return Reading(kept, known.removed, tuple(day for day in before if day not in kept))


def note(bronze: Place) -> Note:
    """Read which days have snapshots.

    Raises:
        DamagedError: the note cannot be read.
        UsageError: days were removed, and another version kept what is left of them.
    """
    place, written = bronze / NOTE, 2
    if not (removed := (bronze / OLD_BASE).exists()):
        try:
            told = json.loads(place.read_text(encoding="ascii"))
            written, removed = told["format"], bool(told["removed"])
            if written == FORMAT:
                return Note(tuple(told["days"]), told["removed"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, FileNotFoundError) and table.version(bronze / KEPT) is None:
                return Note()
            raise DamagedError(
                f"{place} cannot be read ({error}): restore it, or remove it and {bronze / KEPT} and lose the days "
                "that `compact --retain` removed"
            ) from error
    if removed:
        raise UsageError(
            f"{bronze} has days of which only snapshots are left, and another version of statewarden-rollup made them "
            f"(format {written}, this one knows {FORMAT}): use that version; nothing was changed or lost"
        )
    return Note()


def _put(bronze: Place, told: Note) -> None:
    put(bronze / NOTE, json.dumps(asdict(told)) + "\n")


def write(bronze: Place, day: str, rows: DataFrame) -> None:
    """Write the snapshot of a day, and list it."""
    place = bronze / KEPT
    if not (bronze / NOTE).exists():
        _put(bronze, Note())  # first: a table without it is taken for damage
    if table.version(place) is None:
        table.append(rows, place, None, ("day",))
    else:
        table.replace(rows, place, f"day = '{day}'")
    known = note(bronze)
    _put(bronze, Note(tuple(sorted({*known.days, day})), known.removed))


def read(spark: SparkSession, bronze: Place, of_days: tuple[str, ...]) -> Carried:
    """Read the snapshots of some days.

    Raises:
        DamagedError: the table cannot be read.
    """
    rows = table.read(spark, bronze / KEPT, _STORED).where(F.col("day").isin(*of_days))
    heard = rows.where(F.col(BEAT).isNotNull()).select(f"{BEAT}.*")
    return Carried(rows.where(F.col(BEAT).isNull()).select(*EVENT_ROW.names, ROUTINE), heard)


def files(spark: SparkSession, bronze: Place) -> list[str]:
    """List the files of the table."""
    place = bronze / KEPT
    return [] if table.version(place) is None else table.read(spark, place, _STORED).inputFiles()


def withdraw(bronze: Place, first_day: str, last_day: str) -> None:
    """Take days off the list, except removed ones."""
    known = note(bronze)
    left = tuple(day for day in known.days if not first_day <= day <= last_day or day <= known.removed)
    if left != known.days:
        _put(bronze, Note(left, known.removed))


def remove_up_to(bronze: Place, day: str) -> None:
    """Let snapshots stand for a day and all before it, for good."""
    _put(bronze, Note(note(bronze).days, day))


def days(bronze: Place) -> list[str]:
    """List the days that bronze has files of; events with impossible times that an older version took are on no day."""
    names = (path.name.removeprefix("day=") for path in below(bronze / "events"))
    return sorted(name for name in names if re.fullmatch(r"\d{4}-\d\d-\d\d", name))


def day_of(at_us: int) -> str:
    """Return the day (UTC) of a time."""
    known_us = min(max(at_us, FIRST_US), LAST_US)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=known_us)).date().isoformat()


def end_us(day: str) -> int:
    """Return when a day ends, in microseconds since the epoch."""
    return (date.fromisoformat(day).toordinal() - date(1970, 1, 1).toordinal() + 1) * DAY_US
