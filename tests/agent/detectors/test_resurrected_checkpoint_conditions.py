"""Detector `resurrected-checkpoint`: the exact limits of its conditions, on dossiers built by hand."""

from __future__ import annotations

from typing import Any

from agent.inventory.model import Application, CheckpointFact, Database, Inventory, ProcessLife, Shape
from agent.judging.base import TaskCase
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    past,
    session,
    store,
    task,
)
from tests.support.tables import LIKELY, PROVED, QUIET, SUSPECTED, UNKNOWN, said, table

ID = "resurrected-checkpoint"
OLD = {"release": "2.1.1"}
EOS = {**OLD, "guarantee": "exactly_once"}
WIPED_WHOLE = "one process wiped all of the directory and made it anew (2.6 and later)"
FULL = "restored in full: its puts come with its offset"
YOUNG = "a young segment of a windowed store"


def deleted(
    offset: int = 2050,
    puts: int = 50,
    *,
    prior: int = 2000,
    created: float = 30,
    old: int | None = 2000,
    **settings,
) -> TaskCase:
    """Deleted at 25 s at offset `old`, recreated at `created`; its first checkpoint holds `offset` and `puts`."""
    new = session(created, created=True, first=mark(created + 5, offset, puts))
    one = store([database(puts=puts, born=created)], [new])
    one.past += (past(25, puts=prior),)
    fact = checkpoint(10, old, ended=24, deleted=True, in_walk=True)
    return case(
        task(one, checkpoints=[fact]), **{"release": "2.0.1", "guarantee": "at_least_once", **settings}
    )


@table(ID, "more, expected", {
    "a few puts more than the advance are noise": ({"puts": 52}, PROVED),
    "clearly more are a restoration": ({"puts": 53}, FULL),
    "one in a hundred of a long advance": ({"offset": 3000, "puts": 1010}, PROVED),
    "more than that": ({"offset": 3000, "puts": 1011}, FULL),
    "it holds less than was there": ({"prior": 63}, PROVED),
    "it holds most of what was there": ({"prior": 62}, FULL),
    "below the old offset: a restoration under way": ({"offset": 1999, "puts": 0}, FULL),
    "at the old offset": ({"offset": 2000, "puts": 0}, PROVED),
    "a minute after the deletion: the same pass of the cleaner": ({"created": 85}, PROVED),
    "later": ({"created": 85.1}, SUSPECTED),
    "a release that is not affected": ({"release": "3.9.2"}, SUSPECTED),
    "a release that is not known": ({"release": None}, SUSPECTED),
    "the old offset was 0": ({"old": 0}, FULL),
    "the old offset was unknown": ({"old": -4}, FULL),
    "there was no old offset": ({"old": None}, FULL),
})  # fmt: skip
def test_carried_in_memory(more, expected):
    assert said(ID, deleted(**more)) == expected
    asked = ("kafka_streams_version",) if more.get("release", "") is None else ()
    assert [x.missing_facts for x in judge(ID, deleted(**more))] == [asked] * len(expected)


def wiped_whole(
    *lives: ProcessLife, shape: Shape = Shape.OWNER_WALK, gone: bool = True, release: str | None = "4.1.0"
):
    """Deleted at 25 s by its owner, recreated at 30 s; the checkpoint's removal was read at 24.5 s."""
    one = store([database(puts=50, born=30)], [session(30, created=True, offset_at_open=121)])
    one.past += (past(25, shape=shape, puts=200),)
    fact = checkpoint(24, 121, ended=24.5 if gone else None, deleted=gone)
    app = Application("app", exists=True, first_seen_us=at(0))
    app.lives += lives
    return case(task(one, checkpoints=[fact]), release=release, application=app)


ONE = ProcessLife(at(1))


@table(ID, "one, expected", {
    "one life wiped and made it anew": (wiped_whole(ONE), WIPED_WHOLE),
    "so it is where the release is unknown": (wiped_whole(ONE, release=None), WIPED_WHOLE),
    "a wipe of 2.5 takes the store only": (wiped_whole(ONE, release="2.5.1"), PROVED),
    "killed in its wipe: the next one read what was left": (
        wiped_whole(ProcessLife(at(1), at(27)), ProcessLife(at(28))), PROVED),
    "no life was seen": (wiped_whole(), PROVED),
    "a cleaner took it": (wiped_whole(ONE, shape=Shape.CLEANER_WALK), PROVED),
    "the checkpoint is still there": (wiped_whole(ONE, gone=False), PROVED),
})  # fmt: skip
def test_a_process_that_wiped_its_directory_finds_no_checkpoint_in_it(one, expected):
    """On a busy machine the checkpoint's removal can be read before the others, and the new store before both."""
    assert said(ID, one) == expected


