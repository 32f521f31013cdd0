"""Law `data-beyond-changelog`: under exactly-once a store never holds more than its changelog gave it."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.observations import StoreOffsets
from agent.judging.base import TaskCase
from tests.support.laws import ALOS, EOS, UNHEARD_OF, broken, lawful, said
from tests.support.scenario import KEY_VALUE, WINDOWED, App, Scenario
from tests.support.scenario_case import case, database, judge, mark, session, store, task

ID = "data-beyond-changelog"


def crashed(release: str, guarantee: str = EOS, *, flush: bool = True, puts: int = 6000, **more) -> Scenario:
    """A store at offset 1999 that took more records, flushed them, and was killed before it committed them."""
    run = lawful(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    app.commits("0_0", 1999) if app.habits.offsets_in_store else None
    app.flushes("0_0")
    run.wait(5)
    app.puts("0_0", puts)
    if flush:
        app.flushes("0_0")
    run.wait(1)
    app.crash()
    run.wait(5)
    return run


def not_wiped(run: Scenario, end: int = 1999, puts: int = 0) -> App:
    """The next start takes the store as it is, reads its changelog to the end, and works on."""
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", end, puts=puts)
    run.wait(30)
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(30)
    return app


def twin(name: str, *values: object) -> Any:
    """A look-alike, and what it is."""
    return pytest.param(*values, marks=pytest.mark.twin_of(ID, name))


# -- it speaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["3.8.1", "3.9.2", "4.1.2", "4.2.1"])
@pytest.mark.twin_of("data-beyond-changelog", "an offset was trusted, the replay was not whole")
def test_a_wipe_that_was_skipped(release):
    """Nothing of what had been flushed came back with the changelog."""
    run = crashed(release)
    not_wiped(run)
    finding = said(run, ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status, finding.affected) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
        Affected.POSSIBLY,
    )
    assert (finding.task_id, finding.store, finding.upstream) == ("0_0", "s", ())
    assert (
        "6000 puts had been flushed beyond offset 1999, and the restoration ended at 1999" in finding.summary
    )


@pytest.mark.parametrize("release", ["4.3.1", UNHEARD_OF])
@pytest.mark.twin_of("data-beyond-changelog", "the next stored offset, as long as the store is open")
def test_a_wipe_that_was_skipped_with_offsets_in_the_store(release):
    """Nobody knows the release: what lay behind the stored offset does not come back with the next one."""
    run = crashed(release)
    app = not_wiped(run)
    app.stops({"0_0": 2500})
    run.wait(30)
    assert "and the next one is 2500" in said(run, ID).summary


def test_a_replay_of_the_whole_changelog_gives_back_less():
    """Up to 2.5 a restoration from the start is seen as a whole."""
    run = crashed("2.4.1", flush=True)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 2000, puts=2000)
    run.wait(30)
    finding = said(run, ID)
    assert finding.confidence is Confidence.CONFIRMED
    assert "6000 live entries or more, and the whole changelog gave back 2000 puts" in finding.summary


@pytest.mark.twin_of("data-beyond-changelog", "nothing proves it")
def test_a_replay_of_the_whole_changelog_that_gives_back_all():
    """What was flushed had been committed after all."""
    run = crashed("2.4.1", flush=True)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 8000, puts=8000)
    run.wait(30)
    assert run.findings(ID) == []


def test_it_ends_with_the_store():
    """A wipe removes what should not be there."""
    run = crashed("4.1.2")
    app = not_wiped(run)
    assert run.only(ID).status is Status.OPEN
    app.wipes("0_0")
    run.wait(5)
    assert run.only(ID).status is Status.RESOLVED


# -- it is silent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2.4.1", "3.9.2", "4.2.1", "4.3.1", UNHEARD_OF])
def test_wiped(release):
    """What exactly-once does: the store is recreated."""
    run = crashed(release)
    app = run.start()
    app.opens("0_0")
    app.wipes("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(60)
    assert broken(run) == []


@pytest.mark.parametrize("release", ["3.9.2", "4.2.1"])
@pytest.mark.parametrize("end", [7999, 8100])
@pytest.mark.twin_of("data-beyond-changelog", "all that had been flushed may have been committed")
def test_everything_was_committed(release, end):
    """The changelog gives back as much as had been flushed."""
    run = crashed(release)
    not_wiped(run, end, puts=end - 1999)
    assert broken(run) == []


def zeroed(covering: int = 1999, *, kept: bool = True, transactional: bool | None = None) -> TaskCase:
    """4.3: compaction zeroed the sequences. Which puts came after the last stored offset, nobody can say then."""
    before = session(10, 20, puts=7000, puts_at_open=2000)
    before.closed, before.stored_offset_at_open, before.kept_offsets = False, 1999, kept
    before.uncovered_puts, before.covering_offset, before.transactional = None, covering, transactional
    after = session(30, 40)
    after.stored_offset = covering
    made = database(puts=7000)
    made.offsets = StoreOffsets()
    return case(task(store([made], [before, after])), release="4.3.1")


@pytest.mark.parametrize(
    "one",
    [
        twin("the next stored offset may cover all that had been flushed", zeroed(6900)),
        twin("a transactional store may be ahead of its offset", zeroed(transactional=True)),
        twin("an older release let go of the store", zeroed(kept=False)),
    ],
)
def test_stored_offset_that_says_enough(one):
    """That of the opening is compared: 5,000 puts, and the offset did not move."""
    assert len(judge(ID, zeroed())) == 1
    assert judge(ID, one) == []


@pytest.mark.parametrize(
    "release",
    [
        twin("nothing was flushed beyond the checkpoint", "3.9.2"),
        "4.2.1",
        twin("nothing was flushed behind the stored offset", "4.3.1"),
        UNHEARD_OF,
    ],
)
def test_nothing_was_flushed(release):
    """What was in memory only is gone."""
    run = crashed(release, flush=False)
    not_wiped(run)
    assert broken(run) == []


@pytest.mark.parametrize("guarantee", [ALOS, None])
def test_at_least_once(guarantee):
    """What was not acknowledged may stay under at-least-once; and where nobody says, nothing is said."""
    hidden = () if guarantee else ("processing_guarantee",)
    run = crashed("4.1.2", guarantee or EOS, hidden=hidden)
    not_wiped(run)
    assert broken(run) == []


def test_a_plain_store_that_may_put_more_than_once():
    """6,000 puts may be 2,000 records of a versioned store, which the offsets would cover."""
    run = crashed("4.1.2", stores={"s": KEY_VALUE})
    not_wiped(run, 4999, puts=3000)
    assert broken(run) == []


def test_each_segment_has_its_own_offset():
    """4.3: what lies behind one segment's offset is not compared with that of another."""
    run = lawful("4.3.1", EOS, stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 600, segment=0)
    app.checkpoints("0_0", 599)
    app.flushes("0_0")
    app.puts("0_0", 600, segment=0)
    app.puts("0_0", 700, segment=60_000)
    app.checkpoints("0_0", 1899)
    run.task("0_0").databases["w", "60000"].flush()
    run.wait(5)
    app.stops({"0_0": 1899})
    run.wait(5)
    again = run.start()
    again.opens("0_0")
    run.wait(5)
    again.stops({"0_0": 1899})
    run.wait(30)
    assert broken(run) == []


