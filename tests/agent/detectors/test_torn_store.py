"""Detector `torn-store`: files are missing from a store (D8)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application, Deletion, ProcessLife, Remains, Shape
from tests.support.scenario import WINDOWED, App, Scenario
from tests.support.scenario_case import at, case, checkpoint, database, judge, past, store, task

ID = "torn-store"


def two_files(release: str = "3.9.2") -> tuple[Scenario, App]:
    """A closed store with two SST files beside a task that works."""
    run = Scenario(release)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 500)
        app.flushes(task_id)
        app.puts(task_id, 500)
        app.flushes(task_id)
    run.wait(5)
    app.closes("0_1", 999)
    run.wait(60)
    return run, app


@pytest.mark.parametrize("release", ["2.3.1", "2.8.2", "3.9.2", "4.1.2"])
def test_remains_of_a_torn_deletion(release):
    """A deletion that was killed after CURRENT leaves data files that make no database."""
    run, app = two_files(release)
    app.cleaner.deletes("0_1", stop_after="s/CURRENT")
    app.crash()
    run.wait(10)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.task_id, finding.store) == ("0_1", "s")
    assert "2 data files" in finding.summary


def test_stays_torn_when_the_next_process_starts():
    """Who was at it is dead, whoever runs now: no all-clear before the store is opened or goes."""
    run, app = two_files()
    app.cleaner.deletes("0_1", stop_after="s/CURRENT")
    app.crash()
    run.wait(1)
    before = run.only(ID)
    run.start().opens("0_0")
    run.wait(2)
    assert before.status is run.only(ID).status is Status.OPEN


@pytest.mark.parametrize("release", ["2.3.1", "3.9.2", "4.3.1"])
def test_manifest_names_a_missing_file(release):
    """A stable manifest that names files that are gone is proof."""
    run, _ = two_files(release)
    names = [name for name, _ in run.world.children("app/0_1/rocksdb/s") if name.endswith(".sst")]
    run.world.play("unlink", f"app/0_1/rocksdb/s/{names[0]}")
    run.wait(130)
    finding = run.only(ID)
    assert (finding.severity, finding.status) == (Severity.WARNING, Status.OPEN)
    assert names[0] in finding.summary


@pytest.mark.twin_of("torn-store", "a deletion may go on")
def test_quiet_during_a_deletion():
    """A slow cleaner pass is not torn: it goes on."""
    run, app = two_files()
    for name in ("MANIFEST-000005", "000004.log", "OPTIONS-000006", "LOG", "IDENTITY", "CURRENT"):
        path = f"app/0_1/rocksdb/s/{name}"
        if run.world.has(path):
            run.world.play("unlink", path)
        run.wait(1)
    assert run.findings(ID) == []
    app.delete_tree("app/0_1")
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.8.2", "3.9.2"])
def test_quiet_while_an_operator_removes_the_directory(release):
    """The mitigation itself: with the process stopped a directory is removed, and that takes some milliseconds."""
    run, app = two_files(release)
    app.stops({"0_0": 999})
    run.wait(10)
    app.deletes_directory("0_1")
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_for_a_compaction():
    """A running store drops compacted files together with their names."""
    run, app = two_files()
    app.compacts("0_0")
    run.wait(130)
    assert run.findings(ID) == []


def test_clears_when_the_directory_is_removed():
    """The mitigation ends it."""
    run, app = two_files()
    app.cleaner.deletes("0_1", stop_after="s/CURRENT")
    app.crash()
    run.wait(10)
    app.deletes_directory("0_1")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


def dossier(
    *,
    last: float = 90,
    since: float = 90,
    now: float = 100,
    dead: bool = False,
    missing: tuple[int, ...] = (),
):
    """Remains seen at `since`, the last removal at `last`."""
    app = Application("app", exists=True)
    app.lock_ever_held = True
    app.lives += (ProcessLife(at(0), at(50) if dead else None),)
    held = store([database()])
    if missing:
        held.databases[""].missing = tuple(f"{x:06d}.sst" for x in missing)
    else:
        held.remains[""] = Remains("app/0_0/rocksdb/s", at(since), 3)
    one = task(held)
    one.walk = Deletion(at(80), at(last), Shape.CLEANER_WALK, held=False)
    return case(one, application=app, now=now)


def test_five_quiet_seconds_or_no_process():
    """A deletion is over after five seconds, or at once when its process is gone; one that began later is another's."""
    assert len(judge(ID, dossier(last=95, since=95))) == 1
    assert judge(ID, dossier(last=95.1, since=90)) == []
    assert judge(ID, dossier(last=90, since=95.1)) == []
    assert len(judge(ID, dossier(last=50, since=50, now=50.1, dead=True))) == 1
    assert judge(ID, dossier(last=99, since=99, dead=True)) == []


