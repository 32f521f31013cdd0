"""An archive of Java's classes: made once, it spares each later start the reading and checking of Spark's classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rollup.errors import UsageError
from spark_rollup.spark.jars import cache_directory

PATIENCE_S = 300
"""So long Java may take to write it."""


_SILENT = "-Xlog:cds*=off:stderr"
"""What cannot be archived, or does not fit, is no trouble of the user's."""


def place(environment: Mapping[str, str], release: str) -> Path:
    """Return where the archive is kept: below the user's cache directory, by release of Spark."""
    return cache_directory(environment) / f"classes-spark-{release}.jsa"


def options(archive: Path) -> list[str]:
    """Give Java's options to use an archive that is there; one of another Java or class path is ignored by Java."""
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", _SILENT] if archive.is_file() else []


def beside(archive: Path) -> Path:
    """Return where an archive is written: Java might start on one that is cut off."""
    return archive.with_name(f"{archive.name}.new")


def made_by(archive: Path) -> list[str]:
    """Give Java's options to write an archive when it ends."""
    return [f"-XX:ArchiveClassesAtExit={beside(archive)}", _SILENT]


def finish(spark: SparkSession, archive: Path) -> None:
    """End Java, wait for what it writes, and put that in its place.

    Raises:
        UsageError: it wrote nothing.
    """
    gateway = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    spark.stop()
    gateway.shutdown()  # type: ignore[union-attr]
    if process is not None:
        process.stdin.close()
        process.wait(PATIENCE_S)
    if not beside(archive).is_file():
        raise UsageError(f"Java wrote no {archive}: is its directory writable, and is it Java 17 or later?")
    beside(archive).replace(archive)
