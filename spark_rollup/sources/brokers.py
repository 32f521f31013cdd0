"""Questions to brokers by Kafka's own Java client, which came with the jars for Spark; what goes wrong in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_rollup.errors import SourceError

PATIENCE_MS = 10_000
"""Longest wait for the brokers' first answer, milliseconds."""

_API_TIMEOUT = "default.api.timeout.ms"

Answer = TypeVar("Answer")

Part = tuple[str, int]
"""Topic and partition."""


def ask(
    spark: SparkSession,
    brokers: str,
    client: Mapping[str, str],
    question: Callable[[Any, Any], Answer],
    topic: str = "",
) -> Answer:
    """Ask something of the brokers by Kafka's admin client; `topic` is for messages, empty = several.

    Raises `SourceError`: no broker answers, or they refuse, or there is no such topic.
    """
    gateway: Any = spark._jvm
    settings = gateway.java.util.Properties()
    patience = {_API_TIMEOUT: str(PATIENCE_MS), "request.timeout.ms": str(PATIENCE_MS)}
    given = {**patience, **client, "bootstrap.servers": brokers}
    for key, value in given.items():
        settings.setProperty(key, value)
    try:
        admin = gateway.org.apache.kafka.clients.admin.AdminClient.create(settings)
        try:
            return question(gateway, admin)
        finally:
            admin.close()
    except Py4JJavaError as error:
        raise SourceError(_explained(brokers, topic, given[_API_TIMEOUT], error)) from error


def offsets(
    gateway: Any, admin: Any, parts: Sequence[Part], spec: Any, isolation: str = "READ_UNCOMMITTED"
) -> dict[Part, int]:
    """Ask for an offset (`spec`: earliest or latest) of each partition."""
    kafka = gateway.org.apache.kafka
    asked = gateway.java.util.HashMap()
    named = {part: kafka.common.TopicPartition(*part) for part in parts}
    for partition in named.values():
        asked.put(partition, spec)
    level = kafka.common.IsolationLevel.valueOf(isolation)
    answered = admin.listOffsets(asked, kafka.clients.admin.ListOffsetsOptions(level))
    return {
        part: int(answered.partitionResult(partition).get().offset()) for part, partition in named.items()
    }


def cause_of(error: Py4JJavaError) -> tuple[str, str]:
    """Give the class and the words of what went wrong first."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getClass().getSimpleName()), " ".join(str(cause.getMessage()).split())[:300]


def _explained(brokers: str, topic: str, patience_ms: str, error: Py4JJavaError) -> str:
    name, why = cause_of(error)
    where = f"kafka://{brokers}/{topic}".removesuffix("/")
    match name:
        case "UnknownTopicOrPartitionException" | "InvalidTopicException":
            return f"{where}: the brokers have no topic {topic} (or these credentials may not see it)"
        case "TimeoutException" | "DisconnectException":
            return (
                f"{where}: no broker answered within {int(patience_ms) // 1000} s ({why}); are host and port "
                f"right, and do these brokers require TLS or SASL (--kafka-config)?"
            )
        case "ConfigException":
            return f"{where}: the settings for Kafka's client are not usable: {why}"
    if "Auth" in name or "Ssl" in name or "SSL" in name:
        return f"{where}: the brokers refuse the credentials ({name}: {why}); see --kafka-config"
    return f"{where}: {name}: {why}"