@pytest.mark.parametrize("segmented", [False, twin("the restoration is not seen as a whole", True)])
def test_reopens_of_two_segments_are_no_whole_restoration(segmented):
    """Up to 2.5, hunted on a machine that stood still: the wipe came long after the opening."""
    before, after = session(0, 60, puts=6000), session(70)
    before.entries_at_release, after.reopens = 6000, 2
    parts = [database(puts=6000, flushed=[(6000, 50)], segment=x, entries=3000) for x in ("0", "60000")]
    held = store(parts if segmented else parts[:1], [before, after], segmented=segmented)
    found = judge(ID, case(task(held), now=120, release="2.0.1", guarantee=EOS))
    assert bool(found) is not segmented


@pytest.mark.twin_of("data-beyond-changelog", "where the restoration ended")
def test_it_is_not_said_before_the_end_of_the_restoration():
    """Half way the offset is low for every store."""
    run = crashed("3.9.2")
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 1000)
    run.wait(60)
    assert broken(run) == []
    app.puts("0_0", 5000)
    app.checkpoints("0_0", 7999)
    run.wait(60)
    assert broken(run) == []


# -- under either guarantee: more than there are records -------------------------------------------------------


def restored(puts: int, release: str = "3.9.2", **more) -> Scenario:
    """A store that is made empty, takes so many puts, and says that it is at offset 1999."""
    run = lawful(release, ALOS, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.puts("0_0", puts)
    app.checkpoints("0_0", 1999)
    run.wait(10)
    return run


@pytest.mark.parametrize("release", ["2.6.0", "2.8.2", "3.9.2", "4.2.1"])
def test_a_changelog_that_is_replayed_twice(release):
    """Each record is there once, and was put twice."""
    finding = said(restored(4000, release), ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "4000 puts since it was made, from 2000 records at most" in finding.summary


def filled(offset: int = 1999, *, unsure: bool = False) -> TaskCase:
    """A store that was made at 0 s, and whose checkpoint counts 4,000 puts."""
    said_so = mark(20, offset, 4000)
    said_so.unsure = unsure
    made = database(puts=4000)
    made.manifest = 5
    return case(
        task(store([made], [session(0, created=True, last=said_so)])), release="3.9.2", guarantee=ALOS
    )


@pytest.mark.parametrize(
    "one",
    [
        twin("the checkpoint claims nothing", filled(-4)),
        twin("as many puts as there may be records", filled(3999)),
        twin("whether the store took them before the checkpoint", filled(unsure=True)),
    ],
)
def test_checkpoint_that_says_enough(one):
    """Each takes one thing away from a store that took too much."""
    assert len(judge(ID, filled())) == 1
    assert judge(ID, one) == []


@pytest.mark.parametrize(
    ("release", "puts"),
    [
        ("3.9.2", 2000),
        twin("a standby of up to 2.4 may have read the same records again", "2.3.1", 4000),
        ("4.3.1", 4000),
    ],
)
def test_no_more_than_there_can_be(release, puts):
    """As many as records; up to 2.4 a standby reads again; from 4.3 on offsets take sequence numbers."""
    assert broken(restored(puts, release)) == []


def test_a_store_that_may_put_more_than_once_per_record():
    """A plain store may be a versioned one."""
    assert broken(restored(4000, stores={"s": KEY_VALUE})) == []


@pytest.mark.twin_of("data-beyond-changelog", "the store was not new, or was opened again")
def test_a_store_that_was_opened_again():
    """At-least-once: what was flushed behind the checkpoint comes again."""
    run = restored(2000)
    run.start().crash()
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 2000)
    app.checkpoints("0_0", 2000)
    run.wait(10)
    assert broken(run) == []
