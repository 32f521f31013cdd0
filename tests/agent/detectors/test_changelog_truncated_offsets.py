"""Detector `changelog-truncated`: which offsets are compared, and how long one must stand."""

from __future__ import annotations

from typing import Any

from tests.support.out_of_range import ALOS
from tests.support.scenario_case import at, case, checkpoint, database, judge, mark, session, store, task
from tests.support.twins import cases, said_of

ID = "changelog-truncated"
CRITICAL, WARNING = (f"{x} suspected without end offset of the changelog" for x in ("critical", "warning"))
REPLAYED = "silent: the store was opened again meanwhile, and is replayed"
MADE_SINCE = "silent: the store was made since"
PUT_BACK = "silent: an older copy of the checkpoint was put back"
LATE = "silent: before a clean close a flush seems to have come earlier"
NOTHING = "silent: no offset was trusted, or none is said"


def trusted(
    ends: int = 3000,
    *,
    opened_at: int | None = 5000,
    puts: int = 5000,
    reopened: tuple[float, ...] = (),
    all_reopens: bool = True,
    segmented: bool = False,
    task_id: str = "0_0",
    release: str | None = "4.1.2",
    **more: Any,
) -> Any:
    """A session from 10 s to 50 s that trusted the offset `opened_at` and wrote `ends` at 49 s."""
    held = session(
        10, 50, puts=puts, first=mark(49, ends, puts), offset_at_open=opened_at, puts_at_open=puts, **more
    )
    base = database(puts=puts, born=-100, all_reopens=all_reopens, reopened_us=tuple(map(at, reopened)))
    return case(task(store([base], [held], segmented=segmented), task_id=task_id), release=release)


def segments(*, segmented: bool) -> Any:
    """An opening of a windowed store trusts one segment, whatever the others hold."""
    return trusted(6000, release="4.3.1", segmented=segmented, stored_offset_at_open=3599, stored_offset=2000)


def two_stores() -> Any:
    """A store in order stands before the one that fell."""
    one = trusted()
    one.task.stores = {"a": store([database()], [session(0)], name="a"), **one.task.stores}
    return one


@cases(
    ID,
    ("one lower, from 2.5 to 2.6", trusted(4999), "silent"),
    ("two lower", trusted(4998), CRITICAL),
    ("offset 0", trusted(0), CRITICAL),
    ("the unknown offset is none", trusted(-4), "silent"),
    ("the opening trusted none", trusted(opened_at=None), "silent"),
    ("the opening trusted the unknown one", trusted(opened_at=-4), "silent"),
    ("nothing was ever flushed", trusted(puts=0), WARNING),
    ("its own opening", trusted(reopened=(10,)), CRITICAL),
    ("its own, and one before", trusted(reopened=(-50, 10)), CRITICAL),
    ("opened again before the lower offset", trusted(reopened=(10, 30)), REPLAYED),
    ("opened again after it", trusted(reopened=(10, 49.5)), CRITICAL),
    ("old logs are not kept", trusted(all_reopens=False), REPLAYED),
    ("wiped in the session, up to 2.5", trusted(wiped=True), REPLAYED),
    ("offset of a key-value store fell", segments(segmented=False), CRITICAL),
    ("highest of all segments fell", segments(segmented=True), "silent"),
    ("a global store has no changelog", trusted(task_id="global"), "silent"),
    ("a store in order before it", two_stores(), CRITICAL),
)
def test_below_what_the_opening_trusted(story, said):
    """An opening reads on from the offset that it trusts."""
    assert said_of(ID, story) == said


def standing(
    *, until: float = 140, commit_s: int | None = None, born: float = -1, other: bool = False, **more: Any
) -> Any:
    """A checkpoint of 5000 at 5 s, and one of 3000 at 30 s, after an opening at 20 s that trusted none."""
    facts = [
        checkpoint(5, 5000, ended=10, deleted=True, incarnation=7 if other else 1),
        checkpoint(30, 3000, ended=None if until > 130 else until),
    ]
    sessions = [session(0, 15, puts=5000), session(20, more.pop("released", None))]
    told = {} if commit_s is None else {"commit_interval_ms": commit_s * 1000}
    one = task(store([database(puts=5000, born=born)], sessions), checkpoints=facts)
    return case(one, guarantee=ALOS, now=140, told=told, **more)


