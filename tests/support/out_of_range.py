"""Stories of a changelog that does not reach as far as the store: at-least-once keeps the files, and reads again."""

from __future__ import annotations

from typing import Any

from tests.support.scenario import Scenario
from tests.support.scenario_script import play

ALOS, EOS = "at_least_once", "exactly_once_v2"


def at_5000(release: str, guarantee: str = ALOS, **more: Any) -> Scenario:
    """A stopped application whose task holds everything up to offset 5000."""
    run = Scenario(release, guarantee, **more)
    return play(run, "start, opens, restores 1999 puts=2000, 2 s, puts 3000, stops 5000, 5 s")


def read_again(release: str, guarantee: str = ALOS, *, first: str = "", **more: Any) -> Scenario:
    """The restore consumer finds its position beyond the end: the offsets are dropped, the files are kept."""
    run = play(at_5000(release, guarantee, **more), f"{first}, start, opens, 0.3 s")
    drops_offsets(run)
    return play(run, "0.1 s, opens")


def drops_offsets(run: Scenario) -> None:
    """The task is corrupted: its offsets are forgotten, and it is closed dirty."""
    for (name, _), database in run.task("0_0").databases.items():
        if run.app.habits.offsets_in_store:
            database.drop_offset(f"app-{name}-changelog-0")
    if run.world.has("app/0_0/.checkpoint"):
        run.world.play("unlink", "app/0_0/.checkpoint")
    run.app.closes_dirty("0_0")
