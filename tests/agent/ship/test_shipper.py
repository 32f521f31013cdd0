"""Acknowledge, then advance: no failure of a sink, and no kill, loses a record or changes a name."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.clock import SystemClock
from agent.errors import PermanentShipError, RetryableShipError, SpoolError
from agent.ship.shipper import Outcome, Shipper, ShipperThread
from agent.ship.spool import Spool
from tests.agent.ship.ship_support import ORIGIN, HandClock, heartbeat, json_lines, open_spool, transition


class ScriptedSink:
    """Fails as told, before or after it has stored the segment."""

    def __init__(
        self, script: list[Exception | None] | None = None, *, stores_before_failing: bool = False
    ) -> None:
        self.script = list(script or [])
        self.stores_before_failing = stores_before_failing
        self.puts: list[tuple[str, bytes]] = []

    def put(self, name: str, payload: bytes) -> None:
        """Follow the script; succeed when it has ended."""
        failure = self.script.pop(0) if self.script else None
        if failure is None or self.stores_before_failing:
            self.puts.append((name, payload))
        if failure is not None:
            raise failure

    def ids(self) -> list[str]:
        """List the ids of all events that arrived, duplicates included."""
        return [event["id"] for _, payload in self.puts for event in json_lines(payload)]


@pytest.fixture
def spool(tmp_path: Path, clock: HandClock) -> Iterator[Spool]:
    """Give a spool with three sealed segments of one record each."""
    with open_spool(tmp_path / "spool", clock) as spool:
        for number in range(3):
            spool.append(heartbeat(number))
            spool.seal()
        yield spool


def shipper(spool: Spool, sink: ScriptedSink) -> Shipper:
    return Shipper(spool, sink, jitter=random.Random(7))


def ship_all(shipper: Shipper, clock: HandClock) -> list[Outcome]:
    """Turn the shipper, with the clock jumping to the next attempt, until nothing waits."""
    outcomes: list[Outcome] = []
    while not outcomes or outcomes[-1] is not Outcome.IDLE:
        outcomes.append(shipper.ship_once(clock.monotonic_s()))
        clock.at_s = max(clock.at_s, shipper.not_before_s)
    return outcomes


def test_segments_go_in_order_and_leave(spool: Spool, clock: HandClock) -> None:
    """Each sealed segment is put once, oldest first, under pod and range, and then forgotten."""
    sink = ScriptedSink()
    ship = shipper(spool, sink)
    assert ship_all(ship, clock) == [Outcome.SHIPPED] * 3 + [Outcome.IDLE]
    assert [name for name, _ in sink.puts] == [
        f"uid-1/boot1-00000000000{n}-00000000000{n}" for n in (1, 2, 3)
    ]
    assert spool.stats().segments == 0
    assert (ship.stats().shipped_segments, ship.stats().shipped_records) == (3, 3)


@given(
    script=st.lists(st.sampled_from(["ok", "retry", "defect"]), max_size=12),
    stores_before_failing=st.booleans(),
)
def test_failures_in_between_lose_nothing(
    tmp_path_factory: pytest.TempPathFactory, script: list[str], stores_before_failing: bool
) -> None:
    """Whatever fails on the way, each event arrives, and a duplicate has the same name and bytes."""
    failures = {"ok": None, "retry": RetryableShipError("later"), "defect": RuntimeError("defect")}
    clock = HandClock()
    sink = ScriptedSink([failures[word] for word in script], stores_before_failing=stores_before_failing)
    logging.disable(logging.CRITICAL)
    try:
        with open_spool(tmp_path_factory.mktemp("s"), clock) as spool:
            for number in range(5):
                spool.append(heartbeat(number))
                spool.seal()
            ship_all(shipper(spool, sink), clock)
    finally:
        logging.disable(logging.NOTSET)
    assert len(set(sink.ids())) == 5
    assert len(dict(sink.puts)) == len(set(sink.puts)) == 5


def test_back_off_grows_with_jitter_and_ends_with_success(spool: Spool, clock: HandClock) -> None:
    """Waits double between half and all of the step, respect the sink's wish, and start again after success."""
    later = RetryableShipError("later", delay_s=0.0)
    sink = ScriptedSink([later, later, later, RetryableShipError("busy", delay_s=1000.0), None, later])
    ship, waits = shipper(spool, sink), []
    for _ in range(6):
        outcome = ship.ship_once(clock.at_s)
        waits.append(0.0 if outcome is Outcome.SHIPPED else ship.not_before_s - clock.at_s)
        clock.at_s = max(clock.at_s, ship.not_before_s)
    for wait, step in zip([*waits[:3], waits[5]], [1.0, 2.0, 4.0, 1.0], strict=True):
        assert step / 2 <= wait <= step
    assert waits[3:5] == [1000.0, 0.0]
    assert ship.stats().failures == {"retryable": 5}


