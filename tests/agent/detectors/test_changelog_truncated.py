"""Detector `changelog-truncated`: the changelog ends before what the store holds (D11)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from tests.support.out_of_range import ALOS, EOS, at_5000, drops_offsets, opened, out_of_range
from tests.support.scenario import KEY_VALUE, WINDOWED, Scenario

ID = "changelog-truncated"


# -- it fires -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", [ALOS, EOS])
@pytest.mark.parametrize("release", ["3.7.2", "3.9.2", "4.1.2", "4.2.1", "4.3.1"])
def test_reset_without_cleanup(release, guarantee):
    """The empty changelog counts as restored, all input is processed again, and the close says a lower offset."""
    run = at_5000(release, guarantee)
    app = opened(run)
    run.wait(3)
    app.puts("0_0", 3000)
    run.wait(3)
    assert run.findings(ID) == []
    app.stops({"0_0": 2999})
    run.wait(5)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status, finding.affected) == (
        Level.DAMAGE,
        Severity.CRITICAL,
        Confidence.SUSPECTED,
        Status.OPEN,
        Affected.YES,
    )
    assert (finding.task_id, finding.store, finding.upstream) == ("0_0", "s", ())
    assert "it held offset 5000, and while it was open the changelog gave offset 2999" in finding.summary
    assert [x.detector for x in run.loud()] == [ID]


@pytest.mark.parametrize("release", ["2.6.2", "2.8.2", "3.5.1", "3.6.1"])
def test_warning_where_a_recorder_may_be_stale(release):
    """Up to 3.6.1 a task that is revived may write an offset from before: that can be lower, too."""
    run = at_5000(release)
    app = opened(run)
    app.puts("0_0", 3000)
    app.stops({"0_0": 2999})
    run.wait(5)
    assert run.only(ID).severity is Severity.WARNING


@pytest.mark.parametrize("release", ["3.9.2", "4.2.1"])
def test_changelog_recreated_while_it_runs(release):
    """The topic is deleted and made again under a running task."""
    run = Scenario(release)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(5)
    app.puts("0_0", 15_000)
    app.checkpoints("0_0", 16_999)
    run.wait(60)
    app.puts("0_0", 11_000)
    app.checkpoints("0_0", 10_999)
    run.wait(2)
    assert run.only(ID).severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("release", "offset"),
    [
        *((x, 3000) for x in ("2.6.2", "2.8.2", "3.4.1", "3.9.2", "4.2.1")),
        *((x, -4) for x in ("2.6.2", "3.4.1")),
    ],
)
@pytest.mark.twin_of("changelog-truncated", "the replay may be on its way")
def test_offset_out_of_range(release, offset):
    """The changelog is read again from its start, and the offset that stands afterwards is lower, or none at all."""
    run = at_5000(release)
    app = out_of_range(run)
    app.puts("0_0", 10)
    app.checkpoints("0_0", offset)
    run.wait(58)
    assert run.findings(ID) == []
    run.wait(70)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert ("gave nothing" if offset < 0 else "gave offset 3000") in finding.summary
    assert "after it was read again from its start" in finding.summary


@pytest.mark.parametrize(
    ("release", "offset"), [("3.5.1", -4), ("3.9.2", -4), ("3.9.2", 3000), ("4.2.1", 3000)]
)
def test_end_of_the_replay(release, offset):
    """What the end of a restoration writes decides, even if the changelog soon grows past the old offset."""
    run = at_5000(release)
    app = out_of_range(run)
    app.restores("0_0", offset, puts=max(offset, 0))
    run.wait(9)
    assert run.findings(ID) == []
    run.wait(3)
    app.puts("0_0", 11_000)
    app.checkpoints("0_0", 11_000)
    run.wait(5)
    assert run.only(ID).severity is (Severity.WARNING if release == "3.5.1" else Severity.CRITICAL)


def test_end_of_the_replay_and_a_stop_soon_after():
    """Work after it shows that the task went on, also in seconds."""
    run = at_5000("3.9.2")
    app = out_of_range(run)
    app.restores("0_0", -4, puts=0)
    run.wait(3)
    app.puts("0_0", 6000)
    app.stops({"0_0": 5999})
    run.wait(5)
    assert "the changelog gave nothing" in run.only(ID).summary


@pytest.mark.parametrize("then", ["goes on", "stops"])
@pytest.mark.twin_of("changelog-truncated", "the store may be let go at once")
def test_offset_out_of_range_in_the_store(then):
    """4.3: the offset is removed from the store, and the store opened without one."""
    run = at_5000("4.3.1")
    app = out_of_range(run)
    run.wait(9)
    assert run.findings(ID) == []
    app.puts("0_0", 3000)
    if then == "stops":
        app.stops({"0_0": 2999})
    run.wait(5)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "it held offset 5000" in finding.summary


@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.2.1"])
@pytest.mark.parametrize("guarantee", [ALOS, EOS])
def test_changelog_that_has_grown_past(release, guarantee):
    """The empty changelog counts as restored, and the next offset is above the old one: far too many puts for it."""
    run = at_5000(release, guarantee)
    app = opened(run)
    app.restores("0_0", 5000, puts=0)
    run.wait(5)
    app.puts("0_0", 6000)
    app.stops({"0_0": 5999})
    run.wait(5)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "with far more puts since than offsets the changelog gave offset 5999" in finding.summary


@pytest.mark.parametrize("guarantee", [ALOS, EOS])
def test_flush_while_it_is_processed_again(guarantee):
    """4.3: the first flush after the reset says a lower offset, however far the changelog grows later."""
    run = at_5000("4.3.1", guarantee)
    app = opened(run)
    run.wait(3)
    app.puts("0_0", 1000)
    app.commits("0_0", 999)
    app.flushes("0_0")
    run.wait(3)
    assert run.only(ID).severity is Severity.CRITICAL
    app.puts("0_0", 5000)
    app.stops({"0_0": 5999})
    run.wait(5)
    assert run.only(ID).status is Status.OPEN


def test_stays_one_finding():
    """However often the store is opened and let go below the old offset: one finding, until it is wiped."""
    run = at_5000("4.1.2")
    for offset in (1000, 1500, 2000):
        app = opened(run)
        app.puts("0_0", 500)
        app.stops({"0_0": offset})
        run.wait(5)
    assert run.only(ID).status is Status.OPEN
    app = opened(run)
    run.wait(1)
    app.wipes("0_0")
    run.wait(30)
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.twin_of("changelog-truncated", "the store was made by that opening")
def test_found_again_after_a_replacement():
    """Another incarnation of the store is another case."""
    run = at_5000("4.1.2")
    for offset in (4000, 3000):
        app = opened(run)
        app.stops({"0_0": offset})
        app = opened(run)
        run.wait(1)
        app.wipes("0_0")
        app.restores("0_0", 5000, puts=5000)
        app.stops({"0_0": 5000})
        run.wait(5)
    assert len(run.findings(ID)) == 2


# -- it stays quiet -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["3.9.2", "4.2.1"])
@pytest.mark.twin_of("changelog-truncated", "the replay came as far as the store was")
def test_replay_on_its_way(release):
    """An offset aged out: the replay begins low and comes back to where it was, checkpoint by checkpoint."""
    run = at_5000(release)
    app = opened(run)
    app.puts("0_0", 60_000)
    app.stops({"0_0": 65_000})
    app = out_of_range(run)
    for offset in (10_500, 21_000, 33_000, 50_000, 66_000):
        app.checkpoints("0_0", offset)
        run.wait(30)
    run.wait(300)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["3.9.2", "4.2.1"])
@pytest.mark.parametrize("offset", [-4, 3000])
def test_let_go_before_the_end(release, offset):
    """A task that is taken away while it is read writes its checkpoint twice, too, and is closed."""
    run = at_5000(release)
    app = out_of_range(run)
    run.wait(1)
    app.checkpoints("0_0", offset)
    run.wait(0.01)
    app.checkpoints("0_0", offset)
    app.closes("0_0")
    run.wait(120)
    assert run.findings(ID) == []


@pytest.mark.twin_of("changelog-truncated", "the changelog may have given as much")
def test_store_that_puts_more_than_once():
    """A versioned store puts the old version and the new one for a record of its changelog."""
    run = at_5000("4.1.2")
    app = opened(run)
    app.restores("0_0", 5000, puts=0)
    app.puts("0_0", 2000)
    app.stops({"0_0": 6000})
    run.wait(5)
    assert run.findings(ID) == []


@pytest.mark.twin_of("changelog-truncated", "the store was opened again since, and is replayed")
def test_replay_between_two_openings_that_look_like_one():
    """All is read again over the old files: many puts, and the offset is back where it was."""
    run = at_5000("4.2.1")
    app = opened(run)
    run.wait(1)
    with run.unheard():
        drops_offsets(run, app)
        app.opens("0_0")
    app.restores("0_0", 5100, puts=5101)
    run.wait(30)
    app.stops({"0_0": 5200})
    run.wait(5)
    assert run.findings(ID) == []


def test_offset_that_could_not_be_read_for_a_moment():
    """4.3: a look that met a file on its way says that there is no offset; the next one finds it again."""
    run = at_5000("4.3.1")
    opened(run).stops({"0_0": 5000})
    assert run.world.pipeline is not None
    held = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"].sessions[-1]
    held.stored_offset_at_open = None
    run.wait(60)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.2.1", "4.3.1"])
def test_close_in_the_middle_of_a_replay(release):
    """A task that is let go while it is read again says how far it came; the next owner goes on from there."""
    run = at_5000(release, stores={"s": KEY_VALUE, "w": WINDOWED})
    app = out_of_range(run)
    run.wait(3)
    app.closes("0_0", 2500)
    run.wait(120)
    app.opens("0_0")
    app.restores("0_0", 5200, puts=2700)
    run.wait(120)
    app.closes("0_0", 5300)
    run.wait(5)
    assert run.findings(ID) == []


def test_two_openings_that_look_like_one():
    """The drop and the next opening lie milliseconds apart: LOG.old tells, and the replay is given its time."""
    run = at_5000("4.2.1")
    app = opened(run)
    run.wait(1)
    with run.unheard():
        drops_offsets(run, app)
        app.opens("0_0")
    app.puts("0_0", 10)
    app.checkpoints("0_0", 3000)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize("new", ["2.6.2", "2.8.2", "3.9.2"])
@pytest.mark.twin_of("changelog-truncated", "the offset's meaning changed by one, from 2.5 to 2.6")
def test_upgrade_from_2_5(new):
    """The offset's meaning changes by one: the position is out of range, and all is read again."""
    run = at_5000("2.5.1")
    app = run.start(new)
    app.opens("0_0")
    run.wait(0.3)
    drops_offsets(run, app)
    app.opens("0_0")
    app.restores("0_0", 4999, puts=5000)
    run.wait(120)
    app.stops({"0_0": 4999})
    run.wait(5)
    assert run.findings(ID) == []


