"""Changelog topics: what brokers say of them, and their records as frames."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from spark_rollup.sources.brokers import Part, ask, cause_of, offsets

COLUMNS = ("topic", "partition", "offset", "key", "value", "timestamp")

_ABSENT = {"UnknownTopicOrPartitionException", "InvalidTopicException", "TopicAuthorizationException"}
_SETTINGS = ("retention.ms", "delete.retention.ms", "min.compaction.lag.ms")


@dataclass(frozen=True, slots=True)
class Ends:
    """Offsets of one partition."""

    earliest: int  # first that is still there
    committed: int  # first that is not there yet, or belongs to a transaction that has not ended
    latest: int  # first that is not there yet


@dataclass(frozen=True, slots=True)
class Topic:
    """What the brokers say of a topic."""

    ends: Mapping[int, Ends]
    settings: Mapping[str, int]
    """`retention.ms`, `delete.retention.ms`, `min.compaction.lag.ms`; empty = DescribeConfigs is refused."""


def describe(
    spark: SparkSession, brokers: str, client: Mapping[str, str], names: Sequence[str]
) -> dict[str, Topic]:
    """Ask for topics; those that are not there, or that these credentials may not see, are left out.

    Raises `SourceError`: no broker answers, or they refuse the credentials.
    """
    return ask(spark, brokers, client, lambda gateway, admin: _topics(gateway, admin, names))


def read(
    spark: SparkSession,
    brokers: str,
    client: Mapping[str, str],
    ranges: Mapping[Part, tuple[int, int]],
    *,
    committed: bool,
) -> DataFrame:
    """Give records from the first offset to the one before the last, by partition.

    Output columns: `COLUMNS`.
    """
    wanted = {part: ends for part, ends in ranges.items() if ends[0] < ends[1]}
    if not wanted:
        return spark.createDataFrame(
            [], "topic string, partition int, offset long, key binary, value binary, timestamp timestamp"
        )
    assigned: dict[str, list[int]] = defaultdict(list)
    begins: dict[str, dict[str, int]] = defaultdict(dict)
    ends: dict[str, dict[str, int]] = defaultdict(dict)
    for (topic, number), (first, until) in sorted(wanted.items()):
        assigned[topic].append(number)
        begins[topic][str(number)], ends[topic][str(number)] = first, until
    options = {
        "kafka.bootstrap.servers": brokers,
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(begins),
        "endingOffsets": json.dumps(ends),
        "failOnDataLoss": "true",  # a record that is lost on the way would look like one that a store should not have
        "minPartitions": str(spark.sparkContext.defaultParallelism),
        **{f"kafka.{key}": value for key, value in client.items()},
        "kafka.isolation.level": "read_committed" if committed else "read_uncommitted",
    }
    return spark.read.format("kafka").options(**options).load().select(*COLUMNS)


def _topics(gateway: Any, admin: Any, names: Sequence[str]) -> dict[str, Topic]:
    asked = gateway.java.util.ArrayList()
    for name in names:
        asked.add(name)
    futures = admin.describeTopics(asked).topicNameValues()
    parts: dict[str, list[int]] = {}
    for name in names:
        try:
            found = futures[name].get()
            parts[name] = [int(one.partition()) for one in found.partitions()]
        except Py4JJavaError as error:
            if cause_of(error)[0] not in _ABSENT:
                raise
    everywhere = [(name, number) for name, numbers in parts.items() for number in numbers]
    offset_spec = gateway.org.apache.kafka.clients.admin.OffsetSpec
    earliest = offsets(gateway, admin, everywhere, offset_spec.earliest())
    latest = offsets(gateway, admin, everywhere, offset_spec.latest())
    committed = offsets(gateway, admin, everywhere, offset_spec.latest(), "READ_COMMITTED")
    return {
        name: Topic(
            {
                number: Ends(earliest[name, number], committed[name, number], latest[name, number])
                for number in numbers
            },
            _settings(gateway, admin, name),
        )
        for name, numbers in parts.items()
    }


def _settings(gateway: Any, admin: Any, topic: str) -> dict[str, int]:
    config = gateway.org.apache.kafka.common.config.ConfigResource
    resource = config(config.Type.valueOf("TOPIC"), topic)
    asked = gateway.java.util.ArrayList()
    asked.add(resource)
    try:
        answered = admin.describeConfigs(asked).values()[resource].get()
    except Py4JJavaError as error:
        if cause_of(error)[0] == "TopicAuthorizationException":
            return {}
        raise
    return {name: int(answered.get(name).value()) for name in _SETTINGS}
