"""The command `ingest`: from what the command line says to a source, a session, and one run or one after the other."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rollup.bronze.later import announce
from spark_rollup.bronze.place import Place
from spark_rollup.bronze.store import check_format
from spark_rollup.config import check_directories, check_input, size_of
from spark_rollup.errors import SourceError, UsageError
from spark_rollup.intake import ingest
from spark_rollup.intake.claim import claimed
from spark_rollup.intake.ingest import Ingested
from spark_rollup.intake.opening import Opening, opened
from spark_rollup.sources.address import Address, DirectoryAddress, ObjectAddress, TopicAddress
from spark_rollup.sources.files import Directory, FileSource, ObjectStore
from spark_rollup.sources.kafka import KafkaSource
from spark_rollup.spark import needs, session

AVAILABLE_NOW = "availableNow"
"""`--trigger`: one run, as without it."""

_POLL_S = 0.5
_UNITS_S = {"second": 1, "minute": 60, "hour": 3600}


@dataclass(frozen=True, slots=True)
class IntakeOptions:
    """What decides one `ingest`.

    Args of the dataclass:
        kafka_config: File with settings of Kafka's Java client.
        every_s: Seconds from the begin of one run to that of the next; None = one run.
        cluster: Cluster of the events that name none; None = they stay without one.
        again: File or directory that the first run ingests again; empty = everything; None = nothing.
    """

    input: Address
    opening: Opening
    kafka_config: Path | None = None
    every_s: int | None = None
    cluster: str | None = None
    again: str | None = None


def parse_trigger(text: str | None) -> int | None:
    """Read `processing 60 seconds`, in seconds; not given, or `availableNow`: None.

    Raises:
        UsageError: neither.
    """
    if text is None or text == AVAILABLE_NOW:
        return None
    every = re.fullmatch(r"processing ([1-9]\d*) (second|minute|hour)s?", text)
    if every is None:
        raise UsageError(f"--trigger {text!r} is neither {AVAILABLE_NOW} nor like 'processing 60 seconds'")
    return int(every[1]) * _UNITS_S[every[2]]


def run(options: IntakeOptions) -> None:
    """Ingest what is new, once or until SIGTERM or Ctrl-C, and report on stdout what it was.

    Raises:
        RollupError: wrong use, jars or Java missing, a source that does not answer or refuses, files that could not
            be read (the others are in bronze then).
    """
    where, lasting = options.opening.where, options.every_s is not None
    if "://" not in where:
        check_format(Path(where))  # before Spark is started
    source: FileSource | KafkaSource
    kinds: list[str] = []
    size_bytes: int | None = None
    match options.input:
        case DirectoryAddress(path):
            if "://" in where:
                check_input(path, may_be_empty=lasting)
            else:
                check_directories(path, Path(where), may_be_empty=lasting)
            source = FileSource(Directory(path), options.cluster, may_be_empty=lasting)
            size_bytes = size_of(path)
        case ObjectAddress(url):
            source, kinds = FileSource(ObjectStore(url), options.cluster), [needs.S3A]
        case TopicAddress() as topic:
            client = read_properties(options.kafka_config) if options.kafka_config else {}
            source, kinds = KafkaSource(topic, client, options.cluster), [needs.KAFKA]
    with opened(options.opening, size_bytes, kinds) as (spark, bronze):
        if options.every_s is None:
            _once(spark, source, options, bronze, options.again)
            return
        with stop_asked(spark) as asked:
            _again_and_again(spark, source, options, bronze, options.every_s, asked)


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


def _once(
    spark: SparkSession,
    source: FileSource | KafkaSource,
    options: IntakeOptions,
    bronze: Place,
    again: str | None,
) -> None:
    conf = options.opening.conf
    with claimed(bronze, "ingest", spark):
        counts = ingest.run(spark, source, bronze, again, lambda size: session.fit(spark, size, conf))
    announce(counts.newer, "kept")
    if counts.files or options.every_s is None:
        print(describe(counts, options), flush=True)
    if counts.unread:
        file, why = next(iter(counts.unread.items()))
        raise SourceError(
            f"{len(counts.unread)} files could not be read to their ends and are left for the next run; the first is "
            f"{file}: {why}"
        )


def _again_and_again(
    spark: SparkSession,
    source: FileSource | KafkaSource,
    options: IntakeOptions,
    bronze: Place,
    every_s: int,
    asked: threading.Event,
) -> None:
    """Run until it is asked to stop; what fails ends it, and the next start goes on from what bronze has."""
    again = options.again
    while not asked.is_set():
        next_s = time.monotonic() + every_s
        try:
            _once(spark, source, options, bronze, again)
        except Exception:
            if asked.is_set():  # its jobs were cancelled
                return
            raise
        again = None
        while not asked.is_set() and time.monotonic() < next_s:
            time.sleep(_POLL_S)


@contextmanager
def stop_asked(spark: SparkSession) -> Iterator[threading.Event]:
    """Give a flag that SIGTERM and Ctrl-C raise, which also cancels jobs.

    An exception from a handler would leave Spark's gateway torn, and so would a call of it in the same thread.
    """
    asked = threading.Event()

    def stop(*_: object) -> None:
        asked.set()
        threading.Thread(target=spark.sparkContext.cancelAllJobs, daemon=True).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def describe(counts: Ingested, options: IntakeOptions) -> str:
    """Describe what was ingested."""
    parts = "partitions" if isinstance(options.input, TopicAddress) else "new files"
    return (
        f"{counts.events} new events, {counts.quarantined} new quarantined lines from {counts.files} {parts}"
        f" in {options.opening.where}"
    )
