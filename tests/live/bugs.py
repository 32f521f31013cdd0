"""Lives in which state is lost or wrongly kept on affected releases; the application itself proves it."""

from __future__ import annotations

from pathlib import Path

from tests.live.plan import TRANSACTIONAL, is_transactional, numbers
from tests.live.processes import LiveError, wait_until
from tests.live.stage import Stage, is_locked

REFUSED_S = 40
"""An application that opens its tasks runs long before."""


def uncommitted_crash(stage: Stage) -> None:
    """Flushed records of an open transaction, SIGKILL, restart: they must not be in the store (KAFKA-20685)."""
    _fill(stage)
    _flush_uncommitted(stage)
    stage.kill()
    _restart_and_prove(stage)


def suspended_crash(stage: Stage) -> None:
    """The same after a rebalance over which the task stayed where it was (KAFKA-10362)."""
    _fill(stage)
    stage.start("a")
    stage.settle()
    stage.start("b")
    stage.wait_running("a")
    held = _held_task(stage)
    before = stage.mark_files("a", held)
    stage.send(6000, partition=int(held[-1]))
    stage.settle(within_s=90)
    stage.wait_flushed("a", held, before)
    stage.kill("a")
    stage.kill("b")
    stage.start("a")
    stage.settle(within_s=90)
    stage.prove("after the crash")
    stage.stop("a")


def upgraded_crash(stage: Stage) -> None:
    """The same, but the start after the SIGKILL is of a later release, or the first one with transactional stores."""
    _fill(stage)
    _flush_uncommitted(stage)
    stage.kill()
    stage.move_on(stage.plan.release, stage.plan.later)
    if not _runs(stage):
        stage.move_on(stage.plan.release, {TRANSACTIONAL: "false"})
        stage.start()
    stage.settle(within_s=120)
    stage.stop_after_proof("after the crash")


def close_after_corruption(stage: Stage) -> None:
    """A commit times out, tasks are wiped and restored slowly, the close in between writes an offset (KAFKA-16017)."""
    stage.send(4000)
    stage.start()
    stage.settle()
    stage.wait_committed()
    java = stage.pods["a"]
    java.ask("restore-delay 3000")
    java.ask("fail-commit")
    seen = len(java.lines)
    stage.send(50)
    java.wait_for("commit-failed", after=seen)
    stage.mark("a commit has timed out")
    java.wait_for("restore-start ", after=seen)
    stage.stop()
    stage.start()
    stage.settle_or_prove("after the close")
    stage.stop()


def close_after_corruption_of_a_table(stage: Stage) -> None:
    """The same with a table that is restored from its source topic: the close claims what was consumed before (D13).

    A second pod makes the rebalance after the corruption last: alone, the task is replaced before it restores.
    """
    stage.start("a")
    stage.start("b")
    stage.wait_running("a")
    stage.send(4000)
    stage.settle("table")
    stage.wait_committed()
    java = stage.pods["a"]
    java.ask("restore-delay 3000")
    java.ask("fail-commit")
    seen = len(java.lines)
    stage.send(50)
    java.wait_for("commit-failed", after=seen)
    stage.mark("a commit has timed out")
    java.wait_for("restored ", after=seen)
    stage.stop("a")
    stage.stop("b")
    stage.start("a")
    stage.settle_or_prove("after the close", "table")
    stage.stop("a")


def torn_cleanup(stage: Stage) -> None:
    """`cleanUp()` before the start is killed half way, with `.checkpoint` left and `CURRENT` gone."""
    _fill(stage)
    java = stage.launch("a", slow_unlink_us=300_000)
    stage.mark("a cleans up")
    java.tell("cleanup")
    _wait_torn(stage, "a")
    stage.kill()
    _restart_torn(stage, "a")


def torn_cleaner(stage: Stage) -> None:
    """The cleaner of a pod that a task left is killed half way; the task comes back to that pod."""
    stage.send(2000)
    stage.start("a", slow_unlink_us=300_000)
    stage.settle()
    stage.start("b")
    stage.wait_running("a")
    stage.settle(within_s=90)
    stage.wait_committed()
    _wait_torn(stage, "a", within_s=60)
    stage.kill("a")
    stage.stop("b")
    _restart_torn(stage, "a")


def early_cleaner(stage: Stage) -> None:
    """A task that was held for longer than the cleaner's delay moves away (KAFKA-20805)."""
    stage.send(1000)
    stage.start("a")
    stage.settle()
    stage.idle(17, "longer than the cleaner's delay")
    stage.start("b")
    stage.wait_running("a")
    stage.settle(within_s=90)
    had = stage.tasks("a")
    wait_until(lambda: stage.tasks("a") != had, "a directory of a is gone", 60)
    stage.mark("a directory of a is gone")
    stage.stop("b")
    stage.settle(within_s=90)
    stage.stop("a")


def segments_crash(stage: Stage) -> None:
    """New segments are flushed, old ones not; a crash leaves the oldest one's offset behind (KAFKA-20663)."""
    stage.send(600, step_ms=15)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.stop()
    stage.start()
    for _ in range(3):
        stage.send(2400, step_ms=15)
        stage.settle()
        stage.wait_committed()
    stage.kill()
    stage.start()
    stage.settle()
    stage.prove("after the crash")
    stage.stop()


