"""Law `store-shrank`: a store never holds less than before, but for what deletions can have ended."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.judging.base import TaskCase
from tests.support.laws import ALOS, EOS, UNHEARD_OF, broken, lawful, said
from tests.support.scenario import KEY_VALUE, App, Scenario
from tests.support.scenario_case import at, case, database, judge, mark, session, store, task

ID = "store-shrank"


def at_3000(release: str, guarantee: str = ALOS, **more) -> Scenario:
    """A stopped application whose store holds 3,000 entries at offset 3000."""
    run = lawful(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    app.puts("0_0", 3000)
    app.stops({"0_0": 3000})
    run.wait(60)
    return run


def returns(run: Scenario) -> App:
    """A cleaner takes the directory, and the task comes back."""
    app = run.start()
    app.cleaner.deletes("0_0")
    run.wait(5)
    app.opens("0_0")
    return app


# -- it speaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.2.1"])
def test_an_offset_that_was_carried_in_memory(release):
    """The new store holds what came since, and claims what the old one had."""
    run = at_3000(release)
    app = returns(run)
    app.puts("0_0", 50)
    app.checkpoints("0_0", 3050)
    run.wait(5)
    finding = said(run, ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status, finding.affected) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
        Affected.POSSIBLY,
    )
    assert (finding.task_id, finding.store, finding.upstream) == ("0_0", "s", ())
    assert "held 3000 entries or more at offset 3000; at offset 3050" in finding.summary


@pytest.mark.parametrize("release", ["4.3.1", UNHEARD_OF])
def test_an_offset_in_the_store(release):
    """4.3 and releases that nobody knows: the store itself claims it."""
    run = at_3000(release)
    app = returns(run)
    run.wait(2)
    app.puts("0_0", 50)
    app.stops({"0_0": 3050})
    run.wait(20)
    assert said(run, ID).severity is Severity.WARNING


def test_a_restoration_that_brought_too_little():
    """Far more offsets than entries since: each key would have been put once at least, or its deletion."""
    run = at_3000("4.1.2")
    app = returns(run)
    app.restores("0_0", 20_000, puts=900)
    run.wait(30)
    assert "been recreated since, 900 puts in all" in said(run, ID).summary


def test_it_ends_with_the_store():
    """Removed, and restored in full."""
    run = at_3000("4.1.2")
    app = returns(run)
    app.puts("0_0", 50)
    app.stops({"0_0": 3050})
    run.wait(60)
    assert run.only(ID).status is Status.OPEN
    app = returns(run)
    app.restores("0_0", 3050)
    run.wait(30)
    assert run.only(ID).status is Status.RESOLVED


# -- it is silent ---------------------------------------------------------------------------------------------

RELEASES = ["2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.2.1", "4.3.1", UNHEARD_OF]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("puts", [3050, 3000])
@pytest.mark.twin_of(
    "store-shrank", "the store was made since, and has put all that its changelog can have held"
)
def test_restored(release, puts):
    """In full, or from a changelog that was compacted."""
    run = at_3000(release)
    app = returns(run)
    app.restores("0_0", 3050, puts=puts)
    run.wait(5)
    app.stops({"0_0": 3050})
    run.wait(30)
    assert broken(run) == []


@pytest.mark.parametrize("release", RELEASES)
def test_deletions_and_compaction(release):
    """2,900 keys are deleted, and compaction drops them and their deletions."""
    run = at_3000(release)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 2900, deletions=2900)
    app.checkpoints("0_0", 5900)
    app.flushes("0_0")
    app.compacts("0_0")
    app.stops({"0_0": 5900})
    run.wait(30)
    app = returns(run)
    app.restores("0_0", 5900, puts=3000)
    app.stops({"0_0": 5900})
    run.wait(30)
    assert broken(run) == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.twin_of("store-shrank", "the store's offset went back")
def test_in_the_middle_of_a_restoration(release):
    """What it says on its way is below what it had."""
    run = at_3000(release)
    app = returns(run)
    app.puts("0_0", 900)
    app.checkpoints("0_0", 900)
    app.flushes("0_0")
    run.wait(60)
    assert broken(run) == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("guarantee", [ALOS, EOS])
def test_an_application_that_was_reset(release, guarantee):
    """New changelogs, and a topology that keeps ten keys: the old offset is passed with few entries."""
    run = at_3000(release, guarantee)
    app = run.start()
    app.cleans_up()
    run.wait(5)
    app.opens("0_0")
    app.puts("0_0", 4000, deletions=3990)
    app.stops({"0_0": 4000})
    run.wait(30)
    assert broken(run) == []


def test_what_was_never_committed():
    """Flushed, killed, wiped: the changelog never had it."""
    run = lawful("4.1.2", EOS)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 100, puts=100)
    run.wait(5)
    app.puts("0_0", 5000)
    app.flushes("0_0")
    app.crash()
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    app.wipes("0_0")
    app.restores("0_0", 6000, puts=100)
    run.wait(30)
    assert broken(run) == []


@pytest.mark.twin_of("store-shrank", "nothing proves it")
def test_deletions_that_expired():
    """The task was away for longer than deletions are kept: fewer puts bring it back."""
    run = at_3000("4.1.2", told={"delete_retention_ms": 50_000})
    app = returns(run)
    app.restores("0_0", 20_000, puts=900)
    run.wait(30)
    assert broken(run) == []


def test_a_plain_store_of_a_release_with_versioned_ones():
    """They look the same, and drop ranges of keys; before there were any, it is counted."""
    for release, laws in (("3.9.2", []), ("3.4.1", [ID])):
        run = at_3000(release, stores={"s": KEY_VALUE})
        app = returns(run)
        app.puts("0_0", 50)
        app.checkpoints("0_0", 3050)
        run.wait(5)
        assert broken(run) == laws


def shrunk(**more: Any) -> TaskCase:
    """The same incarnation with fewer entries at the same offset."""
    before = session(0, 10, puts=3000, last=mark(9, 3000, 3000))
    before.entries_at_release, before.counted_at_release, before.closed = 2500, 3000, True
    after = session(20, puts_at_open=3000, last=mark(30, 3000, 3000))
    made = database(puts=3000)
    made.manifest, made.counted_puts, made.seen_us = 5, 3000, at(40)
    made.entries_low, made.entries_high = 2000, more.pop("entries", 2400)
    made.forgets = more.pop("forgets", False)
    made.manifest_problem = more.pop("problem", None)
    return case(task(store([made], [before, after])), **more)


@pytest.mark.parametrize("release", ["2.1.1", "4.2.1", UNHEARD_OF, None])
def test_the_same_store_with_fewer_entries(release):
    """Nothing was put since, and 98 entries are gone for sure."""
    (verdict,) = judge(ID, shrunk(release=release))
    assert "held 2500 entries or more at offset 3000; at offset 3000 it has 2400 live" in verdict.summary


@pytest.mark.parametrize(
    "more",
    [
        {"entries": 2499},
        {"entries": None},
        {"problem": "MANIFEST-000005: cut"},
    ],
)
def test_silent_where_it_may_hold_what_it_must(more):
    """One step before, and what was not read."""
    assert judge(ID, shrunk(**more)) == []


def test_what_rocksdb_itself_drops_is_a_remark():
    """FIFO compaction, a compaction filter: as the application wants it, so nothing more is said of that store."""
    (verdict,) = judge(ID, shrunk(forgets=True))
    assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.CONFIRMED)
    assert "drops entries of store s by configuration" in verdict.summary
    assert "FIFO" in verdict.summary


def test_global_stores():
    """Their changelog is a source topic, which may be cut by time."""
    one = shrunk()
    one.task.id = "global"
    assert judge(ID, one) == []


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["2.4.1", "3.9.2", "4.3.1", UNHEARD_OF]),
    st.lists(
        st.sampled_from(["put", "delete", "flush", "compact", "checkpoint", "stop", "move"]), max_size=14
    ),
)
def test_no_life_without_a_fault_breaks_a_law(release, steps):
    """Puts, deletions, flushes, compactions, restarts and moves with a full restoration, in any order."""
    run = lawful(release)
    app = run.start()
    app.opens("0_0")
    offset = live = 0
    for step in steps:
        run.wait(1)
        if step == "put":
            app.puts("0_0", 500)
            offset, live = offset + 500, live + 500
        elif step == "delete":
            app.puts("0_0", live, deletions=live)
            offset, live = offset + live, 0
        elif step == "flush":
            app.flushes("0_0")
        elif step == "compact":
            app.flushes("0_0")
            app.compacts("0_0")
        elif step == "checkpoint":
            app.checkpoints("0_0", offset)
        else:
            app.stops({"0_0": offset})
            run.wait(20)
            app = run.start()
            if step == "move":
                app.cleaner.deletes("0_0")
            app.opens("0_0")
            if step == "move":
                app.restores("0_0", offset)
    run.wait(30)
    assert broken(run) == []
