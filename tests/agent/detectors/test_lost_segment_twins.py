"""Detector `lost-segment`: lives that look like a loss and are none."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from tests.support.scenario_segments import (
    ANSWER,
    EOS,
    ID,
    NEW,
    OLD,
    crossed,
    killed,
    loudest,
    open_findings,
    opened,
    segment,
    starts,
    takes,
    two_unflushed,
    wiped_start,
)

# -- twins --------------------------------------------------------------------------------------------------------


def test_quiet_for_a_segment_that_was_past_when_the_store_was_opened():
    """All its records were flushed by the close before; no late one came."""
    run, app = opened()
    app.puts("0_0", 600, segment=OLD)
    run.wait(1)
    app.puts("0_0", 600, segment=NEW)
    app.stops({"0_0": 1199})
    run.wait(5)
    app = starts(run, 1199)
    takes(run, app, 3000, NEW, 4199)
    killed(run, app)
    starts(run, 4199)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of("lost-segment", "every segment holds the offset, as after an orderly close")
def test_quiet_after_an_orderly_close():
    """All segments carry the same offset, flushed with their last records."""
    run, app = crossed()
    app.stops({"0_0": ANSWER})
    run.wait(5)
    starts(run)
    run.wait(30)
    assert loudest(run) is Severity.INFO


@pytest.mark.twin_of("lost-segment", "exactly-once may yet wipe it")
@pytest.mark.twin_of("lost-segment", "exactly-once wipes the store at the next start")
def test_quiet_when_exactly_once_wipes():
    """The flush left the status open, and the next start throws the task away."""
    run, app = crossed(guarantee=EOS)
    killed(run, app)
    wiped_start(run)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["4.2.1", "3.9.2"])
def test_quiet_up_to_4_2(release):
    """Every segment is flushed before the checkpoint is written."""
    run, app = crossed(release)
    killed(run, app)
    again = run.start()
    again.opens("0_0")
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_for_expired_segments():
    """Retention removes the old segment while the store is open, before the kill."""
    run, app = crossed()
    app.drops_segment("0_0", "w", OLD)
    run.wait(2)
    killed(run, app)
    starts(run)
    run.wait(30)
    assert loudest(run) is Severity.INFO


@pytest.mark.parametrize("number", [OLD, 120_000])
@pytest.mark.twin_of("lost-segment", "the segment was made after the offset was stored")
def test_quiet_for_a_segment_made_after_the_offset_was_stored(number):
    """A late record, or the next slice: its first put lies behind the offset, and the replay brings it again."""
    run, app = opened()
    takes(run, app, 3000, NEW, 2999)
    app.puts("0_0", 10, segment=number)
    app.checkpoints("0_0", 3009)
    run.wait(2)
    killed(run, app)
    again = starts(run, 2999)
    again.puts("0_0", 10, segment=number)
    again.checkpoints("0_0", 3009)
    run.wait(30)
    assert loudest(run) in (None, Severity.INFO)


@pytest.mark.parametrize("number", [OLD, 120_000])
def test_quiet_after_a_start_up_pass_that_exactly_once_refused(number):
    """Found by the hunt: because of another store the pass gives up, and closes the late segment without an offset."""
    run, app = opened(guarantee=EOS)
    app.puts("0_0", 3000, segment=NEW)
    app.closes("0_0", 2999)
    run.wait(2)
    app.opens("0_0")
    app.puts("0_0", 10, segment=number)
    run.wait(2)
    killed(run, app)
    for ends in (False, True):
        again = run.start()
        for database in run.task("0_0").databases.values():
            database.open()
            database.put_status(0)
            database.close()
        run.wait(5)
        if not ends:
            killed(run, again)
    assert loudest(run) in (None, Severity.INFO)


@pytest.mark.parametrize("seconds", [10, 90])
def test_late_segment_and_a_later_flush(seconds):
    """It may carry the offset of a commit before the first put, however late it is: commits stop with a broker."""
    run, app = opened()
    app.puts("0_0", 3000, segment=NEW)
    app.checkpoints("0_0", 2999)
    run.wait(2)
    app.puts("0_0", 10, segment=OLD)
    run.wait(seconds)
    segment(run, NEW).flush()
    run.wait(2)
    killed(run, app)
    (finding,) = open_findings(run)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)


def test_quiet_without_a_changelog():
    """No segment holds an offset: nothing is restored, and nothing goes on from anywhere."""
    run, app = opened()
    app.puts("0_0", 600, segment=OLD)
    run.wait(1)
    app.puts("0_0", 3000, segment=NEW)
    segment(run, NEW).flush()
    killed(run, app)
    starts(run, None)
    run.wait(30)
    assert loudest(run) in (None, Severity.INFO)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(
            OLD, marks=pytest.mark.twin_of(ID, "the segment was flushed after its successor was made")
        ),
        pytest.param(
            120_000, marks=pytest.mark.twin_of(ID, "the segment was flushed after the offset was stored")
        ),
    ],
)
def test_quiet_after_a_dirty_close(number):
    """An error closes every segment with what it has, without a commit: the data is there, the replay overlaps it."""
    run, app = opened()
    app.puts("0_0", 3000, segment=NEW)
    app.checkpoints("0_0", 2999)
    run.wait(2)
    app.puts("0_0", 10, segment=number)
    run.wait(90)
    app.closes_dirty("0_0")
    run.wait(5)
    app.opens("0_0")
    run.wait(30)
    assert loudest(run) is Severity.INFO


def test_dirty_close_that_was_killed():
    """Exactly-once: it wrote no offset, the old one is of before the new segment, and its replay brings everything."""
    run, app = two_unflushed()
    app.checkpoints("0_0", 599)
    app.puts("0_0", 600, segment=OLD)
    run.wait(60)
    old = segment(run, OLD)
    old.put_status(0)
    old.close()
    run.wait(0.1)
    killed(run, app)
    starts(run, 599)
    run.wait(30)
    assert loudest(run) is Severity.WARNING


def test_perhaps_and_then_surely():
    """What may be lost at a first crash is filled by its replay, if it was not; the second one takes it for sure."""
    run, app = opened()
    app.puts("0_0", 3000, segment=OLD)
    app.checkpoints("0_0", 2999)
    run.wait(2)
    app.puts("0_0", 10, segment=NEW)
    run.wait(10)
    segment(run, OLD).flush()
    run.wait(2)
    killed(run, app)
    app = starts(run, 2999)
    assert loudest(run) is Severity.WARNING
    app.puts("0_0", 10, segment=NEW)
    run.wait(2)
    takes(run, app, 3000, 120_000, 6009)
    killed(run, app)
    assert loudest(run) is Severity.CRITICAL


def test_replayed_and_lost_at_the_next_end():
    """Made after the offset was stored: the first crash loses nothing. The replay fills it, and the second one does."""
    run, app = opened()
    takes(run, app, 3000, OLD, 2999)
    app.puts("0_0", 10, segment=NEW)
    run.wait(2)
    killed(run, app)
    assert open_findings(run) == []
    app = starts(run, 2999)
    app.puts("0_0", 10, segment=NEW)
    run.wait(2)
    takes(run, app, 3000, 120_000, 6009)
    killed(run, app)
    (finding,) = open_findings(run)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.SUSPECTED)
    assert "all that was put into w.60000 would be lost" in finding.summary


def test_store_that_deletes_is_a_warning():
    """Sessions that went on were deleted from their old segment and lie in the new one: nothing of them is lost."""
    run, app = opened()
    app.puts("0_0", 600, segment=OLD)
    run.wait(2)
    app.puts("0_0", 3000, segment=NEW, deletions=1400)
    app.checkpoints("0_0", ANSWER)
    segment(run, NEW).flush()
    run.wait(2)
    killed(run, app)
    again = starts(run)
    again.puts("0_0", 3000, segment=NEW)
    again.checkpoints("0_0", ANSWER + 3000)
    again.flushes("0_0")
    run.wait(30)
    assert loudest(run) is Severity.WARNING
    assert {x.confidence for x in run.findings(ID)} == {Confidence.SUSPECTED}