def segments_that_are(*, gone: bool) -> Any:
    """A checkpoint that stands lower; the segments of the store are there, or a cleaner took them."""
    one = standing()
    held = one.task.stores["s"]
    held.segmented, held.databases = True, {} if gone else held.databases
    return one


def put_back(written: float, held: tuple[float, float | None]) -> Any:
    """An older state of the volume comes back in place: no process has written the lower offset."""
    facts = [checkpoint(30, 5000, ended=written), checkpoint(written, 3000)]
    one = task(store([database(puts=5000, born=-1)], [session(*held, puts=5000)]), checkpoints=facts)
    return case(one, guarantee=ALOS, now=140)


def read_by_a_standby(release: str) -> Any:
    """A session that began at offset 4000, and puts again what it reads: from 5000 down to 4500."""
    made = database(puts=5600, born=-1, flushed=[(5000, 9), (5600, 29)])
    facts = [checkpoint(10, 5000, ended=30), checkpoint(30, 4500)]
    held = session(0, puts=5600, offset_at_open=4000)
    return case(task(store([made], [held]), checkpoints=facts), release=release, guarantee=ALOS)


@cases(
    ID,
    ("it stands", standing(), WARNING),
    ("for a minute", standing(until=90), WARNING),
    ("for less than a minute", standing(until=89.9), "silent"),
    ("for two commit intervals", standing(commit_s=55), WARNING),
    ("for less than two", standing(commit_s=60), "silent"),
    ("whether the release wipes is not told", standing(release=None), "silent"),
    ("made after the higher checkpoint", standing(born=6), MADE_SINCE),
    ("segments made at any time", segments_that_are(gone=False), WARNING),
    ("no segment is there any more", segments_that_are(gone=True), MADE_SINCE),
    ("another incarnation of the task", standing(other=True), "silent"),
    ("let go at once", standing(released=31), "silent"),
    ("written while it was held", put_back(40, (0, 45)), CRITICAL),
    ("up to 2.1 the close writes after it let go", put_back(45.5, (0, 45)), CRITICAL),
    ("a copy with times of its own", put_back(50, (0, 45)), PUT_BACK),
    ("a copy with the times of the files", put_back(5, (0, 60)), PUT_BACK),
    ("nobody is known to have held it", put_back(40, (42, None)), PUT_BACK),
    (
        "2.3, a standby reads again",
        read_by_a_standby("2.3.1"),
        "silent: a standby of up to 2.4 has read the same records again",
    ),
    ("3.9, a standby goes on from there", read_by_a_standby("3.9.2"), CRITICAL),
)
def test_checkpoint_below_the_one_before(story, said):
    """Of the same store, written by who holds it, and not on its way up."""
    assert said_of(ID, story) == said


def closed_again(
    closed: bool | None = True, *, at_open: int | None = 5000, offset: int = 5100, puts: int = 5202
) -> Any:
    """A session whose opening trusted an offset, with 5,000 puts on disk, and so many at its last checkpoint."""
    last = mark(30, offset, puts)
    one = session(20, 40, puts=puts, offset_at_open=at_open, puts_at_open=5000, last=last, closed=closed)
    return case(task(store([database(puts=puts)], [one])))


@cases(
    ID,
    # 100 offsets, and one by the change of their meaning, explain 101 puts; a hundred more may be late
    ("202 puts in 100 offsets", closed_again(), WARNING),
    ("201 puts in 100 offsets", closed_again(puts=5201), "silent: the changelog may have given as much"),
    ("100 puts in 100 offsets", closed_again(puts=5100), "silent: hardly anything was put since"),
    ("held too briefly", closed_again(closed=None), LATE),
    ("killed open", closed_again(closed=False), LATE),
    ("none trusted", closed_again(at_open=None), NOTHING),
    ("the unknown one trusted", closed_again(at_open=-4), NOTHING),
    ("none said", closed_again(offset=-4), NOTHING),
)
def test_puts_that_the_changelog_may_have_given(story, said):
    """A clean close with far more puts than offsets."""
    assert said_of(ID, story) == said


def test_chain_of_the_verdict():
    """Both offsets with their times; dated to the lower one."""
    (verdict,) = judge(ID, standing())
    assert [(step.at_us, step.what) for step in verdict.evidence] == [
        (at(5), "offset 5000"),
        (at(30), "offset 3000, the same store, not wiped"),
    ]
    assert (verdict.opened_at_us, verdict.store, verdict.identity) == (at(30), "s", "identity-1")
    assert [x.store for x in judge(ID, two_stores())] == ["s"]
