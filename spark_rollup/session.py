"""The only place that builds a SparkSession."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rollup import java

SMALL_INPUT_BYTES = 64 * 1024 * 1024
"""Below this (compressed bytes) a handful of shuffle partitions is faster than Spark's 200."""

TINY_INPUT_BYTES = 4 * 1024 * 1024
"""Below this (compressed bytes) starting tasks costs more than they do: one partition."""

_QUICK_SQL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.buffer.pageSize": "1m",
}
"""On small inputs planning and compiling cost more than running."""

_QUICK_JVM = " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a run of seconds the second compiler and a parallel collector never pay off."""

_LOG4J = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


def build_session(
    input_bytes: int = 0, *, master: str | None = None, partitions: int | None = None
) -> SparkSession:
    """Start Spark, or join the session that `spark-submit` or a test already made.

    Args:
        input_bytes: Size of the input; chooses the number of shuffle partitions.
        master: Spark master; None = the one spark-submit gave, else `local[*]`.
        partitions: Shuffle partitions; None = by size.

    Raises:
        JavaNotFoundError: no Java runtime.
    """
    scratch = Path(tempfile.mkdtemp(prefix="statewarden-rollup-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    _choose_java(scratch)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = scratch / "log4j2.properties"
    quiet.write_text(_LOG4J)
    small = input_bytes < SMALL_INPUT_BYTES
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(
            partitions or (1 if input_bytes < TINY_INPUT_BYTES else 2 if small else 200)
        ),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # call sites cost a fifth of building our plans
        "spark.sql.files.ignoreCorruptFiles": "true",  # the rest of a cut-off segment shows as a sequence gap
        "spark.driver.memory": "1g" if small else "4g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{quiet}"
        + (_QUICK_JVM if small else ""),
        **(_QUICK_SQL if small else {}),
    }
    builder = SparkSession.builder.appName("statewarden-rollup").config(map=settings)
    if (
        master or "PYSPARK_GATEWAY_PORT" not in os.environ
    ):  # spark-submit sets it, and knows the master itself
        builder = builder.master(master or "local[*]")
    return builder.getOrCreate()


def _choose_java(scratch: Path) -> None:
    found = java.find_java(os.environ, shutil.which, java.packaged_home)
    if found.home is None:
        os.environ.pop("JAVA_HOME", None)
    else:
        os.environ["JAVA_HOME"] = str(
            java.write_shim(found.home, scratch) if found.needs_shim else found.home
        )
