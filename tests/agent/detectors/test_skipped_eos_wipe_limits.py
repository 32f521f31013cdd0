"""Detector `skipped-eos-wipe`: the exact limits of its conditions, on dossiers built by hand."""

from __future__ import annotations

from agent.contract.events import Severity
from tests.support.scenario_case import (
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


def dossier(*, advance: int | None = None, applied: int = 0, now: float = 100, **settings):
    """A crash at 20 s with 1,000 puts flushed beyond offset 2,000; reopened at 30 s; first checkpoint at 40 s."""
    base = mark(10, 2000, 2000)
    first = None if advance is None else mark(40, 2000 + advance, 3000 + applied)
    before = session(0, 20, puts=3000, last=base)
    after = session(30, first=first, offset_at_open=1)
    checkpoints = [checkpoint(10, 2000, ended=31, deleted=True)]
    checkpoints += [] if first is None else [checkpoint(40, first.offset)]
    one = store([database(puts=3000 + applied)], [before, after])
    return case(task(one, checkpoints=checkpoints), now=now, **settings)


def test_advance_is_compared_with_the_puts():
    """One offset short is proof, one that matches is not."""
    assert severities(ID, dossier(advance=999, applied=999)) == [Severity.CRITICAL]
    assert severities(ID, dossier(advance=1000, applied=1000)) == [Severity.WARNING]


def test_unknown_offset_is_no_advance():
    """A first checkpoint of -4 says that nothing was given back."""
    one = dossier(advance=0)
    last = one.task.stores["s"].sessions[-1]
    last.first = last.last = mark(40, -4, 3000)
    one.task.checkpoints[-1].offsets["s"] = -4
    assert severities(ID, one) == [Severity.CRITICAL]


def test_markers_are_no_aborted_records():
    """Commit markers of the whole crashed session take offsets without puts."""
    told = {"commit_interval_ms": 1000}
    # 40 s at a marker a second, and two: 42 markers at most
    assert severities(ID, dossier(advance=1041, applied=0, told=told, release="2.6.1")) == [Severity.WARNING]
    assert severities(ID, dossier(advance=1042, applied=0, told=told, release="2.6.1")) == [Severity.CRITICAL]


def test_fewer_puts_than_offsets_may_be_a_versioned_store():
    """From 3.5 on a restoration may put only the newest record of each key (seen live: 3,000 puts for 6,000)."""
    assert severities(ID, dossier(advance=5000, release="3.4.1")) == [Severity.CRITICAL]
    assert severities(ID, dossier(advance=5000, release="4.1.2")) == [Severity.WARNING]
    assert severities(ID, dossier(advance=5000, release=None)) == [Severity.WARNING]


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


def test_half_restored_old_store():
    """Up to 2.5 a wiped store with one of two bulk-load reopens was killed while it restored committed records."""
    one = dossier(advance=0, release="2.1.1", guarantee="exactly_once")
    before = one.task.stores["s"].sessions[0]
    before.first = before.last = None
    assert severities(ID, one) == [Severity.CRITICAL]
    before.wiped, before.reopens = True, 1
    assert judge(ID, one) == []


def test_ignores_the_global_task():
    """Global stores have no transactions."""
    one = dossier(advance=0)
    one.task.id = "global"
    assert judge(ID, one) == []


def test_versioned_store_puts_twice_per_record():
    """A store that made 2 puts per record in its first session needs half the offsets to cover its puts."""
    one = dossier(advance=500, applied=1000)
    first = one.task.stores["s"].sessions[0]
    first.created, first.last = True, mark(10, 999, 2000)
    one.task.stores["s"].sessions[1].first = mark(40, 999 + 500, 4000)
    one.task.checkpoints[-1].offsets["s"] = 999 + 500
    assert severities(ID, one) == [Severity.WARNING]
    one.task.stores["s"].sessions[1].first = mark(40, 999 + 499, 4000)
    one.task.checkpoints[-1].offsets["s"] = 999 + 499
    assert severities(ID, one) == [Severity.CRITICAL]


def on_the_way(*checkpoints, standbys: int = 0, now: float = 100):
    """A crash at 20 s with 30,000 puts flushed beyond offset 2,000; reopened at 30 s; then these checkpoints."""
    before = session(0, 20, puts=32_000, last=mark(10, 2000, 2000))
    after = session(30, first=mark(31, 2000, 32_000), offset_at_open=2000)
    one = store([database(puts=32_000)], [before, after])
    history = [checkpoint(10, 2000, ended=30.1, deleted=True), *checkpoints]
    return case(task(one, checkpoints=history), now=now, standbys=standbys)


def test_checkpoint_that_a_restoration_leaves_behind_is_no_proof():
    """A standby that becomes active writes what it has, and deletes it right after (seen live on 4.2.1)."""
    passing = on_the_way(checkpoint(31, -4, ended=31.26, deleted=True), checkpoint(33, 32_100))
    assert severities(ID, passing) == [Severity.WARNING]
    assert severities(ID, on_the_way(checkpoint(31, -4, ended=31.4))) == [Severity.WARNING]
    assert severities(ID, on_the_way(checkpoint(31, -4, ended=31.5))) == [Severity.CRITICAL]
    assert severities(ID, on_the_way(checkpoint(31, -4), now=31.4)) == [Severity.WARNING]


def test_checkpoint_of_the_commit_timer_is_no_proof():
    """A long restoration writes one whenever it has moved by more than 10,000 offsets, over all stores."""
    assert severities(ID, on_the_way(checkpoint(31, 12_001))) == [Severity.WARNING]
    assert severities(ID, on_the_way(checkpoint(31, 12_000))) == [Severity.CRITICAL]
    two = on_the_way(checkpoint(31, 8000))
    two.task.checkpoints[-1].offsets["other"] = 5000
    assert severities(ID, two) == [Severity.WARNING]


def test_beside_standbys_a_checkpoint_must_stand_longer():
    """Roles change places there, each change with a checkpoint of its own."""
    assert severities(ID, on_the_way(checkpoint(31, 2500), standbys=1, now=40.9)) == [Severity.WARNING]
    assert severities(ID, on_the_way(checkpoint(31, 2500), standbys=1, now=41)) == [Severity.CRITICAL]


def test_checkpoint_of_a_close_is_no_proof():
    """A task that is closed while it restores writes how far it came."""
    one = on_the_way(checkpoint(49.9, 2500))
    one.task.stores["s"].sessions[-1].released_us = at(50)
    assert severities(ID, one) == [Severity.WARNING]
