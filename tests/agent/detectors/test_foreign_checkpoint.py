"""Detector `foreign-checkpoint`: entries of partitions that belong to other tasks (KAFKA-5998)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application, ProcessLife
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import at, case, checkpoint, judge, severities, task

ID = "foreign-checkpoint"
OTHERS = {("app-s-changelog", 1): 0, ("app-s-changelog", 2): 0}


def listing(release: str, foreign: dict[tuple[str, int], int], **more) -> tuple[Scenario, App]:
    """A checkpoint of task 0_0 with further entries."""
    run = Scenario(release, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 100)
    app.checkpoints("0_0", 100, foreign=foreign)
    run.wait(2)
    return run, app


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "2.2.1", "2.3.0"])
def test_normal_noise(release):
    """Up to 2.2.1 and on 2.3.0 it is information."""
    run, _ = listing(release, OTHERS)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.INFO,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.affected, finding.upstream) == (Affected.YES, ("KAFKA-5998",))
    assert "2 changelog partitions" in finding.summary
    assert finding.evidence[0].what == "for example app-s-changelog-1"
    assert finding.evidence[0].at_us == finding.opened_at_us


def test_stays_one_finding_over_many_checkpoints():
    """Every commit rewrites the file; the finding is about the task."""
    run, app = listing("2.0.1", OTHERS)
    for _ in range(5):
        app.checkpoints("0_0", 100, foreign=OTHERS)
        run.wait(1)
    assert len(run.findings(ID)) == 1


def test_odd_on_a_fixed_release():
    """A fixed release that is seen to write them is a warning."""
    run, _ = listing("2.8.2", OTHERS)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.affected) == (
        Severity.WARNING,
        Confidence.SUSPECTED,
        Affected.NO,
    )


def test_inherited_from_an_older_release():
    """After an upgrade the old file is there until the next write: information."""
    run, app = listing("2.8.2", OTHERS)
    app.crash()
    run.wait(3)
    run.start("3.9.2")
    run.wait(2)
    assert run.only(ID).severity is Severity.INFO


def test_clears_with_the_next_checkpoint():
    """A file without such entries ends it."""
    run, app = listing("2.1.1", OTHERS)
    app.checkpoints("0_0", 101)
    run.wait(1)
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.parametrize(
    "foreign",
    [{}, {("input", 1): 5}, {("input", 0): 5}, {("other-s-changelog", 1): 5}, {("app-x-changelog", 0): 5}],
)
def test_quiet_for_other_topics(foreign):
    """Source topics under optimisation, other applications' topics, and other stores of this partition."""
    run, _ = listing("2.1.1", foreign)
    assert run.findings(ID) == []


# -- the exact boundary ---------------------------------------------------------------------------------------


def dossier(
    *,
    partition: int = 1,
    topic: str = "app-s-changelog",
    written: float = 20,
    task_id: str = "0_0",
    **settings,
):
    """A process since 10 s; a checkpoint with one foreign entry written at `written`."""
    app = Application("app", exists=True)
    app.lives += (ProcessLife(at(10)),)
    fact = replace(checkpoint(written, 5), foreign=(OffsetEntry(topic, partition, 1),))
    return case(
        task(checkpoints=[fact], task_id=task_id), application=app, **{"release": "2.8.2", **settings}
    )


def test_odd_only_where_this_process_wrote_it():
    """The release must not do it, and the running process must have."""
    assert severities(ID, dossier()) == [Severity.WARNING]
    assert severities(ID, dossier(written=10)) == [Severity.INFO]
    assert severities(ID, dossier(release="2.1.1")) == [Severity.INFO]
    assert severities(ID, dossier(release=None)) == [Severity.INFO]


def test_entries_that_are_not_foreign():
    """An unknown store of the same partition, and the global task."""
    assert judge(ID, dossier(partition=0)) == []
    assert judge(ID, dossier(topic="source")) == []
    assert judge(ID, dossier(task_id="global")) == []


def test_checkpoint_must_be_there():
    """A file that is gone lists nothing."""
    one = dossier()
    one.task.checkpoints[-1].ended_us = at(30)
    assert judge(ID, one) == []


def test_no_process_wrote_it():
    """Without a living process the file is an old one: information, also on a fixed release."""
    one = dossier()
    one.application.lives = ()
    assert severities(ID, one) == [Severity.INFO]
