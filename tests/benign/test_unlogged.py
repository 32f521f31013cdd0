"""A store without a changelog (`withLoggingDisabled`): no checkpoint names it, and nothing of that is a fault.

Found live on 2.5.1, 3.9.2, 4.2.1 and 4.3.1: its orderly closes looked like unclean ends, from 4.3 on like dirty ones.
"""

from __future__ import annotations

import pytest

from tests.support.scenario import TIMESTAMPED, UNLOGGED, App, Scenario
from tests.support.scenario_benign import ALL, EOS, TOLD, TWO, again, fresh, quiet, scenario, stop, works

GUARANTEES = ["at_least_once", EOS]
TOMBSTONES_S = 60


def beside_another(release: str, guarantee: str) -> Scenario:
    """A task with a usual store and one without a changelog."""
    told = {**TOLD, "delete_retention_ms": TOMBSTONES_S * 1000}
    return scenario(release, guarantee, stores={"s": TIMESTAMPED, "u": UNLOGGED}, told=told)


def flushes_alone(app: App) -> None:
    """Only the store without a changelog reaches the disk."""
    for task_id in TWO:
        app.puts(task_id, 700, store="u")
        app.flushes(task_id, "u")
    app.run.wait(2)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("release", ALL)
def test_restarts(release, guarantee):
    """Orderly restarts, also after a stop that outlasts tombstones."""
    run = beside_another(release, guarantee)
    stop(fresh(run), 1000)
    app = again(run, 1000)
    works(app, 500, total=1500)
    stop(app, 1500)
    run.wait(TOMBSTONES_S * 1.5)
    again(run, 1500)
    quiet(run, but=("zombie-state",))  # it has been away for longer than tombstones live
    assert run.findings("overlaid-store") == []


@pytest.mark.parametrize("release", [x for x in ALL if x >= "3.8.0"])
def test_crash(release):
    """From 3.8 on a start under exactly-once trusts what a crash left; nothing uncommitted is in the usual store."""
    run = beside_another(release, EOS)
    app = fresh(run)
    stop(app, 1000)
    app = again(run, 1000)
    flushes_alone(app)
    app.crash()
    run.wait(5)
    again(run, 1000)
    quiet(run)


@pytest.mark.parametrize("release", [x for x in ALL if x >= "2.5.1"])
def test_alone(release):
    """A task that has no other store never has a checkpoint: orderly restarts look like crashes, and no wipe is due."""
    run = scenario(release, EOS, stores={"u": UNLOGGED})
    for _ in range(3):
        app = run.start()
        for task_id in TWO:
            app.opens(task_id)
        run.wait(2)
        flushes_alone(app)
        for task_id in TWO:
            app.closes(task_id)
        app.ends()
        run.wait(5)
    run.start().opens("0_0")
    quiet(run)


@pytest.mark.parametrize("release", [x for x in ALL if "3.8.0" <= x < "4.3.0"])
def test_crash_in_its_first_life(release):
    """No checkpoint has been written since it has data: those of the restoration list every other store."""
    run = beside_another(release, EOS)
    app = run.start()
    for task_id in TWO:
        app.opens(task_id)
        app.restores(task_id, 999, puts=1000, store="s")
    run.wait(3)
    flushes_alone(app)
    app.crash()
    run.wait(5)
    app = run.start()
    for task_id in TWO:
        app.opens(task_id)
    run.wait(60)
    assert [x.summary for x in run.loud()] == []


@pytest.mark.twin_of("skipped-eos-wipe", "a store without a changelog")
@pytest.mark.parametrize("release", [x for x in ALL if x >= "2.6.0"])
@pytest.mark.parametrize("others", [{"s": TIMESTAMPED}, {}])
def test_logging_is_switched_off(release, others):
    """A deploy takes a store's changelog away: what an older checkpoint says of it holds no longer."""
    run = scenario(release, EOS, stores={**others, "u": TIMESTAMPED})
    stop(fresh(run), 1000)
    run.stores["u"] = UNLOGGED
    for count in (1500, 2000):
        app = again(run, count - 500)
        works(app, 500, total=count)
        run.wait(20)
        stop(app, count)
    again(run, 2000)
    quiet(run)
