"""Detector `lost-segment`: late agents, facts that nobody told, other releases."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.detectors.lost_segment import BEFORE_THE_START
from tests.agent.home.restarting import away
from tests.support.scenario_segments import (
    ALOS,
    ANSWER,
    EOS,
    ID,
    NEW,
    OLD,
    crossed,
    goes_on,
    killed,
    loudest,
    open_findings,
    opened,
    segment,
    starts,
    takes,
    wiped_start,
    with_data,
)


def test_agent_that_restarts_before_the_application():
    """A node that died: agent and application come back, the agent first; it still is the moment that counts."""
    run, app = crossed()
    with away(run):
        app.crash()
        run.wait(60)
    run.wait(2)
    (finding,) = open_findings(run)
    assert (finding.level, finding.severity) == (Level.EXPOSURE, Severity.CRITICAL)
    starts(run)
    (finding,) = open_findings(run)
    assert (finding.level, finding.severity) == (Level.DAMAGE, Severity.CRITICAL)


def test_agent_that_was_away_during_the_opening():
    """What it knew before and what it finds fit a loss, but it saw neither: a warning, and it says so."""
    run, app = crossed()
    with away(run):
        app.crash()
        run.wait(60)
        starts(run)
    run.wait(30)
    (finding,) = open_findings(run)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "blind" in finding.summary


# -- what is not known ----------------------------------------------------------------------------------------------


def test_one_reading_at_a_stopped_directory():
    """A scan in an init container finds it: critical, suspected, with the same action."""
    run, app = crossed(watched=False)
    app.crash()
    run.wait(5)
    run.world.watch()
    (finding,) = run.findings(ID)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.SUSPECTED)
    assert finding.next_action.startswith(BEFORE_THE_START)


def test_agent_that_came_late_is_never_sure():
    """Whoever did not see both segments made does not know in which order they were; nothing is confirmed."""
    run, app = crossed()
    made = len(run.world.operations)
    killed(run, app)
    goes_on(run, NEW)
    segment(run, NEW).flush()
    run.wait(30)
    assert run.findings(ID)[-1].confidence is Confidence.CONFIRMED
    for index in range(made - 20, len(run.world.operations)):
        late = run.world.attached_at(index)
        said = {x.confidence for x in late.findings() if x.detector == ID}
        assert Confidence.CONFIRMED not in said, index


@pytest.mark.parametrize("guarantee", [ALOS, EOS])
def test_guarantee_that_is_not_configured(guarantee):
    """Open segments are wiped under exactly-once: unknown, and the fact is named; after a start the disk tells."""
    run, app = crossed(guarantee=guarantee, hidden=["processing_guarantee"])
    killed(run, app)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    assert finding.missing_facts == ("processing_guarantee",)
    if guarantee == EOS:
        wiped_start(run)
        assert loudest(run) is Severity.INFO
    else:
        starts(run)
        assert loudest(run) is Severity.CRITICAL


@pytest.mark.twin_of("lost-segment", "whether one segment answers for the store")
def test_release_that_is_not_configured():
    """The column family says 4.3 or later: a warning before the start; the start itself shows what the release does."""
    run, app = crossed(hidden=["kafka_streams_version"])
    killed(run, app)
    finding = run.only(ID)
    assert (finding.severity, finding.affected) == (Severity.WARNING, Affected.POSSIBLY)
    assert finding.missing_facts == ("kafka_streams_version",)
    starts(run)
    assert loudest(run) is Severity.CRITICAL


@pytest.mark.twin_of("lost-segment", "of the releases that it may be, one loses nothing")
def test_release_that_is_not_configured_and_decides():
    """4.3.1 would lose it, 4.3.0 would replay it: it is undecided, and the release decides."""
    run, app = opened(hidden=["kafka_streams_version"])
    with_data(run, app)
    killed(run, app)
    assert run.findings(ID) == []
    for _ in range(20):  # it tries one more release a minute
        run.wait(61)
    assert any("kafka_streams_version" in x.missing_facts for x in run.findings("undecided"))


def test_later_release():
    """Nobody has looked at later ones: possibly affected, a warning until a start shows it."""
    run, app = crossed("4.3.2")
    killed(run, app)
    finding = run.only(ID)
    assert (finding.severity, finding.affected) == (Severity.WARNING, Affected.POSSIBLY)


def test_4_3_0_asks_the_oldest_segment_first():
    """There a segment that was never flushed is passed over, too, and the oldest one that holds an offset answers."""
    run, app = crossed("4.3.0")
    killed(run, app)
    (finding,) = open_findings(run)
    assert (finding.severity, finding.affected) == (Severity.CRITICAL, Affected.YES)


def test_4_3_0_replays_from_a_flushed_old_segment():
    """There the old segment's own offset answers: more is replayed, nothing is lost."""
    run, app = opened("4.3.0")
    with_data(run, app)
    killed(run, app)
    starts(run, 599)
    run.wait(30)
    assert loudest(run) is Severity.INFO


@pytest.mark.twin_of(
    "lost-segment", "no segment holds an offset, or the unknown one: the changelog is read from its start"
)
def test_unknown_offset_restores_from_the_beginning():
    """-4 is an answer: the whole changelog is replayed."""
    run, app = opened()
    app.puts("0_0", 600, segment=OLD)
    run.wait(2)
    takes(run, app, 3000, NEW, -4)
    killed(run, app)
    starts(run, -4)
    run.wait(30)
    assert loudest(run) is Severity.INFO


@pytest.mark.twin_of("lost-segment", "the loss was reported of an earlier opening")
def test_reported_once_for_one_loss():
    """A second crash of the same store does not tell the same segment again."""
    run, app = crossed()
    killed(run, app)
    again = starts(run)
    takes(run, again, 500, NEW, ANSWER + 500)
    killed(run, again)
    starts(run, ANSWER + 500)
    run.wait(30)
    assert [x.severity for x in open_findings(run)] == [Severity.CRITICAL]
