"""Benign lives: nothing is lost in them, and no agent may say that something is."""

from __future__ import annotations

from tests.live.plan import numbers
from tests.live.processes import wait_until
from tests.live.stage import Stage

STALL = {
    "commit.interval.ms": 2000,
    "producer.max.block.ms": 2000,
    "producer.linger.ms": 0,
    "session.timeout.ms": 20_000,
    "task.timeout.ms": 60_000,
}
"""A commit that the broker does not answer gives up before the membership does."""


def life(stage: Stage) -> None:
    """Fresh start, orderly restart, crash while idle, restart, close while everything is committed."""
    stage.send(600, step_ms=200)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.stop()
    stage.start()
    stage.settle()
    stage.send(300, step_ms=200)
    stage.settle()
    stage.wait_committed()
    stage.kill()
    stage.start()
    stage.settle()
    stage.send(100, step_ms=200)
    stage.settle()
    stage.wait_committed()
    stage.stop()


def life_unlogged(stage: Stage) -> None:
    """No store has a changelog, so no checkpoint has an entry: fresh start, orderly restarts, a crash at the end."""
    stage.send(600, step_ms=200)
    for _ in range(3):
        stage.start()
        stage.settle("unlogged")
        stage.send(300, step_ms=200)
        stage.settle("unlogged")
        stage.wait_committed()
        stage.stop()
    stage.start()
    stage.send(600, step_ms=200)
    stage.settle("unlogged")
    stage.wait_committed()
    stage.kill()
    stage.start()
    stage.idle(5, "whatever is left of the store")
    stage.stop()


def life_uncommitted(stage: Stage) -> None:
    """The same without waiting for a commit: a crash before it repeats work, and at-least-once means just that."""
    stage.send(600, step_ms=200)
    stage.start()
    stage.settle()
    stage.stop()
    stage.start()
    stage.settle()
    stage.send(3000, step_ms=20)
    stage.settle()
    stage.kill()
    stage.start()
    stage.settle()
    stage.send(100, step_ms=20)
    stage.settle()
    stage.stop()


def scale(stage: Stage) -> None:
    """A second pod joins, the first restarts, the second leaves; the cleaner takes what is left behind."""
    stage.send(400)
    stage.start("a")
    stage.settle()
    stage.start("b")
    stage.wait_running("a")
    stage.send(200)
    stage.settle()
    stage.wait_committed()
    stage.stop("a")
    stage.settle(within_s=90)
    stage.start("a")
    stage.wait_running("b")
    stage.settle(within_s=90)
    delay_ms = int(str(stage.plan.settings["state.cleanup.delay.ms"]))
    stage.idle(delay_ms / 1000 * 2.2, "the cleaner's delay")
    stage.send(100)
    stage.settle()
    stage.stop("b")
    stage.settle(within_s=90)
    stage.wait_committed()
    stage.stop("a")


def threads(stage: Stage) -> None:
    """A stream thread is removed from a running instance, its tasks go to the other one, a new one joins."""
    stage.send(400)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.pods["a"].ask("thread remove")
    stage.mark("a thread was removed")
    stage.settle(within_s=90)
    stage.send(300)
    stage.settle(within_s=90)
    stage.pods["a"].ask("thread add")
    stage.mark("a thread was added")
    stage.wait_running("a")
    stage.settle(within_s=90)
    stage.send(300)
    stage.settle(within_s=90)
    stage.wait_committed()
    stage.stop()


def fenced(stage: Stage) -> None:
    """A pause longer than the session: membership is lost, exactly-once wipes its active tasks and restores them."""
    stage.send(2000)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.send(500)
    stage.settle()
    stage.wait_committed()
    stage.freeze()
    stage.idle(6, "longer than the session timeout")
    stage.thaw()
    stage.send(500)
    stage.settle(within_s=90)
    stage.wait_running("a")
    stage.wait_committed()
    stage.stop()


def busy_crash(stage: Stage) -> None:
    """Killed in the middle of its work, with the commit interval of everyday, twice."""
    stage.send(2000)
    stage.start()
    stage.settle()
    stage.wait_committed()
    for _ in range(2):
        had = stage.count()[0]
        stage.send(40_000)
        wait_until(lambda had=had: stage.count()[0] > had + 3000, "some of the records are counted")  # type: ignore[misc]
        stage.kill()
        stage.start()
        stage.settle(within_s=120)
        stage.prove("after the crash")
    stage.wait_committed()
    stage.stop()


def crash_restoring(stage: Stage) -> None:
    """Killed in the middle of a slow restoration on an empty disk, then again in the one that follows."""
    _fill_and_lose_disk(stage)
    for _ in range(2):
        _start_slow_restoration(stage)
        stage.kill()
    stage.start()
    stage.settle(within_s=90)
    stage.prove("after the restoration")
    stage.stop()


def close_restoring(stage: Stage) -> None:
    """Closed in order in the middle of a slow restoration, then again in the one that follows."""
    _fill_and_lose_disk(stage)
    for _ in range(2):
        _start_slow_restoration(stage)
        stage.stop()
    stage.start()
    stage.settle(within_s=90)
    stage.prove("after the restoration")
    stage.send(500)
    stage.settle()
    stage.wait_committed()
    stage.stop()


def _fill_and_lose_disk(stage: Stage) -> None:
    """Pod `b` fills the changelog; pod `a` comes with an empty disk."""
    stage.send(6000)
    stage.start("b")
    stage.settle()
    stage.wait_committed()
    stage.stop("b")


