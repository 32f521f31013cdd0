"""Hours of trouble in virtual time: sinks that are away or slow, clocks that step. Nothing is lost, and it is told."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.errors import PermanentShipError, RetryableShipError
from agent.publish.catalogue import oldest_age
from agent.publish.snapshot import MetricsSnapshot
from agent.ship.shipper import MAX_DELAY_S, Outcome, Shipper
from agent.ship.spool import Spool
from tests.agent.ship.ship_support import HandClock, json_lines, open_spool, transition

HOUR_S = 3_600
TURN_S = 5


class VirtualSink:
    """Takes or refuses."""

    def __init__(self, clock: HandClock, judge: Callable[[float], Exception | None]) -> None:
        self._clock, self._judge = clock, judge
        self.attempts_s: list[float] = []
        self.events: list[int] = []

    def put(self, name: str, payload: bytes) -> None:
        """Follow the judge, who is asked with the time."""
        self.attempts_s.append(self._clock.at_s)
        failure = self._judge(self._clock.at_s)
        if failure is not None:
            raise failure
        self.events += [event["data"]["sequence"] for event in json_lines(payload)]


@pytest.fixture
def spool(tmp_path: Path, clock: HandClock) -> Iterator[Spool]:
    with open_spool(tmp_path / "spool", clock) as made:
        yield made


def live(spool: Spool, shipper: Shipper, clock: HandClock, seconds: int) -> None:
    """Live through some time as the agent does: a record and a turn of the shipper every few seconds."""
    until_s = clock.at_s + seconds
    while clock.at_s < until_s:
        clock.at_s += TURN_S
        spool.append(transition(100, int(clock.at_s * 1_000_000)))
        spool.maintain()
        while shipper.ship_once(clock.at_s) in (Outcome.SHIPPED, Outcome.PERMANENT):
            pass


def age_s(spool: Spool, clock: HandClock) -> float:
    """Tell the age of the oldest record that waits, as the metric does."""
    return oldest_age(MetricsSnapshot(spool=spool.stats(), heartbeat_at_us=clock.now_us()))


def test_a_sink_that_is_down_for_an_hour(spool: Spool, clock: HandClock) -> None:
    """It is asked seldom, the age of what waits grows to the hour, and afterwards all of it arrives in order."""
    up_s = clock.at_s + HOUR_S
    sink = VirtualSink(clock, lambda at_s: None if at_s >= up_s else RetryableShipError("down"))
    shipper = Shipper(spool, sink, jitter=random.Random(1))
    live(spool, shipper, clock, HOUR_S - TURN_S)
    assert 15 <= len(sink.attempts_s) <= 40
    assert age_s(spool, clock) > HOUR_S - 60
    assert (
        max(b - a for a, b in zip(sink.attempts_s, sink.attempts_s[1:], strict=False)) <= MAX_DELAY_S + TURN_S
    )
    live(spool, shipper, clock, int(MAX_DELAY_S) + 60)
    assert sink.events == list(range(1, len(sink.events) + 1))
    assert spool.stats().records < 30
    assert age_s(spool, clock) < 60
    assert spool.stats().dropped == {}


def test_a_sink_that_fails_in_every_way(spool: Spool, clock: HandClock) -> None:
    """What it refuses for good is announced, everything else arrives, whatever class of errors comes between."""
    chance, faults = (
        random.Random(3),
        [RetryableShipError("busy", 5), PermanentShipError("never"), OSError("bug")],
    )
    sink = VirtualSink(clock, lambda at_s: chance.choice([None, None, *faults]))
    shipper = Shipper(spool, sink, jitter=random.Random(1))
    live(spool, shipper, clock, HOUR_S)
    assert set(shipper.stats().failures) == {"retryable", "permanent", "unexpected"}
    sink_at_last = VirtualSink(clock, lambda at_s: None)
    shipper.flush(1.0, clock, clock.wait)
    spool.seal()
    rest = Shipper(spool, sink_at_last)
    while rest.ship_once(clock.at_s) is Outcome.SHIPPED:
        pass
    arrived = sink.events + sink_at_last.events
    lost = sum(spool.stats().dropped.values())
    assert lost > 0
    assert len(arrived) == len(set(arrived))
    assert len(arrived) + lost == max(arrived)


@pytest.mark.parametrize("step_s", [-7 * 86_400.0, -60.0, 60.0, 30 * 86_400.0])
def test_the_wall_clock_steps(spool: Spool, clock: HandClock, step_s: float) -> None:
    """Sealing, retries and order follow the monotonic clock; the age is never negative."""
    sink = VirtualSink(clock, lambda at_s: None)
    shipper = Shipper(spool, sink)
    live(spool, shipper, clock, 300)
    clock.stepped_s = step_s
    assert age_s(spool, clock) >= 0
    live(spool, shipper, clock, 300)
    assert len(sink.events) > 100
    assert sink.events == list(range(1, len(sink.events) + 1))
