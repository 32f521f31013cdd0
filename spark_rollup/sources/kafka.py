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


Span = tuple[int, int]
"""Offsets of one partition: the first that is still there, and the first that is not there yet."""


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets to read from one partition, half-open; `expired` of those not read are gone already."""

    first: int
    until: int
    expired: int


class KafkaSource:
    """One topic."""

    def __init__(self, address: TopicAddress, client: Mapping[str, str], cluster: str | None = None) -> None:
        """Name it; `client` has settings of Kafka's Java client, `cluster` is that of its events (None = unsaid)."""
        self._address, self._client, self._cluster = address, client, cluster

    def batch(self, spark: SparkSession, known: Ends) -> Batch:
        """Give the messages that are there now and were not ingested.

        Raises:
            SourceError: no broker answers, or they refuse, or there is no such topic.
        """
        name, brokers = self._address.topic, self._address.brokers
        topic, spans = ask(spark, brokers, self._client, partial(_described, topic=name), name)
        taken = {number: known[place] for number in spans if (place := f"{topic}/{number}") in known}
        ranges = ranges_to_read(spans, taken)
        fresh = {number: found for number, found in ranges.items() if found.first < found.until}
        options = {
            "kafka.bootstrap.servers": brokers,
            "subscribe": name,
            "startingOffsets": json.dumps({name: {str(number): x.first for number, x in ranges.items()}}),
            "endingOffsets": json.dumps({name: {str(number): x.until for number, x in ranges.items()}}),
            "minPartitions": str(spark.sparkContext.defaultParallelism),
            "includeHeaders": "true",
            # what expired meanwhile shows as a gap in its agent's sequence
            "failOnDataLoss": "false",
            **{f"kafka.{key}": value for key, value in self._client.items()},
        }
        return Batch(
            labelled(
                load_lines(lines_of(spark.read.format("kafka").options(**options).load())), self._cluster
            ),
            sum(found.until - found.first for found in fresh.values()) * EVENT_BYTES,
            {f"{topic}/{number}": found.until for number, found in fresh.items()},
            notes=[
                f"{found.expired} messages of {name}, partition {number}, expired before they were "
                f"taken: keep the topic longer, or ingest more often"
                for number, found in ranges.items()
                if found.expired
            ],
        )


def ranges_to_read(spans: Mapping[int, Span], known: Mapping[int, int]) -> dict[int, Range]:
    """Decide what to read of each partition; `known` has the next offset to read."""
    found = {}
    for number, (earliest, latest) in sorted(spans.items()):
        wanted = known.get(number, earliest)
        if wanted > latest:  # offsets went back: an unclean election of a leader
            wanted = earliest
        first = max(wanted, earliest)
        found[number] = Range(first, latest, first - wanted)
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
    spans = {part[1]: (earliest[part], latest[part]) for part in parts}
    return f"kafka:{topic}/{described.topicId().toString()}", spans
