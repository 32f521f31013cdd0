"""JSON lines -> typed rows. Lines that cannot be used go to quarantine with a reason; nothing is skipped silently."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from agent.contract.events import SCHEMA_MAJOR, Kind
from agent.contract.field import Field, FieldType
from agent.contract.fields import FIELDS, fields_of
from agent.contract.reporting import SEGMENT_NAME
from spark_rollup import clock
from spark_rollup.bronze import snapshots
from spark_rollup.bronze.later import UNKNOWN_MAJOR, is_later
from spark_rollup.bronze.place import Place
from spark_rollup.bronze.snapshots import EVERYTHING, Carried, Reading
from spark_rollup.bronze.store import check_format, read_events, read_quarantine
from spark_rollup.bronze.unpacked import CUT_OFF, Checked, check_local_files, shown
from spark_rollup.columns import MICROS, ROUTINE, scoped
from spark_rollup.config import files_below, is_bronze, literal
from spark_rollup.errors import UsageError
from spark_rollup.schemas import CORRUPT, ENVELOPE, EVENT_ROW, QUARANTINE
from spark_rollup.spark.rows import frame_of

MAX_LINE_CHARS = 2_000
"""How much of an unusable line the quarantine keeps, if no other version will make more of it."""

EARLIEST_US = 1_420_070_400 * MICROS
"""No agent observed anything before 2015."""

AHEAD_US = 86_400 * MICROS
"""Nor later than this long (microseconds) after the moment at which its event is read."""

MAX_NUMBER, MAX_SEQUENCE = 1 << 56, 1 << 53
"""RocksDB's sequence numbers have 56 bits; no count, offset, size or time (microseconds) gets that high, and sums of
many still fit into a long."""

REJUDGED = (
    UNKNOWN_MAJOR,
    "unknown-kind",
    "wrong-type",
    "missing-field",
    "impossible-time",
    "impossible-number",
)
"""Reasons that may not hold for another version or on another day: the quarantine keeps the whole line."""


AWAITED = (UNKNOWN_MAJOR, "unknown-kind")
"""Reasons that an upgrade takes away."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one input directory gave.

    Args of the dataclass:
        events: `EVENT_ROW` plus `line` (the raw text); one row per usable line, repeats included.
        quarantine: `QUARANTINE`; one row per unusable line or cut-off file.
        unique: Whether no event occurs twice, as in bronze.
        carried: What is kept of other days; None = of none.
    """

    events: DataFrame
    quarantine: DataFrame
    unique: bool = False
    carried: Carried | None = None


def load(spark: SparkSession, source: Place, past: Reading = EVERYTHING) -> Loaded:
    """Read agents' segments, or bronze that `ingest` made: of that, the days that `past` leaves to read.

    Raises:
        UsageError: bronze was made by an older version, or the place is in an object store and not bronze.
    """
    if is_bronze(source):
        check_format(source)
        rows = read_events(spark, source).where(
            (F.col("day") > past.removed) & ~F.col("day").isin(*past.kept)
        )
        return Loaded(
            scoped(rows).select(*EVENT_ROW.names, "line", ROUTINE),
            read_quarantine(spark, source),
            unique=True,
            carried=snapshots.read(spark, source, past.kept) if past.kept else None,
        )
    if not isinstance(source, Path):
        raise UsageError(
            f"{source} is not bronze: run `ingest --input {source} --bronze BRONZE` first, which reads segments"
        )
    found = segments(source)
    raw = load_files(spark, list(found), check_local_files(found))
    return replace(raw, events=scoped(raw.events))


def segments(source: Path) -> dict[str, int]:
    """List the segments below a directory with their sizes (bytes), and the folders that may not be listed."""
    root = os.path.abspath(source)  # noqa: PTH100 - Spark takes `..` out of paths, and follows no link doing so
    found = sorted(files_below(root), key=lambda x: x[0])
    return {
        path: size_bytes or 0
        for path, size_bytes in found
        if is_segment(path.removeprefix(root)[1:]) or (size_bytes is None and os.path.isdir(path))  # noqa: PTH112
    }


def is_segment(path: str) -> bool:
    """Return whether a file is to be read, by its path below the input: `*.jsonl(.gz)`, and no part of it hidden."""
    hidden = any(part.startswith(("_", ".")) for part in path.split("/"))
    return not hidden and path.endswith((".jsonl", ".jsonl.gz"))


def load_files(spark: SparkSession, paths: Sequence[str], checked: Checked) -> Loaded:
    """Read segments, by their full paths or URLs, and tell what was found when they were checked."""
    opened = [path for path in paths if path not in checked or checked[path][0] == CUT_OFF]
    judged = _parsed_once(_lines(spark, opened))
    names = frame_of(spark, [{"file": path} for path in opened], T.StructType([QUARANTINE["file"]]))
    bad = unusable(judged).unionByName(cut_off(names, judged))
    if not checked:
        return Loaded(usable(judged), bad)
    rows = [
        {"file": shown(path), "reason": reason, "detail": shown(detail), "line": None}
        for path, (reason, detail) in checked.items()
    ]
    return Loaded(usable(judged), bad.unionByName(frame_of(spark, rows, QUARANTINE)))


def load_lines(lines: DataFrame) -> Loaded:
    """Take lines that did not come as segments.

    Input columns: file (where a line came from, for the quarantine), line.
    """
    judged = _parsed_once(lines)
    return Loaded(usable(judged), unusable(judged))


def _parsed_once(lines: DataFrame) -> DataFrame:
    """Judge lines and let what was parsed wait on disk, in columns: parsing costs more than all that follows."""
    return judge(lines).persist(StorageLevel.DISK_ONLY)


def _lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    if not paths:
        return spark.range(0).select(F.lit("").alias("file"), F.lit("").alias("line"))
    # what a damaged segment lacks is reported by `cut_off` and as `torn`
    text = spark.read.option("ignoreCorruptFiles", "true").text([literal(path) for path in paths])
    return text.where(F.length(F.trim("value")) > 0).select(
        _plain_path(F.col("_metadata.file_path")).alias("file"), F.col("value").alias("line")
    )


def _plain_path(url: Column) -> Column:
    """Write a URL as Spark gives it (escaped, one or three slashes for a local file) as the path that it means."""
    meant = F.url_decode(F.replace(url, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(meant, "^file:/+", "/")


def judge(lines: DataFrame) -> DataFrame:
    """Parse lines and say for each whether it can be used.

    Input columns: file, line.
    Output columns: file, line, id, data, reason, detail.
    Nulls: `reason` is null for a usable line.
    """
    # `inline` makes new rows, so that the optimizer cannot copy the parser into every later expression
    event = F.from_json("line", ENVELOPE, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})
    parsed = lines.select("file", "line", F.inline(F.array(event)))
    verdict = _verdict(clock.now_us() + AHEAD_US)
    return parsed.select("file", "line", "id", "data", F.inline(F.array(verdict)))


def _verdict(latest_us: int) -> Column:
    version = F.col("data.schema_version")
    major = F.split_part(version, F.lit("."), F.lit(1))
    # a newer minor version may add kinds: their rows count in the agent's sequence, and no rule reads them
    is_known = F.col("data.kind").isin([kind.value for kind in Kind]) | is_later(version)
    empty, missing, impossible = F.col("data").isNull(), _first_missing(), _first_impossible()
    of_another_major = f"contract version %s; this reader knows major {SCHEMA_MAJOR}: upgrade statewarden"
    of_no_time = "observed_at_us %d is before 2015 or more than a day ahead: is that pod's clock right?"
    checks: list[tuple[Column, str, Column | str]] = [
        (empty & F.col(CORRUPT).isNotNull(), "not-json", "the line is not JSON"),
        (empty, "not-an-event", "no `data` object"),
        (
            major.isNull() | (major != str(SCHEMA_MAJOR)),
            UNKNOWN_MAJOR,
            F.format_string(of_another_major, F.coalesce(version, F.lit("none"))),
        ),
        (F.col(CORRUPT).isNotNull(), "wrong-type", "a field has another type than the contract"),
        (
            F.col("data.kind").isNull() | ~is_known,
            "unknown-kind",
            F.format_string("kind %s", F.coalesce("data.kind", F.lit("none"))),
        ),
        (
            missing.isNotNull(),
            "missing-field",
            F.concat(F.lit("required field "), missing, F.lit(" is missing")),
        ),
        (F.col("id").isNull(), "missing-field", "required field id is missing"),
        (
            ~F.col("data.observed_at_us").between(EARLIEST_US, latest_us),
            "impossible-time",
            F.format_string(of_no_time, "data.observed_at_us"),
        ),
        (
            impossible.isNotNull(),
            "impossible-number",
            F.concat(F.lit("no such number is possible: "), impossible),
        ),
    ]
    found = F.struct(F.lit(None).cast("string").alias("reason"), F.lit(None).cast("string").alias("detail"))
    for is_so, reason, detail in reversed(checks):
        told = F.lit(detail) if isinstance(detail, str) else detail
        found = F.when(is_so, F.struct(F.lit(reason).alias("reason"), told.alias("detail"))).otherwise(found)
    return found


def _first_missing() -> Column:
    always = [row.name for row in FIELDS if row.required and not row.kinds]
    checks = [F.when(F.col(f"data.{name}").isNull(), F.lit(name)) for name in always]
    for kind in Kind:
        of_kind = [row.name for row in fields_of(kind) if row.required and row.kinds]
        checks += [
            F.when((F.col("data.kind") == kind.value) & F.col(f"data.{name}").isNull(), F.lit(name))
            for name in of_kind
        ]
    return F.coalesce(*checks)


def _first_impossible() -> Column:
    checks = [
        F.when(~F.col("data.sequence").between(1, MAX_SEQUENCE), F.lit("sequence")),
        *(_wild(row, F.col(f"data.{row.name}")) for row in FIELDS if row.type is FieldType.LONG),
        *(
            F.when(F.exists(f"data.{row.name}", partial(_has_wild, row)), F.lit(row.name))
            for row in FIELDS
            if row.type is FieldType.STRUCTS and any(item.type is FieldType.LONG for item in row.items)
        ),
    ]
    return F.coalesce(*checks)


def _wild(row: Field, value: Column) -> Column:
    return F.when(~value.between(-MAX_NUMBER, MAX_NUMBER), F.lit(row.name))


def _has_wild(row: Field, entry: Column) -> Column:
    longs = [item for item in row.items if item.type is FieldType.LONG]
    return F.coalesce(*(_wild(item, entry[item.name]) for item in longs)).isNotNull()


def usable(judged: DataFrame) -> DataFrame:
    """Keep what can be used.

    Output columns: `EVENT_ROW`, line.
    """
    return (
        judged.where(F.col("reason").isNull()).select("id", "data.*", "line").select(*EVENT_ROW.names, "line")
    )


def unusable(judged: DataFrame) -> DataFrame:
    """Keep what cannot be used; shortened, if no other version will make more of it.

    Output columns: `QUARANTINE`.
    """
    return judged.where(F.col("reason").isNotNull()).select(
        "file", "reason", "detail",
        F.when(F.col("reason").isin(*REJUDGED), F.col("line"))
        .otherwise(F.substring("line", 1, MAX_LINE_CHARS)).alias("line"),
    )  # fmt: skip


def cut_off(files: DataFrame, judged: DataFrame) -> DataFrame:
    """Find segments that gave fewer records than their name announces: truncated or damaged.

    A name that ends with `-k<n>` announces n records: its agent made room, and dropped the others (see `drop`).

    Input columns: files: file; judged: file, data.
    Output columns: `QUARANTINE`, `line` null.
    Grain: one row per cut-off file.
    """
    read = judged.groupBy("file").agg(
        F.max("data.sequence").alias("reached"), F.count("data.sequence").alias("number")
    )
    last, left = (F.regexp_extract("file", SEGMENT_NAME, group).try_cast("bigint") for group in (2, 3))
    got = F.coalesce(F.when(left.isNull(), F.col("reached")).otherwise(F.col("number")), F.lit(0))
    announced = F.when(left.isNull(), F.format_string("records up to %d", last)).otherwise(
        F.format_string("%d records", left)
    )
    given = F.when(left.isNull(), F.format_string("up to %d", got)).otherwise(F.format_string("%d", got))
    return (
        files.join(read, "file", "left")
        .where(last.isNotNull() & (got < F.coalesce(left, last)))
        .select(
            "file",
            F.lit(CUT_OFF).alias("reason"),
            F.concat(F.lit("the name announces "), announced, F.lit(", the file gave "), given).alias(
                "detail"
            ),
            F.lit(None).cast("string").alias("line"),
        )
    )
