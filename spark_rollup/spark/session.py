"""The only place that builds a SparkSession."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_rollup.errors import UsageError
from spark_rollup.spark import archive, java, materialize, py4j_cache

SMALL_INPUT_BYTES = 64 * 1024 * 1024
"""Below this (compressed bytes) a handful of shuffle partitions is faster than Spark's 200."""

TINY_INPUT_BYTES = 4 * 1024 * 1024
"""Below this (compressed bytes) starting tasks costs more than they do: one partition."""

PARTITION_BYTES = 32 * 1024 * 1024
"""So much input (compressed bytes) for one shuffle partition: stages keep a few of all columns."""

_QUICK_SQL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.lightweightPlanChangeValidation": "false",
}
"""On small inputs planning and compiling cost more than running."""

_UNMOVED_SQL = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.maxSinglePartitionBytes": str((1 << 63) - 1),  # of frames that are kept Spark knows no size
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
}
"""What is in one partition anyway is joined in place; each broadcast or filter would be a job more."""

_QUICK_CORE = {
    "spark.buffer.pageSize": "1m",
    "spark.broadcast.blockSize": "256k",  # so much is allocated for each stage, whatever its size
    "spark.broadcast.compress": "false",
    "spark.shuffle.compress": "false",
}
"""Of small inputs there is nothing to be saved in memory."""

_QUICK_MEMORY = {
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": "-Xms1g -Xmn384m -XX:MetaspaceSize=256m",
}
"""Plans are garbage at once, so the young get much of the heap. A heap that grows, and classes that become more, must
not make Java collect all of it."""

_ONE_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m"
"""For one command the second compiler never pays off. One alone would be given 48 MiB for its code, and a session that
goes on, such as a stream, fills that and is then interpreted."""

_LATER_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000"
    " -XX:Tier4BackEdgeThreshold=400000"
)
_AUDITS_COMPILER = (
    "-XX:Tier4InvocationThreshold=500000 -XX:Tier4MinInvocationThreshold=60000 -XX:Tier4CompileThreshold=1500000"
    " -XX:Tier4BackEdgeThreshold=4000000"
)
"""Spark writes new code for each stage: at Java's own thresholds, a tenth of the first, the second compiler takes
nearly as much CPU for an audit of five million events as running them does. At ten times the first it takes 20 CPU
seconds less still; but `ingest`, which does the same with each line, takes a fifth more for 741,150 of them. With the
first compiler only, or without code for whole stages, the audit takes more."""

_ONE_COLLECTOR = "-XX:+UseSerialGC"
"""For a run of seconds a parallel collector never pays off."""

QUIET_JVM = "-XX:+DisplayVMOutputToStderr -Xlog:disable -Xlog:all=warning:stderr"
"""Java warns on standard output, which belongs to what was asked for: `--json` must stay JSON."""

