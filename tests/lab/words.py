"""The words of written plays: methods of a stage by their names, and what takes more than one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.lab.ground import Ground
from tests.lab.plan import CHAIN, TRANSACTIONAL, downgrade_of, is_transactional, numbers
from tests.lab.processes import LiveError, wait_until
from tests.lab.stage import Stage, is_locked
from tests.lab.words_disk import (
    all_but_one_closed,
    directory_gone,
    entries,
    idle_cleaner,
    lost_entries,
    newest_flushed,
    restorations,
    store_closed,
    thaw_until_closed,
    torn,
    versions,
)

REFUSED_S = 40
"""An application that opens its tasks runs long before."""
RESTORES_SLOWLY = {"restore.delay.ms": 1500, "restore.consumer.max.poll.records": 500}


# ------------------------------------------------------------------------------------ records


def settle(stage: Stage, store: str = "kv", within_s: float = 60) -> None:
    """Wait until a store holds every key that was sent."""
    stage.settle(store, within_s)


def again(stage: Stage, first: int, last: int, later_ms: int = 0) -> None:
    """Send keys again, to each partition."""
    for partition in range(stage.plan.partitions):
        stage.send_again(partition, first, last, later_ms=later_ms)


def delete(stage: Stage, first: int, last: int) -> None:
    """Send tombstones to the tables, to each partition."""
    for partition in range(stage.plan.partitions):
        stage.send_again(partition, first, last, delete=True)


def send_in(stage: Stage, count: int, step_ms: int, minute: int, offset_ms: int) -> None:
    """Send records at a place around the beginning of a minute of the stream's time; segments are as long."""
    stage.send(count, step_ms=step_ms, begin_ms=stage.minute_ms(minute) + offset_ms)


def send_and_see(stage: Stage, count: int, seen: int) -> None:
    """Send records, and wait only until some of them are counted."""
    had = stage.count()[0]
    stage.send(count)
    wait_until(lambda: stage.count()[0] > had + seen, "some of the records are counted")


def flush_uncommitted(stage: Stage) -> None:
    """Make flushed records of an open transaction in task 0_0; starts the pod if it does not run."""
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


def flush_held(stage: Stage) -> None:
    """The same in the task that pod `a` holds."""
    held = next(x for x in stage.tasks("a") if is_locked(stage.task("a", x) / "rocksdb" / "kv" / "LOCK"))
    before = stage.mark_files("a", held)
    stage.send(6000, partition=int(held[-1]))
    stage.settle(within_s=90)
    stage.wait_flushed("a", held, before)


# ------------------------------------------------------------------------------------ pods


def ask(stage: Stage, command: str, pod: str = "a") -> None:
    """Ask an instance for something and wait for its answer."""
    stage.pods[pod].ask(command)


def tell(stage: Stage, command: str, pod: str = "a") -> None:
    stage.pods[pod].tell(command)


def time_out_commit(
    stage: Stage, times: int = 1, records: int = 50, delay_ms: int = 0, until: str = "", pod: str = "a"
) -> None:
    """Let commits of a pod time out; perhaps wait until a restoration, which is slow, has come so far."""
    java = stage.pods[pod]
    if delay_ms:
        java.ask(f"restore-delay {delay_ms}")
    java.ask(f"fail-commit {times}" if times > 1 else "fail-commit")
    seen = len(java.lines)
    stage.send(records)
    java.wait_for("commit-failed", after=seen)
    stage.mark("a commit has timed out")
    if until:
        java.wait_for(until, after=seen)


def fail_thread(stage: Stage) -> None:
    """Let a record fail a thread; a new one takes its place, in the same process."""
    java = stage.pods["a"]
    seen = len(java.lines)
    java.ask("poison 1")
    stage.send(400)
    java.wait_for("poisoned", after=seen)
    stage.mark("a thread has failed, an exception")


def start_slowly(stage: Stage, delay_ms: int = 250, records: int = 2000) -> None:
    """Start with a slow restoration."""
    extra = {"restore.delay.ms": delay_ms, "restore.consumer.max.poll.records": records}
    stage.launch("a", extra=extra)
    stage.mark("a starts and restores slowly")
    stage.pods["a"].ask("start")


def restore_some(stage: Stage) -> None:
    """Start, and come into the middle of a slow restoration."""
    if "a" not in stage.agents:
        stage.watch("a")
    start_slowly(stage, *RESTORES_SLOWLY.values())
    java = stage.pods["a"]
    java.wait_for("restored ")
    java.wait_for("restored ", after=len(java.lines))


def pause_restoring(stage: Stage) -> None:
    """Start, and `pause()` in the middle of a slow restoration."""
    start_slowly(stage, *RESTORES_SLOWLY.values())
    java = stage.pods["a"]
    java.wait_for("restored ")
    java.ask("pause")
    stage.idle(4, "a is paused")


