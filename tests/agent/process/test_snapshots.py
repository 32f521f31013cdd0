"""The snapshot: fresh when something changed, cheap when nothing did."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.process.snapshots import FULL_EVERY_S, IDLE_EVERY_S, Snapshots
from tests.support.lookout_bench import LiveLookout, SteppingClock, make_task, write_checkpoint

pytestmark = pytest.mark.inotify


def test_a_change_is_shown_at_once_and_idleness_is_cheap(tmp_path: Path) -> None:
    """Rows of tasks are made anew after a change; without one only the heartbeat moves, once a second."""
    make_task(tmp_path / "state", offset=1)
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        clock = live.clock
        assert isinstance(clock, SteppingClock)
        snapshots = Snapshots(live.lookout, clock)

        def refresh(later_s: float) -> None:
            clock.passed_s += later_s
            snapshots.refresh(None, None, None)

        refresh(10.0)
        first = snapshots.latest()
        assert [row.checkpoint_offset for row in first.tasks] == [1]
        assert first.ready
        refresh(FULL_EVERY_S)
        assert snapshots.latest() is first
        refresh(IDLE_EVERY_S)
        assert snapshots.latest().heartbeat_at_us > first.heartbeat_at_us
        write_checkpoint(tmp_path / "state" / "app" / "0_0", 2)
        live.turn_until(lambda: live.offset("app/0_0") == 2)
        refresh(FULL_EVERY_S)
        assert [row.checkpoint_offset for row in snapshots.latest().tasks] == [2]
        assert snapshots.latest().watch.watches == 3
