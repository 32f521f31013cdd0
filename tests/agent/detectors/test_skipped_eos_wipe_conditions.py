"""Detector `skipped-eos-wipe`: the exact limits of its conditions, on dossiers built by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agent.inventory.blindness import note_blind
from agent.inventory.model import CheckpointFact, Shape
from agent.inventory.observations import StoreOffsets
from agent.judging.base import TaskCase
from tests.support.scenario_case import (
    PLAIN,
    TIMESTAMPED,
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
from tests.support.tables import LIKELY, PROVED, QUIET, REMARKED, SUSPECTED, said, table

ID = "skipped-eos-wipe"


def dossier(
    advance: int | None = None,
    applied: int = 0,
    *,
    now: float = 100,
    worked: float | None = 60,
    work: int = 40_000,
    ends: tuple[float, bool | None] | None = None,
    other: int | None = None,
    next_at: float | None = None,
    clock_set: tuple[float, float] | None = None,
    emptied_at: float | None = None,
    emptied_until: float = 31,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
    **settings,
) -> TaskCase:
    """A crash at 20 s with 1,000 puts flushed beyond offset 2,000; reopened at 30 s; first checkpoint at 40 s.

    New work is flushed at `worked`, more than 10,000 records of any kind: the restoration had ended. `ends`: when the
    second session ended, closed or not; `other`: offset of another store; `next_at`: when another checkpoint came;
    `emptied_at`, `emptied_until`: when one without an offset was there.
    """
    base = mark(10, 2000, 2000)
    first = None if advance is None else mark(40, advance if advance < 0 else 2000 + advance, 3000 + applied)
    crashed, opened = session(0, 20, puts=3000, last=base), session(30, first=first, offset_at_open=1)
    if ends is not None:
        opened.released_us, opened.closed = at(ends[0]), ends[1]
    facts = [checkpoint(10, 2000, ended=31, deleted=True)]
    facts += [] if first is None else [checkpoint(40, first.offset, ended=next_at)]
    facts += [] if next_at is None else [checkpoint(next_at, 4000)]
    for fact in facts:
        fact.offsets.update({} if other is None else {"other": other})
    if emptied_at is not None:
        facts.append(checkpoint(emptied_at, None, ended=emptied_until, deleted=True))
    flushed = [(3000, 15)] + ([] if worked is None else [(3000 + applied + work, worked)])
    made = database(puts=flushed[-1][0], flushed=flushed, families=settings.pop("families", TIMESTAMPED),
                    entries=settings.pop("entries", None))  # fmt: skip
    for one, changes in ((crashed, before), (opened, after), (made, files)):
        for name, value in (changes or {}).items():
            setattr(one, name, value)
    judged = case(task(store([made], [crashed, opened]), checkpoints=facts), now=now, **settings)
    if clock_set is not None:
        note_blind(judged.inventory, at(clock_set[0]), at(clock_set[1]), "clock-step")
    return judged


STANDS = {"advance": 0, "worked": None}
LONG = {"commit_interval_ms": 30_000}
SECOND = {"commit_interval_ms": 1000}
OTHER = {
    "other": 9000,
    "told": LONG,
    "now": 140,
    "files": {"flushed": ((3000, at(15)), (43_000, at(60)), (43_001, at(125)))},
}
VERSIONED = {"families": PLAIN, "entries": 500, "before": {"entries_at_release": 500}}
RANGES = {"families": PLAIN, "before": {"puts_at_open": 1999}}
NO_MARK = {"first": None, "last": None}
BESIDE_2_1 = {"release": "2.1.1", "standbys": 1, "before": NO_MARK, "told": LONG}
SHORT = {"release": "2.5.1", "worked": None, "before": NO_MARK}
FORGOTTEN = "closed in order up to 2.5, without an offset"
NOT_YET = "killed before it could be wiped, and not opened since"
AFTER_IT = "killed after a restoration of up to 2.5, and nothing was flushed since"
RESTORED: dict[str, Any] = {"release": "2.5.0", "worked": None}
ENDED: dict[str, Any] = {**NO_MARK, "reopens": 2, "restored_puts": 3000}
NO_ENTRY = {"offset_at_open": None}
KEPT = {"offsets": StoreOffsets(status=0)}
MOVED = {"offsets": StoreOffsets(status=0, offsets=(("app-s-changelog-0", 2000, 0),))}
NONE_MOVED = "moved to 4.3 without an offset"


@table(ID, "more, expected", {
    # fewer offsets than puts is proof, as many is not: an entry may be the next offset or the last
    "one offset less than was flushed, and one of slack": ({"advance": 998, "applied": 998}, PROVED),
    "as many offsets": ({"advance": 999, "applied": 999}, SUSPECTED),
    "3.4 had no versioned stores": ({"advance": 998, "applied": 998, **RANGES, "release": "3.4.1"}, PROVED),
    "versioned perhaps: two puts an update": ({"advance": 448, "applied": 448, **VERSIONED}, PROVED),
    "versioned perhaps, one more": ({"advance": 449, "applied": 449, **VERSIONED}, SUSPECTED),
    "and ranges deleted since: three": ({"advance": 298, "applied": 298, **RANGES}, PROVED),
    "and ranges deleted since, one more": ({"advance": 299, "applied": 299, **RANGES}, SUSPECTED),
    # one put drops as many segments as there are: the session made them, a put each
    "as many segments as its session put": (
        {"advance": 298, "applied": 298, "families": PLAIN, "before": {"puts_at_open": 1998}}, PROVED),
    "one segment more": (
        {"advance": 298, "applied": 298, "families": PLAIN, "before": {"puts_at_open": 1997}}, LIKELY),
    "but no range was deleted at the kill": (
        {"advance": 298, "applied": 298, "families": PLAIN, "before": {"puts_at_open": 1997, "entries_at_release": 9}},
        PROVED),
    "a store that may be in upgrade mode puts when it is read": ({"advance": 0, "families": ()}, SUSPECTED),
    "a store in upgrade mode": ({"advance": 0, "files": {"families_in_use": TIMESTAMPED}}, SUSPECTED),
    "a first checkpoint of -4 gave nothing back": ({"advance": -4}, PROVED),
    # a paused restoration leaves such a file, too
    "it only stands": ({**STANDS, "now": 339.9}, SUSPECTED),
    "it stands for five minutes": ({**STANDS, "now": 340}, LIKELY),
    "the clock was set by 200 s of them": ({**STANDS, "now": 539.9, "clock_set": (50, 250)}, SUSPECTED),
    "five minutes beside what the clock was set by": ({**STANDS, "now": 540, "clock_set": (50, 250)}, LIKELY),
    "it ended unclosed ten seconds later": ({**STANDS, "ends": (50, False)}, LIKELY),
    "it ended unclosed before": ({**STANDS, "ends": (49.9, False)}, SUSPECTED),
    "2.6 knows no pause": ({**STANDS, "release": "2.6.1"}, LIKELY),
    "closed further on": (
        {**STANDS, "next_at": 59.9, "ends": (60, True), "after": {"last": mark(59.9, 2700, 3000)}}, LIKELY),
    "closed where it stood": (
        {**STANDS, "next_at": 59.9, "ends": (60, True), "after": {"last": mark(59.9, 2000, 3000)}}, LIKELY),
    # beyond 10,000 records a commit would have written a checkpoint
    "more than a resumed restoration flushes": ({"advance": 0, "work": 10_001, "worked": 89.8}, PROVED),
    "as much as one may flush": ({"advance": 0, "work": 10_000, "worked": 89.8}, LIKELY),
    "no commit since": ({"advance": 0, "work": 10_001, "worked": 89.9}, LIKELY),
    "little work": ({"advance": 0, "work": 100}, LIKELY),
    "long commits: none was missed yet": ({"advance": 0, "now": 129, "told": LONG}, LIKELY),
    "long commits: two were missed": ({"advance": 0, "now": 130, "told": LONG}, PROVED),
    # the first commit after an opening writes one however little was restored
    "many offsets": ({"advance": 9000, "work": 100, "worked": 50, "now": 69.9}, SUSPECTED),
    "many offsets of another store": ({"advance": 0, "other": 9000, "work": 100, "worked": 50, "now": 69.9}, SUSPECTED),
    "for twenty seconds": ({"advance": 0, "other": 9000, "work": 100, "worked": 50, "now": 70}, LIKELY),
    "two commits went by between two flushes": ({"advance": 0, **OTHER}, PROVED),
    "the clock jumped over them": ({"advance": 0, **OTHER, "clock_set": (61, 121)}, LIKELY),
    "another checkpoint followed": ({"advance": 100, "next_at": 80}, SUSPECTED),
    "a flush that belongs to the next checkpoint": ({"advance": 0, "next_at": 60.5}, SUSPECTED),
    # 40 s at a marker a second, and two: 42 markers; asked of 2.6.0 and 2.6.1 only
    "aborted, or markers": ({"advance": 1041, "told": SECOND, "release": "2.6.1"}, SUSPECTED),
    "more than markers": ({"advance": 1042, "told": SECOND, "release": "2.6.1"}, LIKELY),
    "3.4 is not asked": ({"advance": 5000, "release": "3.4.1"}, SUSPECTED),
    "4.1 is not asked": ({"advance": 5000, "release": "4.1.2"}, SUSPECTED),
    # what it may be else
    "kept by 4.3": ({"advance": 0, "release": "4.2.1", "before": {"kept_offsets": True}},
                    "it kept its offsets in the store (4.3+)"),
    "closed in order": ({"advance": 0, "before": {"closed": True}}, "closed in order"),
    "2.1, closed in order, and its checkpoint has no offset of it": (
        {"release": "2.1.1", "before": NO_MARK, "emptied_at": 20.01, "worked": None}, FORGOTTEN),
    "2.3, its close failed: that checkpoint was deleted at once": (
        {"release": "2.3.1", "before": NO_MARK, "emptied_at": 19.99, "emptied_until": 20.01, "worked": None},
        SUSPECTED),
    "2.3, a checkpoint without it that is no close's": (
        {"release": "2.3.1", "before": NO_MARK, "emptied_at": 10, "worked": None}, SUSPECTED),
    "its process lived on": ({"advance": 0, "before": {"outlived": True}}, "let go by a process that lived on"),
    "nothing was flushed": ({"advance": 0, "before": {"puts_at_release": 2000}},
                            "nothing was flushed beyond the checkpoint"),
    "a wipe may still come": ({"now": 39.999}, QUIET),
    "no wipe came": ({"now": 40}, SUSPECTED),
    "released before a wipe was due": ({"now": 45, "ends": (36, None)}, QUIET),
    "another store was there": ({"advance": 0, "after": {"identities": frozenset({"identity-2"})}}, QUIET),
    "wiped afterwards": ({"advance": 0, "after": {"wiped": True}}, QUIET),
    # up to 4.2 an active task has no checkpoint: the start-up pass of 4.3 opens its store, the assignment wipes it
    "an upgrade that was not looked into": ({"release": "4.3.1", "before": NO_MARK, "after": NO_ENTRY}, SUSPECTED),
    "an upgrade of a task that ran": (
        {"release": "4.3.1", "before": NO_MARK, "after": NO_ENTRY, "files": KEPT}, NONE_MOVED),
    "its checkpoint was deleted as it ran": ({"release": "4.3.1", "after": NO_ENTRY, "files": KEPT}, NONE_MOVED),
    "its checkpoint says unknown": (
        {"release": "4.3.1", "after": {"offset_at_open": -4}, "files": KEPT}, NONE_MOVED),
    "an offset was moved into it": ({"release": "4.3.1", "after": NO_ENTRY, "files": MOVED}, SUSPECTED),
    # up to 2.5 one of two reopens of bulk loading
    "2.1, killed": ({"advance": 0, "release": "2.1.1", "before": NO_MARK}, PROVED),
    "2.1, little work: it had ended": ({"advance": 0, "work": 100, "release": "2.1.1", "before": NO_MARK}, PROVED),
    "beside standbys: one half way, however long it is held up": (
        {"advance": 0, "work": 100, **BESIDE_2_1, "now": 10_000}, LIKELY),
    "2.1, killed in a restoration after a wipe": (
        {"advance": 0, "release": "2.1.1", "before": {**NO_MARK, "wiped": True, "reopens": 1}},
        "killed in a restoration of up to 2.5"),
    "2.1, killed in the mode of bulk loading": (
        {"advance": 0, "release": "2.1.1", "before": {**NO_MARK, "bulk_load_us": at(5)}},
        "killed in a restoration of up to 2.5"),
    "2.1, its restoration had ended": (
        {"advance": 0, "release": "2.1.1", "before": {**NO_MARK, "bulk_load_us": at(5)},
         "files": {"reopened_us": (at(14.9),)}}, PROVED),
    "2.1, nobody saw it let go": (
        {"advance": 0, "release": "2.1.1", "before": {**NO_MARK, "bulk_load_us": at(5), "release_unseen": True}},
        PROVED),
    "2.1, reopened after it was let go": (
        {"advance": 0, "release": "2.1.1", "before": {**NO_MARK, "bulk_load_us": at(5)},
         "files": {"reopened_us": (at(20.1),)}}, "killed in a restoration of up to 2.5"),
    "2.1, old LOG files are not kept": (
        {"advance": 0, "release": "2.1.1", "before": {**NO_MARK, "bulk_load_us": at(5)},
         "files": {"all_reopens": False}}, PROVED),
    # the second of two reopens ends a restoration: a store with timestamps has one more when it is made
    "2.5, killed right after its restoration": ({**RESTORED, "before": ENDED}, AFTER_IT),
    "2.5, of a new store": ({**RESTORED, "before": {**ENDED, "reopens": 3}}, AFTER_IT),
    "2.5, opened more often": ({**RESTORED, "before": {**ENDED, "reopens": 4}}, SUSPECTED),
    "2.5, no restoration": ({**RESTORED, "before": {**ENDED, "reopens": 1}}, SUSPECTED),
    "2.5, something was flushed after it": ({**RESTORED, "before": {**ENDED, "restored_puts": 2999}}, SUSPECTED),
    "2.6 has no such reopening": ({**RESTORED, "before": ENDED, "release": "2.6.1"}, SUSPECTED),
    # 2.5.1 wipes every store, ten seconds after its opening at the latest
    "2.5.1, killed before a wipe": ({**SHORT, "ends": (39.9, False)}, NOT_YET),
    "2.5.1, killed after one was due": ({**SHORT, "ends": (40, False)}, SUSPECTED),
    "2.5.1, closed before a wipe": ({**SHORT, "ends": (39.9, True)}, SUSPECTED),
    "2.5.0 wipes no standby": ({**SHORT, "ends": (39.9, False), "release": "2.5.0"}, SUSPECTED),
    "2.5.1, a restoration began on it": ({**SHORT, "ends": (39.9, False), "after": {"reopens": 1}}, SUSPECTED),
    "2.5.1, work began on it": ({**SHORT, "ends": (39.9, False), "after": {"puts_at_release": 3001}}, SUSPECTED),
})  # fmt: skip
def test_limits(more, expected):
    assert said(ID, dossier(**more)) == expected


def test_a_segment_more_has_reopens_of_its_own():
    one = dossier(**RESTORED, before=ENDED)
    one.task.stores["s"].databases["b"] = database(segment="b")
    assert said(ID, one) == SUSPECTED


def test_ignores_the_global_task():
    """Global stores have no transactions."""
    one = dossier(0)
    one.task.id = "global"
    assert judge(ID, one) == []


def on_the_way(
    *checkpoints: CheckpointFact,
    standbys: int = 0,
    now: float = 400,
    release: str = "4.1.2",
    work: int = 0,
    released: float | None = None,
    other: int | None = None,
) -> TaskCase:
    """A crash at 20 s with 30,000 puts flushed beyond offset 2,000; reopened at 30 s; then these; work at 33 s."""
    before = session(0, 20, puts=32_000, last=mark(10, 2000, 2000))
    after = session(30, released, first=mark(31, 2000, 32_000), offset_at_open=2000)
    files = database(puts=32_000, flushed=[(32_000, 15)] + ([(32_000 + work, 33)] if work else []))
    if other is not None:
        checkpoints[-1].offsets["other"] = other
    history = [checkpoint(10, 2000, ended=30.1, deleted=True), *checkpoints]
    one = task(store([files], [before, after]), checkpoints=history)
    return case(one, now=now, standbys=standbys, release=release)


PASSED = checkpoint(31, -4, ended=31.26, deleted=True)
BESIDE: dict[str, Any] = {"standbys": 1, "work": 1000}


@table(ID, "one, expected", {
    # seen live on 4.2.1: a standby that becomes active writes what it has, and deletes it right after
    "a restoration left one behind": (on_the_way(PASSED, checkpoint(33, 32_100)), SUSPECTED),
    "one that just stands": (on_the_way(checkpoint(31, -4), now=41), SUSPECTED),
    "one that stands long": (on_the_way(checkpoint(31, -4)), LIKELY),
    # a long restoration writes one whenever it has moved by more than 10,000 offsets, over all stores
    "of the commit timer": (on_the_way(checkpoint(31, 12_001)), SUSPECTED),
    "too few for the commit timer": (on_the_way(checkpoint(31, 12_000)), LIKELY),
    "enough of two stores": (on_the_way(checkpoint(31, 8000), other=5000), SUSPECTED),
    # where a task becomes a standby, or the other way round, its initialisation deletes what was written before
    "of a change of roles": (on_the_way(checkpoint(31, 2500, ended=41, deleted=True), **BESIDE), SUSPECTED),
    "replaced, and not deleted": (on_the_way(checkpoint(31, 2500, ended=41), **BESIDE), LIKELY),
    "the first commit of a standby": (on_the_way(checkpoint(31, 10_001), now=4000, **BESIDE), SUSPECTED),
    # found by the hunt: a standby of 4.2.2 wrote its checkpoint half way, went on behind it, and was killed
    "4.2.1 keeps it": (on_the_way(checkpoint(31, 2500), **BESIDE), LIKELY),
    "4.2.2 keeps none: a standby's": (on_the_way(checkpoint(31, 2500), release="4.2.2", **BESIDE), REMARKED),
    # found by the hunt: the first commit of a standby of 3.2.3 wrote the offset that it had before
    "where nothing pauses": (on_the_way(checkpoint(31, 5001), standbys=1, release="3.2.3", other=5001), REMARKED),
    "but for more than 10,000": (
        on_the_way(checkpoint(31, 5001), standbys=1, release="3.2.3", now=4000, work=61_000), PROVED),
    "of a close on the way": (on_the_way(checkpoint(49.9, 2500), released=50), SUSPECTED),
})  # fmt: skip
def test_whose_checkpoint_it_is(one, expected):
    assert said(ID, one) == expected


# -- up to 2.5: what a restoration gave back ----------------------------------------------------------------------


def old(
    restored: int = 2000,
    *,
    reopens: int = 2,
    released: float | None = 60,
    release: str = "2.0.0",
    entries: int | None = 7609,
    begins: int = 0,
    wiped: tuple[bool, int] = (False, 0),
    other: tuple[float, Shape] | None = None,
    now: float = 100,
) -> TaskCase:
    """7,609 puts flushed by 20 s, killed; opened again at 30 s, and a restoration gave `restored` puts back.

    `wiped`: the session before was wiped, with so many reopens; `other`: when another store went, and how.
    """
    before, after = session(0, 20, puts=7609), session(30, released, offset_at_open=begins)
    before.entries_at_release, (before.wiped, before.reopens) = entries, wiped
    after.reopens, after.restored_puts = reopens, 7609 + restored
    stores = [store([database(puts=7609 + restored)], [before, after])]
    if other is not None:
        stores.append(store(name="t"))
        stores[-1].past += (past(other[0], shape=other[1]),)
    return case(task(*stores), now=now, release=release, guarantee="exactly_once")


WIPES = {"restored": 0, "released": None}


@table(ID, "more, expected", {
    "one put less than live entries": ({"restored": 7608}, PROVED),
    "nothing came back": ({"restored": 0}, PROVED),
    "the manifest of its end was not read yet": ({"restored": -1}, SUSPECTED),
    "all came back": ({"restored": 7609}, SUSPECTED),
    "it went on from an entry": ({"begins": 1}, SUSPECTED),
    "a compacted changelog": ({"entries": 2000}, SUSPECTED),
    "entries that nobody counted": ({"entries": None}, SUSPECTED),
    "one reopen is the beginning of a restoration": ({"reopens": 1}, SUSPECTED),
    "two are its end, and more may come": ({"reopens": 3}, PROVED),
    "4.1 has no bulk loading": ({"release": "4.1.2"}, SUSPECTED),
    "another store was just wiped, this may be next": (
        {**WIPES, "other": (95, Shape.OWNER_WALK), "now": 104.9}, "the stores of its task are being wiped"),
    "ten seconds ago": ({**WIPES, "other": (95, Shape.OWNER_WALK), "now": 105}, PROVED),
    "before the opening": ({**WIPES, "other": (29, Shape.OWNER_WALK), "now": 96}, PROVED),
    "by another hand": ({**WIPES, "other": (95, Shape.CLEANER_WALK), "now": 96}, PROVED),
    "killed in a restoration after a wipe": ({"wiped": (True, 1)}, "killed in a restoration of up to 2.5"),
    "killed after it": ({"wiped": (True, 2)}, PROVED),
    "one reopen without a wipe": ({"wiped": (False, 1)}, PROVED),
})  # fmt: skip
def test_what_a_whole_replay_gave_back(more, expected):
    """Compaction keeps each key: what the changelog does not give back was never committed."""
    assert said(ID, old(**more)) == expected


def plain(release: str | None = "4.1.2", offset: int | None = 1, *, named: bool = False, **more) -> TaskCase:
    """500 puts beyond no checkpoint, killed, and opened again with this entry in force."""
    sessions = [session(0, 20, puts=500), session(30, 60, offset_at_open=offset)]
    facts = [checkpoint(61, 7)] if named else []
    return case(task(store([database(puts=500)], sessions), checkpoints=facts), release=release, **more)


@table(ID, "release, offset, named, expected", {
    "4.1": ("4.1.2", None, False, "a store without a changelog"),
    "4.1, the entry in force was not seen": ("4.1.2", None, True, 1),
    "4.1, an unknown offset": ("4.1.2", -4, False, 1),
    "2.5.1": ("2.5.1", None, False, "a store without a changelog"),
    "2.5.0 skips the wipe": ("2.5.0", None, False, 1),
    "any release": (None, None, False, 1),
})  # fmt: skip
def test_opened_without_an_entry(release, offset, named, expected):
    """Where no bug skips the wipe, only a store without a changelog is opened so."""
    assert len(judge(ID, plain(release, offset, named=named))) == (expected or 0)


@pytest.mark.parametrize(
    ("release", "standbys", "says", "missing"),
    [
        ("4.1.2", 0, False, ()),
        ("4.1.2", 1, True, ()),
        ("4.1.2", None, True, ("num_standby_replicas",)),
        ("2.0.0", None, False, ()),
    ],
)
def test_role_is_asked_for_where_it_matters(release, standbys, says, missing):
    """Up to 2.5 the checkpoint tells it."""
    (verdict,) = judge(ID, plain(release, standbys=standbys))
    assert (verdict.missing_facts, "role unknown" in verdict.summary) == (missing, says)


def test_chain_in_order():
    """Opening, checkpoint of the session or its absence, release, reopening."""
    (verdict,) = judge(ID, old())
    assert [step.at_us for step in verdict.evidence] == [at(0), at(0), at(20), at(30)]
    assert verdict.opened_at_us == at(30)
    (nothing,) = judge(ID, dossier(-4))
    assert "advanced by 0" in nothing.evidence[-1].what