def clean_start(stage: Stage) -> None:
    """`cleanUp()` before the start."""
    if "a" not in stage.agents:
        stage.watch("a")
    java = stage.launch("a")
    stage.mark("a cleans up")
    java.ask("cleanup")
    java.ask("start")
    stage.wait_running("a")


def start_at_last(stage: Stage) -> None:
    """Start; a first try may fail."""
    if not stage.start_or_die("a"):
        stage.mark("the first start failed")
        stage.start("a")


def idle_tasks(stage: Stage, pod: str) -> None:
    """Tell whether a pod has tasks again, after a while."""
    java = stage.pods[pod]
    try:
        wait_until(lambda: java.ask("active") != "active", f"{pod} has tasks", 15)
    except LiveError:
        stage.mark(f"{pod} has no task, the others keep theirs")
    else:
        stage.mark(f"{pod} has tasks again")


def neighbour(stage: Stage, ends: str) -> None:
    """Another application works on the same state directory, and ends by `close` or `kill`."""
    java = stage.beside("a", {"application.id": f"{stage.id}-two", "client.id": "two"})
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


# ------------------------------------------------------------------------------------ releases


def stores(stage: Stage, words: str) -> None:
    """Let the next start have another topology."""
    stage.stores = words


def go_through_releases(stage: Stage) -> None:
    """The same directory under one release after the other."""
    first = stage.plan.release
    for release in (first, *(x for x in CHAIN if numbers(x) > numbers(first))):
        _one_release(stage, release)


def go_down_and_up(stage: Stage) -> None:
    """The same directory under the release before, and back again."""
    newer = stage.plan.release
    older = downgrade_of(newer)
    assert older is not None
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


def start_upgraded(stage: Stage) -> None:
    """Start the plan's own release with what comes with it; without transactional stores if it does not run so."""
    stage.move_on(stage.plan.release, stage.plan.later)
    if not _runs(stage):
        stage.move_on(stage.plan.release, {TRANSACTIONAL: "false"})
        stage.start()


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


# ------------------------------------------------------------------------------------ broker


def stall(stage: Stage, seconds: float) -> None:
    """The broker does not answer for a while."""
    stage.broker.stall(seconds)
    stage.mark("the broker goes on")


def drop_changelog(stage: Stage, store: str) -> None:
    stage.broker.do(f"drop {stage.id}-{store}-changelog")


def forget(stage: Stage) -> None:
    wait_until(lambda: stage.broker.is_forgotten(stage.id), "members have left and offsets are deleted")


# ------------------------------------------------------------------------------------ on a ground


def clean_back(ground: Ground) -> None:
    """`cleanUp()` before the start."""
    java = ground.prepare("a")
    ground.order("a", "cleanup")
    java.ask("start")


def feed_and_flush(ground: Ground, count: int) -> None:
    """Send records, and wait until the store has more in its files."""

    def size() -> int:
        store = ground.task("a", "0_0") / "rocksdb" / "kv"
        return sum(path.stat().st_size for path in store.glob("*.sst") if path.exists())

    before = size()
    ground.feed(count, 1, 0)
    wait_until(lambda: size() > before + 100_000, "uncommitted records are flushed")


METHODS: dict[str, Callable[..., Any]] = {
    "send": Stage.send, "start": Stage.start, "stop": Stage.stop, "kill": Stage.kill, "freeze": Stage.freeze,
    "thaw": Stage.thaw, "fail": Stage.fail, "launch": Stage.launch, "running": Stage.wait_running,
    "watch": Stage.watch, "unwatch": Stage.unwatch, "committed": Stage.wait_committed, "idle": Stage.idle,
    "mark": Stage.mark, "prove": Stage.prove, "settle-or-prove": Stage.settle_or_prove,
    "stop-after-proof": Stage.stop_after_proof,
    "join": Ground.join, "feed": Ground.feed, "feed-again": Ground.feed_again, "caught-up": Ground.catch_up,
    "back": Ground.back, "check": Ground.check,
}  # fmt: skip
"""A stage may have a method of its own in the place of one of these."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    x.__name__.replace("_", "-"): x
    for x in (
        settle, again, delete, send_in, send_and_see, flush_uncommitted, flush_held, ask, tell, time_out_commit,
        fail_thread, start_slowly, restore_some, pause_restoring, clean_start, start_at_last, idle_tasks, neighbour,
        stores, go_through_releases, go_down_and_up, start_upgraded, stall, drop_changelog, forget, store_closed,
        thaw_until_closed, directory_gone, idle_cleaner, torn, newest_flushed, all_but_one_closed, entries,
        lost_entries, versions, restorations, clean_back, feed_and_flush,
    )
}  # fmt: skip
