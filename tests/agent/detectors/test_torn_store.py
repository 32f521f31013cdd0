"""Detector `torn-store`: files are missing from a store (D8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.events import Affected, Level, Severity, Status
from agent.inventory.model import Application, Deletion, ProcessLife, Remains, Shape
from agent.judging.base import TaskCase
from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_case import at, case, database, judge, session, store, task
from tests.support.scenario_looks import FREE, HELD, Reducing, checkpoint_look, database_look, task_look
from tests.support.scenario_script import play
from tests.support.tables import PROVED, QUIET, SUSPECTED, WARNED, heard, said, table

ID = "torn-store"
DELETING = "a deletion may go on"
STORE = "app/0_1/rocksdb/s"


def two_files(release: str = "3.9.2") -> Scenario:
    """A closed store with two SST files beside a task that works."""
    run = play(Scenario(release), "start")
    for task_id in ("0_0", "0_1"):
        twice = f"puts {task_id} 500, flushes {task_id}, " * 2
        play(run, f"opens {task_id}, 0.5 s, {twice}")
    return play(run, "5 s, closes 0_1 999, 60 s")


def tear(run: Scenario, stop_after: str = "s/CURRENT") -> None:
    """A kill in the cleaner's walk."""
    play(run, f"deletes 0_1 stop_after={stop_after}, crash")


def tear_behind_the_stores(run: Scenario) -> None:
    """The checkpoint is left, and the next start would trust its offset."""
    tear(run, "0_1/rocksdb")
    assert run.world.has("app/0_1/.checkpoint")


def lose_a_file(run: Scenario) -> None:
    """The volume loses the first SST file."""
    run.world.play("unlink", min(x for x in run.everything(STORE) if x.endswith(".sst")))


@table(ID, "release, life, says, expected", {
    **{f"a torn deletion, {x}": (x, tear, "2 data files", WARNED) for x in ("2.3.1", "2.8.2", "3.9.2", "4.1.2")},
    **{f"a lost file, {x}": (x, lose_a_file, ".sst)", WARNED) for x in ("2.3.1", "3.9.2", "4.3.1")},
    **{f"a checkpoint without its store, {x}": (x, tear_behind_the_stores, "offset 999", WARNED)
       for x in ("2.3.1", "3.9.2", "4.1.2")},
})  # fmt: skip
def test_torn(release, life, says, expected):
    """It is there until the directory goes: the mitigation ends it."""
    run = two_files(release)
    life(run)
    run.wait(130 if life is lose_a_file else 10)
    finding = run.only(ID)
    assert heard(ID, run) == expected
    assert (finding.level, finding.status, finding.affected) == (Level.EXPOSURE, Status.OPEN, Affected.YES)
    assert (finding.task_id, finding.store) == ("0_1", "s")
    assert says in finding.summary
    play(run, "deletes_directory 0_1, 2 s")
    assert run.only(ID).status is Status.RESOLVED


def test_stays_torn_when_the_next_process_starts():
    """Who was at it is dead, whoever runs now: no all-clear before the store is opened or goes."""
    run = two_files()
    tear(run)
    run.wait(1)
    before = run.only(ID)
    play(run, "start, opens, 2 s")
    assert before.status is run.only(ID).status is Status.OPEN


def cleaned_slowly(run: Scenario) -> None:
    """A slow cleaner pass goes on."""
    for name in ("MANIFEST-000005", "000004.log", "OPTIONS-000006", "LOG", "IDENTITY", "CURRENT"):
        if run.world.has(f"{STORE}/{name}"):
            run.world.play("unlink", f"{STORE}/{name}")
        run.wait(1)
    assert run.findings(ID) == []
    run.app.delete_tree("app/0_1")


def removed_by_an_operator(run: Scenario) -> None:
    """The mitigation itself: with the process stopped a directory is removed, and that takes some milliseconds."""
    play(run, "stops 999, 10 s, deletes_directory 0_1")


@table(ID, "release, life, expected", {
    "a slow cleaner": ("3.9.2", cleaned_slowly, DELETING),
    "an operator, 2.8": ("2.8.2", removed_by_an_operator, QUIET),
    "an operator, 3.9": ("3.9.2", removed_by_an_operator, QUIET),
    "a compaction drops files with their names": ("3.9.2", lambda run: run.app.compacts("0_0"), QUIET),
})  # fmt: skip
def test_files_that_go_for_a_reason(release, life, expected):
    run = two_files(release)
    life(run)
    run.wait(130)
    assert heard(ID, run) == expected


# -- 4.3: single segments -----------------------------------------------------------------------------------------


