"""Detector `premature-cleanup`: deleted sooner after its release than the cleanup delay allows (KAFKA-20805)."""

from __future__ import annotations

from typing import Any

from agent.inventory.model import Application, PastTask, ProcessLife, Shape
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, task
from tests.support.scenario_script import play
from tests.support.tables import NOTED, QUIET, REMARKED, WARNED, heard, said, table

ID = "premature-cleanup"
WAITED = "the cleaner waited for its delay"
WIPED = "exactly-once wipes a task right after its close"
EOS = "exactly_once_v2"


def at_work(
    release: str = "4.3.1", guarantee: str = "at_least_once", *, delay: int = 30_000, **more
) -> Scenario:
    """Two tasks with flushed data; the cleaner has to wait for `delay` ms."""
    run = Scenario(release, guarantee, told={"state_cleanup_delay_ms": delay}, **more)
    run.start()
    for task_id in ("0_0", "0_1"):
        play(run, f"opens {task_id}, 0.5 s, puts {task_id} 100, flushes {task_id}")
    return run


def cleaned(after: float = 16, **more) -> Scenario:
    """A task is closed and, `after` seconds later, deleted by the cleaner; its sibling works on."""
    return play(at_work(**more), f"40 s, closes 0_1 99, {after} s, deletes 0_1, 2 s")


@table(ID, "more, expected", {
    "sixteen seconds after its release on 4.3.0": ({"release": "4.3.0"}, WARNED),
    "half a second after its release, at-least-once wipes nothing": ({"after": 0.4}, WARNED),
    "seconds after a clean close it was the cleaner, under exactly-once too": ({"guarantee": EOS, "after": 5}, WARNED),
    # Found by the hunt: closed without a checkpoint, the directory had not changed since its creation.
    "3.5 counts from the last change of the directory": ({"release": "3.5.2"}, NOTED),
    "3.7 counts from the last change of the directory": ({"release": "3.7.2"}, NOTED),
    "4.2 counts from the last change of the directory": ({"release": "4.2.1"}, NOTED),
    "N8 on 4.3": ({"release": "4.3.1", "after": 35}, WAITED),
    "the guarantee is not known: perhaps a wipe": ({"hidden": ("processing_guarantee",)}, QUIET),
    # Many set a short one, and the disk does not tell it.
    "too early by the default delay alone": ({"hidden": ("state_cleanup_delay_ms",)}, REMARKED),
})  # fmt: skip
def test_deleted_by_the_cleaner(more, expected):
    assert heard(ID, cleaned(**more)) == expected


def closed_dirty(release: str, delay: int) -> Scenario:
    """One of two tasks is closed dirty, and is to be wiped."""
    return play(at_work(release, "exactly_once", delay=delay), "10 s, closes_dirty 0_1")


def wiped_on_a_slow_volume(release: str) -> Scenario:
    """N13, seen live: each unlink takes a second, options and the WAL file first; CURRENT went four seconds later."""
    run = closed_dirty(release, 30_000)
    store = "app/0_1/rocksdb/s"
    names = [name for name, _ in run.world.children(store)]
    first = [name for name in names if name.startswith("OPTIONS") or name.endswith(".log")]
    for name in [*first, "CURRENT", "IDENTITY"]:
        run.wait(1)
        run.world.play("unlink", f"{store}/{name}")
    run.app.deletes_directory("0_1")
    return run


def wiped_in_a_starved_pod(release: str) -> Scenario:
    """N13, seen live on 3.5.2 beside other work: the wipe began two seconds after the close."""
    return play(closed_dirty(release, 600_000), "4 s, deletes_directory 0_1")


