"""Offsets that were dropped because one was out of range: what only a changelog that ends too early explains."""

from __future__ import annotations

import pytest

from agent.contract.events import Status
from agent.judging.changelog_ends import is_revived
from tests.support.out_of_range import at_5000, drops_offsets, read_again
from tests.support.scenario import KEY_VALUE, WINDOWED, Scenario
from tests.support.scenario_case import session
from tests.support.scenario_script import life, play
from tests.support.twins import cases, words

ID = "changelog-truncated"
CRITICAL, WARNING = (f"{x} suspected without end offset of the changelog" for x in ("critical", "warning"))


def switched_off() -> Scenario:
    """A store without a changelog loses its offset at the first commit, and keeps it lost over every restart."""
    run = play(at_5000("4.3.1"), "start, opens")
    for database in run.task("0_0").databases.values():
        database.drop_offset("app-s-changelog-0")
    return play(run, "30 s, closes")


def topic_dropped(topic: str) -> Scenario:
    """The store keeps the offset of this topic, which is out of range."""
    run = play(Scenario("4.3.1"), "start, opens, 2 s, puts 5000")
    (database,) = run.task("0_0").databases.values()
    database.put_offset(topic, 5000)
    play(run, "stops, 5 s, start, opens, 0.3 s")
    database.drop_offset(topic)
    return play(run, "closes_dirty, 0.1 s, opens, 60 s")


def revived() -> Scenario:
    """A task that timed out is closed and opened again, and keeps its offset, even if one look did not find it."""
    run = play(at_5000("4.3.1"), "start, opens, 5 s, closes_dirty, 0.1 s, opens")
    assert run.world.pipeline is not None
    run.wait(1)
    held = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"].sessions[-1]
    held.stored_offset_at_open = None
    return play(run, "60 s")


def removed(first: str = "", then: str = "start, opens") -> Scenario:
    """Without an offset a replay of a whole changelog may stop on its way, for a pause: nothing was out of range."""
    run = play(at_5000("3.9.2"), first)
    run.world.play("unlink", "app/0_0/.checkpoint")
    return play(run, then)


def source_topic() -> Scenario:
    """A source topic that stands in for another store's changelog forgets its beginning, too."""
    run = play(at_5000("3.9.2"), "start, opens")
    run.app.checkpoints("0_0", 5000, foreign={("orders", 0): 70})
    play(run, "stops, 5 s, start, opens, 0.3 s")
    drops_offsets(run)
    return play(run, "0.1 s, opens")


GROWN = "2 s, puts 6000, stops 5999, 5 s"
UNTOLD = {"hidden": ("num_standby_replicas",), "standbys": None}
TWO = {"a": KEY_VALUE, "b": KEY_VALUE}
ENDED = "restores -4 puts=0, 12 s, puts 1900, stops 6899, 5 s"
"""The replay ends at once without an offset, and the task goes on."""
REVIVED = "start, opens, 3 s, closes_dirty, 0.1 s, opens"
KILLED = "5 s, crash, 3 s, start, opens"


@cases(
    ID,
    # recorded on 4.3.1: by the time of the next flush the new changelog reaches further than the old offset
    ("4.3, grown past it before the first flush", life(GROWN, read_again, "4.3.1"), WARNING),
    ("4.3, the same, standbys not told", life(GROWN, read_again, "4.3.1", **UNTOLD), WARNING),
    ("4.3, opened again", life(f"{GROWN}, start, opens, 60 s", read_again, "4.3.1"), WARNING),
    ("4.3, two stores of one task", life(GROWN, read_again, "4.3.1", stores=TWO), f"{WARNING}, {WARNING}"),
    ("4.3, changelog switched off", life("ends, 5 s, start, opens, 60 s", switched_off), "silent"),
    ("4.3, switched off, back within the process", life("60 s, opens, 60 s", switched_off), "silent"),
    ("4.3, a source topic loses its beginning to retention", lambda: topic_dropped("orders-0"), "silent"),
    ("4.3, its own changelog does not", lambda: topic_dropped("app-s-changelog-0"), WARNING),
    ("4.3, revived with its offset", revived, "silent"),
    # up to 3.7 a timeout of the producer drops offsets, too; from 3.8 on only an offset out of range
    ("3.5, empty changelog", life(ENDED, read_again, "3.5.1"), WARNING),
    ("3.7, empty changelog", life(ENDED, read_again, "3.7.2"), WARNING),
    ("3.9, empty changelog", life(ENDED, read_again, "3.9.2"), CRITICAL),
    ("4.2, empty changelog", life(ENDED, read_again, "4.2.1"), CRITICAL),
    # exactly-once drops offsets for other causes; it wipes then, but nobody knows which it is
    ("guarantee not told", life(ENDED, read_again, "3.9.2", hidden=("processing_guarantee",)), WARNING),
    ("a source topic beside it", life(ENDED, source_topic), WARNING),
    ("removed by hand", life(ENDED, removed), WARNING),
    ("removed by hand, then revived", life(ENDED, removed, then=REVIVED), WARNING),
    ("removed and killed", life(ENDED, removed, "start, opens, 0.3 s", KILLED), WARNING),
    (
        "the replay comes back",
        life("restores 5100 puts=5101, 60 s, stops 5200, 5 s", read_again, "3.9.2"),
        "silent",
    ),
)
def test_lives(story, said):
    """4.3: the offset is removed from the store; up to 4.2 the checkpoint is deleted."""
    run = story()
    assert words(ID, run.findings(ID)) == said
    assert {x.status for x in run.findings(ID)} <= {Status.OPEN}


def test_windowed_store_beside_it():
    """The changelog of a windowed store forgets its beginning: its offset may be the one that was out of range."""
    run = play(read_again("3.9.2", stores={"s": KEY_VALUE, "w": WINDOWED}), ENDED)
    assert words(ID, (x for x in run.findings(ID) if x.store == "s")) == WARNING


def test_sentence():
    """One changelog ends too early; of two stores of a task it is not known which."""
    (one,) = life(GROWN, read_again, "4.3.1")().findings(ID)
    assert "ends before what the store holds: it held offset 5000, which then was out of range" in one.summary
    found = life(GROWN, read_again, "4.3.1", stores=TWO)().findings(ID)
    assert {x.store: "a or b" in x.summary or "b or a" in x.summary for x in found} == {"a": True, "b": True}


@pytest.mark.parametrize(
    ("gap", "outlived", "said"),
    [(1, None, True), (1.1, None, False), (1.1, False, False), (30, True, True), (30.1, True, False)],
)
def test_revived(gap, outlived, said):
    """Within a second it is the same process; later it has to be known that it lived on."""
    before, after = session(0, 10, outlived=outlived), session(10 + gap)
    assert is_revived(before, after) is said
    before.released_us = None
    assert not is_revived(before, after)