ALOS, EOS = "at_least_once", "exactly_once_v2"
MADE = "start, opens, puts 100 segment=0, 2 s, puts 100 segment=60000, 2 s"
WRITTEN = f"{MADE}, checkpoints 200, flushes"
TAKEN = "60 s, delete_tree app/0_0/w/w.0, 20 s"
"""One of two segments goes while nobody holds the task."""


@table(ID, "guarantee, script, expected", {
    "what is left has an offset": (ALOS, f"{WRITTEN}, stops 200, {TAKEN}", SUSPECTED),
    "what is left has an offset, exactly-once": (EOS, f"{WRITTEN}, stops 200, {TAKEN}", SUSPECTED),
    "it expired: its owner took it": (ALOS, f"{WRITTEN}, drops_segment w 0, 20 s", QUIET),
    "killed": (EOS, f"{WRITTEN}, crash, {TAKEN}", "exactly-once wipes the segments that say open"),
    "killed before the first offset": (
        ALOS, f"{MADE}, flushes, crash, {TAKEN}", "no offset of the segments that are left is trusted"),
})  # fmt: skip
def test_segments_that_a_killed_deletion_took(guarantee, script, expected):
    """The next start trusts the offset of what is left for the whole store; or the slow deletion takes that, too."""
    run = play(Scenario("4.3.1", guarantee, stores={"w": WINDOWED}), script)
    assert heard(ID, run) == expected
    says = "w.0 went while no process held it; a start would read on from offset 200"
    assert all(x.status is Status.OPEN and says in x.summary for x in run.findings(ID))
    play(run, "start, delete_tree app/0_0, 20 s")
    assert all(x.status is Status.RESOLVED for x in run.findings(ID))


@pytest.mark.parametrize(("held", "number"), [(True, 0), (False, 1)])
def test_expired_segment_that_was_half_deleted(held, number):
    """While later segments are held only an expired one is taken away; without a holder it is a torn deletion."""
    run = Scenario("4.4.0", ALOS, stores={"w": WINDOWED})
    play(run, "start, opens, puts 100 segment=10, puts 100 segment=20, commits 199, flushes, 2 s")
    oldest = run.task("0_0").databases.pop(("w", "10"))
    if held:
        oldest.close()
    else:
        play(run, "stops 200, 5 s")
    for name in ("CURRENT", "IDENTITY"):
        run.world.play("unlink", f"{oldest.path}/{name}")
    play(run, f"0.5 s, {'crash, ' * held}100 s")
    told = [x for x in run.findings(ID) if "data file" in x.summary]
    assert len(told) == number
    # the other segment keeps an offset, which stands for the whole store
    assert all("trusts the old offset" in x.next_action for x in told)


# -- the exact limits ---------------------------------------------------------------------------------------------


def dossier(
    last: float | None = 90,
    since: float = 90,
    *,
    now: float = 100,
    dead: bool = False,
    expired: bool = False,
    missing: tuple[int, ...] = (),
    unnamed: bool = False,
    exists: bool = True,
    touched: float = 0,
    whole: bool = False,
) -> TaskCase:
    """Remains seen, or files missed, since `since`; the last removal at `last`; the process died at 50 s, perhaps.

    `touched`: when a name in the directory was made or removed; `whole`: the agent saw the store before.
    """
    app = Application("app", exists=True)
    app.lock_ever_held = True
    app.lives += (ProcessLife(at(0), at(50) if dead else None),)
    held = store([database()], [session(1, 50)] if whole else [])
    files = held.databases[""]
    files.missing, files.unnamed = tuple(f"{x:06d}.sst" for x in missing), unnamed
    if missing:
        files.missing_since_us = at(since)
    else:
        held.remains[""] = Remains("app/0_0/rocksdb/s", at(since), 3)
        held.remains[""].expired, held.remains[""].touched_us = expired, at(touched) if touched else 0
    one = task(held, exists=exists)
    if last is not None:
        one.walk = Deletion(at(80), at(last), Shape.CLEANER_WALK, held=False)
    return case(one, application=app, now=now)


@table(ID, "one, expected", {
    "five quiet seconds": (dossier(95, 95), WARNED),
    "a removal since": (dossier(95.1, 90), DELETING),
    "seen since": (dossier(90, 95.1), DELETING),
    "a copy may still be made": (dossier(touched=31), SUSPECTED),
    "written a minute before it was found": (dossier(touched=30), WARNED),
    "it was seen before": (dossier(touched=89, whole=True), WARNED),
    "its process is gone": (dossier(50, 50, now=50.1, dead=True), WARNED),
    "a process that died before did not do it": (dossier(99, 99, dead=True), DELETING),
    "another may go on": (dossier(60, 60, now=61, dead=True), DELETING),
    "no walk was seen": (dossier(None, 40, now=61, dead=True), WARNED),
    "a file that was missed for five seconds": (dossier(90, 95, missing=(7,)), SUSPECTED),
    "a file that was missed a moment ago": (dossier(90, 95.1, missing=(7,)), DELETING),
    "what its own process could not remove of it": (dossier(expired=True), "the segment had expired"),
    "IDENTITY, too, is no remark of its own": (
        dossier(missing=(7,), unnamed=True), "beside IDENTITY other files are missing: the store is torn"),
    "the directory is gone": (dossier(exists=False), QUIET),
})  # fmt: skip
def test_limits(one, expected):
    found = said(ID, one)
    assert (found[1:] if one.task.stores["s"].databases[""].unnamed else found) == expected


