"""Law `offset-beyond-durable`: what an opening trusts, each database of the store held durably."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Shape
from agent.judging.base import TaskCase
from tests.support.laws import ALOS, EOS, UNHEARD_OF, broken, lawful, said
from tests.support.scenario import KEY_VALUE, TIMESTAMPED, WINDOWED, Scenario
from tests.support.scenario_case import (
    PLAIN,
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
from tests.support.scenario_segments import (
    NEW,
    OLD,
    close_cut,
    crossed,
    killed,
    segment,
    starts,
    two_unflushed,
)

ID = "offset-beyond-durable"


def at_3000(release: str, guarantee: str = ALOS, **more) -> Scenario:
    """A stopped application whose store holds everything up to offset 3000."""
    run = lawful(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 2000, puts=2000)
    run.wait(2)
    app.puts("0_0", 1000)
    app.stops({"0_0": 3000})
    run.wait(60)
    return run


def loses_the_store(run: Scenario) -> None:
    """The store's directory goes, the checkpoint stays."""
    made = run.task("0_0")
    run.start().delete_tree(f"{made.path}/rocksdb")
    made.databases.clear()
    run.wait(10)


# -- a store that is made for an offset -----------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2.5.1", "3.9.2", "4.2.1"])
def test_a_store_that_is_younger_than_its_last_session(release):
    """The clock was set back by an hour after the store was made: the next opening finds it, it does not make it."""
    run = lawful(release, ALOS)
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.puts("0_0", 3000)
    app.flushes("0_0")
    pipeline = app.world.pipeline
    assert pipeline is not None
    app.world.now_us -= 3_600_000_000
    pipeline.shift(-3_600_000_000)
    run.wait(60)
    app.stops({"0_0": 3000})
    run.wait(60)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 50)
    app.stops({"0_0": 3050})
    run.wait(60)
    assert broken(run) == []


@pytest.mark.parametrize("kind", [TIMESTAMPED, KEY_VALUE])
@pytest.mark.parametrize("release", ["2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.2.1"])
def test_a_new_store_beside_an_old_offset(release, kind):
    """Whatever removed the store: nothing can be in the new one."""
    run = at_3000(release, stores={"s": kind})
    loses_the_store(run)
    app = run.start()
    app.opens("0_0")
    run.wait(5)
    finding = said(run, ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status, finding.affected) == (
        Level.DAMAGE,
        Severity.CRITICAL,
        Confidence.CONFIRMED,
        Status.OPEN,
        Affected.POSSIBLY,
    )
    assert (finding.task_id, finding.store, finding.upstream) == ("0_0", "s", ())
    assert "store s reads on from offset 3000, but was made empty by that opening" in finding.summary


def test_it_ends_when_the_directory_is_removed():
    """The task is restored in full afterwards."""
    run = at_3000("3.9.2")
    loses_the_store(run)
    app = run.start()
    app.opens("0_0")
    run.wait(5)
    app.stops({"0_0": 3000})
    run.start().cleans_up()
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 3000)
    run.wait(30)
    assert run.only(ID).status is Status.RESOLVED


def test_an_unseen_wipe_by_the_owner():
    """Up to 2.5 exactly-once wipes single stores and may leave the checkpoint: suspected only."""
    opened = session(20, created=True, offset_at_open=3000)
    one = task(store([database(born=20)], [opened]), checkpoints=[checkpoint(10, 3000)])
    (verdict,) = judge(ID, case(one, release="2.4.1", guarantee="exactly_once"))
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    (verdict,) = judge(ID, case(one, release="2.4.1", guarantee="at_least_once"))
    assert verdict.confidence is Confidence.CONFIRMED


@pytest.mark.parametrize("release", ["2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.2.1", "4.3.1", UNHEARD_OF])
@pytest.mark.parametrize("guarantee", [ALOS, EOS])
def test_a_life_without_a_fault(release, guarantee):
    """Restart, move and return with a full restoration, topology with another store."""
    run = at_3000(release, guarantee)
    app = run.start()
    app.opens("0_0")
    run.wait(20)
    app.stops({"0_0": 3000})
    run.wait(20)
    app = run.start()
    app.cleaner.deletes("0_0")
    run.wait(5)
    app.opens("0_0")
    app.restores("0_0", 3500, puts=3500)
    run.wait(20)
    app.stops({"0_0": 3500})
    run.stores["t"] = TIMESTAMPED
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", {"s": 3500, "t": 100}, puts=100, store="t")
    run.wait(30)
    assert broken(run) == []


