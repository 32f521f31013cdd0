"""Law `offset-beyond-durable`: what an opening trusts, each database of the store held durably."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Level
from agent.inventory.model import Shape
from tests.support.laws import ALOS, EOS, LAWS, UNHEARD_OF, broken, lawful
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
from tests.support.scenario_script import life, play
from tests.support.scenario_segments import CROSSED, KILL, NEW, OLD, cut, starts, windowed
from tests.support.twins import cases, said_of

ID = "offset-beyond-durable"
SURE, SUSPECTED = "critical confirmed", "warning suspected"


def at_3000(release: str, guarantee: str = ALOS, **more: Any) -> Scenario:
    """A stopped application whose store holds everything up to offset 3000."""
    run = lawful(release, guarantee, **more)
    return play(run, "start, opens, restores 2000 puts=2000, 2 s, puts 1000, stops 3000, 60 s")


def without_store(*told: str, **more: Any) -> Scenario:
    """The store's directory goes, the checkpoint stays."""
    run = at_3000(*told, **more)
    made = run.task("0_0")
    run.start().delete_tree(f"{made.path}/rocksdb")
    made.databases.clear()
    return play(run, "10 s, start, opens, 5 s")


def clock_set_back(release: str) -> Scenario:
    """By an hour after the store was made: the next opening finds it, it does not make it."""
    run = play(lawful(release, ALOS), "start, opens, 2 s, puts 3000, flushes")
    assert run.world.pipeline is not None
    run.world.now_us -= 3_600_000_000
    run.world.pipeline.shift(-3_600_000_000)
    return play(run, "60 s, stops 3000, 60 s, start, opens, puts 50, stops 3050, 60 s")


def without_fault(release: str, guarantee: str) -> Scenario:
    """Restart, move and return with a full restoration, topology with another store."""
    run = play(at_3000(release, guarantee), "start, opens, 20 s, stops 3000, 20 s, start, deletes, 5 s")
    play(run, "opens, restores 3500 puts=3500, 20 s, stops 3500")
    run.stores["t"] = TIMESTAMPED
    play(run, "start, opens").app.restores("0_0", {"s": 3500, "t": 100}, puts=100, store="t")
    return play(run, "30 s")


OTHERS_OFFSET = "start, opens, 2 s, checkpoints 9000, 70 s"
WIPED = "start, opens, wipes, restores 3000, 30 s"
REMOVED = "stops 3000, start, cleans_up, start, opens, restores 3000, 30 s"
FEW = "start, opens, 2 s, puts 1, checkpoints 9000, flushes, 70 s, stops 9000, 70 s"
FEW_SAID = "silent: nothing proves it"
YOUNG = f"start, opens, puts 600 segment={OLD}, checkpoints 600, 5 s, puts 600 segment={NEW}, flushes, 30 s"


@cases(
    ID,
    ("made for an old offset, 2.0", life("", without_store, "2.0.1"), SURE),
    ("made for an old offset, 2.4", life("", without_store, "2.4.1"), SURE),
    ("made for an old offset, 3.9", life("", without_store, "3.9.2"), SURE),
    ("made for an old offset, plain store", life("", without_store, "4.2.1", stores={"s": KEY_VALUE}), SURE),
    ("removed and restored", life(REMOVED, without_store, "3.9.2"), f"{SURE} resolved"),
    # the end of the restoration writes an offset that is not that of the store
    ("the offset of another store, 2.8", life(OTHERS_OFFSET, at_3000, "2.8.2"), SUSPECTED),
    ("the offset of another store, 4.2", life(OTHERS_OFFSET, at_3000, "4.2.1"), SUSPECTED),
    ("the pass writes it into the store", life(f"{starts(9000)}, 70 s", at_3000, "4.3.1"), SUSPECTED),
    ("on a later release", life(f"{starts(9000)}, 70 s", at_3000, UNHEARD_OF), SUSPECTED),
    (
        "a close claims what a wiped store had",
        life("start, opens, 2 s, stops 4022, 70 s", lawful, "3.6.1", EOS),
        SUSPECTED,
    ),
    # few records over many offsets: aborted and compacted ones look like that
    ("one record and 6,000 offsets, 2.8", life(FEW, at_3000, "2.8.2"), FEW_SAID),
    ("one record and 6,000 offsets, 4.2", life(FEW, at_3000, "4.2.1"), FEW_SAID),
    ("one record and 6,000 offsets, 4.3", life(FEW, at_3000, "4.3.1"), FEW_SAID),
    ("wiped by its owner, 2.4", life(WIPED, at_3000, "2.4.1", EOS), "silent"),
    ("wiped by its owner, 4.1", life(WIPED, at_3000, "4.1.2", EOS), "silent"),
    ("clock set back, 2.5", life("", clock_set_back, "2.5.1"), "silent"),
    ("clock set back, 4.2", life("", clock_set_back, "4.2.1"), "silent"),
    ("a young segment, up to 4.2", life(YOUNG, lawful, "3.9.2", stores={"w": WINDOWED}), "silent"),
)
def test_lives(story, said):
    """An offset without the data below it."""
    run = story()
    assert said_of(ID, run) == said
    assert broken(run) == ([] if said == "silent" else [ID])


