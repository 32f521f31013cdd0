"""Detector `unrestored-store`: a store that its owner wiped is used without a restoration, before it claims anything.

Found by the hunt on 2.0.1: a broker that did not answer for 15 s, a task that came back to the thread that had it, and
2,720 of 2,920 entries gone until the next start.
"""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Level, Severity, Status
from tests.agent.detectors.test_unrestored_store import ID
from tests.support.scenario import KEY_VALUE, WINDOWED, Scenario
from tests.support.scenario_app import App
from tests.support.scenario_case import at, case, database, judge, mark, session, store, task


def wiped(release: str = "2.0.1", **more) -> tuple[Scenario, App]:
    """Exactly-once, whole with 2,920 puts, and never closed in order: the task is opened again, and wiped."""
    run = Scenario(release, "exactly_once", **more)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 2920)
    app.flushes("0_0")
    run.wait(2)
    app.closes_dirty("0_0")
    run.wait(6)
    app.opens("0_0")
    run.wait(0.4)
    app.wipes("0_0")
    return run, app


def works(run: Scenario, app: App) -> None:
    """The task runs: 200 records, a commit, and then nothing for some seconds."""
    run.wait(0.1)
    app.puts("0_0", 200)
    app.flushes("0_0")
    run.wait(8)


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_wiped_and_used(release):
    """Puts and no reopen: suspected while it runs, and critical with the claim of the close."""
    run, app = wiped(release)
    works(run, app)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
    )
    assert (finding.store, finding.upstream) == ("s", ("KAFKA-7672",))
    assert "is used without a restoration" in finding.summary
    assert [step.what.partition(" in ")[0] for step in finding.evidence] == [
        "opened, wiped by its owner and recreated",
        "no bulk-load reopen",
        "200 puts on disk",
    ]
    app.closes("0_0", 3124)
    run.wait(8)
    assert run.only(ID).severity is Severity.CRITICAL


def test_the_next_wipe_ends_it():
    """Killed before the close: the next start wipes it again and restores it."""
    run, app = wiped()
    works(run, app)
    app.crash()
    run.wait(5)
    assert run.only(ID).status is Status.OPEN
    app = run.start()
    app.opens("0_0")
    run.wait(0.4)
    app.wipes("0_0")
    app.restores("0_0", 3124, puts=3120)
    works(run, app)
    assert run.only(ID).status is Status.RESOLVED


def test_restored_before_it_is_used():
    """The same wipe, with both reopens before the first records of the task."""
    run, app = wiped()
    run.wait(0.1)
    app.restores("0_0", 2924, puts=2920)
    works(run, app)
    assert run.findings(ID) == []


@pytest.mark.parametrize("claims", [False, True])
def test_restored_before_the_new_store_is_read(claims):
    """A short restoration may be over, and the store be used, when the agent reads it for the first time."""
    run, app = wiped()
    app.begins_restoring("0_0")
    app.puts("0_0", 20)
    app.ends_restoring("0_0")
    works(run, app)
    if claims:
        app.closes("0_0", 224)
        run.wait(8)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "its restoration began")
def test_restoration_that_goes_on():
    """Its puts come behind the first reopen, however long the second one takes."""
    run, app = wiped()
    run.wait(0.1)
    app.begins_restoring("0_0")
    works(run, app)
    assert run.findings(ID) == []


def test_restoration_that_waits_for_the_broker():
    """Wiped, and not even the end of the changelog is known: nothing is put."""
    run, app = wiped()
    run.wait(60)
    assert run.findings(ID) == []
    app.restores("0_0", 2924, puts=2920)
    works(run, app)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.0.0", "2.2.1", "2.3.1", "2.5.1"])
def test_other_releases(release):
    """Without the bug there is nothing to suspect."""
    run, app = wiped(release)
    works(run, app)
    assert run.findings(ID) == []


def test_unknown_release():
    """By its RocksDB it may be an affected one: the same word, and the setting that would decide."""
    run, app = wiped("2.1.1", hidden=("kafka_streams_version",))
    works(run, app)
    finding = run.only(ID)
    assert (finding.severity, finding.missing_facts) == (Severity.WARNING, ("kafka_streams_version",))


def used(*, read: float, now: float = 100, flushed: float = 14, released: float | None = None):
    """Opened at 10 s, wiped, 50 puts flushed at `flushed`, read for the last time at `read`."""
    one = session(10, released)
    one.wiped = True
    held = database(puts=50, flushed=[(50, flushed)], born=12)
    held.seen_us = at(read)
    return case(task(store([held], [one])), release="2.0.1", guarantee="exactly_once", now=now)


@pytest.mark.parametrize(("read", "said"), [(13.9, 0), (14, 1), (20, 1)])
def test_reopens_are_read_first(read, said):
    """A reading that began before the flush may have missed the reopen between the two."""
    assert len(judge(ID, used(read=read))) == said


@pytest.mark.parametrize(("now", "said"), [(15.9, 0), (16, 1)])
def test_two_seconds_after_the_flush(now, said):
    """What a busy machine reads late is waited for."""
    assert len(judge(ID, used(read=15, now=now))) == said


def test_what_a_later_session_put():
    """Only puts of the session that was wiped show that it was used."""
    assert judge(ID, used(read=20, released=13)) == []
    assert len(judge(ID, used(read=20, released=15))) == 1


def test_a_claim_needs_no_puts():
    """What was put may have been deleted again, or not be flushed: the claim is enough, and is critical."""
    one = used(read=12)
    assert one.task is not None
    held = one.task.stores["s"].sessions[0]
    assert judge(ID, one) == []
    held.first = held.last = mark(20, 90, 0)
    assert [x.severity for x in judge(ID, one)] == [Severity.CRITICAL]


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_a_windowed_store_is_restored_without_a_reopen(release):
    """On 2.0.1 RocksDBSegmentedBytesStore puts record by record: a restoration after a wipe looks like use."""
    run, app = wiped(release, stores={"s": KEY_VALUE, "w": WINDOWED})
    run.wait(0.1)
    app.puts("0_0", 200, store="w", segment=0)
    app.flushes("0_0")
    run.wait(8)
    assert [x.store for x in run.findings(ID)] == []
    app.puts("0_0", 200, store="s")
    app.flushes("0_0")
    run.wait(8)
    assert {x.store for x in run.findings(ID)} == {"s"}
