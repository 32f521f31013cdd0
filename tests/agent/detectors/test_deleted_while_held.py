"""Law `deleted-while-held`: no store is deleted under the process that holds it."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Level
from agent.inventory.disk import LockState, Unseen
from agent.inventory.model import Application, ProcessLife
from tests.support.laws import EOS, UNHEARD_OF, broken, lawful
from tests.support.scenario import TIMESTAMPED, WINDOWED, Scenario
from tests.support.scenario_case import at, case, store, task
from tests.support.scenario_looks import DATABASE, Reducing, database_look, removal, task_look
from tests.support.scenario_script import life, play
from tests.support.scenario_tasks import delete_tree
from tests.support.twins import cases, said_of

ID = "deleted-while-held"
SAID = "warning suspected resolved"
TWO = {"s": TIMESTAMPED, "t": TIMESTAMPED}


def running(release: str = "3.9.2", *told: str, **more: Any) -> Scenario:
    """A task that works, with something flushed."""
    return play(lawful(release, *told, **more), "start, opens, 1 s, puts 500, flushes, 5 s")


def deleted(*told: str, path: str = "app/0_0", first: str = "", then: str = "10 s", **more: Any) -> Scenario:
    """By whomever: the owner has closed nothing."""
    run = play(running(*told, **more), first)
    delete_tree(run.world, path)
    return play(run, then)


def swept(release: str) -> Scenario:
    """IDENTITY goes while LOCK is held, and its owner goes on: N19. Told once, however often it is missing."""
    run = running(release)
    run.world.play("unlink", "app/0_0/rocksdb/s/IDENTITY")
    play(run, "2 s")
    assert said_of(ID, run) == SAID
    assert "IDENTITY" in run.only(ID).summary
    return play(run, "puts 10, flushes, 130 s")


def slowly() -> Scenario:
    """A deletion that takes its time."""
    run = running(stores=TWO)
    run.world.unlink_us = 400_000
    delete_tree(run.world, "app/0_0")
    assert sorted(str(x.store) for x in play(run, "60 s").findings(ID)) == ["s", "t"]
    return run


def killed_before() -> Scenario:
    """The kernel closes what a killed process had open, and announces it."""
    run = play(running(), "crash")
    run.world.play("close_w", "app/0_0/rocksdb/s/LOCK")
    delete_tree(run.world, "app/0_0")
    return play(run, "10 s")


def unannounced() -> Scenario:
    """What a rescan finds gone may have been closed before: order is not known."""
    run = running()
    with run.unheard():
        delete_tree(run.world, "app/0_0")
    return play(run, "200 s")


def unasked() -> Scenario:
    """Nobody can ask who holds the lock."""
    run = running()
    assert run.world.pipeline is not None
    held = run.world.pipeline.inventory.applications["app"].tasks["0_0"]
    held.stores["s"].databases[""].lock = LockState.UNKNOWN
    delete_tree(run.world, "app/0_0")
    return play(run, "10 s")


def unread() -> Scenario:
    """IDENTITY is there, and its volume does not give it."""
    run = running()
    disk, read = run.world.disk, run.world.disk.read_dated

    def refusing(path: str, most_bytes: int) -> Any:
        return Unseen.UNREADABLE if path.endswith("/IDENTITY") else read(path, most_bytes)

    disk.read_dated = refusing  # type: ignore[method-assign]
    return play(run, "130 s")


SEGMENT = "puts 100 segment=60000, flushes, 5 s"
RELEASES = ["2.0.1", "2.3.1", "2.8.2", "3.9.2", "4.3.1", UNHEARD_OF]


@pytest.mark.parametrize("release", RELEASES)
@cases(
    ID,
    ("the directory is deleted under its owner", deleted, SAID),
    ("a file is swept under its owner", swept, SAID),
    ("N13, its owner wipes it", lambda x: play(running(x), "wipes, 10 s"), "silent"),
    ("N13, exactly-once", lambda x: play(running(x, EOS), "wipes, 10 s"), "silent"),
    ("N8, a cleaner", lambda x: play(running(x), "closes 499, 30 s, deletes, 10 s"), "silent"),
)
def test_every_release(story, said, release):
    """It holds on every release: who deletes in order closes first."""
    run = story(release)
    assert said_of(ID, run) == said
    assert broken(run) == ([] if said == "silent" else [ID])


@cases(
    ID,
    ("two stores, slowly", slowly, f"{SAID}, {SAID}"),
    (
        "a segment, its siblings stay",
        lambda: deleted(stores={"w": WINDOWED}, first=SEGMENT, path="app/0_0/w/w.60000"),
        SAID,
    ),
    (
        "its owner is killed a moment later",
        lambda: deleted(then="0.3 s, crash, 10 s"),
        "silent: its owner was killed: the end is heard of later",
    ),
    ("its owner was killed before", killed_before, "silent"),
    (
        "an expired segment",
        life(f"{SEGMENT}, drops_segment w 0, 10 s", running, stores={"w": WINDOWED}),
        "silent",
    ),
    ("compaction and reopening", life("puts 500, flushes, compacts, reopens s, 10 s", running), "silent"),
    ("made again at once", life("wipes, opens, puts 20, flushes, 10 s", running, "4.1.2", EOS), "silent"),
    ("not announced", unannounced, "silent"),
    ("nobody can ask who holds it", unasked, "silent"),
    ("a file that cannot be read", unread, "silent"),
)
def test_lives(story, said):
    """Whether a process held it, and went on."""
    run = story()
    assert said_of(ID, run) == said
    assert broken(run) == ([] if said == "silent" else [ID])


def taken(*lives: tuple[float, float | None], segmented: bool = True, now: float = 100) -> Any:
    """A database of store `w` was deleted at 50 s; `lives` of processes."""
    app = Application("app", exists=True)
    app.lives += tuple(ProcessLife(at(a), None if b is None else at(b), True) for a, b in lives)
    gone = ((at(50), "w", "app/0_0/w/w.60000"),)
    return case(task(store(name="w", segmented=segmented), taken=gone), application=app, now=now)


FORGOTTEN = "silent: why an earlier process held that segment is forgotten"
ENDED = "silent: its owner was killed: the end is heard of later"
LOOK = "warning suspected"


@cases(
    ID,
    ("its process goes on", taken((0, None)), LOOK),
    ("no process is known", taken(), LOOK),
    ("its process ended within a second", taken((0, 50.9)), ENDED),
    ("its process ended later", taken((0, 51)), LOOK),
    (
        "less than a second ago",
        taken((0, None), now=50.9),
        "silent: the end of its owner may be heard of yet",
    ),
    ("a second ago", taken((0, None), now=51), LOOK),
    ("a new process took over", taken((0, 55), (60, None)), FORGOTTEN),
    ("a new process took over, no segments", taken((0, 55), (60, None), segmented=False), LOOK),
    ("it began with that process", taken((50, None)), LOOK),
)
def test_looks(story, said):
    """How its owner went on."""
    assert said_of(ID, story) == said


@pytest.mark.parametrize(
    ("made", "store", "affected"),
    [
        (deleted, "s", Affected.POSSIBLY),
        (
            lambda: deleted(stores={"w": WINDOWED}, first=SEGMENT, path="app/0_0/w/w.60000"),
            "w",
            Affected.POSSIBLY,
        ),
        (lambda: swept("3.9.2"), None, Affected.NO),
    ],
)
def test_finding(made, store, affected):
    """What it names."""
    finding = made().only(ID)
    assert (finding.level, finding.affected, finding.upstream) == (Level.DAMAGE, affected, ())
    assert (finding.task_id, finding.store) == ("0_0", store)


def test_a_removal_that_is_heard_of_late():
    """On a busy machine the store that a wipe recreated is read before the removal of the old one is heard of."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5), database_look(20, identity="identity-2", born=10))
    one.see(removal(20.1, f"{DATABASE}/LOCK"))
    assert one.task.taken
    one.see(database_look(20.2, identity="identity-2", born=10))
    assert not one.task.taken