@pytest.mark.parametrize("release", ["2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.2.1", "4.3.1", UNHEARD_OF])
@pytest.mark.parametrize("guarantee", [ALOS, EOS])
def test_a_life_without_a_fault(release, guarantee):
    """Nothing is said of what happens every day."""
    assert broken(without_fault(release, guarantee)) == []


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (life("", without_store, "3.9.2"), "reads on from offset 3000, but was made empty by that opening"),
        (life(OTHERS_OFFSET, at_3000, "3.9.2"), "offset 9000, but nothing was put into it since offset 3000"),
        (
            life("start, opens, 2 s, stops 4022, 70 s", lawful, "3.6.1", EOS),
            "but nothing was ever put into it",
        ),
    ],
)
def test_finding(made, words):
    """What it names."""
    finding = made().only(ID)
    assert (finding.level, finding.affected) == (Level.DAMAGE, Affected.POSSIBLY)
    assert (finding.task_id, finding.store, finding.upstream) == ("0_0", "s", ())
    assert words in finding.summary


# -- looks ----------------------------------------------------------------------------------------------------


def made(offset: int | None = 3000, *, copied: bool = False, task_id: str = "0_0", **settings: Any) -> Any:
    """A store that was made by the opening that trusted an offset."""
    files = database(born=20)
    if copied:  # its birth is the time of the copy
        files = database(born=20, puts=3000)
        files.oldest_data_us = files.born_us - 50_000_000
    facts = [checkpoint(10, offset)]
    opened = session(20, created=True, offset_at_open=offset)
    return case(task(store([files], [opened]), checkpoints=facts, task_id=task_id), **settings)


def put_back(
    entries: int | None = 200,
    offset: int = 3000,
    *,
    plain: bool = False,
    copied: bool = False,
    walk: Shape = Shape.CLEANER_WALK,
    **more: Any,
) -> Any:
    """A store that was put back from an older copy, or half restored, beside a newer checkpoint."""
    last = mark(9, 3000, 3000)
    known: dict[str, Any] = {"entries_at_release": 2500, "counted_at_release": 3000, "closed": True}
    before = session(0, 10, puts=3000, last=last, identity="identity-0", **known)
    counted: dict[str, Any] = {"entries_at_open": entries, "counted_at_open": 400}
    opened = session(30, offset_at_open=offset, puts_at_open=400, **counted)
    files = database(born=15, puts=400)
    files.families = PLAIN if plain else files.families
    files.oldest_data_us -= 50_000_000 if copied else 0
    gone = past(14, puts=3000, entries_low=2500, shape=walk)
    one = store([files], [before, opened], past=(gone,))
    return case(task(one, checkpoints=[checkpoint(9, 3000)]), **more)


COUNTED = "silent: how many entries a record of the store adds or ends"