def _start_slow_restoration(stage: Stage) -> None:
    stage.watch("a") if "a" not in stage.agents else None
    java = stage.launch("a", extra={"restore.delay.ms": 1500, "restore.consumer.max.poll.records": 500})
    stage.mark("a starts and restores slowly")
    java.ask("start")
    java.wait_for("restored ")
    java.wait_for("restored ", after=len(java.lines))


def new_store(stage: Stage) -> None:
    """A new topology adds a store to tasks that have one; on the next change it takes one away."""
    stage.send(1500)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.stop()
    for stores in ("kv,plain,window", "kv"):
        stage.stores = stores
        stage.start()
        stage.settle()
        stage.send(500)
        stage.settle()
        stage.wait_committed()
        stage.stop()


def stall(stage: Stage) -> None:
    """The broker does not answer for a while; commits time out, exactly-once wipes and restores, all goes on."""
    stage.send(4000)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.send(50)
    stage.settle()
    stage.broker.stall(7)
    stage.mark("the broker goes on")
    stage.send(500)
    stage.settle(within_s=120)
    stage.wait_committed(within_s=120)
    stage.wait_running("a")
    stage.prove("after the stall")
    stage.stop()


def compacted(stage: Stage) -> None:
    """Few keys, many updates, deletions, and a changelog that is compacted: offsets run far ahead of what is put."""
    for _ in range(4):
        stage.send(300)
        for partition in range(stage.plan.partitions):
            for _ in range(8):
                stage.send_again(partition, 0, 300)
            stage.send_again(partition, 250, 300, delete=True)
        if "a" not in stage.pods:
            stage.start()
        stage.settle()
        stage.idle(2.5, "the broker's cleaner")
    stage.wait_committed()
    stage.stop()
    stage.start("b")
    stage.settle(within_s=90)
    stage.send(300)
    stage.settle()
    stage.wait_committed()
    stage.stop("b")
    stage.start("a")
    stage.settle(within_s=90)
    stage.wait_committed()
    stage.stop("a")


def standby_crash(stage: Stage) -> None:
    """Two pods with standbys; each is killed once while nothing is uncommitted, roles change places."""
    stage.send(1500)
    stage.start("a")
    stage.start("b")
    stage.settle(within_s=90)
    stage.wait_committed()
    for pod in ("a", "b"):
        stage.kill(pod)
        stage.settle(within_s=90)
        stage.send(600)
        stage.settle(within_s=90)
        stage.wait_committed()
        stage.start(pod)
        stage.settle(within_s=90)
        stage.idle(3, "standbys catch up")
    stage.send(300)
    stage.settle(within_s=90)
    stage.wait_committed()
    stage.stop("a")
    stage.stop("b")


def life_late(stage: Stage) -> None:
    """Agents come late, leave and come back, also while the application is down or just starting."""
    stage.send(1500, step_ms=100)
    stage.start(watched=False)
    stage.settle()
    stage.wait_committed()
    stage.watch("a")
    stage.send(500, step_ms=100)
    stage.settle()
    stage.wait_committed()
    stage.unwatch("a")
    stage.kill()
    stage.start(watched=False)
    stage.watch("a")
    stage.settle()
    stage.send(500, step_ms=100)
    stage.settle()
    stage.wait_committed()
    stage.unwatch("a")
    stage.stop()
    stage.watch("a")
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.stop()


def slow_disk(stage: Stage) -> None:
    """Every unlink is slow: a wipe after a lost membership, and the cleaner on a task that moved, take their time."""
    stage.send(1000)
    stage.start("a", slow_unlink_us=100_000)
    stage.settle()
    stage.start("b")
    stage.wait_running("a")
    stage.settle(within_s=90)
    stage.wait_committed()
    had = stage.tasks("a")
    wait_until(
        lambda: stage.tasks("a") != had or numbers(stage.plan.release) >= (2, 5), "a directory is gone", 60
    )
    stage.freeze("a")
    stage.idle(6, "longer than the session timeout")
    stage.thaw("a")
    stage.settle(within_s=90)
    stage.wait_running("a")
    stage.stop("b")
    stage.settle(within_s=120)
    stage.wait_committed()
    stage.stop("a")


def committed_crash(stage: Stage) -> None:
    """Agents that come late see a crash after which nothing is wrong: all that was flushed had been committed."""
    stage.send(500)
    stage.start(watched=False)
    stage.settle("plain")
    stage.stop()
    for watched in (False, True):
        stage.start(watched=watched)
        for _ in range(12):
            for partition in range(stage.plan.partitions):
                stage.send_again(partition, 0, 500)
        stage.wait_committed()
        stage.kill()
    stage.start()
    stage.settle("plain")
    stage.wait_committed()
    stage.stop()


def long_tail(stage: Stage) -> None:
    """A crash long after the last checkpoint, with everything committed: the restoration is long and slow."""
    stage.send(500)
    stage.start()
    stage.settle()
    stage.stop()
    stage.start()
    stage.send(40_000)
    stage.settle()
    stage.wait_committed()
    stage.idle(2, "the last commit")
    stage.kill()
    stage.launch("a", extra={"restore.delay.ms": 250, "restore.consumer.max.poll.records": 2000})
    stage.mark("a starts and restores slowly")
    stage.pods["a"].ask("start")
    stage.wait_running("a")
    stage.settle()
    stage.prove("after the restoration")
    stage.idle(3, "the restoration is over")
    stage.stop()
