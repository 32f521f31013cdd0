"""Who held what when, and how far each copy had come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.contract.events import Kind
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us, story

Row = Mapping[str, Any]


@story
def held_twice(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_0", 10).measures("0_0", 20, held=True).releases("0_0", 30)
    a.measures("0_0", 40, held=False).holds("0_0", 50)


@story
def seen_only_by_summaries(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").measures("0_0", 60, held=True, puts=1, offset=1).measures("0_0", 120, held=True)
    a.measures("0_0", 180, held=False)


@story
def cleaned_up(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_0", 10).releases("0_0", 20)
    a.holds("0_0", 100).deletes_task("0_0", 106)


@story
def wiped_by_its_owner(fleet: Fleet) -> None:
    fleet.pod("pod-a").holds("0_0", 10).releases("0_0", 100).deletes_task("0_0", 100.1, shape="owner-walk")


@story
def locks_unseen(fleet: Fleet) -> None:
    fleet.pod("pod-a").measures("0_0", 60, held=None, puts=3, offset=4)


@story
def a_windowed_store(fleet: Fleet) -> None:
    segments = [
        {"store": "w", "segment": f"w.{n}", "identity": f"i{n}", "puts": 10, "bytes": 100, "offset": 20 + n}
        for n in range(3)
    ]
    fleet.pod("pod-a").tells(Kind.SUMMARY, 30, task_id="0_0", source="timer", stores=segments)


@story
def checkpoints_of_one_and_of_two_stores(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").creates_store("0_0", 5, "one").writes_checkpoint("0_0", 20, 2000, puts=1990)
    a.creates_store("0_1", 5, "one").creates_store("0_1", 5, "two", store="t").writes_checkpoint(
        "0_1", 20, 2000, puts=9
    )


@story
def a_process_came_and_went(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_0", 50)
    a.tells(Kind.TRANSITION, 40, change="process-started").tells(Kind.TRANSITION, 300, change="process-ended")


def seconds(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return sorted(
        tuple((row[name] - at_us(0)) / 1e6 if name.endswith("_us") else row[name] for name in names)
        for row in rows
    )


def test_intervals_are_half_open_and_merge_repeats(audited):
    """Transitions bound the intervals; a summary that repeats what is known splits nothing."""
    held = audited.rows("held", held_twice)
    assert seconds(held, "from_us", "to_us", "lasting") == [(10, 30, False), (50, HORIZON_S, True)]


def test_summaries_alone_show_a_holder(audited):
    """Without transitions the summaries bound the interval from the inside."""
    assert seconds(audited.rows("held", seen_only_by_summaries), "from_us", "to_us") == [(60, 180)]


def test_the_cleaners_lock_is_no_owner(audited):
    """The lock under which a cleaner deleted the directory is marked; the owner's before it is not."""
    held = audited.rows("held", cleaned_up)
    assert seconds(held, "from_us", "to_us", "cleaner") == [(10, 20, False), (100, 106, True)]
    (owner,) = audited.rows("held", wiped_by_its_owner)
    assert owner["cleaner"] is False


def test_unseen_locks_make_no_holder(audited):
    """A summary that could not tell holds nothing, but its sizes count."""
    assert audited.rows("held", locks_unseen) == []
    (size,) = audited.rows("sizes", locks_unseen)
    assert (size["puts"], size["offset"]) == (3, 4)


def test_segments_are_added_up(audited):
    """A windowed store is one copy: puts and bytes are sums, the offset is the furthest."""
    (size,) = audited.rows("sizes", a_windowed_store)
    assert (size["store"], size["puts"], size["bytes"], size["offset"], size["identity"]) == (
        "w",
        30,
        300,
        22,
        None,
    )


def test_a_checkpoint_is_about_a_single_store_only(audited):
    """Puts of a checkpoint are the task's; with two stores they belong to neither."""
    (size,) = audited.rows("sizes", checkpoints_of_one_and_of_two_stores)
    assert (size["task_id"], size["store"], size["puts"], size["offset"]) == ("0_0", "s", 1990, 2000)


def test_lives_come_from_processes_or_signs(audited):
    """Process transitions decide; without them the first hold and the last sign of life do."""
    assert seconds(audited.rows("lives", a_process_came_and_went), "from_us", "to_us") == [(40, 300)]
    assert seconds(audited.rows("lives", cleaned_up), "from_us", "to_us") == [(10, 106)]


def test_the_timeline_has_every_lane(audited):
    """One table tells holds, marks, processes and sizes."""
    lanes = {row["lane"] for row in audited.rows("timelines", cleaned_up)}
    assert lanes == {"holder", "cleaner", "process", "deleted"}
    lanes = {row["lane"] for row in audited.rows("timelines", checkpoints_of_one_and_of_two_stores)}
    assert lanes == {"checkpoint", "created", "incarnation", "size"}
