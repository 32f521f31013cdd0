"""Read a partition of a changelog: assigned, never subscribed; nothing is committed to a group.

Sole importer of confluent_kafka beside the sinks.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.errors import UnreadError, UsageError
from agent.verify.kinds import Headers
from agent.verify.stores import INSTALL

BATCH = 5_000
POLL_S = 0.2
TIMEOUT_S = 15.0
QUEUE_KIB = 16_384
"""What may wait to be read, so that memory is bounded; librdkafka's default is four times as much."""
SILENT_POLLS = 150
"""Give up after so many polls in a row without a record: half a minute."""

_OURS = (
    "group.id",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "isolation.level",
)


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `value` None = tombstone."""

    offset: int
    at_ms: int
    key: bytes
    value: bytes | None
    headers: Headers


class Changelogs:
    """A cluster, for a client that may read changelogs and nothing else."""

    def __init__(self, servers: str, properties: Mapping[str, str]) -> None:
        """Load the library; no broker is asked.

        `servers`: `host:port,...`. `properties`: more settings, by librdkafka's names. Raises `UsageError`: the library
        is not installed, or a setting is wrong.
        """
        try:
            import confluent_kafka
            import confluent_kafka.admin
        except ImportError as error:
            raise UsageError(f"verify needs confluent-kafka: {INSTALL} ({error})") from error
        taken = sorted(set(_OURS) & set(properties))
        if taken:
            raise UsageError(f"{taken[0]} is set by verify itself; take it out of --client-config")
        self._kafka = confluent_kafka
        self._servers = servers
        self._last_error = ""
        self._settings = {
            "client.id": "statewarden-verify",
            "log_level": 2,  # what fails is said once, by us
            "queued.max.messages.kbytes": QUEUE_KIB,
            **properties,
            "bootstrap.servers": servers,
            "error_cb": self._remember,
        }
        self._reader = self._consumer(committed=False)

    def close(self) -> None:
        """Leave the cluster."""
        self._reader.close()

    def topics(self, prefix: str) -> set[str]:
        """Return the topics that begin so and may be seen. Raises `UsageError`: no broker answers."""
        return {
            name
            for name in self._asked(self._reader.list_topics, timeout=TIMEOUT_S).topics
            if name.startswith(prefix)
        }

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has.

        Raises `UsageError`: no broker answers, the topic is not there, or may not be described.
        """
        return len(self._described(topic).partitions)

    def range(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset that is there, and the one behind the last.

        Raises `UsageError`: no broker answers, the topic or partition is not there, or may not be described.
        """
        found = self._described(topic)
        if partition not in found.partitions:
            raise UsageError(f"{topic} has {len(found.partitions)} partitions, none is {partition}")
        place = self._kafka.TopicPartition(topic, partition)
        first, end = self._asked(self._reader.get_watermark_offsets, place, timeout=TIMEOUT_S)
        return first, end

    def _described(self, topic: str) -> Any:
        found = self._asked(self._reader.list_topics, topic, timeout=TIMEOUT_S).topics[topic]
        self._refuse(found.error, topic)
        return found

    def settings(self, topic: str) -> dict[str, str] | None:
        """Return a topic's settings; None where they may not be described. Raises `UsageError`: no broker answers."""
        admin = self._kafka.admin
        client = admin.AdminClient({name: x for name, x in self._settings.items() if name != "error_cb"})
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
        try:
            (future,) = client.describe_configs([resource], request_timeout=TIMEOUT_S).values()
            return {name: entry.value for name, entry in future.result().items()}
        except self._kafka.KafkaException as error:
            if error.args[0].code() == self._kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return None
            raise self._trouble(error.args[0]) from error

    def read(
        self, topic: str, partition: int, start: int, end: int, *, committed: bool
    ) -> Generator[list[Record], None, None]:
        """Read records from offset `start` up to, not including, `end`, in batches, however long the log grows.

        Raises `UsageError`: a broker refuses, or answers no more.
        """
        if start >= end:
            return
        consumer = self._consumer(committed=committed)
        try:
            consumer.assign([self._kafka.TopicPartition(topic, partition, start)])
            yield from self._batches(consumer, topic, end)
        finally:
            consumer.close()

    def _batches(self, consumer: Any, topic: str, end: int) -> Generator[list[Record], None, None]:
        silent = 0
        while silent < SILENT_POLLS:
            messages = self._asked(consumer.consume, BATCH, POLL_S)
            silent = 0 if messages else silent + 1
            batch, is_end = [], False
            for message in messages:
                error = message.error()
                if error is not None:
                    is_end |= error.code() == self._kafka.KafkaError._PARTITION_EOF
                    self._refuse(None if is_end or self._is_of_group(error) else error, topic)
                elif message.offset() >= end:
                    is_end = True
                elif message.key() is not None:
                    batch.append(_record(message))
            if batch:
                yield batch
            if is_end or (batch and batch[-1].offset == end - 1):
                return
        raise UnreadError(f"{topic}: {self._servers} answers no more{self._last_error}")

    def _is_of_group(self, error: Any) -> bool:
        """Nothing is asked of the group, so its rights do not matter."""
        return bool(error.code() == self._kafka.KafkaError.GROUP_AUTHORIZATION_FAILED)

    def _consumer(self, *, committed: bool) -> Any:
        settings = self._settings | {
            "group.id": "statewarden-verify",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
        try:
            return self._kafka.Consumer(settings)
        except (self._kafka.KafkaException, ValueError, TypeError) as error:
            reason = error.args[0].str() if isinstance(error, self._kafka.KafkaException) else error
            raise UsageError(f"client settings: {reason}") from error

    def _asked(self, question: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return question(*arguments, **named)
        except self._kafka.KafkaException as error:
            raise self._trouble(error.args[0]) from error

    def _refuse(self, error: Any, topic: str) -> None:
        if error is None:
            return
        kinds = self._kafka.KafkaError
        if error.code() in (kinds.UNKNOWN_TOPIC_OR_PART, kinds._UNKNOWN_TOPIC):
            raise UnreadError(f"{topic}: no such topic, or no right to describe it")
        if error.code() == kinds.TOPIC_AUTHORIZATION_FAILED:
            raise UnreadError(f"{topic}: not authorized; grant Read and Describe on the topic")
        raise self._trouble(error)

    def _trouble(self, error: Any) -> UsageError:
        self._reader.poll(0)  # what the connection's end said is handed over here
        return UnreadError(f"{self._servers}: {error.str()}{self._last_error}")

    def _remember(self, error: Any) -> None:
        self._last_error = f"; {error.str()}"


def _record(message: Any) -> Record:
    value = message.value()
    return Record(
        message.offset(),
        message.timestamp()[1],
        message.key(),
        value,
        message.headers() or () if value is not None else (),
    )