@cases(
    ID,
    # up to 2.5 exactly-once wipes single stores and may leave the checkpoint
    ("an unseen wipe, 2.4", made(release="2.4.1", guarantee="exactly_once"), SUSPECTED),
    ("at-least-once never wipes, 2.4", made(release="2.4.1", guarantee=ALOS), SURE),
    ("a copy that kept no times", made(copied=True), "silent: the files have the times of a copy"),
    ("restored from the start: no entry", made(None), "silent"),
    ("restored from the start: unknown", made(-4), "silent"),
    ("restored from the start: 0", made(0), "silent"),
    ("a global store", made(task_id="global"), "silent"),
    ("put back alone, 2.1", put_back(release="2.1.1"), SUSPECTED),
    ("put back alone, 4.2", put_back(release="4.2.1"), SUSPECTED),
    ("put back alone, a later release", put_back(release=UNHEARD_OF), SUSPECTED),
    ("put back alone, release not told", put_back(release=None), SUSPECTED),
    (
        "put back alone, with times of a copy",
        put_back(copied=True),
        "silent: the files have the times of a copy",
    ),
    ("nobody counted its entries", put_back(None), "silent"),
    ("one less: one offset may mean the next one", put_back(2499), "silent: nothing proves it"),
    ("put back with its checkpoint", put_back(offset=2999), "silent: nothing proves it"),
    ("a wipe may yet come", put_back(now=35), "silent: the opening may end in a wipe"),
    ("a plain store, before there were versioned ones", put_back(release="3.4.1", plain=True), SUSPECTED),
    ("a plain store may be versioned", put_back(release="3.9.2", plain=True), COUNTED),
    ("wiped as corrupted", put_back(walk=Shape.OWNER_WALK), "silent"),
)
def test_looks(story, said):
    """A store that was made for an offset, or holds less than when it claimed one as high."""
    assert said_of(ID, story) == said


# -- segments -------------------------------------------------------------------------------------------------


def crossed(release: str) -> Scenario:
    """Two segments, the older one not flushed."""
    return play(windowed(release, detectors=LAWS), CROSSED)


LACKED_NOTHING = "silent: no segment lacked anything for sure"
REOPENED = f"{KILL}, {starts()}, 20 s"
READ_AGAIN = (
    f"{KILL}, {starts(None)}, puts 600 segment={OLD}, puts 3000 segment={NEW}, checkpoints 3599, flushes, 60 s,"
    "stops 3599, 60 s"
)
STOPPED = f"stops 3599, 5 s, {starts()}"
PAST = f"{STOPPED}, puts 3000 segment={NEW}, checkpoints 6599, flushes segment={NEW}, 2 s, {KILL}, {starts(6599)}"


@cases(
    ID,
    ("killed", life(KILL, crossed, "4.3.1"), "silent"),
    ("4.3.0, killed, reopened", life(REOPENED, crossed, "4.3.0"), SUSPECTED),
    ("4.3.1, killed, reopened", life(REOPENED, crossed, "4.3.1"), SUSPECTED),
    (
        "not every segment was read",
        life(REOPENED, crossed, UNHEARD_OF),
        f"{SUSPECTED}: not every segment was read again",
    ),
    ("a close that was cut", life(f"{starts()}, 20 s", cut, detectors=LAWS), SUSPECTED),
    (
        "every segment is asked",
        life(READ_AGAIN, crossed, UNHEARD_OF),
        "silent: what a segment lacked was read again",
    ),
    ("an orderly close, 4.3.0", life(f"{STOPPED}, 30 s", crossed, "4.3.0"), LACKED_NOTHING),
    ("an orderly close, 4.3.1", life(f"{STOPPED}, 30 s", crossed, "4.3.1"), LACKED_NOTHING),
    ("a segment that was past", life(f"{PAST}, 30 s", crossed, "4.3.1"), "silent"),
)
def test_segments(story, said):
    """One segment answers for another that had nothing on disk."""
    run = story()
    assert said_of(ID, run) == said
    assert broken(run) == ([] if said == "silent" else [ID])


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            life(REOPENED, crossed, "4.3.1"),
            "offset 3599 of segment w.60000; w.0 had not been flushed up to it",
        ),
        (life(f"{starts()}, 20 s", cut, detectors=LAWS), "w.60000 had not been flushed up to it"),
    ],
)
def test_finding_of_a_segment(made, words):
    """Which one answers, and which one lacked what."""
    finding = made().only(ID)
    assert finding.store == "w"
    assert words in finding.summary


def test_finding_of_entries():
    """What it held, and what it holds."""
    (verdict,) = judge(ID, put_back())
    words = "from offset 3000 with 200 entries at most; at offset 3000 it held 2500 at least"
    assert (verdict.store, words in verdict.summary) == ("s", True)
