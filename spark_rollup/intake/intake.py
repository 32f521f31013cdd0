"""The command `ingest`: from what the command line says to a source, a session, and one run or a stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from agent.contract.codec import SCHEMA_VERSION
from agent.contract.events import SCHEMA_MAJOR
from spark_rollup.config import check_directories, size_of
from spark_rollup.errors import JarError, SourceError, UsageError
from spark_rollup.intake import ingest, stream
from spark_rollup.intake.claim import claimed
from spark_rollup.intake.ingest import Ingested
from spark_rollup.sources.address import Address, DirectoryAddress, ObjectAddress, TopicAddress
from spark_rollup.sources.base import Source
from spark_rollup.sources.files import Directory, FileSource, ObjectStore
from spark_rollup.sources.kafka import KafkaSource
from spark_rollup.sources.labelled import labelled
from spark_rollup.spark import jars, progress, session

_NEEDS = {
    "s3a": ("hadoop-aws", "org.apache.hadoop.fs.s3a.S3AFileSystem"),
    "kafka": ("spark-sql-kafka", "org.apache.spark.sql.kafka010.KafkaSourceProvider"),
}
"""Source -> the jar that tells by its name, and the class that tells by being there."""


@dataclass(frozen=True, slots=True)
class IntakeOptions:
    """What decides one `ingest`.

    Args of the dataclass:
        input: Where events come from.
        bronze: Directory to add to.
        endpoint: URL of an object store that is not AWS's own.
        region: The store's region.
        kafka_config: File with settings of Kafka's Java client.
        jars: Directory with the jars that the source needs; None = where `statewarden-rollup jars` puts them.
        conf: Spark's settings.
        trigger: What `stream.parse_trigger` gave; None = one run.
        checkpoint: Directory for the stream's place; None = in bronze.
        progress: Whether to show progress on stderr.
        cluster: Which cluster the events are of that name none; None = they stay without.
        again: File or directory to take again; empty = everything; None = nothing.
        debug: Whether Spark logs its errors.
    """

    input: Address
    bronze: Path
    endpoint: str | None = None
    region: str | None = None
    kafka_config: Path | None = None
    jars: Path | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    trigger: stream.Trigger | None = None
    checkpoint: Path | None = None
    progress: bool = False
    cluster: str | None = None
    again: str | None = None
    debug: bool = False


def run(options: IntakeOptions) -> None:
    """Take in what is new, and tell on stdout what it was.

    Raises:
        RollupError: wrong use, jars or Java missing, a source that does not answer or refuses, files that could not
            be read (the others are in bronze then).
    """
    if options.again is not None and options.trigger is not None:
        raise UsageError(
            "a stream goes on from its checkpoint: --again needs a plain `ingest`, without --trigger"
        )
    source, size_bytes = source_of(options), None
    if options.cluster:
        source = labelled(source, options.cluster)
    if isinstance(options.input, DirectoryAddress):
        check_directories(options.input.path, options.bronze, may_be_empty=options.trigger is not None)
        size_bytes = size_of(options.input.path)
    brought = _jars(options)
    with claimed(options.bronze):
        spark = session.build_session(size_bytes, conf=options.conf, jars=brought, debug=options.debug)
        _check_class(spark, _kind(options.input))
        for key, value in store_settings(options, os.environ).items():
            spark._jsc.hadoopConfiguration().set(key, value)  # a session that was there already listens, too
        with watched(spark, options.progress):
            counts = _work(spark, source, options)
    if counts is None:
        return
    print(told(counts, options))
    if counts.unread:
        file, why = next(iter(counts.unread.items()))
        raise SourceError(
            f"{len(counts.unread)} files could not be read to their ends and are left for the next run; the first is "
            f"{file}: {why}"
        )


def source_of(options: IntakeOptions) -> Source:
    """Make the source that an address names.

    Raises:
        UsageError: the settings for Kafka's client cannot be read.
    """
    match options.input:
        case DirectoryAddress(path):
            return FileSource(Directory(path))
        case ObjectAddress(url):
            return FileSource(ObjectStore(url))
        case TopicAddress() as address:
            return KafkaSource(address, read_properties(options.kafka_config) if options.kafka_config else {})


def store_settings(options: IntakeOptions, environment: Mapping[str, str]) -> dict[str, str]:
    """Give Hadoop's settings for the object store; credentials are left to Hadoop's own chain."""
    if not isinstance(options.input, ObjectAddress):
        return {}
    region = options.region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not options.endpoint:
        return {"fs.s3a.endpoint.region": region} if region else {}
    return {
        "fs.s3a.endpoint": options.endpoint,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": region or "us-east-1",
    }


def read_properties(path: Path) -> dict[str, str]:
    """Read settings of Kafka's Java client: `key=value` lines, `#` begins a comment.

    Raises:
        UsageError: the file or a line of it cannot be read; no value is shown.
    """
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--kafka-config {path} cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith(("#", "!")):
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise UsageError(f"--kafka-config {path}, line {number} is not key=value")
        found[key.strip()] = value.strip()
    return found


def watched(spark: SparkSession, wanted: bool) -> AbstractContextManager[None]:
    """Show progress if it is wanted."""
    return progress.shown(spark, sys.stderr) if wanted else nullcontext()


def _work(spark: SparkSession, source: Source, options: IntakeOptions) -> Ingested | None:
    if options.trigger is None:
        return _once(spark, source, options)
    return _stream(spark, source, options, options.trigger)


def _once(spark: SparkSession, source: Source, options: IntakeOptions) -> Ingested:
    known = ingest.taken(options.bronze)
    if options.again is not None:
        known = ingest.to_take_again(known, options.again)
    if isinstance(source, FileSource):
        counts = ingest.take_files(
            spark,
            source,
            options.bronze,
            known,
            lambda size_bytes: session.fit(spark, size_bytes, options.conf),
        )
        _note_newer(counts)
        return counts
    batch = source.batch(spark, known)
    for note in batch.notes:
        print(f"statewarden-rollup: {note}", file=sys.stderr)
    session.fit(spark, batch.size_bytes, options.conf)
    counts = ingest.take(spark, batch, options.bronze)
    _note_newer(counts)
    return counts


def _stream(
    spark: SparkSession, source: Source, options: IntakeOptions, trigger: stream.Trigger
) -> Ingested | None:
    """Run a stream; its sum if it ends by itself, else each turn is told when it is done."""
    turns: list[Ingested] = []
    ends_by_itself = stream.AVAILABLE_NOW in trigger

    def tell(counts: Ingested) -> None:
        _note_newer(counts)
        if ends_by_itself:
            turns.append(counts)
        else:
            print(told(counts, options), flush=True)

    checkpoint = options.checkpoint or stream.checkpoint_in(options.bronze, source)
    stream.run(spark, source, options.bronze, trigger, checkpoint, tell)
    return ingest.total(turns) if ends_by_itself else None


def _note_newer(counts: Ingested) -> None:
    if counts.newer is not None:
        print(
            f"statewarden-rollup: some events are of contract {SCHEMA_MAJOR}.{counts.newer}, and this version knows "
            f"{SCHEMA_VERSION}: they are kept, and what is new in them is not looked at: upgrade statewarden",
            file=sys.stderr,
        )


def told(counts: Ingested, options: IntakeOptions) -> str:
    """Say what was taken in."""
    parts = "partitions" if isinstance(options.input, TopicAddress) else "new files"
    return (
        f"{counts.events} new events, {counts.quarantined} new quarantined lines from {counts.files} {parts}"
        f" in {options.bronze}"
    )


def _kind(address: Address) -> str | None:
    match address:
        case ObjectAddress():
            return "s3a"
        case TopicAddress():
            return "kafka"
    return None


def _jars(options: IntakeOptions) -> list[Path]:
    """Find the jars that the source needs; none if Spark has them or `spark-submit` was given them.

    Raises:
        JarError: there are none; names the command that fetches them.
    """
    kind = _kind(options.input)
    if kind is None or session.is_submitted() or {"spark.jars", "spark.jars.packages"} & options.conf.keys():
        return []
    folder = options.jars or jars.default_directory(os.environ, jars.installed_spark(), kind)
    found = jars.jars_in(folder)
    if not any(jar.name.startswith(_NEEDS[kind][0]) for jar in found) and not _spark_has(kind):
        raise JarError(
            f"Spark reads {kind}:// with jars that are not in {folder}: `statewarden-rollup jars {kind}` fetches them"
        )
    return found


def _spark_has(kind: str) -> bool:
    import pyspark

    return any(Path(pyspark.__file__).parent.joinpath("jars").glob(f"{_NEEDS[kind][0]}*.jar"))


def _check_class(spark: SparkSession, kind: str | None) -> None:
    if kind is None:
        return
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    if loader.getResource(_NEEDS[kind][1].replace(".", "/") + ".class") is None:
        raise JarError(
            f"Spark runs without the jars that {kind}:// needs: spark-submit --jars "
            f"$(statewarden-rollup jars {kind} | paste -sd,)"
        )
