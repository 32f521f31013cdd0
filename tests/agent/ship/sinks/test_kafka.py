"""Options and messages of the Kafka sink; a real broker takes them in tests/delivery."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Record
from agent.delivery import ShipSettings, parse_target
from agent.errors import ConfigError
from agent.ship.sinks.kafka import messages, producer_config, properties
from tests.agent.ship.ship_support import AT_US, ORIGIN, heartbeat

TARGET = parse_target("kafka://a:9092,b:9092/events")


def test_options_come_from_files(tmp_path: Path) -> None:
    """Secrets beat the properties file, which beats our defaults; what delivery rests on is ours."""
    (tmp_path / "kafka.properties").write_text(
        "# security\nsecurity.protocol = SASL_SSL\n\nlinger.ms=50\nsasl.username=file\n"
    )
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "sasl.username").write_text("statewarden\n")
    (tmp_path / "secret" / "sasl.password").write_text("a=b\n")
    settings = ShipSettings(
        kafka_config=str(tmp_path / "kafka.properties"),
        credentials_dir=str(tmp_path / "secret"),
        ca_file="ca.pem",
        timeout_seconds=3,
    )
    config = producer_config(TARGET, settings)
    expected = {
        "bootstrap.servers": "a:9092,b:9092", "enable.idempotence": True, "acks": "all",
        "message.timeout.ms": 3_000, "security.protocol": "SASL_SSL", "ssl.ca.location": "ca.pem",
        "sasl.username": "statewarden", "sasl.password": "a=b", "linger.ms": "50",
    }  # fmt: skip
    assert {name: config[name] for name in expected} == expected


@pytest.mark.parametrize("line", ["enable.idempotence=false", "acks=0", "bootstrap.servers=x"])
def test_what_delivery_rests_on_cannot_be_set(tmp_path: Path, line: str) -> None:
    """These three are refused by name."""
    (tmp_path / "p").write_text(line)
    with pytest.raises(ConfigError, match="is set by statewarden itself"):
        producer_config(TARGET, ShipSettings(kafka_config=str(tmp_path / "p")))


def test_a_properties_file_is_checked(tmp_path: Path) -> None:
    """A line that is none is named by number; a missing file by path."""
    (tmp_path / "p").write_text("a=1\nnonsense\n")
    with pytest.raises(ConfigError, match="line 2: expected key=value"):
        properties(str(tmp_path / "p"))
    with pytest.raises(ConfigError, match="cannot read"):
        properties(str(tmp_path / "none"))
    assert properties("") == {}


def test_keys_name_application_and_task() -> None:
    """Without a task the application, without an application the pod; hostile names are only bytes."""
    bodies: list[dict[str, object]] = [
        {"application_id": "orders", "task_id": "0_1"},
        {"application_id": "orders"},
        {},
        {"application_id": "\udcff", "task_id": "0_1"},
    ]
    lines = [
        Encoder(ORIGIN).encode(Record(Kind.TRANSITION, AT_US, {"change": "task-held", **body}), n)
        for n, body in enumerate(bodies, 1)
    ]
    found = list(messages("\n".join(lines).encode(), binary=False))
    assert [key for key, _, _ in found] == [b"orders/0_1", b"orders", b"uid-1", b"\\udcff/0_1"]
    assert [value.decode() for _, value, _ in found] == lines


def test_binary_mode_splits_envelope_and_data() -> None:
    """Every attribute is a header; nothing of the event is lost."""
    line = Encoder(ORIGIN).encode(heartbeat(3), 1)
    ((_, value, headers),) = messages(line.encode(), binary=True)
    event = json.loads(line)
    assert json.loads(value) == event.pop("data")
    names = {f"ce_{name}": str(text).encode() for name, text in event.items() if name != "datacontenttype"}
    assert dict(headers) == {**names, "content-type": b"application/json"}