def dirty_close(stage: Stage) -> None:
    """Membership is lost, the task is closed dirty with uncommitted records flushed, and killed before its wipe."""
    _fill(stage, slow_unlink_us=1_000_000)
    _flush_uncommitted(stage)
    stage.freeze()
    stage.idle(6, "longer than the session timeout")
    manifest = _manifest(stage.task("a", "0_0") / "rocksdb" / "kv")
    stage.thaw()
    lock = stage.task("a", "0_0") / "rocksdb" / "kv" / "LOCK"
    wait_until(lambda: not is_locked(lock), "the store is closed")
    stage.mark(f"the store is closed ({manifest})")
    stage.kill()
    _restart_and_prove(stage)


def corrupt_kill(stage: Stage) -> None:
    """A commit times out, and the one after it; the corrupted task is closed and killed before its wipe."""
    _fill(stage, slow_unlink_us=1_000_000)
    java = stage.pods["a"]
    java.ask("fail-commit 2")
    seen = len(java.lines)
    stage.send(3000)
    java.wait_for("commit-failed", after=seen)
    stage.mark("a commit has timed out")
    wait_until(lambda: not stage.all_locked("a"), "a store is closed")
    stage.kill()
    _restart_and_prove(stage)


def unrestored(stage: Stage) -> None:
    """A task completes on an empty changelog, goes away, grows, comes back to the same thread (KAFKA-7672)."""
    stage.start("a")
    stage.start("b")
    stage.wait_running("a")
    stage.send(4000)
    stage.settle(within_s=90)
    stage.wait_committed()
    stage.idle(10, "the cleaner's delay")
    stage.stop("b")
    stage.settle_or_prove("after the return")
    stage.send(50)
    stage.wait_committed()
    stage.prove("after more records")
    stage.stop("a")


# ------------------------------------------------------------------------------------ steps


def _fill(stage: Stage, slow_unlink_us: int = 0) -> None:
    """Committed records in every task, closed in order; then started again unless something is to be slow first."""
    stage.send(500)
    stage.start()
    stage.settle()
    stage.stop()
    if slow_unlink_us:
        stage.start(slow_unlink_us=slow_unlink_us)
        stage.settle(within_s=120)


def _flush_uncommitted(stage: Stage) -> None:
    if not stage.pods["a"].is_alive:
        stage.start()
        stage.settle()
    committed = stage.committed()
    before = stage.mark_files("a", "0_0")
    stage.send(6000)
    stage.settle()
    if is_transactional(stage.settings("a", stage.release), stage.release):
        stage.mark("what is not committed is in no store: it is held back in memory")
    else:
        stage.wait_flushed("a", "0_0", before)
    stage.proof.append(f"committed since: {stage.committed() - committed}")


def _runs(stage: Stage) -> bool:
    """Start, and tell whether the application runs; one that cannot open a task asks for it again and again."""
    stage.mark(f"a starts {stage.release}")
    java = stage.launch("a")
    java.ask("start")
    try:
        wait_until(lambda: any(x.endswith(" RUNNING") for x in java.lines), "a runs", REFUSED_S)
    except LiveError:
        stage.proof.append(f"not RUNNING within {REFUSED_S} s")
        stage.kill()
        return False
    stage.mark("a running")
    return True


def _restart_and_prove(stage: Stage) -> None:
    stage.start()
    stage.settle(within_s=120)
    stage.stop_after_proof("after the crash")


def _restart_torn(stage: Stage, pod: str) -> None:
    try_twice = stage.start_or_die(pod)
    if not try_twice:
        stage.mark("the first start failed")
        stage.start(pod)
    stage.settle_or_prove("after the torn deletion")
    stage.send(50)
    stage.prove("after more records")
    stage.stop(pod)


def _wait_torn(stage: Stage, pod: str, within_s: float = 60) -> None:
    """Wait until some task has a checkpoint and a store without `CURRENT` and without a WAL file."""

    def torn() -> bool:
        has_file = numbers(stage.plan.release) < (4, 3)  # later the offsets are in the store itself
        return any(_is_torn(stage.task(pod, task), has_file=has_file) for task in stage.tasks(pod))

    wait_until(torn, "a deletion has taken CURRENT and left .checkpoint", within_s)


def _is_torn(task: Path, *, has_file: bool) -> bool:
    store = task / "rocksdb" / "kv"
    left = {path.name for path in store.glob("*")} if store.is_dir() or has_file else {"CURRENT"}
    has_checkpoint = (task / ".checkpoint").exists() or not has_file
    return has_checkpoint and "CURRENT" not in left and not any(name.endswith(".log") for name in left)


def _held_task(stage: Stage) -> str:
    return next(
        task for task in stage.tasks("a") if is_locked(stage.task("a", task) / "rocksdb" / "kv" / "LOCK")
    )


def _manifest(store: Path) -> str:
    return (store / "CURRENT").read_text().strip()
