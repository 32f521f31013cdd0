"""The Kafka sink: one message per event, idempotent, acknowledged by all replicas. Sole importer of confluent_kafka.

Key: `<application>/<task>`, so that the events of a task stay in order; events of no task have the pod's uid.
CloudEvents travel structured (the value is the event) or binary (headers `ce_...`, the value is its data).
A segment that is sent again repeats its messages under the same event ids: readers drop repeated ids.

Source:
    CloudEvents Kafka protocol binding 1.0.2, sections 3.2 and 3.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.delivery import ShipSettings, Target
from agent.errors import ConfigError, PermanentShipError, RetryableShipError
from agent.ship.sinks.base import FIX_DELAY_S, read_secrets, read_text

STRUCTURED_TYPE = b"application/cloudevents+json; charset=utf-8"
POLL_S = 0.1
_OWN_KEYS = frozenset({"bootstrap.servers", "enable.idempotence", "acks"})
_PERMANENT = ("MSG_SIZE_TOO_LARGE", "INVALID_MSG", "INVALID_MSG_SIZE", "INVALID_RECORD")
_FIXABLE = (
    "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "SASL_AUTHENTICATION_FAILED",
    "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_AUTHENTICATION",
)  # fmt: skip
_ATTRIBUTES = ("specversion", "id", "source", "type", "subject", "time", "dataschema")


class KafkaSink:
    """Produces the events of a segment and waits for every delivery report."""

    def __init__(self, target: Target, settings: ShipSettings) -> None:
        """Load the library and check the options; no broker is asked.

        Raises `ConfigError`: the library is not installed, or an option is wrong.
        """
        try:
            import confluent_kafka
        except ImportError as error:
            raise ConfigError(
                f"ship_to {target.url} needs confluent-kafka: pip install 'statewarden[{target.kind.extra}]' ({error})"
            ) from error
        self._kafka, self._target, self._settings = confluent_kafka, target, settings
        self._binary = settings.content_mode == "binary"
        self._permanent, self._fixable = (
            frozenset(getattr(confluent_kafka.KafkaError, name) for name in names)
            for names in (_PERMANENT, _FIXABLE)
        )
        self._last_error = ""
        self._producer: Any = self._connect()

    def put(self, name: str, payload: bytes) -> None:
        """Produce a segment's events; returns when the brokers have all of them. See `Sink.put`.

        Raises `RetryableShipError`: a broker refuses or cannot be reached, or the time is up. Raises
        `PermanentShipError`: a message is one that this topic never takes.
        """
        if self._producer is None:
            self._producer = self._connect_again()
        self._last_error = ""
        failures: list[Any] = []
        acknowledged = [0]

        def report(error: Any, message: Any) -> None:
            acknowledged[0] += 1
            if error is not None:
                failures.append(error)

        wanted = 0
        for key, value, headers in messages(payload, binary=self._binary):
            self._produce(key, value, headers, report)
            wanted += 1
        left = self._producer.flush(self._settings.timeout_seconds)
        if left or acknowledged[0] < wanted:
            self._drop_producer()
            text = f"{name}: {left} of {wanted} messages without a report in time{self._last_error}"
            raise RetryableShipError(text)
        if failures:
            self._refuse(name, failures, wanted)

    def _produce(self, key: bytes, value: bytes, headers: list[tuple[str, bytes]], report: Any) -> None:
        while True:
            try:
                self._producer.produce(self._target.name, value, key, headers=headers, on_delivery=report)
            except BufferError:
                self._producer.poll(POLL_S)  # the queue is full: it sends; each message has its own time-out
            except self._kafka.KafkaException as error:
                report(error.args[0], None)
                return
            else:
                self._producer.poll(0)
                return

    def _refuse(self, name: str, failures: list[Any], wanted: int) -> None:
        first = failures[0]
        text = (
            f"{name}: {len(failures)} of {wanted} messages: {first.str()} ({first.name()}){self._last_error}"
        )
        if any(error.fatal() for error in failures):
            self._drop_producer()  # an idempotent producer that lost count never recovers
        permanent = [error for error in failures if error.code() in self._permanent]
        if permanent and len(permanent) == len(failures):
            raise PermanentShipError(f"{text}; raise the topic's max.message.bytes and statewarden's")
        delay_s = FIX_DELAY_S if first.code() in self._fixable else 1.0
        raise RetryableShipError(text, delay_s)

    def _remember(self, error: Any) -> None:
        self._last_error = f"; {error.str()}"

    def _drop_producer(self) -> None:
        self._producer.purge()
        self._producer = None

    def _connect_again(self) -> Any:
        try:
            return self._connect()
        except ConfigError as error:
            raise RetryableShipError(str(error), FIX_DELAY_S) from error

    def _connect(self) -> Any:
        try:
            config = producer_config(self._target, self._settings)
            return self._kafka.Producer({**config, "error_cb": self._remember})
        except (self._kafka.KafkaException, ValueError, TypeError) as error:
            reason = error.args[0].str() if isinstance(error, self._kafka.KafkaException) else error
            raise ConfigError(f"ship_to {self._target.url}: {reason}") from error


def make(target: Target, settings: ShipSettings, state_directory: Path | None) -> KafkaSink:
    """Make the sink of a target; see `Make`."""
    return KafkaSink(target, settings)


def producer_config(target: Target, settings: ShipSettings) -> dict[str, Any]:
    """Join the options: ours, those of the properties file, and secrets from files.

    Raises `ConfigError`: a file cannot be read, or sets what delivery rests on.
    """
    timeout_ms = max(1_000, int(settings.timeout_seconds * 1_000))
    config: dict[str, Any] = {
        "client.id": "statewarden",
        "linger.ms": 5,
        "compression.type": "gzip",
        "message.timeout.ms": timeout_ms,
        "reconnect.backoff.max.ms": 10_000,
        "log_level": 2,  # what fails is reported by the shipper, once per attempt
    }
    if settings.ca_file:
        config |= {"security.protocol": "ssl", "ssl.ca.location": settings.ca_file}
    given = {**properties(settings.kafka_config), **read_secrets(settings.credentials_dir)}
    taken = sorted(given.keys() & _OWN_KEYS)
    if taken:
        raise ConfigError(f"{taken[0]} is set by statewarden itself; delivery without loss rests on it")
    return config | given | {"bootstrap.servers": target.place, "enable.idempotence": True, "acks": "all"}


def properties(path: str) -> dict[str, str]:
    """Read `key=value` lines; `#` begins a comment line. Empty without a path.

    Raises `ConfigError`: the file cannot be read, or a line is something else.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines() if path else [], 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{path}, line {number}: expected key=value")
        found[key.strip()] = value.strip()
    return found


def messages(payload: bytes, *, binary: bool) -> Iterator[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Make key, value and headers of every event in a segment."""
    for line in payload.splitlines():
        event = json.loads(line)
        data = event["data"]
        place = "/".join(str(data[name]) for name in ("application_id", "task_id") if data.get(name))
        key = (place or str(data["pod_uid"])).encode("utf-8", "backslashreplace")
        if not binary:
            yield key, line, [("content-type", STRUCTURED_TYPE)]
            continue
        headers = [(f"ce_{name}", _header(event[name])) for name in _ATTRIBUTES if name in event]
        headers.append(("content-type", _header(event["datacontenttype"])))
        yield key, json.dumps(data, separators=(",", ":")).encode("ascii"), headers


def _header(value: object) -> bytes:
    return str(value).encode("utf-8", "backslashreplace")
