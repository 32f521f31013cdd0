"""Detector `resurrected-checkpoint` in one look: copies that keep no times, empty stores, damaged stores."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.detectors import resurrected_checkpoint
from agent.inventory.model import Application, CheckpointFact, Database, Inventory, Store, Task
from agent.judging.base import TaskCase
from tests.support.scenario import KEY_VALUE, Scenario

ID = "resurrected-checkpoint"
BORN_US = 1_790_000_000_000_000
SECOND_US = 1_000_000


def unwatched(*lives: int, guarantee: str = "at_least_once", **more) -> Scenario:
    """A store that lived so many seconds each time; every life puts, flushes and closes with a checkpoint."""
    run = Scenario("3.9.2", guarantee, watched=False, **more)
    offset = 0
    for seconds in lives:
        app = run.start()
        app.opens("0_1")
        offset += 1000
        app.puts("0_1", 1000)
        run.wait(seconds)
        app.stops({"0_1": offset})
        run.wait(10)
    return run


def looked_at(run: Scenario) -> Scenario:
    """The agent meets what is there."""
    run.wait(5)
    run.world.watch()
    run.wait(30)
    return run


@pytest.mark.parametrize("seconds_per_file", [0.0, 0.3, 30.0], ids=["at once", "slow", "very slow"])
@pytest.mark.parametrize("lives", [(30,), (30, 30, 30)], ids=["opened once", "opened often"])
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_copy_without_times_is_unknown(lives, guarantee, seconds_per_file):
    """`.checkpoint` comes before `rocksdb` in order of names: on every such copy it seems older than the store."""
    run = unwatched(*lives, guarantee=guarantee, stores={"a": KEY_VALUE, "b": KEY_VALUE})
    run.is_copied(seconds_per_file=seconds_per_file)
    finding = looked_at(run).only(ID)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    assert "copy" in finding.summary
    assert "restores" in finding.next_action


def test_the_original_is_quiet():
    """The same lives, looked at where they were lived."""
    assert looked_at(unwatched(30, 30)).findings(ID) == []


@pytest.mark.twin_of(ID, "its checkpoint's file time is no copy's")
def test_a_copy_that_was_run_is_quiet():
    """The checkpoint that the application wrote after the copy is younger than every store."""
    run = unwatched(30)
    run.is_copied()
    run.wait(60)
    app = run.start()
    app.opens("0_1")
    app.puts("0_1", 500)
    app.stops({"0_1": 1500})
    assert looked_at(run).findings(ID) == []


def test_a_store_that_was_recreated_after_the_copy_is_found():
    """Its own data is as old as itself: that the others were copied clears nobody."""
    run = unwatched(30, stores={"a": KEY_VALUE, "b": KEY_VALUE})
    run.is_copied()
    run.wait(60)
    app = run.start()
    app.delete_tree("app/0_1/rocksdb/a")
    app.opens("0_1")
    app.puts("0_1", 10)
    app.flushes("0_1")
    run.wait(5)
    app.crash()
    (finding,) = (x for x in looked_at(run).loud() if x.detector == ID)
    sure = (Severity.CRITICAL, Confidence.CONFIRMED)
    assert (finding.store, finding.severity, finding.confidence) == ("a", *sure)


def test_a_live_agent_says_the_same_of_a_copy_as_a_scan():
    """It meets the copy, then the application opens it: no session is mistaken for the first one of a new store."""
    run = unwatched(30)
    run.is_copied()
    looked_at(run)
    app = run.start()
    app.opens("0_1")
    run.wait(5)
    app.puts("0_1", 100)
    app.checkpoints("0_1", 1100)
    run.wait(60)
    assert run.loud() == []


@pytest.mark.twin_of(ID, "a copied store seems to be made by its first opening")
def test_without_old_logs_the_first_opening_of_a_copy_makes_no_store():
    """A copy that left the LOG files out."""
    run = unwatched(30)
    run.world.play("unlink", "app/0_1/rocksdb/s/LOG")
    run.is_copied()
    looked_at(run)
    app = run.start()
    app.opens("0_1")
    run.wait(5)
    assert run.loud() == []


# -- one look, by values ----------------------------------------------------------------------------------------


def told(database: Database, *, written_us: int = BORN_US + SECOND_US) -> list[tuple[Severity, Confidence]]:
    """What is said of one store beside a checkpoint with an offset."""
    task = Task("a", "0_0", "a/0_0", exists=True)
    task.stores["s"] = Store("s", False, {"": database})
    task.checkpoints = (CheckpointFact(written_us, written_us, {"s": 4999}, (), 0, held=False),)
    case = TaskCase(Inventory(), BORN_US + 10**9, Application("a", tasks={"0_0": task}), task)
    return [(x.severity, x.confidence) for x in resurrected_checkpoint.DETECTOR.judge(case)]


def database(**known) -> Database:
    """A database that was read."""
    return Database("a/0_0/rocksdb/s", None, identity="i", born_us=BORN_US, manifest=5, **known)


SUSPECTED = [(Severity.WARNING, Confidence.SUSPECTED)]


@pytest.mark.parametrize(
    "known", [{"files": 0}, {"files": 1, "entries_high": 0}], ids=["no file", "no entry"]
)
def test_a_store_that_never_held_anything_is_suspected(known):
    """Beside a checkpoint with an offset."""
    assert told(database(**known)) == SUSPECTED


@pytest.mark.parametrize(
    "known",
    [
        {"files": 1, "entries_low": 5000, "entries_high": 5000},
        {"files": 1},
        {"manifest_problem": "too-large"},
        {"problems": ("MANIFEST-000005: corrupt: checksum",)},
    ],
    ids=["sequences compacted to 0", "entries unknown", "manifest unread", "damaged"],
)
def test_a_store_with_data_or_unread_was_not_never_written(known):
    """A compaction sets sequence numbers to 0: no puts are known, and every record is there. Damage is told as such."""
    assert told(database(**known)) == []


def test_an_older_checkpoint_without_any_proof_of_times_is_suspected():
    """Files are there, but their properties were not read: nothing tells the store from a copy."""
    assert told(database(files=1, puts=10), written_us=BORN_US - SECOND_US) == SUSPECTED
