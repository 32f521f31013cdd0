"""Offsets that were dropped because one was out of range: what only a changelog that ends too early explains."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Confidence, Severity, Status
from agent.judging.changelog_ends import is_revived
from tests.support.out_of_range import at_5000, opened, out_of_range
from tests.support.scenario import KEY_VALUE, WINDOWED, Scenario
from tests.support.scenario_case import session

ID = "changelog-truncated"


# -- 4.3: the offset is removed from the store ------------------------------------------------------------------


@pytest.mark.parametrize("told", [{}, {"hidden": ("num_standby_replicas",), "standbys": None}])
def test_changelog_that_has_grown_past_before_the_first_flush(told):
    """Recorded on 4.3.1: by the time of the next flush the new changelog reaches further than the old offset."""
    run = at_5000("4.3.1", **told)
    app = out_of_range(run)
    run.wait(2)
    app.puts("0_0", 6000)
    app.stops({"0_0": 5999})
    run.wait(5)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert (
        "the changelog of store s ends before what the store holds: it held offset 5000, which then was out of"
        " range" in finding.summary
    )
    run.start().opens("0_0")
    run.wait(60)
    assert run.only(ID).status is Status.OPEN


def test_two_stores_of_one_task():
    """Offsets are dropped task by task: one changelog ends too early, which of the two is not known."""
    run = at_5000("4.3.1", stores={"a": KEY_VALUE, "b": KEY_VALUE})
    app = out_of_range(run)
    app.puts("0_0", 6000)
    app.stops({"0_0": 5999})
    run.wait(5)
    assert {
        x.store: "store a or b" in x.summary or "store b or a" in x.summary for x in run.findings(ID)
    } == {
        "a": True,
        "b": True,
    }


@pytest.mark.parametrize("back", [False, True])
def test_changelog_that_was_switched_off(back):
    """A store without a changelog loses its offset at the first commit, and keeps it lost over every restart."""
    run = at_5000("4.3.1")
    app = opened(run)
    for database in run.task("0_0").databases.values():
        database.drop_offset("app-s-changelog-0")
    run.wait(30)
    app.closes("0_0")
    if back:
        run.wait(60)
    else:
        app.ends()
        run.wait(5)
        app = run.start()
    app.opens("0_0")
    run.wait(60)
    assert run.findings(ID) == []


@pytest.mark.parametrize(("topic", "said"), [("orders-0", 0), ("app-s-changelog-0", 1)])
def test_source_topic_in_place_of_a_changelog(topic, said):
    """A source topic loses its beginning to retention: an offset out of range says nothing there."""
    run = Scenario("4.3.1")
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.puts("0_0", 5000)
    (database,) = run.task("0_0").databases.values()
    database.put_offset(topic, 5000)
    app.stops()
    run.wait(5)
    app = opened(run)
    run.wait(0.3)
    database.drop_offset(topic)
    app.closes_dirty("0_0")
    run.wait(0.1)
    app.opens("0_0")
    run.wait(60)
    assert len(run.findings(ID)) == said


def test_revived_with_its_offset():
    """A task that timed out is closed and opened again, and keeps its offset, even if one look did not find it."""
    run = at_5000("4.3.1")
    app = opened(run)
    run.wait(5)
    app.closes_dirty("0_0")
    run.wait(0.1)
    app.opens("0_0")
    assert run.world.pipeline is not None
    run.wait(1)
    held = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"].sessions[-1]
    held.stored_offset_at_open = None
    run.wait(60)
    assert run.findings(ID) == []


# -- up to 4.2: the checkpoint is deleted -----------------------------------------------------------------------


def ended(run: Scenario, app: Any, offset: int = -4) -> Any:
    """The replay ends at once at an offset, and the task goes on."""
    app.restores("0_0", offset, puts=max(offset, 0))
    run.wait(12)
    app.puts("0_0", 1900)
    app.stops({"0_0": 6899})
    run.wait(5)
    return next(x for x in run.findings(ID) if x.store == "s")


@pytest.mark.parametrize(
    ("release", "severity"),
    [
        ("3.5.1", Severity.WARNING),
        ("3.7.2", Severity.WARNING),
        ("3.9.2", Severity.CRITICAL),
        ("4.2.1", Severity.CRITICAL),
    ],
)
def test_empty_changelog_after_a_drop(release, severity):
    """Up to 3.7 a timeout of the producer drops offsets, too; from 3.8 on only an offset out of range."""
    run = at_5000(release)
    finding = ended(run, out_of_range(run))
    assert (finding.severity, finding.confidence) == (severity, Confidence.SUSPECTED)


def test_guarantee_that_is_not_configured_anywhere():
    """Exactly-once drops offsets for other causes; it wipes then, but nobody knows which it is."""
    run = at_5000("3.9.2", hidden=("processing_guarantee",))
    assert ended(run, out_of_range(run)).severity is Severity.WARNING


def test_windowed_store_beside_it():
    """The changelog of a windowed store forgets its beginning: its offset may be the one that was out of range."""
    run = at_5000("3.9.2", stores={"s": KEY_VALUE, "w": WINDOWED})
    assert ended(run, out_of_range(run)).severity is Severity.WARNING


def test_source_topic_beside_it():
    """So does a source topic that stands in for another store's changelog."""
    run = at_5000("3.9.2")
    app = opened(run)
    app.checkpoints("0_0", 5000, foreign={("orders", 0): 70})
    app.stops()
    run.wait(5)
    assert ended(run, out_of_range(run)).severity is Severity.WARNING


@pytest.mark.parametrize("how", ["removed by hand", "removed by hand, then revived", "killed in between"])
def test_offset_that_went_another_way(how):
    """Without an offset a replay of a whole changelog may stop on its way, for a pause: nothing was out of range."""
    run = at_5000("3.9.2")
    if how == "killed in between":
        app = opened(run)
        run.wait(0.3)
        run.world.play("unlink", "app/0_0/.checkpoint")
        run.wait(5)
        app.crash()
        run.wait(3)
    else:
        run.world.play("unlink", "app/0_0/.checkpoint")
    app = opened(run)
    if how == "removed by hand, then revived":
        run.wait(3)
        app.closes_dirty("0_0")
        run.wait(0.1)
        app.opens("0_0")
    assert ended(run, app).severity is Severity.WARNING


def test_replay_that_comes_back():
    """The end of the replay is where it was: nothing is missing."""
    run = at_5000("3.9.2")
    app = out_of_range(run)
    app.restores("0_0", 5100, puts=5101)
    run.wait(60)
    app.stops({"0_0": 5200})
    run.wait(5)
    assert run.findings(ID) == []


# -- the same process opens it again ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "outlived", "said"),
    [(1, None, True), (1.1, None, False), (1.1, False, False), (30, True, True), (30.1, True, False)],
)
def test_revived(gap, outlived, said):
    """Within a second it is the same process; later it has to be known that it lived on."""
    before, after = session(0, 10), session(10 + gap)
    before.outlived = outlived
    assert is_revived(before, after) is said
    before.released_us = None
    assert not is_revived(before, after)
