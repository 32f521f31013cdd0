"""Windowed stores of 4.3 on their way to a lost segment, in steps of `scenario_script`."""

from __future__ import annotations

from typing import Any

from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_database import SimDatabase
from tests.support.scenario_script import play

ALOS, EOS = "at_least_once", "exactly_once_v2"
OLD, NEW = 0, 60_000
ANSWER = 3599
KILL = "crash, 5 s"


def windowed(release: str = "4.3.1", guarantee: str = ALOS, **more: Any) -> Scenario:
    """A windowed store that was just opened, and has no segment yet."""
    return play(Scenario(release, guarantee, **{"stores": {"w": WINDOWED}, **more}), "start, opens")


def put(records: int, number: int, offset: int | None = None, *, flush: bool = False) -> str:
    """Records for one segment, committed and flushed, and time for the agent to see it."""
    committed = "" if offset is None else f", checkpoints {offset}"
    return f"puts {records} segment={number}{committed}{f', flushes segment={number}' * flush}, 2 s"


def starts(offset: int | None = ANSWER) -> str:
    """A new process: its start-up pass, then the task."""
    return f"start, startup_pass{'' if offset is None else f' {offset}'}, 2 s, opens, 2 s"


CROSSED = (
    f"{put(600, OLD, 599)}, puts 3000 segment={NEW}, 2 s, checkpoints {ANSWER}, flushes segment={NEW}, 2 s"
)
"""600 records in the first segment, 3,000 in the next one, which is flushed; all committed."""
WITH_DATA = f"{put(600, OLD, 599, flush=True)}, {put(600, OLD)}, {put(3000, NEW, 4199, flush=True)}"
"""The first segment is flushed early and goes on; then the next one takes over and is flushed."""
UNFLUSHED = f"{put(600, OLD)}, {put(3000, NEW)}"


def segment(run: Scenario, number: int) -> SimDatabase:
    return run.task("0_0").databases["w", str(number)]


def close_cut(run: Scenario) -> Scenario:
    """The close writes the offset, closes the first segment, and is killed before the second."""
    run.app.checkpoints("0_0", ANSWER)
    old = segment(run, OLD)
    old.put_position()
    old.put_status(0)
    old.close()
    return play(run, f"0.1 s, {KILL}")


def cut(guarantee: str = EOS, first: str = "", **more: Any) -> Scenario:
    """Two segments, both made in this life, nothing flushed; and a close that is cut between the two."""
    return close_cut(play(windowed(guarantee=guarantee, **more), f"{UNFLUSHED}, {first}"))


def wiped_start(run: Scenario) -> Scenario:
    """A new process under exactly-once: its start-up pass finds a store open and writes nothing; the task is wiped."""
    app = run.start()
    for database in run.task("0_0").databases.values():
        database.open()
        database.crash()
        run.world.unlock(f"{database.path}/LOCK")
    run.wait(15)
    app.opens("0_0")
    app.wipes("0_0")
    run.wait(30)
    return run
