"""A Kafka topic as the agents' Kafka sink writes it: one event per message, structured or binary CloudEvents.

What was ingested is kept per topic id and partition, as files are: bronze, not a consumer group, says where to go on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rollup.bronze.load import load_lines
from spark_rollup.sources.address import TopicAddress
from spark_rollup.sources.base import Batch, Ends, labelled
from spark_rollup.sources.brokers import ask, offsets

EVENT_BYTES = 75
"""About what one event takes in a segment, compressed; chooses how many files bronze gets."""

OFFSETS_PER_TURN = 5_000_000
"""Most messages that one turn of a stream reads."""


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of one partition: the first that is still there, and the first that is not there yet."""

    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets to read from one partition, half-open; `expired` of those not read are gone already."""

    first: int
    until: int
    expired: int


class KafkaSource:
    """One topic."""

    def __init__(self, address: TopicAddress, client: Mapping[str, str], cluster: str | None = None) -> None:
        """Name it.

        Args:
            address: Brokers and topic.
            client: Settings of Kafka's Java client, such as `security.protocol`.
            cluster: The cluster of streams that its events are of; None = they stay without one.
        """
        self._address, self._client, self._cluster = address, client, cluster

    @property
    def name(self) -> str:
        """The address."""
        return f"kafka://{self._address.brokers}/{self._address.topic}"

    def batch(self, spark: SparkSession, known: Ends) -> Batch:
        """Give the messages that are there now and were not ingested."""
        topic, ranges = self._ranges(spark, known)
        fresh = {number: found for number, found in ranges.items() if found.first < found.until}
        ends = json.dumps(
            {self._address.topic: {str(number): found.until for number, found in ranges.items()}}
        )
        options = {**self._options(ranges), "endingOffsets": ends}
        parallel = {"minPartitions": str(spark.sparkContext.defaultParallelism)}
        frame = spark.read.format("kafka").options(**options, **parallel).load()
        return Batch(
            labelled(load_lines(lines_of(frame)), self._cluster),
            sum(found.until - found.first for found in fresh.values()) * EVENT_BYTES,
            len(fresh),
            {f"{topic}/{number}": found.until for number, found in fresh.items()},
            notes=[
                f"{found.expired} messages of {self._address.topic}, partition {number}, expired before they were "
                f"taken: keep the topic longer, or ingest more often"
                for number, found in ranges.items()
                if found.expired
            ],
        )

    def stream(self, spark: SparkSession, known: Ends) -> DataFrame:
        """Give the messages that bronze does not have yet; if there is a checkpoint, those after it instead."""
        _, ranges = self._ranges(spark, known)
        options = {**self._options(ranges), "maxOffsetsPerTrigger": str(OFFSETS_PER_TURN)}
        return spark.readStream.format("kafka").options(**options).load()

    def batch_of(self, frame: DataFrame, known: Ends) -> Batch:
        """Take one turn's messages; the place in the topic is kept by the stream's checkpoint, not beside bronze."""
        count = frame.count()
        parts = frame.select("partition").distinct().count() if count else 0
        return Batch(labelled(load_lines(lines_of(frame)), self._cluster), count * EVENT_BYTES, parts, {})

    def _ranges(self, spark: SparkSession, known: Ends) -> tuple[str, dict[int, Range]]:
        topic, spans = self._spans_of_topic(spark)
        places = {number: f"{topic}/{number}" for number in spans}
        return topic, ranges_to_read(
            spans, {number: known[place] for number, place in places.items() if place in known}
        )

    def _options(self, ranges: Mapping[int, Range]) -> dict[str, str]:
        begins = {str(number): found.first for number, found in ranges.items()}
        return {
            "startingOffsets": json.dumps({self._address.topic: begins}),
            "kafka.bootstrap.servers": self._address.brokers,
            "subscribe": self._address.topic,
            "includeHeaders": "true",
            # what expired meanwhile shows as a gap in its agent's sequence
            "failOnDataLoss": "false",
            **{f"kafka.{key}": value for key, value in self._client.items()},
        }

    def _spans_of_topic(self, spark: SparkSession) -> tuple[str, dict[int, Span]]:
        """Ask the brokers for the topic's id and its partitions' offsets.

        Raises:
            SourceError: no broker answers, or they refuse, or there is no such topic.
        """
        topic = self._address.topic
        question = partial(_described, topic=topic)
        return ask(spark, self._address.brokers, self._client, question, topic)


def ranges_to_read(spans: Mapping[int, Span], known: Mapping[int, int]) -> dict[int, Range]:
    """Decide what to read of each partition; `known` has the next offset to read."""
    found = {}
    for number, span in sorted(spans.items()):
        wanted = known.get(number, span.earliest)
        if wanted > span.latest:  # offsets went back: an unclean election of a leader
            wanted = span.earliest
        first = max(wanted, span.earliest)
        found[number] = Range(first, span.latest, first - wanted)
    return found


def lines_of(messages: DataFrame) -> DataFrame:
    """Make lines of messages, whatever the content mode.

    Input columns: topic, partition, offset, value, headers.
    Output columns: file (`topic/partition/offset`), line.
    """
    value = F.coalesce(F.col("value").cast("string"), F.lit(""))
    attributes = F.filter("headers", lambda header: header["key"].startswith("ce_"))
    is_binary = F.exists(attributes, lambda header: header["key"] == "ce_id")
    pairs = F.transform(
        attributes,
        lambda header: F.concat(
            _quoted(F.substr(header["key"], F.lit(4))), F.lit(":"), _quoted(header["value"].cast("string"))
        ),
    )
    joined = F.concat(F.lit("{"), F.array_join(pairs, ","), F.lit(',"data":'), value, F.lit("}"))
    return messages.select(
        F.concat_ws("/", "topic", "partition", "offset").alias("file"),
        F.when(F.coalesce(is_binary, F.lit(False)), joined).otherwise(value).alias("line"),
    )


def _quoted(text: Column) -> Column:
    """Write a text as JSON does."""
    return F.regexp_replace(F.to_json(F.array(text)), r"^\[|\]$", "")


def _described(gateway: Any, admin: Any, topic: str) -> tuple[str, dict[int, Span]]:
    names = gateway.java.util.ArrayList()
    names.add(topic)
    described = admin.describeTopics(names).allTopicNames().get()[topic]
    parts = [(topic, int(partition.partition())) for partition in described.partitions()]
    spec = gateway.org.apache.kafka.clients.admin.OffsetSpec
    earliest, latest = (offsets(gateway, admin, parts, one) for one in (spec.earliest(), spec.latest()))
    spans = {part[1]: Span(earliest[part], latest[part]) for part in parts}
    return f"kafka:{topic}/{described.topicId().toString()}", spans
