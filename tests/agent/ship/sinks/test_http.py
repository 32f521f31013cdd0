"""The HTTP sink: batches, answers of each class, tokens; TLS is tested with a real certificate in tests/delivery."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from agent.delivery import ShipSettings, parse_target
from agent.errors import ConfigError, PermanentShipError, RetryableShipError
from agent.ship.sinks.http import BATCH_BYTES, BATCH_EVENTS, HttpSink, batches
from tests.support.collector import Collector, collecting

PLAIN = ShipSettings(allow_http=True)


def payload(count: int, size_bytes: int = 0) -> bytes:
    return b"".join(b'{"n":%d,"x":"%s"}\n' % (n, b"x" * size_bytes) for n in range(count))


def sink_of(collector: Collector, settings: ShipSettings = PLAIN) -> HttpSink:
    return HttpSink(parse_target(collector.url), settings)


def test_events_arrive_in_order_in_batches() -> None:
    """Every event once, in order, as CloudEvents batches under the path of the address."""
    with collecting() as collector:
        sink_of(collector).put("u/b-1-1200", payload(1_200))
    assert [event["n"] for event in collector.events] == list(range(1_200))
    assert len(collector.requests) == 3
    assert {x["Content-Type"] for x in collector.requests} == {
        "application/cloudevents-batch+json; charset=utf-8"
    }
    assert {x["path"] for x in collector.requests} == {"/v1/events"}
    assert "Authorization" not in collector.requests[0]


@pytest.mark.parametrize("status", [400, 415, 422])
def test_what_the_collector_never_takes_is_permanent(status: int) -> None:
    """It has read the events and refuses them."""
    with collecting() as collector:
        collector.answers = [status]
        with pytest.raises(PermanentShipError, match=f"the collector answered {status}"):
            sink_of(collector).put("u/b-1-1", payload(1))


@pytest.mark.parametrize(
    ("status", "delay_s"), [(401, 60), (403, 60), (404, 60), (408, 1), (429, 1), (500, 1), (503, 1), (302, 1)]
)
def test_everything_else_is_retryable(status: int, delay_s: float) -> None:
    """What somebody must fix is asked for seldom, what passes soon; nothing is followed elsewhere."""
    with collecting() as collector:
        collector.answers = [status]
        with pytest.raises(RetryableShipError, match=f"the collector answered {status}") as caught:
            sink_of(collector).put("u/b-1-1", payload(1))
        assert caught.value.delay_s == delay_s


@pytest.mark.parametrize(
    ("told", "delay_s"), [("7", 7), ("100000", 300), ("Wed, 21 Oct 2026 07:28:00 GMT", 1)]
)
def test_retry_after_is_followed(told: str, delay_s: float) -> None:
    """In seconds, up to five minutes; a date is left to the shipper's own delay."""
    with collecting() as collector:
        collector.answers, collector.headers = [503], {"Retry-After": told}
        with pytest.raises(RetryableShipError) as caught:
            sink_of(collector).put("u/b-1-1", payload(1))
        assert caught.value.delay_s == delay_s


def test_a_batch_that_is_too_large_is_halved() -> None:
    """Until it fits, in order; an event that never fits is permanent."""
    with collecting() as collector:
        collector.most_bytes = 300
        sink_of(collector).put("u/b-1-20", payload(20, 50))
        assert [event["n"] for event in collector.events] == list(range(20))
        with pytest.raises(PermanentShipError, match="413"):
            sink_of(collector).put("u/b-1-1", payload(1, 400))


def test_a_failure_in_the_middle_sends_all_again() -> None:
    """The segment is acknowledged only as a whole; readers drop repeated ids."""
    with collecting() as collector:
        collector.answers = [202, 503]
        sink = sink_of(collector)
        with pytest.raises(RetryableShipError):
            sink.put("u/b-1-600", payload(600))
        sink.put("u/b-1-600", payload(600))
    assert {event["n"] for event in collector.events} == set(range(600))


def test_no_server_listens() -> None:
    """A refused connection is retryable."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        sink = HttpSink(parse_target(f"http://127.0.0.1:{port}/"), PLAIN)
        with pytest.raises(RetryableShipError, match="ConnectionRefusedError"):
            sink.put("u/b-1-1", payload(1))


def test_files_are_checked_at_the_start(tmp_path: Path) -> None:
    """A token or certificates that cannot be read stop the start, with the path."""
    target = parse_target("https://example.com/")
    with pytest.raises(ConfigError, match=r"cannot read .*token: No such file"):
        HttpSink(target, ShipSettings(token_file=str(tmp_path / "token")))
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(ConfigError, match="no certificates can be read"):
        HttpSink(target, ShipSettings(ca_file=str(tmp_path / "ca.crt")))


def test_batches_hold_their_limits() -> None:
    """By number, by size; a line that is larger than a batch stands alone."""
    assert [len(x) for x in batches([b"x"] * (BATCH_EVENTS + 1))] == [BATCH_EVENTS, 1]
    large = b"x" * (BATCH_BYTES + 1)
    assert [len(x) for x in batches([b"a", large, b"b"])] == [1, 1, 1]
    half = b"x" * (BATCH_BYTES // 2)
    assert [len(x) for x in batches([half, half, half])] == [1, 1, 1]
    assert batches([]) == []
    assert json.loads(b"[" + b",".join(batches([b"1", b"2"])[0]) + b"]") == [1, 2]