def on_disk(
    offset: int | None = 3000,
    *facts: CheckpointFact,
    segmented: bool = False,
    shape: Shape | None = None,
    wiped: bool = False,
    started: float = 0,
    **settings,
) -> TaskCase:
    """A store made at 30 s with this entry in force, written at 10 s; the agent watches since `started`."""
    opened = session(30, created=True, offset_at_open=offset)
    opened.wiped = wiped
    one = store([database(born=30, segment="w.0" if segmented else None)], [opened], segmented=segmented)
    one.past += () if shape is None else (past(20, shape=shape),)
    chosen = {"release": "3.9.2", "guarantee": "at_least_once", **settings}
    made = case(task(one, checkpoints=facts or [checkpoint(10, 3000)]), **chosen)
    made.inventory.started_us = at(started)
    return made


def found_gone(
    store_us: float = 25, checkpoint_us: float = 25, *, made: float = 30, seen: float = 31, **more: Any
) -> TaskCase:
    """Store and checkpoint were found gone after a time unseen, and a store was made; `more` as in `on_disk`."""
    gone = checkpoint(10, 3000, ended=checkpoint_us, deleted=True)
    one = on_disk(3000, gone, **{"shape": Shape.VANISHED_UNSEEN, "guarantee": "exactly_once_v2", **more})
    held = one.task.stores["s"]
    held.sessions[-1].opened_us, held.sessions[-1].seen_us = at(made), at(seen)
    held.past = (past(store_us, shape=more.get("shape", Shape.VANISHED_UNSEEN)),)
    return one


GONE = "store and checkpoint were found gone before it was made (2.6 and later)"


@table(ID, "more, expected", {
    "both were gone, then it was made": ({}, GONE),
    "it was made as they were found gone": ({"made": 25}, PROVED),
    "it was found at the same look": ({"seen": 25}, PROVED),
    "the checkpoint went with the opening": ({"checkpoint_us": 30}, PROVED),
    "the store was found gone with the opening": ({"store_us": 30}, PROVED),
    "2.5 reads it before it makes a store": ({"release": "2.5.1"}, PROVED),
    "it may be 2.5": ({"release": None}, PROVED),
    "a cleaner took the store, and left it": ({"shape": Shape.CLEANER_WALK}, PROVED),
})  # fmt: skip
def test_nobody_reads_a_checkpoint_that_is_gone(more, expected):
    assert said(ID, found_gone(**more)) == expected


def test_a_checkpoint_that_was_replaced_is_there():
    one = found_gone()
    one.task.checkpoints[-1].deleted = False
    assert said(ID, one) == PROVED


NOT_NAMED = "a new topology added it: no checkpoint names it"


@table(ID, "more, expected", {
    "an old offset": ({}, PROVED),
    "the lowest offset that is one": ({"offset": 1}, PROVED),
    "offset 0": ({"offset": 0}, NOT_NAMED),
    "an unknown offset": ({"offset": -4}, NOT_NAMED),
    "no entry": ({"offset": None}, NOT_NAMED),
    "wiped by its owner": ({"wiped": True}, "wiped by its owner under its lock (carried-checkpoint)"),
    "segments that a cleaner took": ({"segmented": True, "shape": Shape.CLEANER_WALK}, SUSPECTED),
    "segments that their owner took": ({"segmented": True, "shape": Shape.OWNER_WALK}, YOUNG),
    "segments that went unseen": ({"segmented": True, "shape": Shape.VANISHED_UNSEEN}, YOUNG),
    "a first segment": ({"segmented": True}, YOUNG),
    # An agent that starts between the checkpoint and the new store may have missed the wipe of its owner.
    "the agent saw the checkpoint written": ({**EOS, "started": 9}, PROVED),
    "the agent began between checkpoint and store": ({**EOS, "started": 11}, SUSPECTED),
    "it began after both": ({**EOS, "started": 31}, PROVED),
    "nobody wipes under at-least-once": ({**OLD, "started": 11}, PROVED),
    "the guarantee is not known": ({**OLD, "guarantee": None, "started": 11}, SUSPECTED),
    "2.8 wipes the checkpoint, too": ({**EOS, "release": "2.8.1", "started": 11}, PROVED),
})  # fmt: skip
def test_entry_in_force(more, expected):
    assert said(ID, on_disk(**more)) == expected


def test_checkpoint_that_is_no_longer_remembered():
    """The history is bounded: the verdict rests on the session, the chain on what is left."""
    for one, steps in ((on_disk(), [at(10), at(30)]), (on_disk(), [at(30)])):
        one.task.checkpoints = one.task.checkpoints if len(steps) > 1 else ()
        (verdict,) = judge(ID, one)
        assert ([step.at_us for step in verdict.evidence], verdict.subject) == (steps, "identity-1")


# -- no session was seen -----------------------------------------------------------------------------------------


def left_behind(
    born: float = 50,
    written: float = 10,
    *,
    puts: int = 10,
    reopened: tuple[float, ...] = (),
    oldest: float | None = -1,
    manifest: int | None = 5,
    opened: bool = False,
    **settings,
) -> TaskCase:
    """A checkpoint written at `written` beside a store born at `born`; its oldest data, -1 = as old as it, or None."""
    files = database(puts=puts, flushed=[(puts, born + 1)] if puts else [], born=born)
    files.manifest, files.reopened_us = manifest, tuple(at(x) for x in reopened)
    if oldest != -1:
        files.oldest_data_us = 0 if oldest is None else at(oldest)
    other = [store([database()], [session(60)], name="opened")] if opened else []
    chosen = {"release": "3.9.2", "guarantee": "at_least_once", **settings}
    return case(task(store([files]), *other, checkpoints=[checkpoint(written, 3000)]), **chosen)