_FORCED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",  # the reader of segments has its own
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""Other values would change what is found; no setting wins over these."""

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",  # a log of ours has hundreds of files, not millions
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.sql.parquet.compression.codec": "zstd",
}
"""What Spark needs to know Delta tables."""

_EXTENSIONS = "spark.sql.extensions"
_SKIPPING = "spark.databricks.delta.stats.skipping"
_JVM = "spark.driver.extraJavaOptions"

_ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # call sites cost a fifth of building our plans
    "spark.sql.dataFrameQueryContext.enabled": "false",  # the same in Java
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",  # else one task for each segment
    "spark.python.authenticate.socketTimeout": "5min",  # after 15 s a machine that stood still would end the run
    "spark.cleaner.referenceTracking.cleanCheckpoints": "true",  # a session that goes on would fill the disk
}

_LOG4J = """rootLogger.level = LEVEL
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
logger.start.name = org.apache.spark.api.python.PythonGatewayServer
logger.start.level = LEVEL
"""
"""A failure is reported in one line at the edge of the command line; what Spark logs about it is for `--debug`. Spark
announces a level at each start where the class that starts Java has another one."""


def build_session(
    input_bytes: int | None = 0,
    *,
    master: str | None = None,
    partitions: int | None = None,
    conf: Mapping[str, str] | None = None,
    jars: Sequence[Path] = (),
    delta: bool = False,
    debug: bool = False,
    archived: bool = True,
    audits: bool = False,
) -> SparkSession:
    """Start Spark, or join the session that `spark-submit` or a test already made.

    What a person says wins: `conf`, then what was given to `spark-submit`, then what is chosen here; but for what
    would change findings (time zone, ANSI mode, files that are passed over).

    Args:
        input_bytes: Size of the input; chooses memory and the number of shuffle partitions. None = not known
            before Spark runs: see `fit`.
        master: Spark master; None = the one spark-submit or `conf` gave, else `local[*]`.
        partitions: Shuffle partitions; None = by size.
        conf: Spark's settings.
        jars: To be put on the class path of driver and executors.
        delta: Whether Delta tables are read or written.
        debug: Whether Spark logs its errors, at length.
        archived: Whether the archive of classes is used, if there is one; False = this session makes it.
        audits: Whether nothing is taken in: each stage's code runs once.

    Raises:
        JavaNotFoundError: no Java runtime, or only one that is too old.
        UsageError: SPARK_HOME is another Spark's.
    """
    if not is_submitted():
        check_spark_home(os.environ, pyspark.__version__)
    scratch = Path(tempfile.mkdtemp(prefix="statewarden-rollup-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    found = java.find_java(os.environ, shutil.which, java.packaged_home)
    os.environ["JAVA_HOME"] = str(java.write_home(found, scratch))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        **_ALWAYS,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **sql_settings(input_bytes, partitions),
        **(DELTA if delta else {}),
    }
    if jars:
        settings["spark.jars"] = ",".join(str(jar) for jar in jars)
    given = dict(conf or {})
    if is_submitted():
        given = {**submitted(), **given}
    else:
        settings |= {
            "spark.master": master or "local[*]",
            **_jvm_settings(input_bytes, scratch, debug, archived, audits),
        }
        stay_local(os.environ, {**settings, **given}["spark.master"])
        if "spark.driver.memory" in given:  # a heap that begins larger than it may become does not start
            settings.pop("spark.driver.defaultJavaOptions", None)
    builder = SparkSession.builder.appName("statewarden-rollup").config(map={**merged(settings, given)})
    py4j_cache.remember_names()
    spark = builder.getOrCreate()
    py4j_cache.name_jobs(spark)
    materialize.leave_nothing(spark)
    return spark


def submitted() -> dict[str, str]:
    """Read what `spark-submit` was given; Python sees it only once Java's side is there."""
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def stay_local(environment: MutableMapping[str, str], master: str) -> None:
    """Let a Spark of one machine listen on loopback: it needs no host name that can be looked up, and no network."""
    if master.startswith("local") and "SPARK_LOCAL_HOSTNAME" not in environment:
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def merged(chosen: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Put settings together: what was given wins; extensions are added up, and what is forced stays."""
    extensions = [found[_EXTENSIONS] for found in (given, chosen) if found.get(_EXTENSIONS)]
    both = {_EXTENSIONS: ",".join(dict.fromkeys(extensions))} if extensions else {}
    return {**chosen, **given, **both, **_FORCED}


def is_submitted() -> bool:
    """Return whether `spark-submit` started this process: then it chose master, memory and jars already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def fit(spark: SparkSession, input_bytes: int, conf: Mapping[str, str]) -> None:
    """Adapt a session that was started, or fitted, before the size of the input (compressed bytes) was known."""
    chosen = sql_settings(input_bytes)
    given = {**(submitted() if is_submitted() else {}), **conf}
    for key in {**chosen, **_QUICK_SQL, **_UNMOVED_SQL}.keys() - given.keys():
        if key in chosen:
            spark.conf.set(key, chosen[key])
        else:
            spark.conf.unset(key)


@contextmanager
def reading_all(spark: SparkSession) -> Iterator[None]:
    """Have Delta leave out no file for what its columns hold: asking is a job for each scan, and all are read."""
    before = str(spark.conf.get(_SKIPPING, "true"))
    spark.conf.set(_SKIPPING, "false")
    try:
        yield
    finally:
        spark.conf.set(_SKIPPING, before)


def sql_settings(input_bytes: int | None, partitions: int | None = None) -> dict[str, str]:
    """Choose how queries are run, by the size of the input (compressed bytes; None = not known)."""
    if input_bytes is None or input_bytes >= SMALL_INPUT_BYTES:
        return {"spark.sql.shuffle.partitions": str(partitions or partitions_of(input_bytes))}
    number = partitions or (1 if input_bytes < TINY_INPUT_BYTES else 2)
    unmoved = _UNMOVED_SQL if number == 1 else {}
    return {"spark.sql.shuffle.partitions": str(number), **_QUICK_SQL, **unmoved}


def check_spark_home(environment: Mapping[str, str], release: str) -> None:
    """Refuse a SPARK_HOME whose Spark is not the one (`release`) that belongs to this Python package.

    Raises:
        UsageError: says what SPARK_HOME points to.
    """
    home = environment.get("SPARK_HOME")
    if not home:
        return
    cores = sorted(path.stem for path in Path(home).glob("jars/spark-core_*.jar"))
    found = cores[0].rpartition("-")[2] if cores else ""
    what = "where no Spark is" if not found else f"which is Spark {found}"
    if found.split(".")[:2] == release.split(".")[:2]:
        if Path(home, "bin", "spark-submit").is_file():
            return
        what = "which has no bin/spark-submit"
    raise UsageError(
        f"SPARK_HOME points to {home}, {what}, and this is pyspark {release}: unset SPARK_HOME, or use spark-submit"
    )


def _jvm_settings(
    input_bytes: int | None, scratch: Path, debug: bool, archived: bool, audits: bool
) -> dict[str, str]:
    place = archive.place(os.environ, pyspark.__version__)
    more = archive.options(place) if archived else archive.made_by(place)
    logging = scratch / "log4j2.properties"
    logging.write_text(_LOG4J.replace("LEVEL", "error" if debug else "off"))
    options = [f"-Dlog4j2.configurationFile=file:{logging}", QUIET_JVM, *more]
    if input_bytes is None or input_bytes >= SMALL_INPUT_BYTES:
        later = _AUDITS_COMPILER if audits else _LATER_COMPILER
        return {"spark.driver.memory": "4g", _JVM: " ".join([*options, later])}
    options += [_ONE_COLLECTOR, _ONE_COMPILER]
    return {**_QUICK_MEMORY, **_QUICK_CORE, _JVM: " ".join(options)}


def partitions_of(input_bytes: int | None) -> int:
    """Choose shuffle partitions for a large input (compressed bytes): one costs a few ms even if it is empty."""
    return 200 if input_bytes is None else min(200, max(16, input_bytes // PARTITION_BYTES))