@table(ID, "life, release, expected", {
    "a wipe on a slow volume of 2.8": (wiped_on_a_slow_volume, "2.8.2", QUIET),
    "a wipe on a slow volume of 3.7": (wiped_on_a_slow_volume, "3.7.2", QUIET),
    "a wipe on a slow volume of 4.2": (wiped_on_a_slow_volume, "4.2.1", QUIET),
    "a wipe in a starved pod of 2.8": (wiped_in_a_starved_pod, "2.8.2", WIPED),
    "a wipe in a starved pod of 3.5": (wiped_in_a_starved_pod, "3.5.2", WIPED),
    "a wipe in a starved pod of 4.3": (wiped_in_a_starved_pod, "4.3.1", WIPED),
})  # fmt: skip
def test_deleted_by_another_hand(life, release, expected):
    run = life(release)
    run.wait(20)
    assert heard(ID, run) == expected


GOES_ON = ProcessLife(at(0))


def dossier(
    age: float = 5,
    *,
    held: bool = False,
    shape: Shape = Shape.CLEANER_WALK,
    siblings: bool = True,
    task_id: str = "0_0",
    life: ProcessLife | None = GOES_ON,
    in_order: bool = True,
    released: float | None = 50,
    delay: int = 10_000,
    **settings,
):
    """Released at 50 s, first removal `age` seconds later, all gone 1 ms after it; the delay is ten seconds."""
    app, one, begun = Application("app", exists=True), task(task_id=task_id), at(50 + age)
    app.lives += () if life is None else (life,)
    released_us = None if released is None else at(released)
    one.past += (PastTask(1, begun, begun + 1000, shape, {}, released_us, held, siblings, in_order),)
    chosen: dict[str, Any] = {"release": "4.3.1", "guarantee": "at_least_once", **settings}
    return case(one, application=app, told={"state_cleanup_delay_ms": delay}, **chosen)


EXACTLY_ONCE = {"guarantee": EOS, "delay": 100_000}
DIRTY = {**EXACTLY_ONCE, "in_order": False}


@table(ID, "more, expected", {
    "at once": ({"age": 0}, WARNED),
    "a moment before the delay, less the slack of a lock poll": ({"age": 9.4}, WARNED),
    "with the slack of a lock poll": ({"age": 9.5}, WAITED),
    "long after the delay": ({"age": 30}, WAITED),
    "its release was seen after its deletion began": ({"age": -1}, "its release was seen after its deletion began"),
    "its release was not seen": ({"released": None}, QUIET),
    "it vanished unseen": ({"shape": Shape.VANISHED_UNSEEN}, "its release, or its deletion, was not seen"),
    "a wipe of a clean close, at its latest": ({**EXACTLY_ONCE, "age": 1.5}, WIPED),
    "later than any wipe of a clean close": ({**EXACTLY_ONCE, "age": 1.6}, WARNED),
    "a wipe of a dirty close, at its latest": ({**DIRTY, "age": 60}, WIPED),
    "later than any wipe of a dirty close": ({**DIRTY, "age": 60.1}, WARNED),
    "held to the end": ({"held": True}, "it was held to the end: its owner deleted it"),
    "the only task of a process that goes on": ({"siblings": False}, WARNED),
    "its process may be at its end": (
        {"siblings": False, "now": 60}, "its process may be at its end, and call cleanUp()"),
    "its process is not": ({"siblings": False, "now": 60.001}, WARNED),
    "the only task of a process that ended": (
        {"siblings": False, "life": ProcessLife(at(0), at(60))}, "no process worked on beside it: cleanUp()"),
    "the only task, of the process before": ({"siblings": False, "life": ProcessLife(at(50.1))}, QUIET),
    "its named topology may have been removed": (
        {"task_id": "__one__/0_0"}, "its named topology may have been removed, and its directory with it"),
    "no process lived": ({"life": None}, QUIET),
    "its process ended as the directory was gone": ({"life": ProcessLife(at(0), at(55) + 1000)}, QUIET),
    "its process ended right after": ({"life": ProcessLife(at(0), at(55) + 1001)}, WARNED),
    "a process that began with the deletion": ({"life": ProcessLife(at(55))}, QUIET),
})  # fmt: skip
def test_limits(more, expected):
    assert said(ID, dossier(**more)) == expected