@table(ID, "more, expected", {
    "a checkpoint from before its store": ({}, PROVED),
    "as old as its store": ({"written": 50}, "its store was there before"),
    "2.1 may have wiped the store": ({**OLD, "guarantee": None}, SUSPECTED),
    "not under at-least-once": (OLD, PROVED),
    "3.9 never does": ({"guarantee": None}, PROVED),
    "N25: data from long before the store": ({"written": 50, "born": 51, "oldest": 50}, UNKNOWN),
    "a process opened the task since": (
        {"written": 50, "born": 51, "oldest": 50, "opened": True}, "a process opened the task since"),
    "as old as its data": ({"written": 50, "born": 51}, PROVED),
    "oldest data of the checkpoint's time": ({"born": 30, "reopened": (31,), "oldest": 10}, UNKNOWN),
    "oldest data just before the store": ({"born": 30, "reopened": (31,), "oldest": 29}, UNKNOWN),
    "oldest data as old as the store": ({"born": 30, "reopened": (31,), "oldest": 30}, PROVED),
    "oldest data after the store": ({"born": 30, "reopened": (31,), "oldest": 32}, PROVED),
    # A store that was opened long before it was made was copied; asked where no file says how old its data is.
    "opened long before it was made": ({"born": 14.9, "reopened": (9.8,), "oldest": None}, UNKNOWN),
    "opened as it was made": ({"born": 14.9, "reopened": (9.9,), "oldest": None}, SUSPECTED),
    "opened before, and as it was made": ({"born": 14.9, "reopened": (9.8, 9.91), "oldest": None}, UNKNOWN),
    "opened very long before": ({"born": 100, "reopened": (9.8,), "oldest": None}, UNKNOWN),
    "no opening is known": ({"born": 14.9, "oldest": None}, SUSPECTED),
    # a node's clock may have been ahead when a store was made that has all of its records
    "as many puts as its offset": ({"puts": 3000}, LIKELY),
    "one put less": ({"puts": 2999}, PROVED),
    "half as many, under exactly-once": ({"puts": 1500, "guarantee": "exactly_once_v2"}, LIKELY),
    "less than that": ({"puts": 1499, "guarantee": "exactly_once_v2"}, PROVED),
    "nothing was ever written": ({"born": 5, "puts": 0}, SUSPECTED),
    "an older store with data": ({"born": 5}, "its store was there before"),
    "its manifest was not read": ({"born": 5, "puts": 0, "manifest": None}, QUIET),
})  # fmt: skip
def test_one_look(more, expected):
    """Under at-least-once nothing but a torn deletion leaves a checkpoint that is older than its store."""
    assert said(ID, left_behind(**more)) == expected


def test_chain_of_one_look():
    """Dated by the birth of the store that lies; of an empty one by the checkpoint."""
    (verdict,) = judge(ID, left_behind())
    assert [step.at_us for step in verdict.evidence] == [at(10), at(50)]
    assert (verdict.subject, verdict.opened_at_us) == ("identity-1", at(50))
    assert "40 s later" in verdict.summary
    (empty,) = judge(ID, left_behind(5, puts=0))
    assert (empty.subject, empty.opened_at_us) == ("identity-1", at(10))
    (copy,) = judge(ID, left_behind(30, oldest=10))
    assert "oldest data" in copy.evidence[0].what


EMPTY = {"files": 0}
FULL_FILE: dict[str, Any] = {"files": 1, "puts": 10}


@table(ID, "known, written, expected", {
    "no file": (EMPTY, 1, SUSPECTED),
    "no entry": ({"files": 1, "entries_high": 0}, 1, SUSPECTED),
    "sequence numbers that a compaction set to 0": ({"files": 1, "entries_low": 5000, "entries_high": 5000}, 1, QUIET),
    "entries that are not known": ({"files": 1}, 1, QUIET),
    "a manifest that was not read": ({"manifest_problem": "too-large"}, 1, QUIET),
    "a store that is damaged": ({"problems": ("MANIFEST-000005: corrupt: checksum",)}, 1, QUIET),
    "an older checkpoint, and nothing tells the store from a copy": (FULL_FILE, -1, SUSPECTED),
})  # fmt: skip
def test_what_a_store_ever_held(known, written, expected):
    """Beside a checkpoint with an offset; nothing of the application is known."""
    one = task(store([Database("app/0_0/rocksdb/s", None, identity="i", born_us=at(0), manifest=5, **known)]))
    one.checkpoints = (checkpoint(written, 4999),)
    assert said(ID, TaskCase(Inventory(), at(1000), Application("app", tasks={"0_0": one}), one)) == expected
