"""Benign lives of everyday operation: idle tasks, crash loops, rolling restarts, neighbours. No agent may cry loss."""

from __future__ import annotations

from tests.live.plan import CHAIN, downgrade_of, numbers
from tests.live.processes import wait_until
from tests.live.stage import Stage


def life_idle(stage: Stage) -> None:
    """One partition never gets a record, one store of the other never gets an entry: starts, restarts, a crash."""
    stage.send(1500, partition=0, step_ms=100)
    for _ in range(2):
        stage.start()
        stage.settle()
        stage.wait_committed()
        stage.stop()
        stage.start()
        stage.send(300, partition=0, step_ms=100)
        stage.settle()
        stage.wait_committed()
        stage.kill()
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.stop()


def clean_starts(stage: Stage) -> None:
    """`cleanUp()` before every start, as in many examples, after orderly closes and a crash."""
    stage.send(1500)
    for ends in (stage.stop, stage.kill, stage.stop):
        stage.watch("a") if "a" not in stage.agents else None
        java = stage.launch("a")
        stage.mark("a cleans up")
        java.ask("cleanup")
        java.ask("start")
        stage.wait_running("a")
        stage.settle(within_s=90)
        stage.send(300)
        stage.settle()
        stage.wait_committed()
        ends()
    stage.start()
    stage.settle()
    stage.stop()


def crash_loop(stage: Stage) -> None:
    """A record that cannot be processed ends the instance, again and again, until it is fixed."""
    stage.send(1500)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.fail()
    for _ in range(2):
        stage.start()
        stage.fail()
    stage.start()
    stage.settle(within_s=90)
    stage.wait_committed()
    stage.prove("after the last failure")
    stage.stop()


def replaced_threads(stage: Stage) -> None:
    """Records fail the thread and a new one takes its place and its tasks, in the same process."""
    stage.send(1500)
    stage.start()
    stage.settle()
    stage.wait_committed()
    for _ in range(3):
        java = stage.pods["a"]
        seen = len(java.lines)
        java.ask("poison 1")
        stage.send(400)
        java.wait_for("poisoned", after=seen)
        stage.mark("a thread has failed, an exception")
        stage.settle(within_s=90)
        stage.wait_committed()
    stage.prove("after the last failure")
    stage.stop()
    stage.start()
    stage.settle()
    stage.stop()


def killed_closing(stage: Stage) -> None:
    """The time to close runs out: killed when the first store is closed and others are not, three times."""
    stage.send(1500)
    stage.start()
    stage.settle()
    stage.wait_committed()
    for _ in range(3):
        stage.send(2000)
        stage.settle(within_s=90)
        java = stage.pods["a"]
        stage.mark("a closes")
        java.tell("close")
        wait_until(lambda: not stage.all_locked("a"), "a store is closed")
        stage.kill()
        stage.start()
        stage.settle(within_s=90)
        stage.prove("after the kill")
    stage.wait_committed()
    stage.stop()


def rolling_busy(stage: Stage) -> None:
    """A rolling restart of two pods in the middle of their work, twice; roles change places each time."""
    stage.send(2000)
    stage.start("a")
    stage.start("b")
    stage.settle(within_s=90)
    stage.wait_committed()
    for _ in range(2):
        for pod in ("a", "b"):
            stage.send(15_000)
            stage.stop(pod)
            stage.idle(1, "the pod is gone")
            stage.start(pod)
            stage.settle(within_s=120)
    stage.wait_committed()
    stage.prove("after the restarts")
    stage.stop("a")
    stage.stop("b")


def neighbours(stage: Stage) -> None:
    """Two applications share a state directory; one restarts, crashes and cleans up while the other works on."""
    stage.send(1000)
    stage.start()
    stage.settle()
    other = {"application.id": f"{stage.id}-two", "client.id": "two"}
    for ends in ("close", "kill", "close"):
        stage.send(300)
        java = stage.beside("a", other)
        java.ask("cleanup" if ends == "kill" else "restore-delay 0")
        java.ask("start")
        java.wait_for("state RUNNING")
        stage.idle(3, "both work")
        stage.settle()
        stage.wait_committed()
        stage.mark(f"the neighbour: {ends}")
        if ends == "kill":
            java.kill()
        else:
            java.ask("close")
            java.exit()
    stage.stop()
    stage.start()
    stage.settle()
    stage.stop()


def upgrade(stage: Stage) -> None:
    """The same directory under one release after the other; agent and application are configured again each time."""
    first = stage.plan.release
    stage.send(1000, step_ms=50)
    for release in (first, *(x for x in CHAIN if numbers(x) > numbers(first))):
        _one_release(stage, release)


def downgrade(stage: Stage) -> None:
    """The same directory under the release before, and back again, each closed in order."""
    newer = stage.plan.release
    older = downgrade_of(newer)
    assert older is not None
    stage.send(1000, step_ms=50)
    for release in (newer, older, newer):
        _one_release(stage, release)


def _one_release(stage: Stage, release: str) -> None:
    stage.start(release=release)
    stage.settle()
    stage.send(300, step_ms=50)
    stage.settle()
    stage.wait_committed()
    stage.stop()
    stage.unwatch("a")
