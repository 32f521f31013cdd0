"""Law `store-shrank` of windowed stores: segments go in order of age."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.inventory.disk import LockState
from agent.inventory.model import Shape
from agent.judging.base import TaskCase
from tests.support.laws import UNHEARD_OF, broken, lawful
from tests.support.laws import said as only
from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_case import at, case, database, past, session, store, task
from tests.support.scenario_script import play
from tests.support.tables import QUIET, SUSPECTED, said, table

ID = "store-shrank"
RELEASES = ["2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.2.1", "4.3.1", UNHEARD_OF]
ALL = (0, 60_000, 120_000)
MAY_WIPE = pytest.mark.twin_of(ID, "the opening may end in a wipe")


def three_segments(release: str) -> Scenario:
    """A windowed store with three segments, all of them on disk."""
    run = play(lawful(release, stores={"w": WINDOWED}), "start, opens")
    for number in ALL:
        play(run, f"puts 100 segment={number}, 2 s")
    return play(run, "checkpoints 300, flushes, 5 s")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("number", [60_000, 120_000])
def test_a_segment_goes_before_an_older_one(release, number):
    """Expiry takes the oldest first."""
    run = play(three_segments(release), f"drops_segment w {number}, 9 s")
    assert broken(run) == []
    play(run, "3 s, puts 10 segment=0, flushes, 5 s")
    assert f"segment w.{number} of store w is gone, although the older w." in only(run, ID).summary


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "numbers", [*(pytest.param(x, marks=MAY_WIPE) for x in ((0,), (120_000,), (0, 120_000))), ALL]
)
def test_segments_that_a_killed_deletion_took(release, numbers):
    """What is left of the store is opened, and its offset trusted; where nothing is left there is none to trust."""
    run = play(three_segments(release), "stops 300, 60 s")
    for number in numbers:
        run.app.delete_tree(f"app/0_0/w/w.{number}")
        del run.task("0_0").databases["w", str(number)]
    if numbers == ALL and run.world.has("app/0_0/.checkpoint"):
        run.world.play("unlink", "app/0_0/.checkpoint")
    play(run, "20 s, start, opens, puts 10 segment=60000, 2 s, checkpoints 310, flushes, 70 s")
    found = run.findings(ID)
    assert (broken(run), len(found)) == (([], 0) if numbers == ALL else ([ID], len(numbers)))
    says = "was deleted while no process held it, and the store reads on from offset 300"
    assert all(says in x.summary for x in found)


def dropped(
    *,
    born: float = 1,
    lock: LockState = LockState.HELD,
    found: float = 2,
    older: str = "w.0",
    opened: float = 5,
    offset: int | None = None,
    remade: float | None = None,
    let_go: float | None = None,
    copied: bool = False,
    shape: Shape = Shape.OWNER_WALK,
    segment: str = "w.60000",
    **gone: Any,
) -> TaskCase:
    """A windowed store whose newer segment went at 10 s while the older one stayed.

    `remade`: there is another database in its place since; `let_go`: when the session before ended; `copied`: a copy
    took the place of the older one.
    """
    first = database(segment="w.0", born=born, identity="identity-9")
    first.lock, first.found_us, first.segment = lock, at(found), older
    sessions = [session(opened, identity="identity-9", offset_at_open=offset)]
    if let_go is not None:
        sessions.insert(0, session(1, identity="identity-9", released=let_go))
    one = store([first], sessions, segmented=True)
    went = replace(past(10, shape=shape, segment=segment), **gone)
    one.past += (went, replace(went, segment="w.0", identity="identity-8")) if copied else (went,)
    if remade is not None:
        again = database(segment="w.60000", born=remade, identity="identity-7")
        one.databases["w.60000"] = replace(again, segment="w.60000")
    return case(task(one), now=60)


OLDEST, OTHER_HAND = "the segment was the oldest, and expired", "no running store took the segment"
HALF_MADE = "an opening replaced a segment that a kill had left half made"
NEW: dict[str, Any] = {"remade": 10.0, "puts": 0, "released_us": at(9)}
CLEANED: dict[str, Any] = {"shape": Shape.CLEANER_WALK}


@table(ID, "one, expected", {
    "before an older one": (dropped(), SUSPECTED),
    "a deletion goes on, or was cut short (torn-store)": (dropped(lock=LockState.FREE), QUIET),
    "the oldest": (dropped(older="w.120000"), OLDEST),
    "the whole store was wiped, and made anew": (dropped(born=11), OLDEST),
    "renamed by an opening": (dropped(segment="w-201801010000"), "an opening renamed the segment"),
    "it is there again": (dropped(identity="identity-9"), "the segment is there again"),
    "a deletion of all may go on": (dropped(ended_us=at(55)), "the whole store may be on its way"),
    "another volume": (dropped(found=11), "the older segment came with another volume"),
    # a copy keeps its times: its older segment is not the one that was there when the newer one went
    "a volume that was replaced by a copy": (dropped(copied=True), QUIET),
    "an older copy was put back, perhaps": (dropped(shape=Shape.VANISHED_UNSEEN), OTHER_HAND),
    "a cleaner": (dropped(**CLEANED), OTHER_HAND),
    "nobody opened it since": (dropped(**CLEANED), "the store was not opened since the segment went"),
    "opened without it, at an offset": (dropped(**CLEANED, opened=20, offset=300), SUSPECTED),
    "opened without it, and all is restored": (
        dropped(**CLEANED, opened=20), "the opening trusted no offset, and all is restored"),
    # found by the hunt on 4.3.1: killed while it made a segment; the next opening makes an empty one there
    "half made, and replaced": (dropped(**NEW), HALF_MADE),
    # the same on 3.5.2: the older segment was opened and read before the newer one was replaced
    "half made, and the next opening has begun": (dropped(**{**NEW, "released_us": None}, let_go=9), HALF_MADE),
    "it held data": (dropped(**{**NEW, "puts": 1}), SUSPECTED),
    "the process that made it let it go": (dropped(**{**NEW, "released_us": None}), SUSPECTED),
    "replaced a second later": (dropped(**{**NEW, "remade": 11.0}), SUSPECTED),
})  # fmt: skip
def test_segments_that_went_for_a_reason(one, expected):
    assert said(ID, one) == expected


@pytest.mark.parametrize("release", RELEASES)
def test_a_deploy_changes_the_interval_of_segments(release):
    """The time of `w.60000` by an interval of 40 s is a segment that is named `w.40000`."""
    run = play(three_segments(release), "stops 300, 90 s")
    del run.task("0_0").databases["w", "60000"]
    play(run, "start, opens, puts 10 segment=40000, 59 s")
    assert broken(run) == []
    play(run, "9 s")
    assert "without its segment w.60000, and has w.40000 in its place" in only(run, ID).summary


def passed_over(*, now: float = 400, instead: float = 200, **more: Any) -> TaskCase:
    """A segment that was opened last at 100 s, and one of an earlier time in its place."""
    fields = {"puts": 9, "born": 1, "reopened_us": (at(100),), "identity": "identity-7", **more}
    files = [
        database(segment="w.40000", born=instead, lock=LockState.HELD),
        database(segment="w.60000", **fields),
    ]
    return case(task(store(files, [session(200)], segmented=True)), now=now)


@table(ID, "one, expected", {
    "it is closed, and not read": (passed_over(), SUSPECTED),
    "it is open": (passed_over(lock=LockState.HELD), QUIET),
    "opened with the others": (passed_over(instead=160), "it was opened with the others"),
    "opened since": (passed_over(reopened_us=(at(100), at(201))), "it was opened with the others"),
    "empty": (passed_over(puts=0), "nothing is in it"),
    "few LOGs": (passed_over(all_reopens=False), "RocksDB keeps few or no old LOG files there"),
    "a start": (passed_over(now=259), "the others are being opened, or it is deleted"),
    "it expired": (passed_over(lock_since_us=at(390)), "the others are being opened, or it is deleted"),
})  # fmt: skip
def test_passed_over(one, expected):
    """A store opens all of its segments, one after the other."""
    assert said(ID, one) == expected