def test_missing_files_are_listed():
    """Three names are enough."""
    verdict = judge(ID, dossier(missing=(7, 8, 9, 10)))[0]
    assert "4 files" in verdict.summary
    assert "000009.sst" in verdict.summary
    assert "000010.sst" not in verdict.summary


@pytest.mark.twin_of(ID, "the segment had expired")
def test_segment_that_had_expired():
    """What its own process could not remove of it harms nobody."""
    one = dossier()
    one.task.stores["s"].remains[""].expired = True
    assert judge(ID, one) == []


@pytest.mark.twin_of(ID, "beside IDENTITY other files are missing: the store is torn")
def test_torn_says_it_all():
    """That IDENTITY is missing, too, is no remark of its own."""
    one = dossier(missing=(7,))
    one.task.stores["s"].databases[""].unnamed = True
    assert len(judge(ID, one)) == 1


def test_directory_that_is_gone():
    """Nothing is torn where nothing is."""
    one = dossier()
    one.task.exists = False
    assert judge(ID, one) == []


def test_quiet_seconds_count_from_the_reading_that_missed_them():
    """A file that was found missing a moment ago may belong to a deletion that has just begun."""
    one = dossier(last=90, missing=(7,))
    files = one.task.stores["s"].databases[""]
    files.missing_since_us = at(95.1)
    assert judge(ID, one) == []
    files.missing_since_us = at(95)
    assert len(judge(ID, one)) == 1


def test_death_counts_only_for_the_process_that_was_at_it():
    """A process that died before the removals did not do them; another may go on, for five seconds at least."""
    one = dossier(last=60, since=60, now=61, dead=True)
    assert judge(ID, one) == []
    one.task.walk = None
    one.task.stores["s"].remains[""] = Remains("app/0_0/rocksdb/s", at(40), 3)
    assert len(judge(ID, one)) == 1


def test_names_store_place_and_issue():
    """The finding carries what a person and the rollup need."""
    verdict = judge(ID, dossier(since=80))[0]
    assert (verdict.store, verdict.identity, verdict.opened_at_us) == ("s", "identity-1", at(80))
    assert verdict.affected is Affected.YES
    assert verdict.evidence[0].where == "app/0_0/rocksdb/s"


# -- a checkpoint that speaks of a store without a directory --------------------------------------------------


@pytest.mark.parametrize("release", ["2.3.1", "3.9.2", "4.1.2"])
def test_checkpoint_without_its_store(release):
    """A deletion that was killed after the store and before the checkpoint: the next start would trust the offset."""
    run, app = two_files(release)
    app.cleaner.deletes("0_1", stop_after="0_1/rocksdb")
    app.crash()
    assert run.world.has("app/0_1/.checkpoint")
    run.wait(10)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.task_id, finding.store, finding.affected) == ("0_1", "s", Affected.YES)
    assert "offset 999" in finding.summary
    app.deletes_directory("0_1")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


def gone(offset: int | None = 999, *, known: bool = True, held: bool = False, release: str | None = "4.1.2"):
    """A free task directory with a checkpoint and no store; `known`: the store was there until 50 s."""
    one = task(checkpoints=[checkpoint(40, offset)])
    one.held = held
    if known:
        one.stores["s"] = store()
        one.stores["s"].past += (past(50),)
    return case(one, release=release)


def test_store_that_was_known_is_missed():
    """A store that was seen before is missed since it went; one never seen may be a custom store: unknown."""
    verdict = judge(ID, gone())[0]
    assert (verdict.severity, verdict.confidence, verdict.opened_at_us) == (
        Severity.WARNING,
        Confidence.CONFIRMED,
        at(50),
    )
    other = judge(ID, gone(known=False))[0]
    assert (other.severity, other.confidence, other.opened_at_us) == (
        Severity.INFO,
        Confidence.UNKNOWN,
        at(40),
    )
    assert "custom store" in other.summary


