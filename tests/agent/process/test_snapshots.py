"""The snapshot: made for whoever scrapes, within its share of the time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent.contract.events import Confidence, Severity
from agent.detectors import torn_store
from agent.findings.ledger import Place
from agent.judging.base import Verdict
from agent.process import snapshots as module
from agent.process.snapshots import FULL_SHARE, Snapshots, take_snapshot
from agent.publish.rows import TaskTable
from agent.publish.snapshot import MetricsSnapshot
from tests.agent.engine.playing import Run, application, opening
from tests.support.lookout_bench import LiveLookout, make_task, write_checkpoint

pytestmark = pytest.mark.inotify
COST_S = 2.0


class Shown:
    def __init__(self, live: LiveLookout) -> None:
        self.live = live
        self.snapshots = Snapshots(live.lookout, live.clock)

    def make(self, later_s: float = 0.0) -> MetricsSnapshot:
        self.live.clock.passed_s += later_s
        return self.snapshots.make(None, None, None)

    def change(self, offset: int) -> None:
        """Write a checkpoint, and wait until the agent knows it."""
        write_checkpoint(self.live.root / "app" / "0_0", offset)
        self.live.turn_until(lambda: self.live.offset("app/0_0") == offset)


def offsets(snapshot: MetricsSnapshot) -> list[int | None]:
    return [row.checkpoint_offset for row in snapshot.tasks]


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    """Give snapshots of one task at offset 1."""
    make_task(tmp_path / "state", offset=1)
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        yield Shown(live)


def test_a_scrape_gets_what_the_worker_makes_for_it(shown: Shown) -> None:
    """It waits for the end of a turn, and without a scrape nothing is made."""
    made: list[MetricsSnapshot] = []

    def make() -> MetricsSnapshot:
        made.append(shown.make())
        return made[-1]

    shown.snapshots.serve(make)
    assert made == []
    with ThreadPoolExecutor(1) as server:
        scrape = server.submit(shown.snapshots.ask, 120.0)
        while not scrape.done():
            shown.snapshots.serve(make)
    assert scrape.result() == (made[-1], True)
    assert made[-1].ready
    assert made[-1].watch.watches == 3


def test_while_the_worker_is_at_something_long_the_last_snapshot_is_shown(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of its heartbeat tells."""
    monkeypatch.setattr(module, "WAIT_S", 0.0)
    assert shown.snapshots.latest().heartbeat_at_us == 0
    shown.snapshots.serve(shown.make)
    shown.change(2)
    assert offsets(shown.snapshots.latest()) == [1]
    shown.snapshots.serve(shown.make)
    assert offsets(shown.snapshots.latest()) == [2]


def test_an_incident_keeps_its_alert_from_snapshot_to_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """What named it before is asked each time, and what names it now is told beside it."""
    run = Run(sets=["processing_guarantee=exactly_once_v2", "num_standby_replicas=0"])
    run.play(*application(1))
    run.play(*opening(2))
    verdict = Verdict("once", run.now_us, "It is so.", (), Severity.INFO, Confidence.CONFIRMED)
    run.pipeline.ledger.settle(torn_store.META, Place("torn-store", "app", "0_0"), [verdict], run.now_us)
    table = TaskTable()
    monkeypatch.setattr(module, "_WAITS", lambda detector, severity: 0)  # every detector has that alert
    shown = take_snapshot(run.pipeline, run.now_us, table).incidents
    assert [x.named_by for x in shown] == [""] * len(shown)
    (one,) = shown
    run.pipeline.ledger.alert_names.names[one.incident_id] = {"info": "overlaid-store"}
    (after,) = (
        x
        for x in take_snapshot(run.pipeline, run.now_us, table).incidents
        if x.incident_id == one.incident_id
    )
    assert (after.detector, after.named_by) == ("overlaid-store", one.detector)


def test_a_costly_snapshot_is_made_within_its_share(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a snapshot takes seconds a change waits for its share of the time; the heartbeat does not."""
    take_snapshot, clock = module.take_snapshot, shown.live.clock

    def take_slowly(*given: Any) -> object:
        clock.passed_s += COST_S
        return take_snapshot(*given)

    monkeypatch.setattr(module, "take_snapshot", take_slowly)
    first = shown.make(10.0)
    began_s = clock.passed_s - COST_S
    shown.change(2)
    second = shown.make(began_s + COST_S * FULL_SHARE - 1.0 - clock.passed_s)
    assert offsets(second) == [1]
    assert second.heartbeat_at_us > first.heartbeat_at_us
    assert offsets(shown.make(1.0)) == [2]
