"""Detector `unrestored-store`: KAFKA-16017, and the exact limits of its conditions on dossiers built by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Confidence, Level, Status
from agent.inventory.model import Application, ProcessLife, Session, Shape
from agent.judging.base import TaskCase
from tests.support.scenario import WINDOWED, Scenario
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
from tests.support.scenario_script import play
from tests.support.tables import LIKELY, PROVED, QUIET, SUSPECTED, UNKNOWN, heard, said, table

ID = "unrestored-store"
ALOS, EOS = "at_least_once", "exactly_once"


# -- KAFKA-16017 ------------------------------------------------------------------------------------------------------


def abandoned(
    release: str = "3.6.1",
    guarantee: str = "exactly_once_v2",
    *,
    restored: int = 500,
    offset: int = 7999,
    **more,
) -> Scenario:
    """Wiped at 8,000 records; the new owner restores some and is closed clean with `offset`."""
    run = Scenario(release, guarantee, **more)
    play(run, "start, opens, 1 s, puts 8000, flushes, 3 s, wipes, 1 s")
    if restored:
        run.app.puts("0_0", restored)
    return play(run, f"closes {offset}, 2 s")


@table(ID, "more, expected", {
    # the close of a half-restored task claims the offset from before the wipe; aborted records may look the same
    **{f"a half-restored task, {x}": ({"release": x}, LIKELY) for x in ("2.6.2", "2.8.2", "3.4.1", "3.5.2", "3.6.1")},
    "the guarantee is not known": ({"hidden": ("processing_guarantee",)}, SUSPECTED),
    # a dirty close clears that there is something to commit, and with it what would be claimed
    **{f"{x} does not do it": ({"release": x}, QUIET) for x in ("2.8.0", "2.8.1", "3.0.0")},
    "3.6.2 is fixed": ({"release": "3.6.2"}, QUIET),
    "4.1 is fixed": ({"release": "4.1.2"}, QUIET),
    "at-least-once never wipes": ({"guarantee": ALOS}, QUIET),
    "it claims nothing": ({"restored": 0, "offset": -4}, "it claims no offset"),
    "it was restored": ({"restored": 8000}, "its puts explain the offset"),
})  # fmt: skip
def test_16017(more, expected):
    run = abandoned(**more)
    assert heard(ID, run) == expected
    missing = ("processing_guarantee",) if "hidden" in more else ()
    assert {(x.upstream, x.missing_facts) for x in run.findings(ID)} <= {(("KAFKA-16017",), missing)}


SEGMENTS = "start, opens, 1 s, puts 4000 segment=0, puts 4000 segment=60000, flushes, 3 s, wipes, 1 s"
EMPTY = f"{SEGMENTS}, closes 7999, 12 s"
AGAIN = "30 s, start, opens, 0.4 s"
FILLED = "puts 4000 segment=0, puts 4000 segment=60000"


@table(ID, "script, expected", {
    "a restoration that was cut short": (f"{SEGMENTS}, puts 500 segment=60000, closes 7999, 12 s", LIKELY),
    "one that gave back all": (f"{SEGMENTS}, {FILLED}, closes 7999, 12 s", QUIET),
    "a segment expired, and took its puts along": (
        f"{SEGMENTS}, puts 4000 segment=60000, 1 s, puts 600 segment=120000, 1 s, drops_segment s 60000, closes 8600,"
        " 12 s",
        "a segment expired since, maybe before its puts were seen"),
    "its only segment expired before a later one was made": (
        "start, opens, 1 s, puts 8000 segment=0, flushes, 1 s, drops_segment s 0, puts 600 segment=120000, flushes,"
        " closes 8600, 12 s",
        QUIET),
    # its first segment is made with its first record: without one there is no session
    "nothing was restored": (EMPTY, LIKELY),
    "nothing, and it claims nothing": (f"{SEGMENTS}, closes -4, 12 s", QUIET),
    "its first segment may not have been read yet": (
        f"{SEGMENTS}, closes 7999, 1 s", "its first segment may not have been read yet"),
    "it was used since": (f"{EMPTY}, {AGAIN}, puts 100 segment=60000, flushes, 30 s", LIKELY),
})  # fmt: skip
def test_16017_of_a_windowed_store(script, expected):
    run = play(Scenario("3.6.1", "exactly_once_v2", stores={"s": WINDOWED}), script)
    assert heard(ID, run) == expected


def test_a_claim_before_the_first_segment_ends_with_its_damage():
    """Until there is a segment it is an exposure; then it is damage of that incarnation."""
    run = play(Scenario("3.6.1", "exactly_once_v2", stores={"s": WINDOWED}), EMPTY)
    assert [(x.level, x.status, x.identity) for x in run.findings(ID)] == [
        (Level.EXPOSURE, Status.OPEN, None)
    ]
    play(run, f"{AGAIN}, puts 100 segment=60000, closes 8100, 12 s")
    before, since = sorted(run.findings(ID), key=lambda x: x.opened_at_us)
    assert (before.status, since.status, since.level) == (Status.RESOLVED, Status.OPEN, Level.DAMAGE)
    play(run, f"{AGAIN}, wipes, 1 s, {FILLED}, closes 8200, 12 s")
    assert {x.status for x in run.findings(ID)} == {Status.RESOLVED}


def test_a_claim_before_the_first_segment_of_a_restoration_that_went_on():
    """It was only suspended."""
    run = play(Scenario("3.6.1", "exactly_once_v2", stores={"s": WINDOWED}), EMPTY)
    play(run, f"{AGAIN}, {FILLED}, closes 8100, 12 s")
    assert run.only(ID).status is Status.RESOLVED


def claimed(
    offset: int = 7999,
    puts: int = 500,
    *,
    held: int | None = 8000,
    shape: Shape = Shape.OWNER_WALK,
    old: int | None = None,
    process: float | None = 2,
    ended: tuple[float, ...] = (10,),
    segment: str | None = None,
    created: bool = True,
    problem: str | None = None,
) -> TaskCase:
    """Wiped at 10 s with 8,000 puts, flushed at 5 s; made again at 11 s; its checkpoint says `offset` with `puts`.

    The process lives since `process`; a checkpoint of the old store said `old`; `ended`: incarnations ended then.
    """
    one = store([database(puts=puts, born=11)], [session(11, created=created, first=mark(15, offset, puts))])
    one.databases[""].manifest_problem = problem
    one.past += tuple(
        past(x, shape=shape, puts=8000, entries_low=held, flushed=5, segment=segment, incarnation=0)
        for x in ended
    )
    app = Application("app", exists=True)
    app.lives += () if process is None else (ProcessLife(at(process)),)
    told = [] if old is None else [checkpoint(3, old)]
    return case(task(one, checkpoints=told), application=app, release="3.6.1")


@table(ID, "one, expected", {
    "a cleaner deleted it": (claimed(shape=Shape.CLEANER_WALK), QUIET),
    "it vanished unseen": (claimed(shape=Shape.VANISHED_UNSEEN), QUIET),
    "less than four fifths of its live entries": (claimed(puts=799, held=1000), LIKELY),
    "four fifths: a restoration that ended": (
        claimed(puts=800, held=1000), "its live entries came back from a compacted changelog"),
    "how many it had is not known": (claimed(puts=799, held=None), SUSPECTED),
    "the offset from before the wipe": (claimed(7999, old=7999), LIKELY),
    "less: that is what it restored": (
        claimed(7998, old=7999), "it claims less than before the wipe: what it restored"),
    "the process that had worked on the old store": (claimed(process=4), LIKELY),
    "a new one remembers nothing": (claimed(process=6), "another process wrote the claim, and remembers nothing"),
    "which process is not known": (claimed(process=None), SUSPECTED),
    "the store was not made anew": (claimed(created=False), QUIET),
    "it ended as the new one was opened": (claimed(ended=(11,)), LIKELY),
    "it ended after the new one was opened": (claimed(ended=(12,)), QUIET),
    "a segment": (claimed(segment="s.0"), QUIET),
    "its manifest was not read": (claimed(problem="MANIFEST-000005: denied: unreadable"), "its puts are not known"),
})  # fmt: skip
def test_claims_of_the_old_store(one, expected):
    assert said(ID, one) == expected
    assert judge(ID, claimed(ended=(5, 9, 12)))[0].evidence[0].at_us == at(9)  # the newest before the opening


# -- KAFKA-7672 -----------------------------------------------------------------------------------------------------


def jump(
    offset: int = 12_200,
    puts: int = 4200,
    *,
    reopens: int = 1,
    seconds: float = 5,
    first: tuple[float, int, int] | None = None,
    released: float | None = None,
    late: bool = False,
    deleted: tuple[bool, bool] | None = None,
    earlier: tuple[int, int] | None = None,
    task_id: str = "0_0",
    changes: dict[str, Any] | None = None,
    **settings,
) -> TaskCase:
    """Opened at 3000 with 3000 puts; `seconds` later the checkpoint says `offset` with `puts`.

    `first`: what its first one said; `late`: the flush before it was read after it; `deleted`: an earlier one was
    deleted, and with the directory; `earlier`: what a session before claimed, and its puts.
    """
    one = session(0, released, last=mark(seconds, offset, puts), offset_at_open=3000, puts_at_open=3000)
    one.first, one.reopens = mark(*first) if first else one.last, reopens
    one.bulk_load_us = at(1) if reopens == 1 else 0
    files = database(puts=puts, flushed=[(12_200, 4.9)] if late else [])
    sessions = [] if earlier is None else [session(-20, -10, last=mark(-10.01, *earlier), reopens=2)]
    held = store([files], [*sessions, one])
    for name, value in (changes or {}).items():
        setattr(next(x for x in (one, files, held) if hasattr(x, name)), name, value)
    facts = [] if deleted is None else [checkpoint(-1, 3000, ended=0, deleted=deleted[0], in_walk=deleted[1])]
    chosen = {"release": "2.1.1", "guarantee": ALOS, **settings}
    return case(task(held, checkpoints=facts, task_id=task_id), **chosen)


def told(interval_ms: int) -> dict[str, Any]:
    """Exactly-once with this commit interval."""
    return {"guarantee": EOS, "told": {"commit_interval_ms": interval_ms}}


def standby(*marks: float, **more) -> TaskCase:
    """No restoration; the checkpoints at these seconds say 12,200."""
    chosen = {"guarantee": EOS, "standbys": 1, **more}
    return jump(first=(marks[0], 12_200, 4200), seconds=marks[-1], **chosen)


EXPLAINED = "its puts and commit markers explain the offset"
STOPPED = "stopped amid a restoration: it claims what it had read"
PASSED_OVER = "an exactly-once standby passes over what was aborted"
LATE = "the flushes before its checkpoint may not have been read yet"


@table(ID, "one, expected", {
    # up to 100 records, or a tenth of the advance, may be missing
    "a hundred records": (jump(3500, 3400), EXPLAINED),
    "more than a hundred": (jump(3500, 3399), PROVED),
    "a tenth": (jump(13_000, 12_000), EXPLAINED),
    "more than a tenth": (jump(13_000, 11_999), PROVED),
    "50 s: 500 markers and two": (jump(3602, 3000, seconds=50, **told(100)), EXPLAINED),
    "more than markers": (jump(3603, 3000, seconds=50, **told(100)), LIKELY),
    # with other intervals than told every second offset may be a marker: only what lies beyond that is proved
    "a marker behind every record": (jump(5101, 4000, **told(10_000)), SUSPECTED),
    # found by the model: all that is missing may have been aborted, unless an earlier session put and claimed some
    "more than that": (jump(5102, 4000, **told(10_000)), LIKELY),
    "and an earlier session claimed some of it": (jump(5102, 4000, earlier=(3001, 1), **told(10_000)), PROVED),
    "it claimed none of it": (jump(5102, 4000, earlier=(3000, 3000), **told(10_000)), LIKELY),
    "it put none of it": (jump(5102, 4000, earlier=(4000, 0), **told(10_000)), LIKELY),
    # without a restoration that began, records may have been sent twice, or by an expelled owner
    "no reopen": (jump(reopens=0), LIKELY),
    "no reopen, each record twice": (jump(5100, 4000, reopens=0), SUSPECTED),
    "no reopen, and an earlier session claimed some of it": (jump(reopens=0, earlier=(3001, 1)), PROVED),
    "half of the pair": (jump(reopens=1), PROVED),
    "one reopen in another mode: a release was missed": (jump(changes={"bulk_load_us": 0}), LIKELY),
    "a stop amid the restoration of a compacted changelog": (jump(released=5.02), STOPPED),
    "its close was slow, maybe": (jump(released=5.9), LIKELY),
    "it was held on after its first checkpoint": (jump(released=10), PROVED),
    "it may be at its close": (jump(now=5.9), "it may be at its close, amid a restoration"),
    "it is not": (jump(now=7), PROVED),
    "the pair": (jump(reopens=2), "it was restored: RocksDB was reopened twice"),
    "more than the pair": (jump(reopens=3), "it was restored: RocksDB was reopened twice"),
    "segments do not reopen like this": (
        jump(changes={"segmented": True}), "a windowed store is restored without a reopen"),
    "global stores are restored by another thread": (jump(task_id="global"), QUIET),
    "what has no offset is wiped by an active task": (jump(standbys=1, changes={"wiped_at_once": True}), PROVED),
    "what is out of range by a standby, too": (jump(standbys=1, changes={"wiped": True}), SUSPECTED),
    "its opening was not seen": (jump(changes={"attached": True}), "its opening was not seen"),
    "its manifest was not read": (
        jump(changes={"manifest_problem": "MANIFEST-000005: denied: unreadable"}), "its puts are not known"),
    # found live: where RocksDB drops old logs, or keeps them elsewhere, nobody can tell a restoration from none
    "reopens that leave no trace": (jump(reopens=0, changes={"all_reopens": False}), UNKNOWN),
    # found by the hunt: on a busy machine the checkpoint was read first, and the store seemed to lack its records
    "a flush that is read after its checkpoint": (jump(puts=3000, late=True), EXPLAINED),
    "a fresh checkpoint waits for its flushes": (jump(reopens=0, now=6.9), LATE),
    "two seconds": (jump(reopens=0, now=7), LIKELY),
    "until then the first one counts": (jump(now=6.9, first=(1, 12_000, 3000)), PROVED),
    # found by the hunt: a kill aborts thousands of records; only a standby writes checkpoints while it goes on
    "a standby": (standby(5), PASSED_OVER),
    "a standby that was closed later": (standby(5, released=10), PASSED_OVER),
    "two checkpoints and a close": (standby(5, 5.1, released=5.2), PASSED_OVER),
    "standbys not told": (standby(5, standbys=None), PASSED_OVER),
    "the close of either": (standby(5, released=9.9), SUSPECTED),
    "a standby under at-least-once": (standby(5, guarantee=ALOS), SUSPECTED),
    "no standbys": (standby(5, standbys=0), LIKELY),
    # at-least-once deletes none but with the whole directory
    "a checkpoint that was deleted alone": (standby(5, guarantee=None, deleted=(True, False)), PASSED_OVER),
    "one that was deleted with the directory": (standby(5, guarantee=None, deleted=(True, True)), SUSPECTED),
    "one that was replaced": (standby(5, guarantee=None, deleted=(False, False)), SUSPECTED),
})  # fmt: skip
def test_offset_jump(one, expected):
    assert said(ID, one) == expected


def skipped(
    *, created: bool = True, wiped: bool = False, reopens: int = 0, base: int | None = None
) -> Session:
    """A session whose only checkpoint claims 5,000 with 50 puts."""
    one = session(10, created=created, offset_at_open=base, last=mark(20, 5000, 50))
    one.wiped, one.wiped_at_once, one.reopens = wiped, wiped, reopens
    return one


def of_sessions(*held: Session, **settings) -> TaskCase:
    """A release with KAFKA-7672."""
    chosen = {"release": "2.0.1", "guarantee": ALOS, **settings}
    return case(task(store([database(puts=50)], held)), **chosen)


@pytest.mark.parametrize(
    ("more", "opened", "pair"),
    [
        ({"wiped": True}, "opened, wiped by its owner and recreated", "none"),
        ({}, "a new store was made, to continue from offset 0", "none"),
        ({"created": False, "base": 100}, "store opened, to continue from offset 100", "none"),
        ({"reopens": 1}, "a new store was made, to continue from offset 0", "half of the pair"),
    ],
)
def test_how_it_was_opened(more, opened, pair):
    """Recreated by a wipe, made for the first time, or found there; with the offset it continues from."""
    (verdict,) = judge(ID, of_sessions(skipped(**more)))
    assert (verdict.evidence[0].what, verdict.subject) == (opened, "identity-1")
    assert verdict.evidence[1].what.endswith(f": {pair}")


def test_what_is_not_known():
    """Standbys that are not told are assumed, but for a store that was wiped at once: only an owner does."""
    (verdict,) = judge(ID, of_sessions(skipped(), standbys=None))
    assert (verdict.confidence, verdict.missing_facts) == (Confidence.SUSPECTED, ("num_standby_replicas",))
    assert "assuming the default num.standby.replicas=0" in verdict.evidence[-1].what
    (verdict,) = judge(ID, of_sessions(skipped(wiped=True), standbys=None, guarantee=EOS))
    assert "num_standby_replicas" not in verdict.missing_facts
    (verdict,) = judge(ID, jump(reopens=0, changes={"all_reopens": False}))
    assert "unknown" in verdict.summary
    assert "keep few or no old LOG files" in verdict.evidence[1].what


def used(
    read: float,
    *,
    now: float = 100,
    flushed: float = 14,
    released: float | None = None,
    claims: bool = False,
) -> TaskCase:
    """Opened at 10 s, wiped, 50 puts flushed at `flushed`, read for the last time at `read`."""
    one = session(10, released, last=mark(20, 90, 0) if claims else None)
    one.wiped = one.wiped_at_once = True
    held = database(puts=50, flushed=[(50, flushed)], born=12)
    held.seen_us = at(read)
    return case(task(store([held], [one])), release="2.0.1", guarantee=EOS, now=now)


@table(ID, "one, expected", {
    # a reading that began before the flush may have missed the reopen between the two
    "read before the flush": (used(13.9), QUIET),
    "read with the flush": (used(14), SUSPECTED),
    "read later": (used(20), SUSPECTED),
    "what a busy machine reads late is waited for": (used(15, now=15.9), QUIET),
    "for two seconds": (used(15, now=16), SUSPECTED),
    "a later session put it": (used(20, released=13), QUIET),
    "this session put it": (used(20, released=15), SUSPECTED),
    "no puts": (used(12), QUIET),
    # what was put may have been deleted again, or not be flushed
    "a claim is enough": (used(12, claims=True), LIKELY),
})  # fmt: skip
def test_used_after_a_wipe(one, expected):
    assert said(ID, one) == expected


@table(ID, "reopens, commits, carried, expected", {
    "skipped, an old offset": (0, (), True, "an old offset was carried over (resurrected-checkpoint)"),
    "skipped": (0, (), False, 1),
    "half restored, an old offset": (
        1, (20, 32, 44, 56), True, "an old offset was carried over (resurrected-checkpoint)"),
    "half restored": (1, (20, 32, 44, 56), False, 1),
})  # fmt: skip
def test_an_offset_carried_over_has_its_own_detector(reopens, commits, carried, expected):
    """A new store that goes on from the offset of a deleted one: its puts equal the advance, with or without a mode."""
    new = session(11, created=True, first=mark(15, 12_200, 200))
    new.reopens, new.bulk_load_commits = reopens, tuple(at(x) for x in commits)
    one = store([database(puts=200, born=11)], [new])
    one.past += (past(10, puts=12_000, entries_low=12_000),)
    facts = [checkpoint(5, 12_000, ended=9, deleted=True)] if carried else []
    found = judge(ID, case(task(one, checkpoints=facts), release="2.1.1", guarantee=ALOS))
    assert len(found) == (expected or 0)