def test_what_a_verdict_carries():
    """Store, place and moment; of what is missing three names are enough."""
    (verdict,) = judge(ID, dossier(since=80))
    assert (verdict.store, verdict.identity, verdict.opened_at_us) == ("s", "identity-1", at(80))
    assert (verdict.affected, verdict.evidence[0].where) == (Affected.YES, "app/0_0/rocksdb/s")
    assert "a start may fail before one restores the task in full" in (
        verdict.next_action or ""
    )  # no offset is left
    (verdict,) = judge(ID, dossier(missing=(7, 8, 9, 10)))
    assert "4 files" in verdict.summary
    assert "000009.sst" in verdict.summary
    assert "000010.sst" not in verdict.summary


# -- files on another path (`db_paths`) -----------------------------------------------------------------------------

ELSEWHERE = "000009.sst: elsewhere: it is on another path of the database (db_paths, cf_paths)"
ON_ANOTHER_PATH = "all of its files lie on another path"


def looked(*looks: tuple[Any, int, int], problems: tuple[str, ...] = ()) -> TaskCase:
    """Minutes after looks at (lock, live files, of these not there), five seconds apart."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, born=1, lock=FREE), checkpoint_look(2, {"s": 3000}))
    for number, (lock, files, missing) in enumerate(looks):
        names = tuple(f"{x:06d}.sst" for x in range(7, 7 + missing))
        look = database_look(5 * number + 5, born=1, lock=lock)
        one.see(replace(look, files=files, missing_files=names, problems=problems))
    return case(one.task, application=one.application, now=5 * len(looks) + 200)


@table(ID, "one, expected", {
    # RocksDB opens no store that misses a file: all of them lie elsewhere, also after it was closed
    "held, and all are missing": (looked((HELD, 1, 1), (HELD, 2, 2)), ON_ANOTHER_PATH),
    "then closed": (looked((HELD, 1, 1), (HELD, 2, 2), (FREE, 2, 2)), ON_ANOTHER_PATH),
    "one look at a store that is free": (looked((FREE, 2, 2)), SUSPECTED),
    "one of two is elsewhere, and nobody opened it": (looked((FREE, 2, 1), problems=(ELSEWHERE,)), SUSPECTED),
    "one of two is elsewhere, and it was open": (looked((HELD, 2, 1), (HELD, 2, 2), problems=(ELSEWHERE,)), QUIET),
    # a file that was seen there shows where they lie: what is missing was taken away, whoever holds the store
    "both were seen": (looked((HELD, 2, 0), (HELD, 2, 2)), WARNED),
    "one was seen": (looked((HELD, 2, 1), (HELD, 2, 2)), WARNED),
    "both were seen, and closed": (looked((HELD, 2, 0), (FREE, 2, 2)), PROVED),
    "one is there": (looked((FREE, 2, 1)), PROVED),
    "a new one was seen": (looked((HELD, 2, 2), (HELD, 2, 2), (HELD, 3, 2), (FREE, 3, 3)), PROVED),
})  # fmt: skip
def test_where_the_files_lie(one, expected):
    assert [(x.severity, x.confidence) for x in judge(ID, one) if "not there" in x.summary] == expected


@pytest.mark.parametrize("content", [None, b"", bytes(36)], ids=["gone", "empty", "zeroes"])
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_whole_without_identity(release, content):
    """CURRENT, the manifest and the files that it names decide: a remark, also of an agent that comes later."""
    run = two_files(release)
    if content is None:
        run.world.play("unlink", f"{STORE}/IDENTITY")
    else:
        run.world.replace(f"{STORE}/IDENTITY", content, f"{STORE}/temporary")
    run.world = run.world.attached_at(len(run.world.operations))
    run.wait(130)
    assert run.loud() == []
    (finding,) = run.findings(ID)
    assert (finding.severity, finding.affected, finding.upstream) == (Severity.INFO, Affected.NO, ())
    assert "RocksDB opens it and makes a new IDENTITY" in finding.summary
