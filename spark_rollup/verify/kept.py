"""What changelogs said at an offset, kept between runs: a copy that is still there is compared without reading.

What a changelog said up to an offset never changes, but it cannot be carried on to a later one. A key that was put
before the offset and deleted behind it leaves the changelog altogether once it is compacted, and so does a value that
was replaced more than once: what is carried on would call both damage. So only the very same question is answered
again: the same topic (by its id), with the same beginning, at the same offsets, of copies that are exact.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract import buckets
from agent.contract.buckets import StoreKind
from spark_rollup.errors import UnreadError, UsageError
from spark_rollup.verify.plan import Judged

FORMAT = 2
"""How buckets are counted and kept; those of another number are counted again."""

_FORMATS = [FORMAT, buckets.FORMAT]

_COLUMNS = ("stream_ms", "odd", "cells")

NOTE, TABLE = "kept.json", "buckets-"


@dataclass(frozen=True, slots=True)
class Kept:
    """What an earlier run kept."""

    folder: Path
    table: str | None = None
    questions: frozenset[str] = frozenset()


def question(one: Judged) -> str | None:
    """Name all that decides what the changelog says of a copy; None = that may change.

    A copy that went on after its offset is judged by what came later, too; a versioned one by the time of day.
    """
    copy = one.source
    is_fixed = copy.is_settled and copy.offset is not None and copy.kind is not StoreKind.VERSIONED
    if one.topic_id is None or not is_fixed:
        return None
    places = [(x.segment, x.offset) for x in copy.databases]
    parts = (
        one.topic_id, *copy.part, one.ends.earliest, copy.kind.value, one.retention_ms, copy.buckets, copy.offset,
        places,
    )  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def load(folder: Path) -> Kept:
    """Open what was kept; nothing, if it is of an older version.

    Raises `UsageError`: the directory holds something else, cannot be read, or is of a later version.
    """
    try:
        there = [path.name for path in folder.iterdir()] if folder.exists() else []
        note = json.loads((folder / NOTE).read_text(encoding="ascii")) if NOTE in there else {}
        written = note.get("format")
        is_newer = written is not None and written > _FORMATS
    except (OSError, ValueError, TypeError) as error:
        raise UnreadError(f"--keep {folder} cannot be read: {error}; remove it, or name another") from error
    foreign = sorted(name for name in there if name.strip(".") != NOTE and not name.startswith(TABLE))
    if foreign:
        raise UsageError(f"--keep {folder} holds what `verify` did not write ({foreign[0]}): name another")
    if is_newer:
        raise UsageError(
            f"--keep {folder} was written by a later statewarden-rollup (format {written}, this one knows up to "
            f"{_FORMATS}): name another directory, or remove it; all in it can be counted again"
        )
    if written != _FORMATS:
        return Kept(folder)
    return Kept(folder, note["table"], frozenset(note["questions"]))


def reused(spark: SparkSession, kept: Kept, asked: Mapping[int, str]) -> DataFrame:
    """Give the buckets of copies, each with its question, which was answered.

    Output columns: copy, stream_ms, odd, cells.
    """
    copies = spark.createDataFrame(list(asked.items()), "copy long, question string")
    table = spark.read.parquet(str(kept.folder / str(kept.table)))
    return table.join(F.broadcast(copies), "question", "inner").drop("question")


def save(spark: SparkSession, kept: Kept, logged: DataFrame, asked: Mapping[int, str]) -> None:
    """Keep the answers of this run (`parts.compared`, cut loose from what was kept), and nothing else.

    Raises `UsageError`: it cannot be written.
    """
    by_question = {name: copy for copy, name in sorted(asked.items())}
    folder, table = kept.folder, f"{TABLE}{1 + int((kept.table or '0').removeprefix(TABLE))}"
    chosen = spark.createDataFrame(
        [(copy, name) for name, copy in by_question.items()], "copy long, question string"
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rows = logged.where(F.col("other").isNull()).join(F.broadcast(chosen), "copy", "inner")
        rows.select("question", *_COLUMNS).write.mode("overwrite").option("compression", "zstd").parquet(
            str(folder / table)
        )
        note = {"format": _FORMATS, "table": table, "questions": sorted(by_question)}
        part = folder / f".{NOTE}"
        part.write_text(json.dumps(note) + "\n", encoding="ascii")
        os.replace(part, folder / NOTE)  # noqa: PTH105 - all of it or nothing
        for path in folder.glob(f"{TABLE}*"):
            if path.name != table:
                shutil.rmtree(path)
    except OSError as error:
        raise UsageError(f"--keep {folder} cannot be written: {error.strerror or error}") from error
