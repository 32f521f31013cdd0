"""Detector `regressed-checkpoint`: the offset went backwards on the same store (D3, KAFKA-13249)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    session,
    severities,
    store,
    task,
)

ID = "regressed-checkpoint"


def at_5000(release: str = "3.0.0", guarantee: str = "exactly_once_v2", **more) -> tuple[Scenario, App]:
    """A task whose checkpoint says 5000."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 5000)
    app.checkpoints("0_0", 5000)
    run.wait(5)
    return run, app


@pytest.mark.parametrize("release", ["2.6.2", "2.8.1", "3.0.0", "4.1.2"])
def test_falls_over_a_reopening(release):
    """An offset out of range is dropped; the replay from the start begins lower and only takes longer."""
    run, app = at_5000(release, "at_least_once")
    app.checkpoints("0_0", 5001)
    app.world.play("unlink", "app/0_0/.checkpoint")
    app.closes("0_0")
    run.wait(1)
    assert run.findings(ID) == []
    app.opens("0_0")
    app.checkpoints("0_0", 3000)
    run.wait(2)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.INFO,
        Confidence.CONFIRMED,
        Status.RESOLVED,
    )
    assert (finding.task_id, finding.store) == ("0_0", "s")
    assert "from 5001 to 3000 after it was opened again" in finding.summary


def test_quiet_while_it_is_open():
    """A running task whose offset falls is not explained by any replay: `changelog-truncated` says so."""
    run, app = at_5000("4.1.2", "at_least_once")
    app.checkpoints("0_0", 3000)
    run.wait(2)
    assert run.findings(ID) == []
    assert len(run.findings("changelog-truncated")) == 1


def test_quiet_below_a_trusted_offset():
    """An opening that trusted the old offset replays nothing below it: that is no explanation, either."""
    run, app = at_5000("4.1.2", "at_least_once")
    app.stops({"0_0": 5000})
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    app.checkpoints("0_0", 4000)
    run.wait(2)
    assert run.findings(ID) == []
    assert len(run.findings("changelog-truncated")) == 1


@pytest.mark.parametrize("offset", [5000, 4999, -4])
def test_quiet_for_what_is_no_fall(offset):
    """The same offset, one less (2.5 against 2.6), and `unknown`."""
    run, app = at_5000()
    app.checkpoints("0_0", offset)
    run.wait(5)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.6.2", "4.1.2"])
def test_quiet_for_a_wipe(release):
    """A new incarnation begins at its own offset."""
    run, app = at_5000(release)
    app.wipes("0_0")
    app.restores("0_0", 3000, puts=3000)
    run.wait(1)
    app.checkpoints("0_0", 3000)
    run.wait(5)
    assert run.findings(ID) == []


def test_quiet_for_a_wiped_store():
    """Up to 2.5 the store is recreated within the same task directory."""
    run, app = at_5000("2.1.1", "exactly_once")
    app.wipes("0_0")
    app.restores("0_0", 3000)
    run.wait(1)
    app.checkpoints("0_0", 3000)
    run.wait(5)
    assert run.findings(ID) == []


def dossier(
    old: int = 5000,
    new: int = 3000,
    *,
    born: float = 0,
    incarnations: tuple[int, int] = (1, 1),
    release: str = "4.1.2",
):
    """Two checkpoints at 10 and 20 s, the store opened again at 15 s; it was born at `born`."""
    facts = [
        checkpoint(10, old, ended=20, incarnation=incarnations[0]),
        checkpoint(20, new, incarnation=incarnations[1]),
    ]
    return case(
        task(store([database(born=born)], [session(0, 14), session(15)]), checkpoints=facts), release=release
    )


def test_one_is_the_change_of_meaning():
    """From 2.6 on the offset is one lower for the same record."""
    assert judge(ID, dossier(5000, 4999)) == []
    assert severities(ID, dossier(5000, 4998)) == [Severity.INFO]
    assert severities(ID, dossier(5000, 0)) == [Severity.INFO]
    assert judge(ID, dossier(5000, -4)) == []