def test_too_early_means_waiting(spool: Spool, clock: HandClock) -> None:
    """Before its time comes, the sink is not asked."""
    sink = ScriptedSink([RetryableShipError("later")])
    ship = shipper(spool, sink)
    assert ship.ship_once(clock.at_s) is Outcome.RETRYABLE
    assert ship.ship_once(ship.not_before_s - 0.001) is Outcome.WAITING
    assert sink.puts == []
    assert ship.ship_once(ship.not_before_s) is Outcome.SHIPPED


def test_a_permanent_failure_does_not_block_the_others(spool: Spool, clock: HandClock) -> None:
    """The segment is set aside and counted, and the next one follows at once."""
    sink = ScriptedSink([PermanentShipError("never")])
    ship = shipper(spool, sink)
    assert ship_all(ship, clock)[:2] == [Outcome.PERMANENT, Outcome.SHIPPED]
    assert ship.stats().failures == {"permanent": 1}
    assert spool.stats().dropped == {"heartbeat": 1}
    assert spool.stats().aside == 1


def test_a_spool_that_refuses_is_tried_again(
    spool: Spool, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it cannot be read or cannot mark what the sink rejects, the segment stays and the shipper goes on."""

    def refuse(*_: object) -> None:
        raise SpoolError("the disk is gone")

    sink = ScriptedSink([PermanentShipError("never"), PermanentShipError("never")])
    ship = shipper(spool, sink)
    for name in ("next_parcel", "reject"):
        with monkeypatch.context() as patch:
            patch.setattr(spool, name, refuse)
            assert ship.ship_once(clock.at_s) is Outcome.RETRYABLE
            assert ship.not_before_s > clock.at_s
        clock.at_s = ship.not_before_s
    assert spool.stats().records == 3
    assert ship.ship_once(clock.at_s) is Outcome.PERMANENT


def test_flush_seals_and_ships_what_is_left(spool: Spool, clock: HandClock) -> None:
    """The open segment goes too, even if the last attempt has just failed."""
    sink = ScriptedSink(
        [RetryableShipError("later", delay_s=60.0), RetryableShipError("later", delay_s=60.0)]
    )
    ship = shipper(spool, sink)
    ship.ship_once(clock.at_s)
    spool.append(heartbeat(9))
    assert ship.flush(5.0, clock, clock.wait) == 0
    assert len(set(sink.ids())) == 4


def test_flush_keeps_its_deadline(spool: Spool, clock: HandClock) -> None:
    """With a sink that stays down, flush ends in time and says how many segments are left."""
    ship, began_s = shipper(spool, ScriptedSink([RetryableShipError("down")] * 1000)), clock.at_s
    assert ship.flush(5.0, clock, clock.wait) == 3
    assert clock.at_s - began_s == pytest.approx(5.0)


def test_the_thread_ships_and_flushes_at_its_end(
    tmp_path: Path, eventually: Callable[[Callable[[], object]], object]
) -> None:
    """Sealed segments leave while it runs; what is open leaves when it stops."""
    clock, sink = SystemClock(), ScriptedSink()
    with Spool(tmp_path, ORIGIN, clock=clock) as spool:
        thread = ShipperThread(spool, Shipper(spool, sink), clock, poll_s=0.01)
        thread.start()
        spool.append(heartbeat())
        spool.seal()
        eventually(lambda: len(sink.puts) == 1)
        spool.append(heartbeat())
        assert thread.stop(flush_s=120.0)
    assert len(sink.ids()) == 2


def test_the_thread_survives_what_it_must_not_meet(
    tmp_path: Path, eventually: Callable[[Callable[[], object]], object], caplog: pytest.LogCaptureFixture
) -> None:
    """A defect in spool or sink is logged and tried again; the thread lives on."""
    clock, sink = SystemClock(), ScriptedSink([RuntimeError("defect")])
    caplog.set_level(logging.CRITICAL)
    with Spool(tmp_path, ORIGIN, clock=clock) as spool:
        ship = Shipper(spool, sink, base_delay_s=0.01)
        thread = ShipperThread(spool, ship, clock, poll_s=0.01)
        thread.start()
        spool.append(transition())
        spool.seal()
        eventually(lambda: len(sink.puts) == 1)
        assert thread.stop(flush_s=120.0)
    assert ship.stats().failures == {"unexpected": 1}


def test_a_sink_that_hangs_does_not_hang_the_end(tmp_path: Path) -> None:
    """Stopping gives up after its time; the segment stays for the next start."""
    entered, release = threading.Event(), threading.Event()

    class HangingSink:
        def put(self, name: str, payload: bytes) -> None:
            entered.set()
            release.wait(300)
            raise RetryableShipError("too late")

    clock = SystemClock()
    with Spool(tmp_path, ORIGIN, clock=clock) as spool:
        thread = ShipperThread(spool, Shipper(spool, HangingSink()), clock, poll_s=0.01)
        spool.append(heartbeat())
        spool.seal()
        thread.start()
        assert entered.wait(120)
        assert not thread.stop(flush_s=0.05)
        assert spool.stats().segments == 1
        release.set()
        thread._thread.join(10)
