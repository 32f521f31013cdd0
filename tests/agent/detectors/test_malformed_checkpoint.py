"""Detector `malformed-checkpoint`: unreadable, truncated, wrong count, duplicate, leftover temporary file."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity, Status
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import at, case, judge, task

ID = "malformed-checkpoint"

BROKEN = [
    b"",
    b"0\n",
    b"0\n2\napp-s-changelog 0 5\n",
    b"0\n1\napp-s-changelog 0\n",
    b"7\n0\n",
    b"0\n2\napp-s-changelog 0 5\napp-s-changelog 0 6\n",
    b"\xff\xfe\x00",
]


def running() -> tuple[Scenario, App]:
    """A task that works."""
    run = Scenario("3.9.2")
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    return run, app


def writes(run: Scenario, content: bytes) -> None:
    """Somebody puts this into the checkpoint."""
    run.world.replace("app/0_0/.checkpoint", content, "app/0_0/.checkpoint.tmp")


@pytest.mark.parametrize("content", BROKEN)
def test_content_that_cannot_be_read(content):
    """Each kind of damage is a warning that says where."""
    run, _ = running()
    writes(run, content)
    run.wait(1)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.status) == (
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert finding.evidence[0].where == "app/0_0/.checkpoint"


def test_clears_with_a_good_one():
    """The next checkpoint that can be read ends it."""
    run, app = running()
    writes(run, b"nonsense")
    run.wait(1)
    app.checkpoints("0_0", 100)
    run.wait(1)
    assert run.only(ID).status is Status.RESOLVED


def test_clears_with_the_directory():
    """A directory that is gone has no checkpoint."""
    run, app = running()
    writes(run, b"nonsense")
    run.wait(1)
    app.stops()
    app.deletes_directory("0_0")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


def test_wipe_ends_it():
    """A directory that was wiped and recreated has no checkpoint that could be malformed."""
    run = Scenario("3.7.2", "exactly_once_v2")
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    writes(run, b"nonsense")
    run.wait(1)
    app.wipes("0_0")
    run.wait(5)
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.parametrize("content", [b"0\n0\n", b"0\n1\napp-s-changelog 0 -4\n", b"0\n1\nsource 0 7"])
def test_quiet_for_what_streams_writes(content):
    """An empty map, an unknown offset, a source topic, and a missing last newline are well formed."""
    run, _ = running()
    writes(run, content)
    run.wait(5)
    assert run.findings(ID) == []


def test_temporary_file_while_it_is_written():
    """The temporary name is normal for milliseconds, and after a kill harmless."""
    run, app = running()
    run.world.write("app/0_0/.checkpoint.tmp", b"0\n")
    run.wait(300)
    assert run.findings(ID) == []
    app.crash()
    run.wait(130)
    finding = run.only(ID)
    assert (finding.severity, finding.status) == (Severity.INFO, Status.OPEN)
    assert "temporary" in finding.summary


def temporary(
    *, held: bool | None = False, name: str = ".checkpoint.tmp", exists: bool = True, now: float = 100
):
    """A task directory that was last changed at 20 s."""
    one = task(exists=exists)
    one.held, one.names, one.mtime_us = held, frozenset({name}), at(20)
    return case(one, now=now)


@pytest.mark.twin_of(ID, "a process holds the task, and may be writing it")
@pytest.mark.twin_of(ID, "changed less than a minute ago")
def test_temporary_file_needs_a_minute_without_a_holder():
    """More than a minute, nobody holds it, and it is that file."""
    assert judge(ID, temporary(now=80)) == []
    assert len(judge(ID, temporary(now=80.1))) == 1
    assert judge(ID, temporary(held=True)) == []
    assert judge(ID, temporary(name="s.position.tmp")) == []
    assert judge(ID, temporary(exists=False)) == []


def test_directory_that_is_gone():
    """A problem of a directory that is not there is nobody's."""
    one = temporary(exists=False)
    one.task.checkpoint_problem = "bad"
    assert judge(ID, one) == []
