"""The command `ingest`: from what the command line says to a source, a session, and one run or a stream."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rollup.bronze.later import announce
from spark_rollup.bronze.place import Place
from spark_rollup.bronze.store import check_format
from spark_rollup.config import check_directories, check_input, size_of
from spark_rollup.errors import SourceError, UsageError
from spark_rollup.intake import ingest, stream
from spark_rollup.intake.claim import claimed
from spark_rollup.intake.ingest import Ingested
from spark_rollup.intake.opening import Opening, opened
from spark_rollup.sources.address import Address, DirectoryAddress, ObjectAddress, TopicAddress
from spark_rollup.sources.base import Source
from spark_rollup.sources.files import Directory, FileSource, ObjectStore
from spark_rollup.sources.kafka import KafkaSource
from spark_rollup.spark import needs, session


@dataclass(frozen=True, slots=True)
class IntakeOptions:
    """What decides one `ingest`.

    Args of the dataclass:
        kafka_config: File with settings of Kafka's Java client.
        trigger: What `stream.parse_trigger` gave; None = one run.
        checkpoint: Directory for the stream's place; None = in bronze.
        cluster: Cluster of the events that name none; None = they stay without one.
        again: File or directory to ingest again; empty = everything; None = nothing.
    """

    input: Address
    opening: Opening
    kafka_config: Path | None = None
    trigger: stream.Trigger | None = None
    checkpoint: Path | None = None
    cluster: str | None = None
    again: str | None = None


def run(options: IntakeOptions) -> None:
    """Ingest what is new, and report on stdout what it was.

    Raises:
        RollupError: wrong use, jars or Java missing, a source that does not answer or refuses, files that could not
            be read (the others are in bronze then).
    """
    if options.again is not None and options.trigger is not None:
        raise UsageError(
            "a stream goes on from its checkpoint: --again needs a plain `ingest`, without --trigger"
        )
    if "://" not in options.opening.where:
        check_format(Path(options.opening.where))  # before Spark is started
    source, size_bytes = source_of(options), None
    where = options.opening.where
    if isinstance(options.input, DirectoryAddress):
        if "://" in where:
            check_input(options.input.path, may_be_empty=options.trigger is not None)
        else:
            check_directories(options.input.path, Path(where), may_be_empty=options.trigger is not None)
        size_bytes = size_of(options.input.path)
    with opened(options.opening, size_bytes, _kinds(options.input)) as (spark, bronze):
        counts = _work(spark, source, options, bronze)
    if counts is None:
        return
    print(describe(counts, options))
    if counts.unread:
        file, why = next(iter(counts.unread.items()))
        raise SourceError(
            f"{len(counts.unread)} files could not be read to their ends and are left for the next run; the first is "
            f"{file}: {why}"
        )


def source_of(options: IntakeOptions) -> FileSource | KafkaSource:
    """Make the source that an address names.

    Raises:
        UsageError: the settings for Kafka's client cannot be read.
    """
    match options.input:
        case DirectoryAddress(path):
            return FileSource(Directory(path), options.cluster)
        case ObjectAddress(url):
            return FileSource(ObjectStore(url), options.cluster)
        case TopicAddress() as address:
            client = read_properties(options.kafka_config) if options.kafka_config else {}
            return KafkaSource(address, client, options.cluster)


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


def _work(
    spark: SparkSession, source: FileSource | KafkaSource, options: IntakeOptions, bronze: Place
) -> Ingested | None:
    if options.trigger is None:
        with claimed(bronze, "ingest", spark):
            return _once(spark, source, options, bronze)
    return _stream(spark, source, options, bronze, options.trigger)


def _once(
    spark: SparkSession, source: FileSource | KafkaSource, options: IntakeOptions, bronze: Place
) -> Ingested:
    conf, known = options.opening.conf, ingest.read_ends(bronze)
    if options.again is not None:
        known = ingest.drop_ends(known, options.again)
    counts = ingest.run(spark, source, bronze, known, lambda size_bytes: session.fit(spark, size_bytes, conf))
    announce(counts.newer, "kept")
    return counts


def _stream(
    spark: SparkSession, source: Source, options: IntakeOptions, bronze: Place, trigger: stream.Trigger
) -> Ingested | None:
    """Run a stream; return its sum if it ends by itself, else report each turn when it is done."""
    turns: list[Ingested] = []
    ends_by_itself = stream.AVAILABLE_NOW in trigger

    def report(counts: Ingested) -> None:
        announce(counts.newer, "kept")
        if ends_by_itself:
            turns.append(counts)
        else:
            print(describe(counts, options), flush=True)

    checkpoint = options.checkpoint or stream.checkpoint_in(bronze, source)
    stream.run(spark, source, bronze, trigger, checkpoint, report)
    return ingest.total(turns) if ends_by_itself else None


def describe(counts: Ingested, options: IntakeOptions) -> str:
    """Describe what was ingested."""
    parts = "partitions" if isinstance(options.input, TopicAddress) else "new files"
    return (
        f"{counts.events} new events, {counts.quarantined} new quarantined lines from {counts.files} {parts}"
        f" in {options.opening.where}"
    )


def _kinds(address: Address) -> list[str]:
    match address:
        case ObjectAddress():
            return [needs.S3A]
        case TopicAddress():
            return [needs.KAFKA]
    return []
