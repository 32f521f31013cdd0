"""One turn of the worker: modes, ceilings, and what it says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.home.canary import LATE_AFTER_S
from agent.inventory.blind_causes import Step
from agent.inventory.disk import Unseen
from agent.inventory.hints import Hint, HintKind
from agent.lookout import watch_loop as lookout
from agent.lookout.self_limits import MEASURE_S, Ceilings
from agent.lookout.walk import POLLING, WATCHING
from agent.lookout.watch_loop import GATHER_S, LONG_BATCH_S, LONGEST_WAIT_S, Mode, why_polling
from agent.observe.volume import Mount
from tests.support.lookout_bench import LiveLookout, make_task, write_checkpoint

pytestmark = pytest.mark.inotify


@pytest.mark.parametrize(
    ("filesystem", "polls"),
    [
        *((local, False) for local in ("ext4", "overlay", "tmpfs", "fuseblk")),
        *((shared, True) for shared in ("nfs4", "fuse.s3fs", "9p", "virtiofs", "ceph")),
    ],
)
def test_the_type_of_the_volume_decides(monkeypatch, filesystem, polls):
    """Volumes on which another machine may change something are polled; the reason names mount and type."""
    monkeypatch.setattr(lookout, "find_mount", lambda root: Mount("/state", filesystem, False))
    why = why_polling(Path("/state"))
    assert bool(why) is polls
    assert not polls or (filesystem in why and "/state" in why)


def test_a_volume_of_unknown_kind_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc nothing speaks against the watch; what it misses is counted."""
    monkeypatch.setattr(lookout, "find_mount", lambda root: Unseen.UNREADABLE)
    assert why_polling(Path("/state")) == ""


def test_on_a_network_volume_it_watches_and_polls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch stays as a hint, the walk is the faster one, and what nobody announced is no loss."""
    monkeypatch.setattr(lookout, "find_mount", lambda root: Mount("/state", "nfs4", False))
    make_task(tmp_path / "state")
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        assert live.lookout.reconciler.pace == POLLING
        assert not live.lookout.reconciler.trusts_times
        assert "nfs4" in live.pipeline.inventory.slowed["polling"][1]
        write_checkpoint(tmp_path / "state" / "app" / "0_0", 2)
        live.turn_until(lambda: live.offset("app/0_0") == 2)
        monkeypatch.setattr(lookout, "find_mount", lambda root: Mount("/state", "ext4", False))
        live.lookout._know_volume()
        live.lookout._report_state(live.clock.now_us())
        assert live.pipeline.inventory.slowed == {}
        assert live.lookout.reconciler.pace == WATCHING


def test_clock_of_a_file_server_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it was compared, and as long as it differs; then verdicts have one clock, and nothing is said."""
    monkeypatch.setattr(lookout, "volume_kind", lambda root: "network")
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        inventory = live.pipeline.inventory
        assert "not compared" in inventory.slowed["clock-differs"][1]
        inventory.ahead_us = 1_500_000
        live.lookout._report_state(live.clock.now_us())
        assert "+1.5 s" in inventory.slowed["clock-differs"][1]
        inventory.ahead_us = 0
        live.lookout._report_state(live.clock.now_us())
        assert "clock-differs" not in inventory.slowed


