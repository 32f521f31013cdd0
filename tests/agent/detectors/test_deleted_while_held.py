"""Law `deleted-while-held`: no store is deleted under the process that holds it."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.disk import LockState
from tests.support.laws import ALOS, EOS, UNHEARD_OF, broken, lawful, said
from tests.support.scenario import TIMESTAMPED, WINDOWED, App, Scenario
from tests.support.scenario_looks import DATABASE, Reducing, database_look, removal, task_look
from tests.support.scenario_tasks import delete_tree

ID = "deleted-while-held"
RELEASES = ["2.0.1", "2.3.1", "2.8.2", "3.9.2", "4.3.1", UNHEARD_OF]


def running(release: str = "3.9.2", guarantee: str = ALOS, **more) -> tuple[Scenario, App]:
    """A task that works, with something flushed."""
    run = lawful(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(5)
    return run, app


# -- it speaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_a_held_directory_is_deleted(release):
    """By whomever: the owner has closed nothing."""
    run, _ = running(release)
    delete_tree(run.world, "app/0_0")
    run.wait(5)
    finding = said(run, ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status, finding.affected) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.RESOLVED,
        Affected.POSSIBLY,
    )
    assert (finding.task_id, finding.store, finding.upstream) == ("0_0", "s", ())


def test_each_store_is_named_once():
    """Two stores, a slow deletion: two findings."""
    run, _ = running(stores={"s": TIMESTAMPED, "t": TIMESTAMPED})
    run.world.unlink_us = 400_000
    delete_tree(run.world, "app/0_0")
    run.wait(60)
    assert sorted(str(x.store) for x in run.findings(ID)) == ["s", "t"]


def test_a_segment_of_a_window_store():
    """Its siblings stay, and so does who holds them."""
    run, app = running(stores={"w": WINDOWED})
    app.puts("0_0", 100, segment=60_000)
    app.flushes("0_0")
    run.wait(5)
    delete_tree(run.world, "app/0_0/w/w.60000")
    run.wait(5)
    assert "store w was deleted while a process holds it" in said(run, ID).summary


@pytest.mark.parametrize("release", RELEASES)
def test_identity_swept_under_a_held_store(release):
    """IDENTITY goes while LOCK is held, and its owner goes on: N19. Reported once, however often it is missing."""
    run, app = running(release)
    run.world.play("unlink", "app/0_0/rocksdb/s/IDENTITY")
    run.wait(2)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.RESOLVED,
    )
    assert "IDENTITY" in finding.summary
    app.puts("0_0", 10)
    app.flushes("0_0")
    run.wait(130)
    assert len(run.findings(ID)) == 1


# -- it is silent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("guarantee", [ALOS, EOS])
def test_a_wipe_closes_first(release, guarantee):
    """N13: whoever owns the store closes it, then deletes."""
    run, app = running(release, guarantee)
    app.wipes("0_0")
    run.wait(10)
    assert broken(run) == []


@pytest.mark.parametrize("release", RELEASES)
def test_a_cleaner_takes_what_no_process_holds(release):
    """N8: after an orderly close the task went elsewhere."""
    run, app = running(release)
    app.closes("0_0", 499)
    run.wait(30)
    app.cleaner.deletes("0_0")
    run.wait(10)
    assert broken(run) == []


@pytest.mark.parametrize("release", RELEASES)
def test_a_killed_owner_whose_directory_goes_at_once(release):
    """The kernel closes what a killed process had open, and announces it."""
    run, app = running(release)
    app.crash()
    run.world.play("close_w", "app/0_0/rocksdb/s/LOCK")
    delete_tree(run.world, "app/0_0")
    run.wait(10)
    assert broken(run) == []


@pytest.mark.twin_of(ID, "its owner was killed: the end is heard of later")
def test_an_owner_that_ends_a_moment_after_the_deletion():
    """Its end may not have been announced yet: nothing is said before a second has passed, and nothing then."""
    run, app = running()
    delete_tree(run.world, "app/0_0")
    assert run.findings(ID) == []
    run.wait(0.3)
    app.crash()
    run.wait(10)
    assert broken(run) == []


def test_an_expired_segment():
    """Closed, then deleted, while the store stays open."""
    run, app = running(stores={"w": WINDOWED})
    app.puts("0_0", 100, segment=60_000)
    app.flushes("0_0")
    run.wait(5)
    app.drops_segment("0_0", "w", 0)
    run.wait(10)
    assert broken(run) == []


def test_compaction_and_reopening():
    """A running store drops SST files and old manifests of its own."""
    run, app = running()
    app.puts("0_0", 500)
    app.flushes("0_0")
    app.compacts("0_0")
    app.reopens("0_0", "s")
    run.wait(10)
    assert run.findings(ID) == []


def test_a_store_that_is_wiped_and_made_again_at_once():
    """A revived task: closed, deleted, made again within the same moment."""
    run, app = running("4.1.2", EOS)
    app.wipes("0_0")
    app.opens("0_0")
    app.puts("0_0", 20)
    app.flushes("0_0")
    run.wait(10)
    assert broken(run) == []


def test_a_deletion_that_was_not_announced():
    """What a rescan finds gone may have been closed before: order is not known."""
    run, _ = running()
    with run.unheard():
        delete_tree(run.world, "app/0_0")
    run.wait(200)
    assert broken(run) == []


def test_who_holds_it_cannot_be_asked():
    """The lock's state is unknown."""
    run, _ = running()
    assert run.world.pipeline is not None
    task = run.world.pipeline.inventory.applications["app"].tasks["0_0"]
    task.stores["s"].databases[""].lock = LockState.UNKNOWN
    delete_tree(run.world, "app/0_0")
    run.wait(10)
    assert broken(run) == []


def test_a_removal_that_is_heard_of_late():
    """On a busy machine the store that a wipe recreated is read before the removal of the old one is heard of."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5), database_look(20, identity="identity-2", born=10))
    one.see(removal(20.1, f"{DATABASE}/LOCK"))
    assert one.task.taken
    one.see(database_look(20.2, identity="identity-2", born=10))
    assert not one.task.taken
