"""Lives to record: exactly-once with one standby, told by the application itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.lab.plan import ALOS, EOS, is_exposed, numbers
from tests.lab.plays import PLAYS
from tests.lab.processes import LiveError, wait_until
from tests.lab.recording import Recording
from tests.lab.scenarios import LONG_COMMIT
from tests.lab.words import time_out_commit

A, B = "pod-a", "pod-b"


@dataclass(slots=True)
class Truth:
    """What a recorded life was.

    Args of the dataclass:
        verdict: `bug`, `exposure` or `benign`.
        what: In a sentence.
        pod: Where the decisive operation is.
        task: Of it.
        decisive: The decisive operation: `op`, end of its path, and in which run of that pod it is the first such one.
        find: Expectations.
        allow: Detectors that may speak beside them.
    """

    verdict: str
    what: str
    pod: str
    task: str
    decisive: tuple[str, str, int]
    find: list[dict[str, str]] = field(default_factory=list)
    allow: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Life:
    """One entry: how it is played, with which settings."""

    play: Callable[[Recording], Truth]
    partitions: int = 2
    settings: Mapping[str, object] = field(default_factory=dict)
    stores: str = "kv"
    guarantee: str = EOS
    jira: str | None = "KAFKA-20685"


def uncommitted_crash(stage: Recording) -> Truth:
    """Two pods, one standby. Run 1 fills both tasks and closes clean. Run 2 restores; the active task of pod-a takes
    6000 new keys with no commit (small write buffers: flushes happen); both pods are killed. Pod-a comes back first,
    on the same directory, then pod-b.
    """
    _filled(stage)
    task = stage.active(A)[0]
    _flush_uncommitted(stage, A, task)
    stage.kill_together(A, B)
    return _reopened(stage, A, task, [B])


def promoted_crash(stage: Recording) -> Truth:
    """Two pods, one standby, one task. The pod that has the task closes in order, the other's standby is promoted. It
    takes 6000 new keys with no commit (small write buffers: flushes happen), is killed, and comes back alone.
    """
    _filled(stage)
    active, standby = _roles(stage)
    stage.stop(active)
    stage.settle(within_s=90)
    _flush_uncommitted(stage, standby, "0_0")
    stage.kill(standby)
    return _reopened(stage, standby, "0_0", [])


def exposure(stage: Recording) -> Truth:
    """Two pods, one standby, a commit every second, flushes while RUNNING, three orderly runs, no crash."""
    _filled(stage)
    task = stage.active(A)[0]
    for number in range(4):
        stage.send(1500)
        stage.settle()
        stage.idle(1.5, f"commits, {number}")
    stage.wait_committed()
    _stop(stage, A, B)
    stage.start_together(A, B)
    stage.wait_balanced(A, B)
    stage.settle(within_s=90)
    _prove_right(stage)
    _stop(stage, A, B)
    what = "no checkpoint is trusted from before a flush"
    if not is_exposed(stage.plan.release):
        return Truth("benign", what, A, task, ("start", "", 2))
    what = "restore-time checkpoint stays in place while RUNNING (latent KAFKA-20685); nothing was lost: no crash"
    find = [_wish("stale-eos-checkpoint", "warning", A, task)]
    return Truth(
        "exposure", what, A, task, ("rename", f"{task}/.checkpoint", 2), find, ["stale-eos-checkpoint"]
    )


def rolling(stage: Recording) -> Truth:
    """Two pods, one standby: each pod restarted in turn, in order, under a little traffic."""
    stage.send(3000)
    stage.start_together(A, B)
    stage.settle(within_s=90)
    for pod in (A, B, A):
        stage.stop(pod)
        stage.send(300)
        stage.settle(within_s=90)
        stage.start(pod)
        stage.wait_balanced(A, B)
        stage.send(300)
        stage.settle(within_s=90)
        stage.idle(2, "standbys catch up")
    stage.wait_committed()
    _prove_right(stage)
    _stop(stage, A, B)
    return Truth("benign", "rolling restart", A, "0_0", ("start", "", 2), [], _exposed(stage))


def standby_crash(stage: Recording) -> Truth:
    """Two pods, one standby, one task. The standby takes more than 10,000 records, flushes, takes some more and is
    killed; it comes back as a standby, and is promoted when the other pod closes in order.
    """
    _filled(stage)
    active, standby = _roles(stage)
    before = stage.mark_files(standby, "0_0")
    stage.send(11_000)
    stage.settle()
    stage.wait_flushed(standby, "0_0", before)
    stage.idle(3, "the standby follows")
    before = stage.mark_files(standby, "0_0")
    stage.send(4000)
    stage.settle()
    stage.wait_flushed(standby, "0_0", before)
    stage.kill(standby)
    stage.send(1000)
    stage.settle()
    stage.start(standby)
    stage.wait_balanced(active, standby)
    stage.proof.append(
        f"after the kill {standby} is standby: active tasks of {active} {stage.active(active)}"
    )
    stage.idle(3, "the standby follows")
    stage.stop(active)
    stage.settle(within_s=90)
    _prove_right(stage)
    stage.stop(standby)
    what = "a standby that was killed goes on from its checkpoint; all that it holds is committed"
    return Truth("benign", what, standby, "0_0", ("lock", "0_0/rocksdb/kv/LOCK", 3), [], _exposed(stage))


def promotion(stage: Recording) -> Truth:
    """Two pods, one standby, one task. The pod that has the task closes in order, the other's standby is promoted,
    works and flushes; the first comes back; all under traffic.
    """
    _filled(stage)
    active, standby = _roles(stage)
    stage.send(2000)
    stage.settle()
    stage.stop(active)
    stage.settle(within_s=90)
    stage.proof.append(f"{standby} is promoted: active {stage.active(standby)}")
    for _ in range(3):
        stage.send(2000)
        stage.settle()
        stage.idle(1.5, "commits")
    stage.start(active)
    stage.wait_balanced(A, B)
    stage.send(2000)
    stage.settle(within_s=90)
    stage.idle(2, "the standby follows")
    stage.wait_committed()
    _prove_right(stage)
    _stop(stage, *_roles(stage))
    what = "a standby is promoted and works on"
    return Truth("benign", what, standby, "0_0", ("start", "", 2), [], _exposed(stage))


def versioned_crash(stage: Recording) -> Truth:
    """One pod, a versioned store and one of counts. Old and new versions of records, all committed, every store right,
    then killed and started again, twice: once in the first run, once after an open in which records were updated.
    """
    PLAYS["versioned-crash"](stage)
    what = "killed with flushes beyond the checkpoint, but everything was committed: a new version of a key is two puts"
    if not is_exposed(stage.plan.release):
        return Truth("benign", what, "a", "0_0", ("lock", "0_0/rocksdb/kv/LOCK", 2))
    find = [
        _wish("skipped-eos-wipe", "warning", "a", "0_0"),
        _wish("stale-eos-checkpoint", "warning", "a", "0_0"),
    ]
    allow = ["skipped-eos-wipe", "stale-eos-checkpoint"]
    return Truth("exposure", what, "a", "0_0", ("lock", "0_0/rocksdb/kv/LOCK", 2), find, allow)


def lost_segment(stage: Recording) -> Truth:
    """One pod, stores of segments of a minute. 300 records in the older segment; three times 800 in the newer one,
    which is flushed, the older one never. All committed, every store checked and right, then SIGKILL and restart.
    """
    PLAYS["lost-segment"](stage)
    return _lost_segment(stage)


def lost_segment_close(stage: Recording) -> Truth:
    """One pod on a volume on which every sync takes 0.1 s. 300 records in the older segment, 300 in the newer one, all
    committed and right; SIGKILL in the orderly close, when only the newest segment of the last store is open; restart.
    """
    PLAYS["killed-between-segments"](stage)
    return _lost_segment(stage)


def _lost_segment(stage: Recording) -> Truth:
    lost = [x.removeprefix("LOST of ") for x in stage.proof if x.startswith("LOST of ") and ": 0 of" not in x]
    if not lost:
        return Truth("benign", "nothing is lost", "a", "0_0", ("start", "", 2))
    what = f"records of a segment are lost for good after the kill: {'; '.join(lost)}"
    find = [_wish("lost-segment", "critical", "a", "0_0")]
    return Truth("bug", what, "a", "0_0", ("start", "", 2), find, ["lost-segment", "unopenable-task"])


def reset(stage: Recording) -> Truth:
    """One pod, at-least-once. 1500 records in each task, an orderly close; then changelogs and the group's offsets are
    deleted, `cleanUp()` is not called. The next run reads the input again and counts into the state that was kept.
    """
    PLAYS["reset"](stage)
    what = "the changelog ends before what the store holds: its records are counted twice"
    # from 4.3 on disk shows that the offset was out of range, and not where the replay ended
    severity = "warning" if numbers(stage.plan.release) >= (4, 3) else "critical"
    find = [_wish("changelog-truncated", severity, "a", task) for task in ("0_0", "0_1")]
    return Truth("bug", what, "a", "0_0", ("start", "", 2), find, ["changelog-truncated"])


def revived_table(stage: Recording) -> Truth:
    """Two pods, a table that is restored from its source topic. Filled, closed and opened again; a commit times out, so
    the table of pod-a is wiped; pod-a is closed in order while it restores, then pod-b; pod-a comes back alone.
    """
    task = _corrupted_table(stage)
    _stop(stage, A, B)
    stage.start(A)
    stage.settle_or_prove("after the close", "table")
    stage.proof += stage.restorations(A)
    keys = stage.count("table")[0]
    stage.stop(A)
    lost = sum(stage.sent.values()) - keys
    if not lost:
        raise LiveError(f"nothing is lost: the task was replaced before it restored: {stage.proof}")
    what = f"the close claims what the task had consumed before the wipe: {lost} keys of {task} are missing for good"
    find = [_wish("unrestored-store", "warning", A, task)]
    return Truth("bug", what, A, task, ("lock", f"{task}/rocksdb/table/LOCK", 3), find, ["unopenable-task"])


def restored_table(stage: Recording) -> Truth:
    """The same, but the restoration ends before pod-a is closed."""
    task = _corrupted_table(stage, delay_ms=50)
    stage.settle("table", within_s=90)
    stage.wait_committed()
    _stop(stage, A, B)
    stage.start(A)
    stage.settle("table", within_s=90)
    stage.prove("at the end", "table")
    stage.stop(A)
    what = "a wiped table is restored from its source topic to the end: nothing is lost"
    return Truth("benign", what, A, task, ("lock", f"{task}/rocksdb/table/LOCK", 3))


STANDBY = {"num.standby.replicas": 1}
WAITING = {**STANDBY, **LONG_COMMIT}
LIVES: dict[str, Life] = {
    "kafka-20685-standby": Life(uncommitted_crash, settings=WAITING),
    "kafka-20685-promoted": Life(promoted_crash, partitions=1, settings=WAITING),
    "exposure-20685-standby": Life(exposure, settings=STANDBY),
    "benign-rolling-standby-eos": Life(rolling, settings=STANDBY),
    "benign-standby-crash-eos": Life(standby_crash, partitions=1, settings=STANDBY),
    "benign-promotion-eos": Life(promotion, partitions=1, settings=STANDBY),
    "exposure-20685-versioned": Life(versioned_crash, partitions=1, stores="kv,versioned"),
    "changelog-truncated": Life(reset, 2, stores="kv,plain", guarantee=ALOS, jira=None),
    "lost-segment-session": Life(lost_segment, 1, stores="kv,session", guarantee=ALOS, jira=None),
    "lost-segment-join": Life(lost_segment, 1, stores="kv,inner", guarantee=ALOS, jira=None),
    "lost-segment-close-join": Life(lost_segment_close, 1, stores="kv,inner", jira=None),
    "revived-table": Life(revived_table, stores="table", jira=None),
    "benign-restored-table": Life(restored_table, stores="table", jira=None),
}

# ------------------------------------------------------------------------------------ steps


def _filled(stage: Recording) -> None:
    stage.send(2000)
    stage.start_together(A, B)
    stage.settle(within_s=90)
    _stop(stage, A, B)
    stage.start_together(A, B)
    stage.wait_balanced(A, B)
    stage.settle(within_s=90)


def _corrupted_table(stage: Recording, delay_ms: int = 3000) -> str:
    """Fill the table, open it a second time, and let a commit of pod-a time out; give its task of the table."""
    stage.send(4000)
    stage.start_together(A, B)
    stage.settle("table", within_s=90)
    stage.wait_committed()
    _stop(stage, A, B)
    stage.start_together(A, B)
    wait_until(lambda: all(_tables(stage, pod) for pod in (A, B)), "each pod has a task of the table", 90)
    stage.settle("table", within_s=90)
    (task,) = _tables(stage, A)
    time_out_commit(stage, delay_ms=delay_ms, until="restored ", pod=A)
    return task


def _tables(stage: Recording, pod: str) -> list[str]:
    """Ask a pod for its tasks of the table: the second sub-topology."""
    return [x for x in stage.active(pod) if x.startswith("1_")]


def _stop(stage: Recording, *pods: str) -> None:
    for pod in pods:
        stage.stop(pod)


def _roles(stage: Recording) -> tuple[str, str]:
    """Give the pod that has the only task active, and the other one."""
    return (A, B) if stage.active(A) else (B, A)


def _flush_uncommitted(stage: Recording, pod: str, task: str) -> None:
    committed = stage.committed()
    before = stage.mark_files(pod, task)
    stage.send(6000, partition=int(task.split("_")[1]))
    stage.settle(within_s=90)
    stage.wait_flushed(pod, task, before)
    new = len(stage.mark_files(pod, task) - before)
    stage.proof.append(
        f"{new} new SST files in {task} of {pod} before the kill, committed since: {stage.committed() - committed}"
    )


def _reopened(stage: Recording, pod: str, task: str, others: list[str]) -> Truth:
    stage.start(pod)
    stage.settle(within_s=120)
    stage.proof += stage.restorations(pod)
    keys, total, highest = stage.prove("after the kill")
    for other in others:
        stage.start(other)
    if others:
        stage.wait_balanced(pod, *others)
        stage.idle(3, "standbys catch up")
        stage.prove("with the other pod")
    _stop(stage, pod, *others)
    decisive = ("lock", f"{task}/rocksdb/kv/LOCK", 3)
    kept = total - keys
    if not kept:
        what = "correct behaviour: nothing uncommitted is in the store after the restart"
        allow = ["unopenable-task"] if numbers(stage.plan.release) >= (4, 3) else _exposed(stage)
        return Truth("benign", what, pod, task, decisive, [], allow)
    what = f"uncommitted flushed data kept after the crash: {kept} keys of {task} are counted twice (highest {highest})"
    find = [
        _wish("skipped-eos-wipe", "critical", pod, task),
        _wish("stale-eos-checkpoint", "warning", pod, task),
    ]
    return Truth("bug", what, pod, task, decisive, find, ["stale-eos-checkpoint"])


def _prove_right(stage: Recording) -> None:
    """Every key counted once, or the recording is not what it says."""
    keys, total, highest = stage.prove("at the end")
    if (keys, total, highest) != (sum(stage.sent.values()), keys, 1):
        raise LiveError(f"not every key is counted once: {stage.proof}")


def _exposed(stage: Recording) -> list[str]:
    return ["stale-eos-checkpoint"] if is_exposed(stage.plan.release) else []


def _wish(detector: str, severity: str, pod: str, task: str) -> dict[str, Any]:
    return {"detector": detector, "task_id": task, "pod": pod, "severity": severity}
