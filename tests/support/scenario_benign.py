"""What the benign stories have in common: an application about which everything is told, and its daily life."""

from __future__ import annotations

from tests.support.scenario import TIMESTAMPED, App, Scenario

DELAY_S = 30
TOLD = {
    "state_cleanup_delay_ms": DELAY_S * 1000,
    "commit_interval_ms": 1000,
    "delete_retention_ms": 86_400_000,
    "session_timeout_ms": 10_000,
}
EOS = "exactly_once"
TWO = ("0_0", "0_1")

OLD = ["2.0.1", "2.1.1", "2.2.1", "2.3.1", "2.4.1", "2.5.1"]
MIDDLE = ["2.6.1", "2.6.2", "2.7.2", "2.8.2"]
NEW = ["3.0.2", "3.4.1", "3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.1"]
NEWEST = ["4.3.0", "4.3.1"]
ALL = OLD + MIDDLE + NEW + NEWEST


def scenario(release: str, guarantee: str = "at_least_once", **more) -> Scenario:
    """An application about which everything is told."""
    return Scenario(release, guarantee, **{"told": TOLD, "stores": {"s": TIMESTAMPED}, **more})


def last(app: App, count: int) -> int:
    """Offset after `count` records: the next one up to 2.5, the last one from 2.6 on."""
    return count if app.habits.bulk_load else count - 1


def restored(app: App, count: int, tasks: tuple[str, ...] = TWO) -> None:
    """Tasks are opened, and restored in full."""
    for task_id in tasks:
        app.opens(task_id)
        app.restores(task_id, last(app, count), puts=count)


def fresh(run: Scenario, count: int = 1000, tasks: tuple[str, ...] = TWO) -> App:
    """A first start: empty stores, then `count` records per task, flushed."""
    app = run.start()
    for task_id in tasks:
        app.opens(task_id)
        app.restores(task_id, 0 if app.habits.bulk_load else -4, puts=0)
    run.wait(1)
    works(app, count, tasks)
    return app


def works(app: App, count: int, tasks: tuple[str, ...] = TWO, *, total: int | None = None) -> None:
    """Tasks process `count` records: at-least-once commits with a checkpoint, exactly-once does not."""
    for task_id in tasks:
        app.puts(task_id, count)
        if app.habits.offsets_in_store:
            app.commits(task_id, last(app, total or count))
        elif not app.habits.exactly_once:
            app.checkpoints(task_id, last(app, total or count))
    app.run.wait(2)


def stop(app: App, count: int, tasks: tuple[str, ...] = TWO) -> None:
    app.stops({task_id: last(app, count) for task_id in tasks})
    app.run.wait(3)


def again(run: Scenario, count: int, tasks: tuple[str, ...] = TWO) -> App:
    """The next start of known tasks: nothing to restore."""
    app = run.start()
    run.wait(1)
    if app.habits.startup_pass:
        app.startup_pass()
    run.wait(2)
    for task_id in tasks:
        app.constructs(task_id)
    for task_id in tasks:
        app.opens(task_id)
    for task_id in tasks:
        app.restores(task_id, last(app, count), puts=0)
    run.wait(1)
    return app


def quiet(run: Scenario, *, but: tuple[str, ...] = ()) -> None:
    """After some minutes more nothing of warning or above was said, but for exposures that truly apply."""
    run.wait(60)
    assert [(x.detector, x.task_id, x.summary) for x in run.loud() if x.detector not in but] == []
