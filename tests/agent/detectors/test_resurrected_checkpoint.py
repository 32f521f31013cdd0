"""Detector `resurrected-checkpoint`: an old offset trusted on a fresh store (KAFKA-8187 stage 2, torn deletion)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Level, Severity, Status
from tests.support.scenario import KEY_VALUE, TIMESTAMPED, WINDOWED, Scenario
from tests.support.scenario_script import play
from tests.support.tables import LIKELY, PROVED, QUIET, SUSPECTED, UNKNOWN, heard, table

ID = "resurrected-checkpoint"
ALOS, EOS = "at_least_once", "exactly_once"
TWO = {"a": KEY_VALUE, "b": KEY_VALUE}


def torn(release: str = "3.9.2", *, stop_after: str = "s/CURRENT", pause: float = 5, **more) -> Scenario:
    """A cleaner is killed half way through an unowned task whose checkpoint says 3000; then a pause, in seconds."""
    run = Scenario(release, **more)
    run.start()
    for task_id in ("0_0", "0_1"):
        play(run, f"opens {task_id}, 1 s, puts {task_id} 3000, checkpoints {task_id} 3000")
    play(run, f"5 s, closes 0_1 3000, 30 s, deletes 0_1 stop_after={stop_after}, 1 s, crash, {pause} s")
    assert run.findings(ID) == []
    return run


def torn_clean_up(release: str) -> Scenario:
    """`cleanUp()` of a process that does not run yet is killed half way, too: no cleaner, no lock."""
    run = play(Scenario(release), "start, opens 0_1, 1 s, puts 0_1 3000, stops 0_1 3000, 30 s, start")
    return play(run, "cleans_up stop_after=s/CURRENT, crash, 5 s")


def handed_over(release: str) -> Scenario:
    """The cleaner deletes the directory while the next owner, who has read offset 2000, waits for its lock."""
    run = play(
        Scenario(release, ALOS, 1), "start, opens, 1 s, puts 2000, checkpoints 2000, 10 s, closes 2000"
    )
    play(run, "30 s, deletes, opens, 0.2 s")
    assert run.findings(ID) == []
    return run


NEXT = "start, 5 s, opens 0_1, restores 0_1 4000 puts=1000, 2 s"
"""The next owner opens what is left and restores from the old offset."""
IN_FULL = "start, 5 s, opens 0_1, restores 0_1 4000 puts=4000, 2 s"
SINCE = "puts 50, checkpoints 2050, 1 s"
OLD = ["2.0.1", "2.1.1", "2.2.1"]
EOS_RELEASES = ["2.0.1", "2.1.1", "2.3.1", "2.5.1", "2.6.2", "2.8.2", "3.9.2", "4.1.2", "4.2.1"]


@table(ID, "life, more, script, expected", {
    # read and deleted before the lock up to 2.5, right after the open later; a supervisor restarts at once
    **{f"torn under exactly-once, {x}": (torn, {"release": x, "guarantee": EOS}, NEXT, PROVED) for x in EOS_RELEASES},
    **{f"torn, and restarted at once, {x}": (
        torn, {"release": x, "guarantee": EOS, "pause": 1}, NEXT.replace("5 s", "1 s"), PROVED) for x in EOS_RELEASES},
    "cleanUp() torn": (torn_clean_up, {"release": "3.9.2"}, NEXT, PROVED),
    "cleanUp() of 4.1 torn": (torn_clean_up, {"release": "4.1.2"}, NEXT, PROVED),
    "of two stores one was taken": (torn, {"release": "2.4.1", "stop_after": "rocksdb/a", "stores": TWO}, NEXT, PROVED),
    "made before any checkpoint": (torn, {}, "start, 5 s, opens 0_1, 1 s", PROVED),
    "segments that a cleaner took are a suspicion": (
        torn, {"stop_after": "0_1/w", "stores": {"w": WINDOWED}},
        "start, 5 s, opens 0_1, puts 0_1 100, flushes 0_1, 2 s", SUSPECTED),
    "CURRENT is there: the old store is opened": (torn, {"stop_after": "LOG"}, NEXT, QUIET),
    "the checkpoint went": (torn, {"stop_after": ".checkpoint"}, IN_FULL, QUIET),
    "4.3 keeps the offset in the store": (torn, {"release": "4.3.1"}, IN_FULL, QUIET),
    # the first checkpoint of the new store continues from the old offset, with only what was written since
    **{f"KAFKA-8187 stage 2, {x}": (handed_over, {"release": x}, SINCE, PROVED) for x in OLD},
    "2.0.1 writes it again before the look at the store settled": (
        handed_over, {"release": "2.0.1"}, "checkpoints 2000, 1 s", PROVED),
})  # fmt: skip
def test_lives(life, more, script, expected):
    run = play(life(**more), script)
    assert heard(ID, run) == expected
    issue = "KAFKA-8187" if life is handed_over else "torn deletion (no upstream issue)"
    store = "a" if more.get("stores") is TWO else "w" if "stores" in more else "s"
    assert {(x.store, x.upstream) for x in run.findings(ID)} <= {(store, (issue,))}


@pytest.mark.parametrize("kind", [KEY_VALUE, TIMESTAMPED])
@pytest.mark.parametrize("release", ["2.1.1", "2.3.1", "2.4.1", "2.7.2", "3.9.2", "4.0.2", "4.1.2", "4.2.1"])
def test_torn_deletion(release, kind):
    """A kill inside the cleaner's walk leaves the checkpoint beside a store that is then recreated.

    It is resolved when the damaged store is replaced by one that was restored from empty.
    """
    run = play(torn(release, stores={"s": kind}), NEXT)
    finding = run.only(ID)
    assert heard(ID, run) == PROVED
    assert (finding.level, finding.status, finding.affected) == (Level.DAMAGE, Status.OPEN, Affected.YES)
    assert (finding.task_id, finding.store) == ("0_1", "s")
    assert "3000" in finding.summary
    assert [step.at_us for step in finding.evidence] == sorted(step.at_us for step in finding.evidence)
    play(run, "stops 0_1 4100, 5 s")
    assert run.only(ID).status is Status.OPEN
    play(run, f"deletes_directory 0_1, 1 s, {IN_FULL}")
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.parametrize("guarantee", [ALOS, EOS])
@pytest.mark.parametrize(("release", "told"), [("4.3.1", None), ("4.4.0", None), ("4.3.1", "4.2.1")])
def test_first_start_of_4_3_after_a_torn_deletion(release, told, guarantee):
    """It moves the old offset into the new, empty store; what a kill loses before a flush is no proof."""
    run = torn("4.2.1", guarantee=guarantee, told={"kafka_streams_version": told or release})
    run.start(release)
    play(run, "5 s, opens 0_1, checkpoints 0_1 3000, 1 s")
    assert heard(ID, run) == LIKELY
    play(run, "puts 0_1 1000, checkpoints 0_1 4000, flushes 0_1, 5 s")
    assert heard(ID, run) == PROVED


@pytest.mark.parametrize("numbered_anew", [True, False])
@pytest.mark.parametrize("guarantee", [ALOS, EOS])
@pytest.mark.parametrize("release", ["3.9.2", "4.2.1", "4.3.1", "4.4.0"])
def test_a_directory_that_was_made_anew_between_two_visits(release, guarantee, numbered_anew):
    """Nobody heard in which order checkpoint and store went and came; a file system may give the inode again."""
    run = Scenario(
        "4.2.1" if release >= "4.3" else release, guarantee, told={"kafka_streams_version": release}
    )
    play(run, "start, opens, 1 s, puts 3000, checkpoints 3000, 5 s, closes 3000, crash, 10 s")
    run.start(release)
    before = run.world.disk._find("app/0_0")
    assert before is not None
    with run.unheard():
        play(run, "1 s, deletes_directory 0_0, 1 s, opens")
        after = run.world.disk._find("app/0_0")
        assert after is not None
        after.inode = after.inode if numbered_anew else before.inode
        play(run, "restores 4000 puts=4000, 1 s, checkpoints 4000, flushes, 1 s")
    play(run, "60 s")
    assert run.loud() == []


def test_a_checkpoint_that_is_still_there_was_in_force():
    """A torn deletion and the new store come between two visits: what is there afterwards shows the order."""
    run = Scenario("3.9.2", ALOS)
    play(run, "start, opens 0_1, 1 s, puts 0_1 3000, checkpoints 0_1 3000, 5 s, closes 0_1 3000, 10 s")
    with run.unheard():
        play(run, "deletes 0_1 stop_after=s/CURRENT, crash, 1 s, start, opens 0_1, 10 s")
    play(run, "restores 0_1 4000 puts=1000, 2 s")
    assert heard(ID, run) == PROVED


# -- one look ---------------------------------------------------------------------------------------------------


@table(ID, "release, guarantee, expected", {
    "a checkpoint that is older than its store": ("3.9.2", ALOS, Severity.CRITICAL),
    "2.1 may have wiped the store beside it": ("2.1.1", EOS, Severity.WARNING),
})  # fmt: skip
def test_scan_finds_the_old_checkpoint(release, guarantee, expected):
    run = Scenario(release, guarantee, watched=False)
    play(run, "start, opens 0_1, puts 0_1 3000, checkpoints 0_1 3000, crash, 30 s")
    play(run, "delete_tree app/0_1/rocksdb, start")
    run.app._open_store(run.task("0_1"), "s", KEY_VALUE)
    play(run, "puts 0_1 10, flushes 0_1")
    run.app.held.add("0_1")
    run.app.crash()
    looked_at(run)
    assert run.only(ID).severity is expected


def unwatched(*lives: int, guarantee: str = ALOS, **more) -> Scenario:
    """A store that lived so many seconds each time; every life puts, flushes and closes with a checkpoint."""
    run = Scenario("3.9.2", guarantee, watched=False, **more)
    for number, seconds in enumerate(lives, 1):
        play(run, f"start, opens 0_1, puts 0_1 1000, {seconds} s, stops 0_1 {1000 * number}, 10 s")
    return run


def looked_at(run: Scenario) -> Scenario:
    """The agent meets what is there."""
    run.wait(30)
    run.world.watch()
    run.wait(30)
    return run


@pytest.mark.parametrize("seconds_per_file", [0.0, 0.3, 30.0], ids=["at once", "slow", "very slow"])
@pytest.mark.parametrize("lives", [(30,), (30, 30, 30)], ids=["opened once", "opened often"])
@pytest.mark.parametrize("guarantee", [ALOS, "exactly_once_v2"])
def test_a_copy_without_times_is_unknown(lives, guarantee, seconds_per_file):
    """`.checkpoint` comes before `rocksdb` in order of names: on every such copy it seems older than the store."""
    run = unwatched(*lives, guarantee=guarantee, stores=TWO)
    run.is_copied(seconds_per_file=seconds_per_file)
    assert heard(ID, looked_at(run)) == UNKNOWN
    assert "copy" in run.only(ID).summary
    assert "restores" in run.only(ID).next_action


@pytest.mark.twin_of(ID, "its checkpoint's file time is no copy's")
def test_a_copy_that_was_run_is_quiet():
    """The checkpoint that the application wrote after the copy is younger than every store."""
    run = unwatched(30)
    run.is_copied()
    play(run, "60 s, start, opens 0_1, puts 0_1 500, stops 0_1 1500")
    assert looked_at(run).findings(ID) == []


def test_a_store_that_was_recreated_after_the_copy_is_found():
    """Its own data is as old as itself: that the others were copied clears nobody."""
    run = unwatched(30, stores=TWO)
    run.is_copied()
    play(run, "60 s, start, delete_tree app/0_1/rocksdb/a, opens 0_1, puts 0_1 10, flushes 0_1, 5 s, crash")
    (finding,) = (x for x in looked_at(run).loud() if x.detector == ID)
    assert (finding.store, [(finding.severity, finding.confidence)]) == ("a", PROVED)


@table(ID, "gone, expected", {
    "a live agent says the same of a copy as a scan": ("", QUIET),
    "a copy without LOG files": ("app/0_1/rocksdb/s/LOG", "a copied store seems to be made by its first opening"),
})  # fmt: skip
def test_first_opening_of_a_copy_makes_no_store(gone, expected):
    """The agent met the copy, then the application opens it."""
    run = unwatched(30)
    if gone:
        run.world.play("unlink", gone)
    run.is_copied()
    looked_at(run)
    play(run, "start, opens 0_1, 5 s, puts 0_1 100, checkpoints 0_1 1100, 60 s")
    assert run.loud() == expected
