"""Law `store-shrank`: a store never holds less than before, but for what deletions can have ended."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.events import Affected, Level, Status
from agent.judging.base import TaskCase
from tests.support.laws import ALOS, EOS, UNHEARD_OF, broken, lawful
from tests.support.laws import said as only
from tests.support.scenario import KEY_VALUE, Scenario
from tests.support.scenario_case import at, case, database, judge, mark, session, store, task
from tests.support.scenario_script import play
from tests.support.tables import NOTED, QUIET, SUSPECTED, heard, said, table

ID = "store-shrank"
RELEASES = ["2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.2.1", "4.3.1", UNHEARD_OF]


def at_3000(release: str = "4.1.2", guarantee: str = ALOS, **more) -> Scenario:
    """A stopped application whose store holds 3,000 entries at offset 3000."""
    return play(lawful(release, guarantee, **more), "start, opens, 2 s, puts 3000, stops 3000, 60 s")


RETURNS = "start, deletes, 5 s, opens"
"""A cleaner takes the directory, and the task comes back."""
CONTINUES = f"{RETURNS}, 2 s, puts 50, checkpoints 3050"
"""The new store holds what came since, and claims what the old one had."""
CONTINUES_IN_STORE = f"{RETURNS}, 2 s, puts 50, stops 3050"
# far more offsets than entries since: each key would have been put once at least, or its deletion
TOO_LITTLE = f"{RETURNS}, restores 20000 puts=900"
RESTORES = f"{RETURNS}, restores 3050, 5 s, stops 3050"
COMPACTED = f"{RETURNS}, restores 3050 puts=3000, 5 s, stops 3050"
DELETES = "start, opens, puts 2900 deletions=2900, checkpoints 5900, flushes, compacts, stops 5900, 30 s"
HALF_WAY = f"{RETURNS}, puts 900, checkpoints 900, flushes, 30 s"
# new changelogs, and a topology that keeps ten keys: the old offset is passed with few entries
RESET = "start, cleans_up, 5 s, opens, puts 4000 deletions=3990, stops 4000"


@pytest.mark.parametrize("release", RELEASES)
def test_an_offset_that_came_without_its_data(release):
    """It speaks on every release, those that nobody knows included, and ends with the store."""
    run = at_3000(release)
    play(run, f"{CONTINUES_IN_STORE if run.habits.offsets_in_store else CONTINUES}, 20 s")
    finding = only(run, ID)
    assert heard(ID, run) == SUSPECTED
    assert (finding.level, finding.affected, finding.upstream) == (Level.DAMAGE, Affected.POSSIBLY, ())
    assert (finding.task_id, finding.store, finding.status) == ("0_0", "s", Status.OPEN)
    assert "held at least 3000 entries at offset 3000; at offset 3050" in finding.summary
    play(run, f"60 s, {RETURNS}, restores 3050, 30 s")
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.parametrize("release", RELEASES)
@table(ID, "script, expected", {
    "restored": (RESTORES, "the store was made since, and has put all that its changelog can have held"),
    "restored from a compacted changelog": (COMPACTED, QUIET),
    "2,900 keys are deleted, and compaction drops them and their deletions": (
        f"{DELETES}, {RETURNS}, restores 5900 puts=3000, stops 5900", QUIET),
    "in the middle of a restoration": (HALF_WAY, "the store's offset went back"),
    "an application that was reset": (RESET, QUIET),
})  # fmt: skip
def test_it_is_silent(release, script, expected):
    assert broken(play(at_3000(release), f"{script}, 30 s")) == expected


SHORT = {"told": {"delete_retention_ms": 50_000}}


@table(ID, "script, more, expected", {
    "a restoration that brought too little": (TOO_LITTLE, {}, [ID]),
    "away for longer than deletions are kept": (TOO_LITTLE, SHORT, "nothing proves it"),
    # they look the same, and drop ranges of keys
    "a release with versioned stores": (CONTINUES, {"release": "3.9.2", "stores": {"s": KEY_VALUE}}, QUIET),
    "before there were any": (CONTINUES, {"release": "3.4.1", "stores": {"s": KEY_VALUE}}, [ID]),
    "reset under exactly-once": (RESET, {"guarantee": EOS}, QUIET),
    "reset under exactly-once, 4.3": (RESET, {"guarantee": EOS, "release": "4.3.1"}, QUIET),
})  # fmt: skip
def test_what_else_decides(script, more, expected):
    run = play(at_3000(**more), f"{script}, 30 s")
    assert broken(run) == expected
    says = "been recreated, and got only 900 puts" if script is TOO_LITTLE else ""
    assert all(says in x.summary for x in run.findings(ID))


def test_what_was_never_committed():
    """Flushed, killed, wiped: the changelog never had it."""
    run = play(
        lawful("4.1.2", EOS), "start, opens, restores 100 puts=100, 5 s, puts 5000, flushes, crash, 5 s"
    )
    assert broken(play(run, "start, opens, wipes, restores 6000 puts=100, 30 s")) == []


def shrunk(
    entries: int | None = 2400,
    *,
    forgets: bool = False,
    problem: str | None = None,
    release: str | None = "4.2.1",
    task_id: str = "0_0",
) -> TaskCase:
    """The same incarnation with fewer entries at the same offset."""
    before = session(0, 10, puts=3000, last=mark(9, 3000, 3000))
    before.entries_at_release, before.counted_at_release, before.closed = 2500, 3000, True
    after = session(20, puts_at_open=3000, last=mark(30, 3000, 3000))
    made = database(puts=3000)
    made.manifest, made.counted_puts, made.seen_us = 5, 3000, at(40)
    made.entries_low, made.entries_high = 2000, entries
    made.forgets, made.manifest_problem = forgets, problem
    return case(task(store([made], [before, after]), task_id=task_id), release=release)


OLD: dict[str, Any] = {"release": "2.1.1"}


@table(ID, "one, expected", {
    "98 entries are gone for sure": (shrunk(), SUSPECTED),
    "so on 2.1": (shrunk(**OLD), SUSPECTED),
    "so on what nobody knows": (shrunk(release=UNHEARD_OF), SUSPECTED),
    "so if the release is not told": (shrunk(release=None), SUSPECTED),
    "one may have been counted twice": (shrunk(2499), QUIET),
    "entries that were not counted": (shrunk(None), QUIET),
    "a manifest that is cut": (shrunk(problem="MANIFEST-000005: cut"), QUIET),
    "FIFO compaction, a compaction filter: as the application wants it": (shrunk(forgets=True), NOTED),
    "the changelog of a global store is a source topic, which may be cut by time": (shrunk(task_id="global"), QUIET),
})  # fmt: skip
def test_the_same_store_with_fewer_entries(one, expected):
    assert said(ID, one) == expected
    says = (
        "drops entries of store s by configuration (FIFO"
        if expected == NOTED
        else "at offset 3000 it has 2400 live"
    )
    assert all(says in x.summary for x in judge(ID, one))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["2.4.1", "3.9.2", "4.3.1", UNHEARD_OF]),
    st.lists(
        st.sampled_from(["put", "delete", "flush", "compact", "checkpoint", "stop", "move"]), max_size=14
    ),
)
def test_no_life_without_a_fault_breaks_a_law(release, steps):
    """Puts, deletions, flushes, compactions, restarts and moves with a full restoration, in any order."""
    run = play(lawful(release), "start, opens")
    offset = live = 0
    for step in steps:
        run.wait(1)
        if step == "put":
            run.app.puts("0_0", 500)
            offset, live = offset + 500, live + 500
        elif step == "delete":
            run.app.puts("0_0", live, deletions=live)
            offset, live = offset + live, 0
        elif step == "flush":
            run.app.flushes("0_0")
        elif step == "compact":
            play(run, "flushes, compacts")
        elif step == "checkpoint":
            run.app.checkpoints("0_0", offset)
        else:
            play(run, f"stops {offset}, 20 s, start")
            if step == "move":
                run.app.cleaner.deletes("0_0")
            run.app.opens("0_0")
            if step == "move":
                run.app.restores("0_0", offset)
    run.wait(30)
    assert broken(run) == []
