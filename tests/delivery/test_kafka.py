"""The Kafka sink against a real broker; the reader is the console consumer of the Kafka distribution."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Record
from agent.delivery import ShipSettings
from agent.errors import PermanentShipError, RetryableShipError
from agent.ship.shipper import Outcome, Shipper
from agent.ship.sinks.base import make_sink
from deploy.demo.agents import free_port
from tests.agent.ship.ship_support import AT_US, ORIGIN, HandClock, finding, heartbeat, open_spool
from tests.delivery.servers import Broker

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(600)]
SHOWN = (
    "--property",
    "print.key=true",
    "--property",
    "print.headers=true",
    "--property",
    "headers.separator=|",
)


def rows(text: str) -> list[tuple[dict[str, str], str, str]]:
    """Take the console consumer's lines apart: headers, key, value."""
    found = []
    for line in text.splitlines():
        headers, key, value = line.split("\t")
        pairs = [header.split(":", 1) for header in headers.split("|")]
        assert all(len(pair) == 2 for pair in pairs), line
        found.append((dict(pairs), key, value))
    return found


def test_structured_events_arrive_with_key_and_content_type(broker: Broker, tmp_path: Path) -> None:
    """The value is the event itself, the key names application and task, or the pod."""
    topic, clock = broker.make_topic(), HandClock()
    task = {"application_id": "orders", "task_id": "0_1", "change": "task-held"}
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        spool.append(Record(Kind.TRANSITION, AT_US, task))
        spool.seal()
        shipper = Shipper(spool, make_sink(f"kafka://{broker.address}/{topic}", ShipSettings(), None))
        assert shipper.ship_once(clock.at_s) is Outcome.SHIPPED
    found = rows(broker.consume(topic, *SHOWN, count=2))
    assert {key for _, key, _ in found} == {"uid-1", "orders/0_1"}
    assert {row[0]["content-type"] for row in found} == {"application/cloudevents+json; charset=utf-8"}
    by_key = {key: json.loads(value) for _, key, value in found}
    assert by_key["orders/0_1"]["data"]["change"] == "task-held"
    assert json.dumps(by_key["uid-1"], separators=(",", ":")) == Encoder(ORIGIN).encode(heartbeat(), 1)


def test_binary_events_carry_their_attributes_as_headers(broker: Broker) -> None:
    """Every attribute of the envelope is a header, the value is the event's data."""
    topic, line = broker.make_topic(), Encoder(ORIGIN).encode(finding(), 1)
    sink = make_sink(f"kafka://{broker.address}/{topic}", ShipSettings(content_mode="binary"), None)
    sink.put("uid-1/b-1-1", line.encode() + b"\n")
    ((headers, key, value),) = rows(broker.consume(topic, *SHOWN, count=1))
    event = json.loads(line)
    assert json.loads(value) == event.pop("data")
    assert headers.pop("content-type") == event.pop("datacontenttype")
    assert headers == {f"ce_{name}": text for name, text in event.items()}
    assert key == "uid-1"


def test_a_message_that_the_topic_never_takes_is_permanent(broker: Broker) -> None:
    """Too large for the topic: no retry can help, and the message says what can."""
    topic = broker.make_topic(max_message_bytes="2000", compression_type="uncompressed")
    sink = make_sink(f"kafka://{broker.address}/{topic}", ShipSettings(), None)
    detail = "".join(uuid.uuid4().hex for _ in range(200))  # does not compress
    line = Encoder(ORIGIN).encode(
        Record(Kind.TRANSITION, AT_US, {"change": "task-held", "detail": detail}), 1
    )
    with pytest.raises(PermanentShipError, match=r"MSG_SIZE_TOO_LARGE.*max\.message\.bytes"):
        sink.put("uid-1/b-1-1", line.encode() + b"\n")


def test_a_missing_topic_is_retryable(broker: Broker) -> None:
    """Topics are made by people; until then everything stays in the spool, and then it goes."""
    topic = f"later-{uuid.uuid4().hex[:8]}"
    sink = make_sink(f"kafka://{broker.address}/{topic}", ShipSettings(timeout_seconds=2), None)
    line = Encoder(ORIGIN).encode(heartbeat(), 1).encode() + b"\n"
    with pytest.raises(RetryableShipError, match="1 of 1 messages"):
        sink.put("uid-1/b-1-1", line)
    broker.make_topic(topic)
    sink.put("uid-1/b-1-1", line)
    assert broker.consume(topic, count=1).splitlines() == [line.decode().rstrip()]


def test_a_broker_that_is_away_is_retryable(broker: Broker) -> None:
    """Nobody listens: told with the reason, within the time-out."""
    sink = make_sink(f"kafka://127.0.0.1:{free_port()}/x", ShipSettings(timeout_seconds=1), None)
    for _ in range(2):  # the second attempt has a fresh producer
        with pytest.raises(RetryableShipError, match=r"1 of 1 messages.*(refused|down)"):
            sink.put("uid-1/b-1-1", Encoder(ORIGIN).encode(heartbeat(), 1).encode() + b"\n")
