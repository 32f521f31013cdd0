"""Stories of a changelog that does not reach as far as the store: at-least-once keeps the files, and reads again."""

from __future__ import annotations

from typing import Any

from tests.support.scenario import App, Scenario

ALOS, EOS = "at_least_once", "exactly_once_v2"


def at_5000(release: str, guarantee: str = ALOS, **more: Any) -> Scenario:
    """A stopped application whose task holds everything up to offset 5000."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(2)
    app.puts("0_0", 3000)
    app.stops({"0_0": 5000})
    run.wait(5)
    return run


def opened(run: Scenario) -> App:
    """The next process opens the task; its changelog has been emptied."""
    app = run.start()
    app.opens("0_0")
    return app


def out_of_range(run: Scenario) -> App:
    """The restore consumer finds its position beyond the end: the offsets are dropped, the files are kept."""
    app = opened(run)
    run.wait(0.3)
    drops_offsets(run, app)
    run.wait(0.1)
    app.opens("0_0")
    return app


def drops_offsets(run: Scenario, app: App) -> None:
    """The task is corrupted: its offsets are forgotten, and it is closed dirty."""
    for (name, _), database in run.task("0_0").databases.items():
        if app.habits.offsets_in_store:
            database.drop_offset(f"app-{name}-changelog-0")
    if run.world.has("app/0_0/.checkpoint"):
        run.world.play("unlink", "app/0_0/.checkpoint")
    app.closes_dirty("0_0")