@pytest.mark.parametrize("release", ["2.4.1", "2.8.2", "4.1.2"])
def test_wiped_by_its_owner(release):
    """The offset of the store that was wiped is not that of the new one."""
    run = at_3000(release, EOS)
    app = run.start()
    app.opens("0_0")
    app.wipes("0_0")
    app.restores("0_0", 3000)
    run.wait(30)
    assert broken(run) == []


def test_a_young_segment_beside_an_old_checkpoint():
    """Up to 4.2 nothing shows what a segment held: a windowed store makes new ones all the time."""
    run = lawful("3.9.2", stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 600, segment=OLD)
    app.checkpoints("0_0", 600)
    run.wait(5)
    app.puts("0_0", 600, segment=NEW)
    app.flushes("0_0")
    run.wait(30)
    assert broken(run) == []


@pytest.mark.twin_of("offset-beyond-durable", "the files have the times of a copy")
def test_a_copy_that_kept_no_times():
    """Its birth is the time of the copy: the store seems to be made by its first opening."""
    copied = database(born=20, puts=3000)
    copied.oldest_data_us = copied.born_us - 50_000_000
    opened = session(20, created=True, offset_at_open=3000)
    assert judge(ID, case(task(store([copied], [opened]), checkpoints=[checkpoint(10, 3000)]))) == []


@pytest.mark.parametrize("offset", [None, -4, 0])
def test_no_offset_is_trusted(offset):
    """A new store without an entry is restored from the start."""
    opened = session(20, created=True, offset_at_open=offset)
    assert judge(ID, case(task(store([database(born=20)], [opened])))) == []


def test_global_stores():
    """Their offsets are those of source topics."""
    opened = session(20, created=True, offset_at_open=3000)
    assert judge(ID, case(task(store([database(born=20)], [opened]), task_id="global"))) == []


