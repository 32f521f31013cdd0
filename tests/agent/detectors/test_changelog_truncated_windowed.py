"""Detector `changelog-truncated`: windowed stores, whose segments each count and keep offsets for themselves."""

from __future__ import annotations

import pytest

from agent.contract.events import Severity
from tests.support.out_of_range import ALOS, EOS
from tests.support.scenario import WINDOWED, App, Scenario
from tests.support.scenario_segments import ANSWER, NEW, OLD, close_cut, segment

ID = "changelog-truncated"
NEXT = 2 * NEW


def two_segments(release: str, guarantee: str = ALOS, *, watched: bool = True) -> Scenario:
    """A stopped application with 3,000 records in each of two segments, all committed."""
    run = Scenario(release, guarantee, stores={"w": WINDOWED}, watched=watched)
    app = run.start()
    app.opens("0_0")
    for number in (OLD, NEW):
        app.puts("0_0", 3000, segment=number)
        run.wait(2)
    app.stops({"0_0": 5999})
    run.wait(5)
    return run


def goes_on(run: Scenario, app: App) -> None:
    """600 records, a part of them in a new segment, and an orderly stop."""
    for number in (NEW, NEXT):
        app.puts("0_0", 300, segment=number)
        run.wait(5)
    app.stops({"0_0": 6599})
    run.wait(60)


# -- it fires -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "said"), [("4.3.1", [Severity.CRITICAL]), ("4.3.0", []), ("4.3.2", [])])
def test_reset_without_cleanup(release, said):
    """The segment that answered holds less than before; which one answers is known of 4.3.1 only."""
    run = two_segments(release)
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.puts("0_0", 1000, segment=NEW)
    app.commits("0_0", 999)
    app.flushes("0_0")
    run.wait(3)
    assert [x.severity for x in run.findings(ID)] == said
    app.stops({"0_0": 1999})
    run.wait(5)
    assert [x.severity for x in run.findings(ID)] == said


# -- it stays quiet -------------------------------------------------------------------------------------------


def cut() -> Scenario:
    """The close got as far as the older segment: it holds the last offset, and the newest one an earlier commit's."""
    run = Scenario("4.3.1", stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 600, segment=OLD)
    run.wait(2)
    app.puts("0_0", 400, segment=NEW)
    app.commits("0_0", 999)
    segment(run, NEW).flush()
    run.wait(2)
    app.puts("0_0", 2600, segment=NEW)
    close_cut(run, app)
    return run


@pytest.mark.parametrize("older", ["goes down with it", "expires"])
def test_replay_from_the_segment_that_answers(older):
    """A kill in the middle of a close leaves more in an older segment; it is the newest one that is trusted."""
    run = cut()
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.puts("0_0", 700, segment=NEW)
    app.commits("0_0", 1699)
    if older == "expires":
        app.drops_segment("0_0", "w", OLD)
    app.flushes("0_0")
    run.wait(5)
    assert run.findings(ID) == []
    app.stops({"0_0": ANSWER})
    run.wait(5)
    assert run.findings(ID) == []


@pytest.mark.parametrize("guarantee", [ALOS, EOS])
@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.2.1"])
@pytest.mark.parametrize("since", ["closed", "running"])
def test_agent_that_comes_later(release, guarantee, since):
    """The puts of a first session are those of all segments, in whatever order they are read."""
    run = two_segments(release, guarantee, watched=False)
    if since == "closed":
        run.world.watch()
        run.wait(5)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 5999, puts=0)
    run.wait(5)
    if since == "running":
        run.world.watch()
        run.wait(30)
    goes_on(run, app)
    assert run.findings(ID) == []
