"""Law `store-shrank` of windowed stores: segments go in order of age."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.inventory.disk import LockState
from agent.inventory.model import Shape
from agent.judging.base import TaskCase
from tests.support.laws import UNHEARD_OF, broken, lawful, said
from tests.support.scenario import WINDOWED, App, Scenario
from tests.support.scenario_case import at, case, database, judge, past, session, store, task

ID = "store-shrank"
RELEASES = ["2.0.1", "2.4.1", "2.8.2", "3.9.2", "4.2.1", "4.3.1", UNHEARD_OF]


def three_segments(release: str) -> tuple[Scenario, App]:
    """A windowed store with three segments, all of them on disk."""
    run = lawful(release, stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    for number in (0, 60_000, 120_000):
        app.puts("0_0", 100, segment=number)
        run.wait(2)
    app.checkpoints("0_0", 300)
    app.flushes("0_0")
    run.wait(5)
    return run, app


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("number", [60_000, 120_000])
def test_a_segment_goes_before_an_older_one(release, number):
    """Expiry takes the oldest first."""
    run, app = three_segments(release)
    app.drops_segment("0_0", "w", number)
    run.wait(9)
    assert broken(run) == []
    run.wait(3)
    app.puts("0_0", 10, segment=0)
    app.flushes("0_0")
    run.wait(5)
    finding = said(run, ID)
    assert f"segment w.{number} of store w is gone, although the older w." in finding.summary


@pytest.mark.parametrize("release", RELEASES)
def test_expiry(release):
    """The oldest, then the next one."""
    run, app = three_segments(release)
    app.drops_segment("0_0", "w", 0)
    run.wait(30)
    app.drops_segment("0_0", "w", 60_000)
    run.wait(60)
    assert broken(run) == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("numbers", [(0,), (120_000,), (0, 120_000)])
@pytest.mark.twin_of("store-shrank", "the opening may end in a wipe")
def test_segments_that_a_killed_deletion_took(release, numbers):
    """What is left of the store is opened, and its offset trusted."""
    run, app = three_segments(release)
    takes(run, app, numbers)
    opens_the_rest(run)
    found = run.findings(ID)
    assert broken(run) == [ID]
    assert len(found) == len(numbers)
    assert "was deleted while no process held it, and the store reads on from offset 300" in found[0].summary


@pytest.mark.parametrize("release", RELEASES)
def test_a_killed_deletion_that_took_everything(release):
    """Nothing is left to trust."""
    run, app = three_segments(release)
    takes(run, app, (0, 60_000, 120_000))
    if ".checkpoint" in [name for name, _ in run.world.children("app/0_0")]:
        run.world.play("unlink", "app/0_0/.checkpoint")
    opens_the_rest(run)
    assert broken(run) == []


def takes(run: Scenario, app: App, numbers: tuple[int, ...]) -> None:
    """A deletion after an orderly stop gets as far as these segments."""
    app.stops({"0_0": 300})
    run.wait(60)
    for number in numbers:
        app.delete_tree(f"app/0_0/w/w.{number}")
        del run.task("0_0").databases["w", str(number)]
    run.wait(20)


def opens_the_rest(run: Scenario) -> None:
    """The task is opened, as the deletion left it, and goes on."""
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 10, segment=60_000)
    run.wait(2)
    app.checkpoints("0_0", 310)
    app.flushes("0_0")
    run.wait(70)


def dropped(**more: Any) -> TaskCase:
    """A windowed store whose newer segment went while the older one stayed."""
    older = database(segment="w.0", born=more.pop("born", 1), identity="identity-9")
    older.lock, older.found_us = more.pop("lock", LockState.HELD), more.pop("found_us", at(2))
    older.segment = more.pop("older", "w.0")
    gone = past(10, shape=Shape.OWNER_WALK, segment=more.pop("segment", "w.60000"))
    one = store([older], [session(5, identity="identity-9")], segmented=True)
    one.past += (replace(gone, **more),)
    return case(task(one), now=60)


def twin(name: str, **more: Any) -> Any:
    """What differs from a segment that was dropped before its time, and what it is then."""
    return pytest.param(more, marks=pytest.mark.twin_of(ID, name), id=name)


@pytest.mark.parametrize(
    "more",
    [
        {"lock": LockState.FREE},  # a deletion goes on, or was cut short: `torn-store` is about that
        twin("the segment was the oldest, and expired", segment="w.60000", older="w.120000"),
        twin("the segment was the oldest, and expired", born=11),  # the whole store was wiped, and made anew
        twin("an opening renamed the segment", segment="w-201801010000"),
        twin("the segment is there again", identity="identity-9"),
        twin("the whole store may be on its way", ended_us=at(55)),
        twin("the older segment came with another volume", found_us=at(11)),
        twin(
            "no running store took the segment", shape=Shape.VANISHED_UNSEEN
        ),  # an older copy was put back, perhaps
        twin("no running store took the segment", shape=Shape.CLEANER_WALK),
        twin("the store was not opened since the segment went", shape=Shape.CLEANER_WALK),
    ],
)
def test_segments_that_went_for_a_reason(more):
    """None of these is expiry out of order."""
    assert [x.summary for x in judge(ID, dropped())] != []
    assert judge(ID, dropped(**more)) == []


@pytest.mark.twin_of(ID, "the opening trusted no offset, and all is restored")
def test_opened_without_a_segment():
    """Where no offset was trusted, all is restored."""
    one = dropped(shape=Shape.CLEANER_WALK)
    for offset, said_ in ((300, 1), (None, 0)):
        one.task.stores["s"].sessions = (session(20, identity="identity-9", offset_at_open=offset),)
        assert len(judge(ID, one)) == said_


@pytest.mark.parametrize(
    ("more", "remade", "is_said"),
    [
        pytest.param(
            {},
            10.0,
            False,
            marks=pytest.mark.twin_of(ID, "an opening replaced a segment that a kill had left half made"),
        ),
        ({"puts": 1}, 10.0, True),
        ({"released_us": None}, 10.0, True),  # the process that made it let it go: records went with it
        ({}, 11.0, True),
    ],
)
def test_half_made_and_replaced_by_an_opening(more: dict[str, Any], remade: float, is_said: bool):
    """Found by the hunt on 4.3.1: killed while it made a segment; the next opening makes an empty one there."""
    found = dropped(**{"puts": 0, "released_us": at(9)} | more)
    again = replace(database(segment="w.60000", born=remade, identity="identity-7"), segment="w.60000")
    found.task.stores["s"].databases["w.60000"] = again
    assert bool(judge(ID, found)) is is_said


def test_a_volume_that_was_replaced_by_a_copy():
    """A copy keeps its times: its older segment is not the one that was there when the newer one went."""
    replaced = dropped()
    one = replaced.task.stores["s"]
    one.past += (replace(one.past[-1], segment="w.0", identity="identity-8"),)
    assert judge(ID, replaced) == []
