"""Which jars a command needs beside Spark's own, and where they come from."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from spark_rollup.errors import JarError
from spark_rollup.spark import jars, session

DELTA, S3A, KAFKA = "delta", "s3a", "kafka"

_KNOWN = {
    DELTA: ("delta-spark", "io.delta.sql.DeltaSparkSessionExtension"),
    S3A: ("hadoop-aws", "org.apache.hadoop.fs.s3a.S3AFileSystem"),
    KAFKA: ("spark-sql-kafka", "org.apache.spark.sql.kafka010.KafkaSourceProvider"),
}
"""Kind -> beginning of a jar's name, and a class in it: either shows that Spark has it."""

_GIVEN = {"spark.jars", "spark.jars.packages"}


def bring(kinds: Sequence[str], folder: Path | None, conf: Mapping[str, str]) -> list[Path]:
    """Find the jars that are needed; none if Spark runs, has them, or `conf` names jars. Delta's are fetched once.

    `folder` is where a person says that jars are; None = where `statewarden-rollup jars` puts them.

    Raises:
        JarError: there are none; names the command that fetches them.
    """
    if session.is_submitted() or _GIVEN & conf.keys() or _is_running():
        return []
    return [jar for kind in kinds if not _spark_has(kind) for jar in _find(kind, folder)]


def _is_running() -> bool:
    return SparkSession.getActiveSession() is not None


def _find(kind: str, folder: Path | None) -> list[Path]:
    given = jars.jars_in(folder) if folder else []
    if any(jar.name.startswith(_KNOWN[kind][0]) for jar in given):
        return given
    place = jars.default_directory(os.environ, jars.installed_spark(), kind)
    if kind == DELTA:
        _fetch(place)
    elif folder is not None:
        place = folder
    found = jars.jars_in(place)
    if not any(jar.name.startswith(_KNOWN[kind][0]) for jar in found):
        raise JarError(
            f"Spark reads {kind}:// with jars that are not in {place}: `statewarden-rollup jars {kind}` fetches them"
        )
    return found


def _fetch(place: Path) -> None:
    """Bring Delta's jars into the cache, unless they are there."""
    wanted = jars.pins(jars.installed_spark(), DELTA)
    if not (absent := jars.missing(wanted, place)):
        return
    said = f"statewarden-rollup: fetching {len(absent)} jars of Delta (13 MB, once) to {place}"
    print(said, file=sys.stderr)
    try:
        jars.fetch(wanted, place, None, os.environ, lambda text: print(f"  {text}", file=sys.stderr))
    except JarError as error:
        raise JarError(
            f"bronze is kept in Delta tables, and their jars are not in {place}: {error}. Or copy there what "
            f"`statewarden-rollup jars delta --names` lists"
        ) from error


def _spark_has(kind: str) -> bool:
    return any(Path(pyspark.__file__).parent.joinpath("jars").glob(f"{_KNOWN[kind][0]}*.jar"))


def check(spark: SparkSession, kinds: Sequence[str]) -> None:
    """Refuse to begin with a Spark that lacks what is needed.

    Raises:
        JarError: names what to give to `spark-submit`.
    """
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    for kind in kinds:
        if loader.getResource(_KNOWN[kind][1].replace(".", "/") + ".class") is None:
            raise JarError(
                f"Spark runs without the jars that {'bronze' if kind == DELTA else f'{kind}://'} needs: "
                f"spark-submit --jars $(statewarden-rollup jars {kind} | paste -sd,)"
            )