@pytest.mark.twin_of(ID, "the entry of a checkpoint claims nothing")
def test_entry_that_claims_nothing():
    """Without an entry, at offset 0, or at `unknown` nothing would be trusted."""
    for offset in (None, 0, -4):
        assert judge(ID, gone(offset)) == []


@pytest.mark.twin_of("torn-store", "a process holds the task, and may be about to make the store")
def test_holder_may_be_about_to_make_it():
    """A task that is being opened, or wiped by its owner, is in the middle of something."""
    assert judge(ID, gone(held=True)) == []


def test_checkpoint_must_be_there():
    """Without the file there is nothing to trust."""
    one = gone()
    one.task.checkpoints[-1].ended_us = at(60)
    assert judge(ID, one) == []


def test_stores_that_hold_their_own_offset():
    """From 4.3 on offsets are in the stores, and a file that 4.2 left is moved into them: suspected."""
    moved = judge(ID, gone(release="4.3.1"))[0]
    assert (moved.severity, moved.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "move it into an empty store" in moved.summary
    assert judge(ID, gone(release=None))[0].affected is Affected.POSSIBLY


def test_store_with_files_is_not_gone():
    """A database, or remains of one, are told as what they are."""
    one = gone()
    one.task.stores["s"].databases[""] = database()
    assert judge(ID, one) == []
    one = gone()
    one.task.stores["s"].remains[""] = Remains("app/0_0/rocksdb/s", at(50), 3)
    assert [verdict.summary for verdict in judge(ID, one)] == [
        "Task 0_0: store s is torn: 3 data files are left, the files that make them a database are not."
    ]


def test_each_entry_is_judged():
    """An entry that claims nothing, or whose store is there, does not hide the next one."""
    one = gone()
    one.task.checkpoints[-1].offsets = {"a": 0, "b": 5, "s": 7}
    one.task.stores["b"] = store([database()], name="b")
    assert [verdict.store for verdict in judge(ID, one)] == ["s"]


def half_deleted(
    guarantee: str = "at_least_once", *, ends: bool = True, killed_at: int | None = None
) -> Scenario:
    """Of a window store's two segments one went while nobody held the task; `killed_at`: at this offset."""
    run = Scenario("4.3.1", guarantee, stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    for number in (0, 60_000):
        app.puts("0_0", 100, segment=number)
        run.wait(2)
    if killed_at != 0:
        app.checkpoints("0_0", 200)
    app.flushes("0_0")
    if ends:
        app.crash() if killed_at is not None else app.stops({"0_0": 200})
        run.wait(60)
        app.delete_tree("app/0_0/w/w.0")
    else:
        app.drops_segment("0_0", "w", 0)
    run.wait(20)
    return run


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_segments_that_a_killed_deletion_took(guarantee):
    """4.3: what is left has an offset, which the next start trusts for the whole store."""
    finding = half_deleted(guarantee).only(ID)
    assert (finding.severity, finding.confidence, finding.status) == (
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
    )
    assert "w.0 went while no process held it; a start would read on from offset 200" in finding.summary


def test_a_segment_that_expired():
    """Its owner took it: the store is open."""
    assert half_deleted(ends=False).findings(ID) == []


@pytest.mark.parametrize(
    ("guarantee", "killed_at"),
    [
        pytest.param(
            "exactly_once_v2",
            200,
            marks=pytest.mark.twin_of(ID, "exactly-once wipes the segments that say open"),
        ),
        pytest.param(
            "at_least_once",
            0,
            marks=pytest.mark.twin_of(ID, "no offset of the segments that are left is trusted"),
        ),
    ],
)
def test_segments_that_went_after_a_kill(guarantee, killed_at):
    """Nothing of what is left is trusted: the next start restores the store in full."""
    assert half_deleted(guarantee, killed_at=killed_at).findings(ID) == []


def test_the_last_segment_goes_too():
    """A deletion that was slow, and is over."""
    run = half_deleted()
    run.start().delete_tree("app/0_0")
    run.wait(20)
    assert run.only(ID).status is Status.RESOLVED