def test_store_must_be_older_than_the_first_checkpoint():
    """A store made after the higher checkpoint is another one; an unknown one decides nothing."""
    assert judge(ID, dossier(born=10)) == []
    assert severities(ID, dossier(born=9.9)) == [Severity.INFO]
    gone = dossier()
    gone.task.stores["s"].databases.clear()
    assert judge(ID, gone) == []


def test_other_life_of_the_directory():
    """Checkpoints of two lives of the directory are not compared."""
    assert judge(ID, dossier(incarnations=(1, 2))) == []


def test_only_stores_of_both():
    """A store without an entry in one of the two, or without a directory, is left out."""
    one = dossier()
    one.task.checkpoints[0].offsets.clear()
    assert judge(ID, one) == []
    other = dossier()
    other.task.stores.clear()
    assert judge(ID, other) == []


def test_segmented_store():
    """Of a windowed store the segments' births say nothing."""
    one = dossier(born=15)
    assert judge(ID, one) == []
    one.task.stores["s"].segmented = True
    assert severities(ID, one) == [Severity.INFO]


@pytest.mark.parametrize(("opened", "said"), [(10, 0), (10.1, 1), (20, 1)])
def test_reopening_between_the_two(opened, said):
    """An opening after the first checkpoint and up to the second explains the fall; the sentence says so."""
    one = dossier()
    one.task.stores["s"].sessions = (session(opened),)
    verdicts = judge(ID, one)
    assert [x.severity for x in verdicts] == [Severity.INFO] * said
    assert all("after it was opened again" in x.summary for x in verdicts)


def test_reopening_that_only_log_old_shows():
    """A reopening too short for a lock poll is known from LOG.old."""
    one = dossier()
    one.task.stores["s"].sessions = (session(0),)
    one.task.stores["s"].databases[""].reopened_us = (one.task.checkpoints[0].written_us + 5,)
    assert severities(ID, one) == [Severity.INFO]


def test_each_store_is_judged():
    """A store whose offset did not fall, or that is gone, does not hide the one whose offset fell."""
    one = dossier()
    before, after = one.task.checkpoints
    before.offsets = {"gone": 9, "a": 5, "s": 5000}
    after.offsets = {"gone": 1, "a": 5, "s": 3000}
    one.task.stores["a"] = store([database()], [session(15)], name="a")
    assert [verdict.store for verdict in judge(ID, one)] == ["s"]


def test_each_pair_is_judged():
    """A change of the directory's life does not hide a fall after it."""
    one = dossier()
    one.task.checkpoints = (checkpoint(5, 9000, ended=6, incarnation=0), *one.task.checkpoints)
    assert [verdict.opened_at_us for verdict in judge(ID, one)] == [at(20)]


def test_chain_of_the_verdict():
    """Both checkpoints with their offsets; dated to the lower one; the affected releases are those of KAFKA-13249."""
    verdict = judge(ID, dossier())[0]
    assert [(step.at_us, step.what) for step in verdict.evidence] == [
        (at(10), "checkpoint with offset 5000"),
        (at(20), "checkpoint with offset 3000, same store"),
    ]
    assert (verdict.opened_at_us, verdict.identity) == (at(20), "identity-1")


@pytest.mark.parametrize(
    ("release", "affected"),
    [
        ("2.5.1", Affected.NO),
        ("2.6.0", Affected.YES),
        ("2.8.1", Affected.YES),
        ("2.8.2", Affected.NO),
        ("3.0.0", Affected.YES),
        ("3.0.1", Affected.NO),
    ],
)
def test_affected_releases(release, affected):
    """KAFKA-13249: fixed in 2.8.2, 3.0.1 and 3.1.0."""
    assert judge(ID, dossier(release=release))[0].affected is affected
