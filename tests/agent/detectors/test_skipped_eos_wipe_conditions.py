"""Detector `skipped-eos-wipe`: the exact limits of its conditions, on dossiers built by hand."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.blindness import note_blind
from agent.inventory.observations import StoreOffsets
from agent.judging.base import AgentCase
from tests.support.scenario_case import (
    PLAIN,
    TIMESTAMPED,
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    session,
    severities,
    store,
    task,
)

ID = "skipped-eos-wipe"


def dossier(
    *,
    advance: int | None = None,
    applied: int = 0,
    now: float = 100,
    worked: float | None = 60,
    work: int = 40_000,
    **settings,
):
    """A crash at 20 s with 1,000 puts flushed beyond offset 2,000; reopened at 30 s; first checkpoint at 40 s.

    New work is flushed at `worked`, more than 10,000 records of any kind: the restoration had ended.
    """
    base = mark(10, 2000, 2000)
    first = None if advance is None else mark(40, 2000 + advance, 3000 + applied)
    before = session(0, 20, puts=3000, last=base)
    after = session(30, first=first, offset_at_open=1)
    checkpoints = [checkpoint(10, 2000, ended=31, deleted=True)]
    checkpoints += [] if first is None else [checkpoint(40, first.offset)]
    flushed = [(3000, 15)] if worked is None else [(3000, 15), (3000 + applied + work, worked)]
    families, entries = settings.pop("families", TIMESTAMPED), settings.pop("entries", None)
    files = database(puts=flushed[-1][0], flushed=flushed, families=families, entries=entries)
    one = store([files], [before, after])
    return case(task(one, checkpoints=checkpoints), now=now, **settings)


def said(one: AgentCase) -> list[tuple[Severity, Confidence]]:
    return [(x.severity, x.confidence) for x in judge(ID, one)]


PROVED = [(Severity.CRITICAL, Confidence.CONFIRMED)]
LIKELY = [(Severity.CRITICAL, Confidence.SUSPECTED)]
NOT_PROVED = [(Severity.WARNING, Confidence.SUSPECTED)]


def test_advance_is_compared_with_the_puts():
    """Fewer offsets than puts is proof, as many is not: an entry may be the next offset or the last."""
    assert said(dossier(advance=998, applied=998)) == PROVED
    assert said(dossier(advance=999, applied=999)) == NOT_PROVED


@pytest.mark.parametrize(
    ("families", "entries", "release", "enough"),
    [
        (TIMESTAMPED, None, "4.1.2", 998),
        (PLAIN, None, "3.4.1", 998),  # there were no versioned stores yet
        (
            PLAIN,
            500,
            "4.1.2",
            448,
        ),  # versioned perhaps: two puts an update, a hundred segments dropped at once
        (PLAIN, None, "4.1.2", 298),  # and ranges deleted since: three
    ],
)
def test_puts_per_record_by_kind_of_store(families, entries, release, enough):
    """A versioned store puts twice or three times a record: 3,000 committed updates are 6,000 puts."""
    told = {"families": families, "entries": entries, "release": release}
    assert said(dossier(advance=enough, applied=enough, **told)) == PROVED
    assert said(dossier(advance=enough + 1, applied=enough + 1, **told)) == NOT_PROVED


def test_unknown_kind_never_proves():
    """What may be in upgrade mode puts when it is read, too."""
    assert said(dossier(advance=0, families=())) == NOT_PROVED


def test_upgrade_mode_never_proves():
    """A timestamped store that still holds plain values puts when it is read, too."""
    one = dossier(advance=0)
    one.task.stores["s"].databases[""].families_in_use = TIMESTAMPED
    assert said(one) == NOT_PROVED


def test_unknown_offset_is_no_advance():
    """A first checkpoint of -4 says that nothing was given back."""
    one = dossier(advance=0)
    last = one.task.stores["s"].sessions[-1]
    last.first = last.last = mark(40, -4, 3000)
    one.task.checkpoints[-1].offsets["s"] = -4
    assert said(one) == PROVED


def test_checkpoint_that_only_stays():
    """A paused restoration leaves such a file, too: suspected, and only after minutes or at an end without a close."""
    assert said(dossier(advance=0, worked=None, now=339.9)) == NOT_PROVED
    assert said(dossier(advance=0, worked=None, now=340)) == LIKELY
    ended = dossier(advance=0, worked=None)
    last = ended.task.stores["s"].sessions[-1]
    last.released_us, last.closed = at(50), False
    assert said(ended) == LIKELY
    last.released_us = at(49.9)
    assert said(ended) == NOT_PROVED


def test_minutes_that_the_clock_was_set_by():
    """It was set forward by 200 s, from 50 s on: no restoration has been paused for five minutes yet."""
    for now_s, expected in ((539.9, NOT_PROVED), (540, LIKELY)):
        one = dossier(advance=0, worked=None, now=now_s)
        note_blind(one.inventory, at(50), at(250), "clock-step")
        assert said(one) == expected


@pytest.mark.parametrize(
    ("work", "worked", "expected"),
    [(10_001, 89.8, PROVED), (10_000, 89.8, LIKELY), (10_001, 89.9, LIKELY), (100, 60, LIKELY)],
)
def test_what_a_resumed_restoration_could_flush(work, worked, expected):
    """A restoration that was paused flushes, too, when it goes on; beyond 10,000 a commit would write a checkpoint."""
    assert said(dossier(advance=0, work=work, worked=worked)) == expected


def test_without_the_interval_no_commit_is_missed():
    """More than 10,000 records may go by between two commits."""
    told = {"commit_interval_ms": 30_000}
    assert said(dossier(advance=0, worked=60, now=129, told=told)) == LIKELY
    assert said(dossier(advance=0, worked=60, now=130, told=told)) == PROVED


def test_checkpoint_of_the_first_commit():
    """The first commit after an opening writes one however little was restored: more may be left than it says."""
    one = dossier(advance=9000, work=100, worked=50, now=69.9)
    assert said(one) == NOT_PROVED  # many offsets
    for seconds, expected in ((69.9, NOT_PROVED), (70, LIKELY)):
        one = dossier(advance=0, work=100, worked=50, now=seconds)
        for fact in one.task.checkpoints:
            fact.offsets["other"] = 9000
        assert said(one) == expected


def test_commits_that_the_clock_jumped_over():
    """A commit may have written the checkpoint: flushes at 60 s and 125 s show that two more went by, in real time."""
    for is_set, expected in ((False, PROVED), (True, LIKELY)):
        one = dossier(advance=0, worked=60, now=140, told={"commit_interval_ms": 30_000})
        for fact in one.task.checkpoints:
            fact.offsets["other"] = 9000
        files = one.task.stores["s"].databases[""]
        files.flushed += ((files.puts + 1, at(125)),)
        if is_set:
            note_blind(one.inventory, at(61), at(121), "clock-step")
        assert said(one) == expected


def test_only_the_last_checkpoint_can_be_the_end():
    """One that was followed by another was written on the way, however long it stood."""
    one = dossier(advance=100)
    one.task.checkpoints[-1].ended_us = at(80)
    one.task.checkpoints += (checkpoint(80, 4000),)
    assert said(one) == NOT_PROVED


def test_before_there_was_a_pause():
    """On 2.6 a copy that warms up, and that no setting announces, writes at its first commit, and has a way to go."""
    assert said(dossier(advance=0, worked=None, release="2.6.1")) == LIKELY


def test_orderly_close_further_on():
    """A close tells how far it came: of a task that ran, or of a restoration that went on after a pause."""
    one = dossier(advance=0, worked=None)
    last = one.task.stores["s"].sessions[-1]
    last.released_us, last.closed, last.last = at(60), True, mark(59.9, 2700, 3000)
    one.task.checkpoints[-1].ended_us = at(59.9)
    assert said(one) == LIKELY
    last.last = mark(59.9, 2000, 3000)
    assert said(one) == LIKELY


def test_flush_of_the_checkpoint_itself_is_no_work():
    """A flush that a checkpoint follows at once belongs to that one."""
    one = dossier(advance=0, worked=60)
    one.task.checkpoints[-1].ended_us = at(60.5)
    assert said(one) == NOT_PROVED


def test_aborted_offsets_are_suspected():
    """Offsets that nobody applied were aborted, or compacted away meanwhile; asked of 2.6.0 and 2.6.1 only."""
    told = {"commit_interval_ms": 1000}
    # 40 s at a marker a second, and two: 42 markers
    assert said(dossier(advance=1041, told=told, release="2.6.1")) == NOT_PROVED
    assert said(dossier(advance=1042, told=told, release="2.6.1")) == LIKELY
    for release in ("3.4.1", "4.1.2"):
        assert said(dossier(advance=5000, release=release)) == NOT_PROVED


@pytest.mark.twin_of(ID, "it kept its offsets in the store (4.3+)")
def test_store_that_keeps_its_offsets():
    """After an upgrade to 4.3 the told release may be that of yesterday; the session that ended says what it was."""
    one = dossier(advance=0, release="4.2.1")
    assert said(one) == PROVED
    for each in one.task.stores["s"].sessions:
        each.kept_offsets = True
    one.task.stores["s"].databases[""].offsets = StoreOffsets(status=0)
    assert said(one) == []


def test_orderly_end():
    """A session that closed in order left nothing uncommitted, whatever was flushed after its checkpoint was read."""
    one = dossier(advance=0)
    one.task.stores["s"].sessions[0].closed = True
    assert said(one) == []


def test_ten_seconds_after_the_reopening():
    """Without a checkpoint the reopening counts once a wipe would have come."""
    assert judge(ID, dossier(now=39.999)) == []
    assert severities(ID, dossier(now=40)) == [Severity.WARNING]


def test_release_of_the_second_session_counts_from_then():
    """A session that was released before a wipe was due is judged ten seconds after its release."""
    one = dossier(now=45)
    one.task.stores["s"].sessions[-1].released_us = one.now_us - 9_000_000
    assert judge(ID, one) == []


def test_another_incarnation_is_no_reopening():
    """The store was replaced between the two sessions."""
    one = dossier(advance=0)
    one.task.stores["s"].sessions[-1].identities = frozenset({"identity-2"})
    assert judge(ID, one) == []


@pytest.mark.twin_of(ID, "moved to 4.3 without an offset")
def test_upgrade_of_a_task_that_ran():
    """Up to 4.2 an active task has no checkpoint: the start-up pass of 4.3 opens its store, the assignment wipes it."""
    one = dossier(release="4.3.1")
    before, after = one.task.stores["s"].sessions
    before.first = before.last = after.offset_at_open = None
    assert len(said(one)) == 1
    one.task.stores["s"].databases[""].offsets = StoreOffsets(status=1)
    assert said(one) == []


@pytest.mark.parametrize("at_open", [None, -4])
def test_upgrade_of_a_task_whose_checkpoint_moves_nothing(at_open):
    """It was deleted when the task ran (4.2.2), or says "unknown": the pass keeps the store, the assignment wipes it.

    An offset in the store of which nobody saw the origin was moved there, though: nothing will be wiped.
    """
    one = dossier(release="4.3.1")
    one.task.stores["s"].sessions[1].offset_at_open = at_open
    one.task.stores["s"].databases[""].offsets = StoreOffsets(status=0)
    assert said(one) == []
    moved = (("app-s-changelog-0", 2000, 0),)
    one.task.stores["s"].databases[""].offsets = StoreOffsets(status=0, offsets=moved)
    assert len(said(one)) == 1


@pytest.mark.twin_of(ID, "let go by a process that lived on")
def test_orderly_release_in_a_living_process():
    """The process outlived the release: it closed the task, it did not crash."""
    one = dossier(advance=0)
    one.task.stores["s"].sessions[0].outlived = True
    assert judge(ID, one) == []


def test_wiped_afterwards():
    """An owner that wiped the store in the second session did its duty."""
    one = dossier(advance=0)
    one.task.stores["s"].sessions[-1].wiped = True
    assert judge(ID, one) == []


@pytest.mark.twin_of(ID, "killed in a restoration of up to 2.5")
def test_half_restored_old_store():
    """Up to 2.5 a wiped store with one of two bulk-load reopens was killed while it restored committed records."""
    one = dossier(advance=0, release="2.1.1", guarantee="exactly_once")
    before = one.task.stores["s"].sessions[0]
    before.first = before.last = None
    assert len(judge(ID, one)) == 1
    before.wiped, before.reopens = True, 1
    assert judge(ID, one) == []


def test_ignores_the_global_task():
    """Global stores have no transactions."""
    one = dossier(advance=0)
    one.task.id = "global"
    assert judge(ID, one) == []


def on_the_way(*checkpoints, standbys: int = 0, now: float = 400, release: str = "4.1.2"):
    """A crash at 20 s with 30,000 puts flushed beyond offset 2,000; reopened at 30 s; then these checkpoints."""
    before = session(0, 20, puts=32_000, last=mark(10, 2000, 2000))
    after = session(30, first=mark(31, 2000, 32_000), offset_at_open=2000)
    one = store([database(puts=32_000, flushed=[(32_000, 15)])], [before, after])
    history = [checkpoint(10, 2000, ended=30.1, deleted=True), *checkpoints]
    return case(task(one, checkpoints=history), now=now, standbys=standbys, release=release)


def test_checkpoint_that_a_restoration_leaves_behind_is_no_proof():
    """A standby that becomes active writes what it has, and deletes it right after (seen live on 4.2.1)."""
    passing = on_the_way(checkpoint(31, -4, ended=31.26, deleted=True), checkpoint(33, 32_100))
    assert severities(ID, passing) == [Severity.WARNING]
    assert severities(ID, on_the_way(checkpoint(31, -4), now=41)) == [Severity.WARNING]
    assert severities(ID, on_the_way(checkpoint(31, -4))) == [Severity.CRITICAL]


def test_checkpoint_of_the_commit_timer_is_no_proof():
    """A long restoration writes one whenever it has moved by more than 10,000 offsets, over all stores."""
    assert severities(ID, on_the_way(checkpoint(31, 12_001))) == [Severity.WARNING]
    assert severities(ID, on_the_way(checkpoint(31, 12_000))) == [Severity.CRITICAL]
    two = on_the_way(checkpoint(31, 8000))
    two.task.checkpoints[-1].offsets["other"] = 5000
    assert severities(ID, two) == [Severity.WARNING]


def test_checkpoint_of_a_change_of_roles_is_no_proof():
    """Where a task becomes a standby, or the other way round, its initialisation deletes what was written before."""
    for deleted, said_then in ((True, Severity.WARNING), (False, Severity.CRITICAL)):
        one = on_the_way(checkpoint(31, 2500, ended=41, deleted=deleted), standbys=1)
        one.task.stores["s"].databases[""].flushed += ((33_000, at(33)),)
        assert severities(ID, one) == [said_then]


def test_first_commit_of_a_standby():
    """Beside standbys a checkpoint that the commit timer may have written ends nothing, however long it stands."""
    one = on_the_way(checkpoint(31, 10_001), standbys=1, now=4000)
    one.task.stores["s"].databases[""].flushed += ((33_000, at(33)),)
    assert severities(ID, one) == [Severity.WARNING]


@pytest.mark.parametrize(("release", "said_then"), [("4.2.1", Severity.CRITICAL), ("4.2.2", Severity.INFO)])
def test_where_no_checkpoint_is_kept_one_that_stays_is_a_standbys(release, said_then):
    """Found by the hunt: a standby of 4.2.2 wrote its checkpoint half way, went on behind it, and was killed."""
    one = on_the_way(checkpoint(31, 2500), standbys=1, release=release)
    one.task.stores["s"].databases[""].flushed += ((33_000, at(33)),)
    assert severities(ID, one) == [said_then]


def test_first_commit_of_a_standby_where_nothing_pauses():
    """Found by the hunt: a standby of 3.2.3 was killed, and its first commit wrote the offset that it had before."""
    two = on_the_way(checkpoint(31, 5001), standbys=1, release="3.2.3")
    two.task.checkpoints[-1].offsets["other"] = 5001
    assert severities(ID, two) == [Severity.INFO]
    three = on_the_way(checkpoint(31, 5001), standbys=1, release="3.2.3", now=4000)
    three.task.stores["s"].databases[""].flushed += ((93_000, at(33)),)
    assert severities(ID, three) == [Severity.CRITICAL]


def test_checkpoint_of_a_close_is_no_proof():
    """A task that is closed while it restores writes how far it came."""
    one = on_the_way(checkpoint(49.9, 2500))
    one.task.stores["s"].sessions[-1].released_us = at(50)
    assert severities(ID, one) == [Severity.WARNING]