# -- an offset that moves on its own --------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.2.1"])
def test_the_offset_of_another_store(release):
    """The end of the restoration writes an offset that is not that of the store."""
    run = at_3000(release)
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.checkpoints("0_0", 9000)
    run.wait(70)
    finding = said(run, ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "says offset 9000, but nothing was put into it since offset 3000" in finding.summary


@pytest.mark.parametrize("release", ["4.3.1", UNHEARD_OF])
def test_the_offset_of_another_store_in_the_store(release):
    """4.3 and later: the start-up pass writes it into the store."""
    run = at_3000(release)
    starts(run, 9000)
    run.wait(70)
    assert "but nothing was put into it since offset 3000" in said(run, ID).summary


def test_an_offset_for_a_store_that_never_held_anything():
    """A close that claims what a wiped store had."""
    run = lawful("3.6.1", EOS)
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.stops({"0_0": 4022})
    run.wait(70)
    assert "says offset 4022, but nothing was ever put into it" in said(run, ID).summary


@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.2.1", "4.3.1", UNHEARD_OF])
@pytest.mark.twin_of("offset-beyond-durable", "nothing proves it")
def test_an_offset_moves_with_its_records(release):
    """Few records over many offsets: aborted and compacted ones look like that."""
    run = at_3000(release)
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.puts("0_0", 1)
    app.checkpoints("0_0", 9000)
    app.flushes("0_0")
    run.wait(70)
    app.stops({"0_0": 9000})
    run.wait(70)
    assert broken(run) == []


# -- a store that holds less than the offset that is trusted --------------------------------------------------


def put_back(entries: int | None = 200, offset: int = 3000, **more: Any) -> TaskCase:
    """A store that was put back from an older copy, or half restored, beside a newer checkpoint."""
    before = session(0, 10, puts=3000, last=mark(9, 3000, 3000), identity="identity-0")
    before.entries_at_release, before.counted_at_release, before.closed = 2500, 3000, True
    opened = session(30, offset_at_open=offset, puts_at_open=400)
    opened.entries_at_open, opened.counted_at_open = entries, 400
    one = store([database(born=15, puts=400)], [before, opened])
    one.past += (past(14, puts=3000, entries_low=2500),)
    return case(task(one, checkpoints=[checkpoint(9, 3000)]), **more)


@pytest.mark.parametrize("release", ["2.1.1", "3.4.1", "4.2.1", UNHEARD_OF, None])
def test_a_store_that_was_put_back_alone(release):
    """It held 2,500 entries at that offset, and now 200."""
    (verdict,) = judge(ID, put_back(release=release))
    assert (verdict.severity, verdict.confidence, verdict.store) == (
        Severity.WARNING,
        Confidence.SUSPECTED,
        "s",
    )
    assert (
        "from offset 3000 with 200 entries at most; at offset 3000 it held 2500 at least" in verdict.summary
    )


ENDED = pytest.mark.twin_of(ID, "nothing proves it")
WIPE = pytest.mark.twin_of(ID, "the opening may end in a wipe")


@pytest.mark.parametrize(
    "more",
    [
        {"entries": None},  # nobody counted them
        pytest.param({"entries": 2499}, marks=ENDED),  # one offset may mean the next one
        pytest.param(
            {"offset": 2999}, marks=ENDED
        ),  # put back with its checkpoint: it reads again what is missing
        pytest.param({"now": 35}, marks=WIPE),
    ],
)
def test_silent_where_it_holds_what_it_must(more):
    """One step before, and where nothing is known."""
    assert judge(ID, put_back(**more)) == []


@pytest.mark.twin_of(ID, "how many entries a record of the store adds or ends")
def test_a_store_that_may_be_versioned():
    """It drops ranges of keys; before there were any, a plain store is counted."""
    for release, said_so in (("3.4.1", 1), ("3.9.2", 0)):
        one = put_back(release=release)
        one.task.stores["s"].databases[""].families = PLAIN
        assert len(judge(ID, one)) == said_so


def test_wiped_as_corrupted():
    """The offset of a corrupted task covers what was never committed."""
    one = put_back()
    (known,) = one.task.stores["s"].past
    known.shape = Shape.OWNER_WALK
    assert judge(ID, one) == []


# -- segments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["4.3.0", "4.3.1", UNHEARD_OF])
@pytest.mark.twin_of("offset-beyond-durable", "not every segment was read again")
def test_a_segment_that_was_not_flushed(release):
    """Killed under at-least-once: one segment answers for another that had nothing on disk."""
    run, app = crossed(release, detectors=lawful(release).world.detectors)
    killed(run, app)
    assert broken(run) == []
    starts(run)
    run.wait(20)
    finding = said(run, ID)
    assert (finding.severity, finding.confidence, finding.store) == (
        Severity.WARNING,
        Confidence.SUSPECTED,
        "w",
    )
    assert "from offset 3599 of segment w.60000; w.0 had not been flushed up to it" in finding.summary


@pytest.mark.parametrize("release", ["4.3.1", UNHEARD_OF])
def test_a_close_that_was_cut(release):
    """Killed between two segments of the close, under exactly-once."""
    run, app = two_unflushed(detectors=lawful(release).world.detectors)
    close_cut(run, app)
    starts(run)
    run.wait(20)
    assert "w.60000 had not been flushed up to it" in said(run, ID).summary


@pytest.mark.twin_of("offset-beyond-durable", "what a segment lacked was read again")
def test_a_release_that_asks_every_segment():
    """The start takes the lowest offset and reads on from there: what it brings is flushed with the offset."""
    run, app = crossed(UNHEARD_OF, detectors=lawful(UNHEARD_OF).world.detectors)
    killed(run, app)
    app = starts(run, offset=None)
    app.puts("0_0", 600, segment=OLD)
    app.puts("0_0", 3000, segment=NEW)
    app.checkpoints("0_0", 3599)
    app.flushes("0_0")
    run.wait(60)
    app.stops({"0_0": 3599})
    run.wait(60)
    assert broken(run) == []


@pytest.mark.parametrize("release", ["4.3.0", "4.3.1", UNHEARD_OF])
@pytest.mark.twin_of("offset-beyond-durable", "no segment lacked anything for sure")
def test_an_orderly_close(release):
    """All segments carry the same offset."""
    run, app = crossed(release, detectors=lawful(release).world.detectors)
    app.stops({"0_0": 3599})
    run.wait(5)
    starts(run)
    run.wait(30)
    assert broken(run) == []


def test_a_segment_that_was_past():
    """It was flushed by an orderly close, and took nothing since the store was opened."""
    run, app = crossed("4.3.1", detectors=lawful("4.3.1").world.detectors)
    app.stops({"0_0": 3599})
    run.wait(5)
    app = starts(run)
    app.puts("0_0", 3000, segment=NEW)
    app.checkpoints("0_0", 6599)
    segment(run, NEW).flush()
    run.wait(2)
    killed(run, app)
    starts(run, 6599)
    run.wait(30)
    assert broken(run) == []
