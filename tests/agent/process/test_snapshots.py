"""The snapshot: fresh when something changed, cheap when nothing did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract.events import Confidence, Severity
from agent.detectors import torn_store
from agent.findings.ledger import Place
from agent.judging.base import Verdict
from agent.process import snapshots as module
from agent.process.snapshots import EVERY_S, FULL_SHARE, Snapshots, take_snapshot
from agent.publish.rows import TaskTable
from tests.agent.engine.playing import Run, application, opening
from tests.support.lookout_bench import LiveLookout, make_task, write_checkpoint

pytestmark = pytest.mark.inotify
COST_S = 2.0


class Shown:
    def __init__(self, live: LiveLookout) -> None:
        self.live = live
        self.snapshots = Snapshots(live.lookout, live.clock)

    def refresh(self, later_s: float) -> None:
        self.live.clock.passed_s += later_s
        self.snapshots.refresh(None, None, None)

    def change(self, offset: int) -> None:
        """Write a checkpoint, and wait until the agent knows it."""
        write_checkpoint(self.live.root / "app" / "0_0", offset)
        self.live.turn_until(lambda: self.live.offset("app/0_0") == offset)

    def offsets(self) -> list[int | None]:
        return [row.checkpoint_offset for row in self.snapshots.latest().tasks]


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    """Give snapshots of one task at offset 1."""
    make_task(tmp_path / "state", offset=1)
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        yield Shown(live)


def test_a_change_is_shown_within_a_second_and_idleness_is_cheap(shown: Shown) -> None:
    """Rows of tasks are recreated after a change; without one only the heartbeat moves, once a second."""
    shown.refresh(10.0)
    first = shown.snapshots.latest()
    assert shown.offsets() == [1]
    assert first.ready
    shown.refresh(EVERY_S / 2)
    assert shown.snapshots.latest() is first
    shown.refresh(EVERY_S)
    assert shown.snapshots.latest().heartbeat_at_us > first.heartbeat_at_us
    shown.change(2)
    shown.refresh(EVERY_S)
    assert shown.offsets() == [2]
    assert shown.snapshots.latest().watch.watches == 3


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
    shown.refresh(10.0)
    began_s = clock.passed_s - COST_S
    first = shown.snapshots.latest()
    shown.change(2)
    shown.refresh(began_s + COST_S * FULL_SHARE - EVERY_S - clock.passed_s)
    assert shown.offsets() == [1]
    assert shown.snapshots.latest().heartbeat_at_us > first.heartbeat_at_us
    shown.refresh(EVERY_S)
    assert shown.offsets() == [2]
