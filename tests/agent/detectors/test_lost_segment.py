"""Detector `lost-segment`: a windowed store goes on from one segment's offset, another one was not flushed (4.3)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.detectors.lost_segment import BEFORE_THE_START
from tests.support.scenario import KEY_VALUE, UNLOGGED, WINDOWED, Scenario
from tests.support.scenario_segments import (
    ALOS,
    ANSWER,
    EOS,
    ID,
    NEW,
    OLD,
    close_cut,
    crossed,
    goes_on,
    killed,
    loudest,
    open_findings,
    opened,
    segment,
    starts,
    takes,
    two_unflushed,
    with_data,
)

# -- the loss, step by step -----------------------------------------------------------------------------------


def test_before_the_start_it_says_what_saves_everything():
    """The moment that counts: nobody holds it, and the next start would go on behind the lost records."""
    run, app = crossed()
    killed(run, app)
    (finding,) = open_findings(run)
    assert (finding.level, finding.severity) == (Level.EXPOSURE, Severity.CRITICAL)
    assert (finding.store, finding.affected) == ("w", Affected.YES)
    assert finding.next_action.startswith(BEFORE_THE_START)
    assert finding.upstream == ("lost segments (no upstream issue)",)
    assert "offset 3599 of segment w.60000" in finding.summary
    assert "all that was put into w.0 would be lost" in finding.summary


def test_reopened_without_a_wipe_is_damage():
    """The start loses it: critical at the opening, by the facts of the picture before it."""
    run, app = crossed()
    killed(run, app)
    starts(run)
    (finding,) = open_findings(run)
    assert (finding.level, finding.severity) == (Level.DAMAGE, Severity.CRITICAL)
    assert finding.confidence is Confidence.SUSPECTED
    assert "all that was put into w.0 is lost" in finding.summary
    assert finding.identity == segment(run, OLD).identity


def test_confirmed_when_the_store_moves_on_and_nothing_came_back():
    """The first segment was made before the one that answers: a replay from there cannot bring its records."""
    run, app = crossed()
    killed(run, app)
    goes_on(run, NEW)
    run.wait(1)
    assert open_findings(run)[0].confidence is Confidence.SUSPECTED
    segment(run, NEW).flush()
    run.wait(1)
    (finding,) = open_findings(run)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.CONFIRMED)
    assert "went on to offset 4099" in finding.evidence[-1].what


def test_what_was_proved_stays_proved():
    """Late records fill the segment again; the proof was there before them."""
    run, app = crossed()
    killed(run, app)
    again = goes_on(run, NEW)
    segment(run, NEW).flush()
    run.wait(1)
    again.puts("0_0", 500, segment=OLD)
    again.checkpoints("0_0", ANSWER + 1000)
    again.flushes("0_0")
    run.wait(30)
    assert open_findings(run)[0].confidence is Confidence.CONFIRMED


def test_late_records_do_not_confirm():
    """What comes later fills the segment again; whether the old records are there is not seen any more."""
    run, app = crossed()
    killed(run, app)
    again = goes_on(run, OLD)
    again.flushes("0_0")
    run.wait(1)
    assert open_findings(run)[0].confidence is Confidence.SUSPECTED


def test_removed_before_the_start():
    """The task directory is removed, and the exposure with it; the restoration is not a finding."""
    run, app = crossed()
    killed(run, app)
    app.deletes_directory("0_0")
    run.wait(5)
    assert open_findings(run) == []
    again = run.start()
    again.opens("0_0")
    again.puts("0_0", 600, segment=OLD)
    again.puts("0_0", 3000, segment=NEW)
    again.checkpoints("0_0", ANSWER)
    again.flushes("0_0")
    run.wait(60)
    assert open_findings(run) == []


@pytest.mark.twin_of("lost-segment", "the segment expired, or was wiped")
def test_clears_when_the_lost_segment_expires():
    """What would have expired by now cannot be missed any more."""
    run, app = crossed()
    killed(run, app)
    again = starts(run)
    again.drops_segment("0_0", "w", OLD)
    run.wait(2)
    assert open_findings(run) == []


def test_exposure_while_it_runs():
    """Under at-least-once every segment that is not the newest one may hold records that nobody flushes: info."""
    run, app = crossed()
    (finding,) = run.findings(ID)
    assert (finding.severity, finding.level) == (Severity.INFO, Level.EXPOSURE)
    assert "1 of 2 segments" in finding.summary
    app.closes("0_0", ANSWER)
    run.wait(2)
    assert run.findings(ID)[0].status is Status.RESOLVED


@pytest.mark.twin_of("lost-segment", "all but the newest segment are flushed")
def test_nothing_yet_while_there_is_one_segment():
    """One step earlier: the second segment is not flushed, and a restart replays from the beginning."""
    run, app = opened()
    app.puts("0_0", 600, segment=OLD)
    app.checkpoints("0_0", 599)
    run.wait(2)
    assert run.findings(ID) == []
    app.puts("0_0", 100, segment=NEW)
    app.checkpoints("0_0", 699)
    run.wait(2)
    killed(run, app)
    starts(run, None)
    run.wait(30)
    assert loudest(run) in (None, Severity.INFO)


# -- a kill inside the close -----------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", [EOS, ALOS])
def test_close_that_was_killed_between_two_segments(guarantee):
    """Exactly-once, too: the closed segment answers, the other one has neither status nor offset; no wipe follows."""
    run, app = two_unflushed(guarantee)
    close_cut(run, app)
    (finding,) = open_findings(run)
    assert (finding.level, finding.severity) == (Level.EXPOSURE, Severity.CRITICAL)
    starts(run)
    (finding,) = open_findings(run)
    assert (finding.level, finding.severity) == (Level.DAMAGE, Severity.CRITICAL)
    assert finding.confidence is Confidence.SUSPECTED
    assert "all that was put into w.60000 is lost" in finding.summary


def test_cut_close_is_never_confirmed():
    """A dirty close that is killed leaves the same picture, and its replay brings everything back."""
    run, app = two_unflushed()
    close_cut(run, app)
    goes_on(run, OLD)
    segment(run, OLD).flush()
    run.wait(30)
    assert {x.confidence for x in open_findings(run)} == {Confidence.SUSPECTED}


@pytest.mark.parametrize("kind", [KEY_VALUE, WINDOWED])
def test_cut_close_beside_an_open_store_is_wiped(kind):
    """Exactly-once wipes the whole task if any of its stores says open."""
    run, app = two_unflushed(stores={"w": WINDOWED, "a": kind})
    app.flushes("0_0", "a")
    close_cut(run, app)
    assert loudest(run) is None


def test_cut_close_beside_a_store_without_an_offset():
    """A store that holds no offset leads to a wipe, or has no changelog: a warning, and not more."""
    run, app = two_unflushed(stores={"w": WINDOWED, "a": UNLOGGED})
    close_cut(run, app)
    (finding,) = open_findings(run)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    starts(run)
    assert loudest(run) is Severity.CRITICAL


# -- a segment with data -----------------------------------------------------------------------------------------


def test_flushed_before_its_successor_was_made():
    """It took records in the life that ended, and what came after its last flush was in memory only."""
    run, app = opened()
    with_data(run, app)
    killed(run, app)
    (finding,) = open_findings(run)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.SUSPECTED)
    assert "what was put into w.0 since the last flush would be lost" in finding.summary
    again = starts(run, 4199)
    again.puts("0_0", 3000, segment=NEW)
    again.checkpoints("0_0", 7199)
    again.flushes("0_0")
    run.wait(30)
    (finding,) = open_findings(run)
    assert (finding.level, finding.severity) == (Level.DAMAGE, Severity.CRITICAL)
    assert finding.confidence is Confidence.SUSPECTED


def newest_at_the_opening(late: int) -> Scenario:
    """600 records and a close; 3,000 more, of which some came late for the old segment, and a kill."""
    run, app = opened()
    app.puts("0_0", 600, segment=OLD)
    app.stops({"0_0": 599})
    run.wait(5)
    app = starts(run, 599)
    if late:
        app.puts("0_0", late, segment=OLD)
        app.checkpoints("0_0", 599 + late)
    takes(run, app, 3000 - late, NEW, ANSWER)
    killed(run, app)
    return run


@pytest.mark.twin_of(
    "lost-segment", "every record up to the offset is an entry of a file, after an end in order"
)
def test_newest_at_the_opening_took_nothing():
    """Every offset is an entry of a file: all that came since lies in the new segment."""
    run = newest_at_the_opening(0)
    assert open_findings(run) == []
    starts(run)
    run.wait(30)
    assert open_findings(run) == []


def test_newest_at_the_opening_may_have_taken_something():
    """Numbers that commits took may hide the put of a record that was lost: a warning."""
    run = newest_at_the_opening(1)
    (finding,) = open_findings(run)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "might be lost" in finding.summary
    starts(run)
    (finding,) = open_findings(run)
    assert finding.severity is Severity.WARNING
    assert "may be lost" in finding.summary


@pytest.mark.twin_of(ID, "the segment was past when the store was opened")
def test_second_kill_takes_nothing_from_a_segment_that_was_past():
    """What it may have lost, it lost at the first one: the process that is killed now put nothing into it."""
    run = newest_at_the_opening(1)
    app = run.start()
    app.opens("0_0")
    takes(run, app, 500, NEW, ANSWER + 500)
    before = [x.identity for x in open_findings(run)]
    killed(run, app)
    assert [x.identity for x in open_findings(run)] == before