@pytest.mark.twin_of("changelog-truncated", "all records of a windowed store have expired from its changelog")
def test_expired_changelog_of_a_windowed_store():
    """A window's changelog forgets its beginning; if nothing is left of it, there is nothing to read, and no offset."""
    run = at_5000("4.1.2", stores={"w": WINDOWED})
    app = out_of_range(run)
    app.checkpoints("0_0", -4)
    run.wait(300)
    assert run.findings(ID) == []


@pytest.mark.parametrize(("release", "guarantee"), [("3.9.2", EOS), ("2.5.1", ALOS)])
@pytest.mark.twin_of("changelog-truncated", "the store was opened again, and is replayed")
def test_lower_after_a_reopening_elsewhere(release, guarantee):
    """Exactly-once and releases up to 2.5 wipe what is out of range."""
    run = at_5000(release, guarantee)
    app = out_of_range(run)
    app.checkpoints("0_0", 3000)
    run.wait(300)
    assert run.findings(ID) == []


def test_slow_commits():
    """A replay writes its checkpoint at the commit interval at most."""
    run = at_5000("4.1.2", told={"commit_interval_ms": 120_000})
    app = out_of_range(run)
    app.checkpoints("0_0", 3000)
    run.wait(200)
    assert run.findings(ID) == []
    run.wait(120)
    assert len(run.findings(ID)) == 1


@pytest.mark.parametrize("release", ["2.8.2", "4.2.1", "4.3.1"])
@settings(max_examples=15, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["stop", "crash", "commit"]), st.integers(0, 12_000)), max_size=8
    )
)
def test_a_life_that_only_goes_forward(release, steps):
    """Orderly stops, crashes and commits in any order, at-least-once: the offset never falls, nothing is said."""
    run = Scenario(release)
    offset, app = 0, run.start()
    app.opens("0_0")
    for what, records in steps:
        offset += records
        app.puts("0_0", records)
        if what == "commit":
            app.commits("0_0", offset)
        elif what == "stop":
            app.stops({"0_0": offset})
        else:
            app.crash()
        run.wait(5)
        if what != "commit":
            app = run.start()
            app.opens("0_0")
            app.restores("0_0", offset, puts=0)
    run.wait(130)
    assert run.findings(ID) == []