def test_the_operator_may_insist_on_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`watch_mode=inotify`: the volume is not asked."""
    monkeypatch.setattr(lookout, "find_mount", lambda root: Mount("/state", "nfs4", False))
    with LiveLookout(tmp_path, tmp_path / "home", mode=Mode(is_free=False)) as live:
        assert live.pipeline.inventory.slowed == {}


def test_the_walk_may_take_a_part_of_what_a_busy_agent_takes(tmp_path: Path) -> None:
    """Where tasks are busy every visit is a look: the share for quiet tasks would take hours for a round."""
    make_task(tmp_path / "state")
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        live.lookout.limits.cpu_share = 0.5
        live.lookout.turn()
        assert live.lookout.reconciler.pace == WATCHING.at_least(0.01)
        assert live.lookout.reconciler.pace.share > WATCHING.share


def test_above_its_ceiling_it_does_less_and_says_so(tmp_path: Path) -> None:
    """Step by step: the walk slows, batches grow, counters go; the watch goes on, and a finding tells."""
    root = tmp_path / "state"
    make_task(root)
    with LiveLookout(root, tmp_path / "home", ceilings=Ceilings(memory_bytes=1)) as live:
        pauses: list[float] = []
        live.lookout.pause = pauses.append
        clock = live.clock
        paces = []
        for _ in range(6):
            clock.passed_s += MEASURE_S
            step = live.lookout.limits.step
            live.turn_until(lambda before=step: live.lookout.limits.step != before or before == max(Step))  # type: ignore[misc]
            live.lookout.turn()
            paces.append(live.lookout.reconciler.pace.share)
        assert live.lookout.limits.step == max(Step)
        assert paces[0] == WATCHING.share / 4
        assert paces[-1] == WATCHING.share / 16
        assert LONG_BATCH_S in pauses
        assert not live.pipeline.looker.observer._with_counters
        write_checkpoint(root / "app" / "0_0", 5)
        live.turn_until(lambda: live.offset("app/0_0") == 5)
        live.beat()
        assert any("self-limit" in x.summary and "less-store-detail" in x.summary for x in live.findings())


def test_while_it_may_rest_locks_do_not_end_its_turn(tmp_path: Path) -> None:
    """What can wait is done once a second; a notification ends the rest at once."""
    root = tmp_path / "state"
    make_task(root)
    with LiveLookout(root, tmp_path / "home") as live:
        live.turn_until(
            lambda: live.clock.passed_s > 2.0
        )  # the first recheck is over, the next canary far away
        began_s = live.clock.passed_s
        live.lookout.turn()
        assert live.clock.passed_s - began_s < LONGEST_WAIT_S
        began_s = live.clock.passed_s
        live.lookout.turn(lambda: True)
        assert live.clock.passed_s - began_s >= LONGEST_WAIT_S
        write_checkpoint(root / "app" / "0_0", 2)
        live.lookout.turn(lambda: True)
        assert live.offset("app/0_0") == 2


def test_soon_after_a_turn_it_gathers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn costs as much as following several notifications; only what cannot wait ends that rest."""
    make_task(tmp_path / "state")
    waits: list[float] = []
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        polls = live.pipeline.looker.polls
        monkeypatch.setattr(live.mailbox, "await_pressing", waits.append)
        live.lookout.turn()
        waits.clear()
        polls._poll_at_us = polls.slow_poll_us = live.clock.now_us() + 60_000_000
        live.lookout.turn()
        assert waits == [pytest.approx(GATHER_S)]
        live.clock.passed_s += GATHER_S
        live.lookout.turn()
        assert len(waits) == 1
        polls._poll_at_us = live.clock.now_us()  # locks are asked for in time
        live.lookout.turn()
        assert len(waits) == 1


def test_restarted_it_waits_for_the_first_walk(tmp_path: Path) -> None:
    """Between the baseline and the first look nothing is asked and nothing judged."""
    root = tmp_path / "state"
    make_task(root, offset=3)
    with LiveLookout(root, tmp_path / "home") as first:
        known = first.pipeline.inventory
        until_us = first.clock.now_us()
    second = LiveLookout(root, tmp_path / "home")
    second.pipeline.resume(known, [], until_us, "it was stopped")
    before = second.pipeline.looker.is_resuming
    with second:
        assert (before, second.pipeline.looker.is_resuming) == (True, False)
        assert second.changes() == []
        assert second.causes() == ["agent-away"]
        assert second.pipeline.inventory.blind[0].ended_us is not None


def test_a_state_directory_that_went_away_is_told_at_once(tmp_path: Path) -> None:
    """What was open about its tasks ends soon: the warning must not wait for a heartbeat."""
    root = tmp_path / "state"
    make_task(root)
    with LiveLookout(root, tmp_path / "home") as live:
        root.rename(tmp_path / "away")
        live.turn_until(lambda: "root-missing" in live.causes())
        assert [(x.status.value, x.severity.value) for x in live.findings()] == [("open", "warning")]


def test_a_long_batch_is_followed_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came at once is followed over several turns, in order, each part with the time of its own turn."""
    make_task(tmp_path / "state", offset=1)
    monkeypatch.setattr(lookout, "HINTS_PER_TURN", 2)
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        followed: list[tuple[str, int]] = []
        monkeypatch.setattr(
            type(live.pipeline),
            "handle",
            lambda self, hints, now_us: followed.extend((x.path, now_us) for x in hints),
        )
        names = [f"app/0_0/number-{number}" for number in range(5)]
        live.mailbox.put_all(Hint(name, HintKind.DELETED, live.clock.now_us()) for name in names)
        live.turn_until(lambda: len(followed) == len(names))
        assert [path for path, _ in followed] == names
        times = [now_us for _, now_us in followed]
        assert times[0] == times[1] < times[2] == times[3] < times[4]
        live.mailbox.put_all(Hint(name, HintKind.DELETED, live.clock.now_us()) for name in names)
        live.turn_until(lambda: len(followed) > len(names))
        # a canary that waits behind a batch is not late: nobody has looked for it meanwhile
        assert live.lookout.keeper.fence(live.clock.monotonic_s()) is not None
        live.clock.passed_s += 2 * LATE_AFTER_S
        live.lookout.turn()
        assert live.lookout.keeper.restarts == live.lookout.keeper.canaries_missed == 0
    assert len(followed) == 2 * len(names)  # also when it is told to stop in between
