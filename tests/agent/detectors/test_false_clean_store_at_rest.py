"""Detector `false-clean-store`: one look at a store that nobody holds, without any history."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.disk import LockState
from agent.inventory.observations import StoreOffsets
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, judge, session, store, task

ID = "false-clean-store"
EOS = "exactly_once_v2"


def closed_clean(release: str = "4.3.1", *, passes: int = 0) -> Scenario:
    """A clean close, and start-up passes that assign nothing, before anybody looks."""
    run = Scenario(release, EOS, 0, watched=False)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 2000)
    app.stops({"0_0": 1999})
    for _ in range(passes):
        run.wait(5)
        app = run.start()
        app.startup_pass()
        app.ends()
    run.wait(5)
    return run


@pytest.mark.parametrize("release", ["4.3.0", "4.3.1"])
def test_scan_after_the_kill(release):
    """Who looks at the disk only after the kill finds the status without its offset: the last moment to act."""
    run = closed_clean(release)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 5000)
    app.closes_dirty("0_0")
    app.crash()
    run.world.watch()
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.CRITICAL,
        Confidence.SUSPECTED,
        Status.OPEN,
    )
    assert (finding.task_id, finding.store, finding.affected) == ("0_0", "s", Affected.YES)
    assert "next start would trust about 5003 puts" in finding.summary
    assert finding.next_action.startswith("BEFORE the next start: keep a copy of the task directory app/0_0")


@pytest.mark.parametrize("passes", [0, 1, 3])
def test_scan_of_a_clean_close(passes):
    """N5, N18: a clean close wrote its offset after the data; start-up passes rewrite the status only."""
    run = closed_clean(passes=passes)
    run.world.watch()
    run.wait(60)
    assert run.findings(ID) == []


def test_scan_after_an_unflushed_crash():
    """N23: the disk still shows the last clean close."""
    run = closed_clean()
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 500)
    app.crash()
    run.world.watch()
    run.wait(60)
    assert run.findings(ID) == []


def test_scan_after_a_flushed_crash():
    """A status that says open is wiped at the next assignment."""
    run = closed_clean()
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 500)
    app.flushes("0_0")
    app.crash()
    run.world.watch()
    run.wait(60)
    assert run.findings(ID) == []


def test_scan_of_a_dirty_close_without_data():
    """A close that wrote nothing but its status hides nothing."""
    run = Scenario("4.3.1", EOS, 0, watched=False)
    app = run.start()
    app.opens("0_0")
    app.closes_dirty("0_0")
    app.crash()
    run.world.watch()
    run.wait(60)
    assert run.findings(ID) == []


def resting(
    *,
    status: int | None = 0,
    status_sequence: int = 8014,
    offsets: tuple[tuple[str, int, int], ...] = (("app-s-changelog-0", 1999, 2003),),
    offset_file: int = 0,
    newest_flush: int = 0,
    lock: LockState = LockState.FREE,
    puts: int = 8013,
    **settings,
):
    """A store of one look; by default its offset (2003) is older than its data (8013)."""
    files = database(puts=puts, lock=lock, born=5)
    files.offsets = StoreOffsets(status, status_sequence, offsets, None, offset_file)
    files.newest_flush = newest_flush
    return case(task(store([files])), **{"release": "4.3.1", **settings})


def test_at_rest_is_dated_to_the_reading():
    """There is no history: the look is all that is known."""
    verdict = judge(ID, resting())[0]
    assert (verdict.level, verdict.opened_at_us, verdict.identity) == (Level.EXPOSURE, at(5), "identity-1")


@pytest.mark.twin_of(ID, "its offset is as new as its data")
@pytest.mark.twin_of(ID, "it holds no offset, and is wiped if it has a changelog")
def test_offset_after_the_data_rules_it_out():
    """The order of the last writes decides, to one sequence number."""
    assert len(judge(ID, resting(offsets=(("app-s-changelog-0", 1999, 8012),)))) == 1
    assert judge(ID, resting(offsets=(("app-s-changelog-0", 7999, 8013),))) == []
    assert judge(ID, resting(offsets=())) == []  # no changelog, or the next start wipes it


def test_compaction_hides_the_order():
    """A zeroed status tells no order; a zeroed offset only whether data was flushed into a later file."""
    zeroed = (("app-s-changelog-0", 1999, 0),)
    assert judge(ID, resting(status_sequence=0, offsets=())) == []
    assert judge(ID, resting(offsets=zeroed, offset_file=20, newest_flush=20)) == []
    assert len(judge(ID, resting(offsets=zeroed, offset_file=20, newest_flush=21))) == 1


@pytest.mark.twin_of(ID, "marked open: the next start does not trust it")
def test_at_rest_needs_closed():
    """Open, or no status at all; one open segment makes it an open store."""
    for status in (1, None):
        assert judge(ID, resting(status=status)) == []
    one = resting()
    databases = one.task.stores["s"].databases
    databases["b"] = database(puts=8013, segment="b")
    assert len(judge(ID, one)) == 1
    databases["b"].offsets = StoreOffsets(1, 8014)
    assert judge(ID, one) == []


@pytest.mark.twin_of(ID, "nothing is in it")
def test_at_rest_needs_data():
    """What was flushed and has expired since is nobody's."""
    one = resting()
    one.task.stores["s"].retired_puts = -8013
    assert judge(ID, one) == []


@pytest.mark.twin_of(ID, "a process holds it")
@pytest.mark.twin_of(ID, "it is not known whether a process holds it")
def test_at_rest_needs_a_free_lock():
    """Whoever holds the store may be about to write."""
    for lock in (LockState.HELD, LockState.UNKNOWN):
        assert judge(ID, resting(lock=lock)) == []


@pytest.mark.twin_of(ID, "held too briefly to tell how it ended")
@pytest.mark.twin_of(ID, "closed with its offset")
@pytest.mark.twin_of(ID, "let go less than a minute ago")
def test_history_is_better_than_a_reading():
    """Once a session was seen, what it did decides; a minute after it nobody starts it again."""
    for closed, with_offset, now, said in (
        (True, False, 64, 1),
        (True, False, 63.9, 0),
        (True, True, 64, 0),
        (None, False, 64, 0),
    ):
        one = resting(now=now)
        seen = session(0, 4, puts=8013)
        seen.closed, seen.closed_with_offset = closed, with_offset
        one.task.stores["s"].sessions = (seen,)
        assert len(judge(ID, one)) == said


@pytest.mark.parametrize("guarantee", ["at_least_once", None])
def test_at_rest_needs_exactly_once(guarantee):
    """Under at-least-once the same order is normal."""
    assert judge(ID, resting(guarantee=guarantee)) == []
