"""An agent that is started in the middle of a benign story must not make a fault of what it did not see.

A sidecar starts after its application, or is restarted: every story is told again to agents that begin to watch
at many different moments, also in the middle of a close or a deletion.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.contract.events import Severity
from tests.agent.engine.playing import Run, operations_of, sets_of
from tests.conftest import IN_CI
from tests.support.scenario import TIMESTAMPED, App, Scenario
from tests.support.scenario_benign import last, restored

EOS = "exactly_once"
TOLD = {"state_cleanup_delay_ms": 30_000, "commit_interval_ms": 1000, "delete_retention_ms": 86_400_000}
RELEASES = ["2.0.1", "2.1.1", "2.3.1", "2.5.1", "2.6.2", "2.8.2", "3.6.1", "3.9.2", "4.1.2", "4.3.1"]
STRIDE = 17
"""Coprime to the length of what is repeated, so that every phase of it is hit."""
APART = 1 if IN_CI else 3
"""Locally three releases that follow each other share the moments."""


def begins(run: Scenario) -> App:
    """Two tasks restore 1,000 records and run on."""
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.restores(task_id, last(app, 1000), puts=1000)
        if app.habits.offsets_in_store:
            app.commits(task_id, last(app, 1000))
        elif not app.habits.exactly_once:
            app.checkpoints(task_id, last(app, 1000))
    run.wait(20)
    return app


def opens_again(run: Scenario, app: App, *task_ids: str) -> None:
    """Known tasks, nothing new in their changelogs."""
    for task_id in task_ids:
        app.opens(task_id)
        app.restores(task_id, last(app, 1000), puts=0)
    run.wait(15)


def restart(run: Scenario) -> None:
    """An orderly restart."""
    app = begins(run)
    app.stops({"0_0": last(app, 1000), "0_1": last(app, 1000)})
    run.wait(10)
    opens_again(run, run.start(), "0_0", "0_1")


def crash_without_a_flush(run: Scenario) -> None:
    """A kill with nothing flushed beyond the checkpoint, and a restart that goes on from it."""
    app = begins(run)
    if app.habits.exactly_once and app.habits.bulk_load:
        return restart(run)
    app.puts("0_0", 300)
    app.crash()
    run.wait(10)
    opens_again(run, run.start(), "0_0", "0_1")
    return None


def move(run: Scenario) -> None:
    """A task moves away, is cleaned after the delay, and comes back with a full restoration."""
    app = begins(run)
    app.closes("0_1", last(app, 1000))
    run.wait(45)
    app.cleaner.deletes("0_1")
    run.wait(20)
    restored(app, 1200, ("0_1",))
    run.wait(15)
    app.puts("0_1", 10)
    app.closes("0_1", last(app, 1210))
    run.wait(15)


def wipe(run: Scenario) -> None:
    """A task is wiped by its owner and restored."""
    app = begins(run)
    app.wipes("0_0")
    app.restores("0_0", last(app, 1000), puts=1000)
    run.wait(15)
    app.puts("0_0", 10)
    app.closes("0_0", last(app, 1010))
    run.wait(15)


STORIES: list[tuple[str, Callable[[Scenario], None]]] = [
    ("at_least_once", restart),
    (EOS, restart),
    ("at_least_once", crash_without_a_flush),
    (EOS, crash_without_a_flush),
    ("at_least_once", move),
    (EOS, move),
    (EOS, wipe),
]


@pytest.mark.parametrize(("guarantee", "story"), STORIES)
@pytest.mark.parametrize("release", RELEASES)
def test_quiet_whenever_the_agent_starts(release, guarantee, story):
    """No finding of warning or above, at whichever operation the agent begins to watch."""
    run = Scenario(release, guarantee, told=TOLD, stores={"s": TIMESTAMPED})
    story(run)
    said = {}
    first = RELEASES.index(release) % APART * STRIDE
    for index in range(first, len(run.world.operations) + STRIDE, STRIDE * APART):
        world = run.world.attached_at(index)
        loud = [x for x in world.findings() if x.severity.rank >= 1]
        if loud:
            said[index] = [(x.detector, x.task_id, x.summary) for x in loud]
    assert said == {}


@pytest.mark.parametrize("index", [498, 500])
def test_an_agent_that_starts_in_a_wipe_takes_no_old_offset_for_the_new_store(index):
    """2.1.1 wiped the store under the lock, and its checkpoint stayed until the restoration had ended."""
    name = "benign-8574-finished-2.1.1"
    operations = operations_of(name, "pod-a")
    run = Run(operations[index - 1].at_us, sets_of(name), before=operations[:index])
    for operation in operations[index:]:
        run.play(operation)
    run.rest()
    assert [x.detector for x in run.pipeline.ledger.findings() if x.severity is Severity.CRITICAL] == []
