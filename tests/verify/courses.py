"""Courses after which a store is not what its changelog says, or only a part of the changelog is left to say it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.lab.processes import LiveError, wait_until
from tests.lab.stage import Stage, is_locked
from tests.verify.looking import DAMAGE, Run, damage

Entries = dict[str, str]


# ---------------------------------------------------------------------------------------------- a reset


def reset_without_cleanup(run: Run) -> None:
    """Topics and offsets are deleted, the state is kept: first what it has too much, then also what it lacks."""
    stage = run.stage
    stage.send(1000)
    stage.start()
    stage.settle()
    stage.wait_committed()
    stage.stop()
    _reset(stage)
    for row in run.rows_of():
        run.judge("reset", row, is_good="no such topic" in str(row["reason"]))
    _send_and_start(stage, "a", 400)
    for row in run.rows_of():
        # up to 4.2 the old checkpoint is there until a commit writes the next
        is_new = "is the topic new?" in str(row["reason"])
        is_good = is_new or not {"missing", "different"} & row["counts"].keys()
        run.judge("reset, running", row, is_good=is_good)
    _close_and_compare(run, "reset, closed", 400)
    _reset(stage)
    _send_and_start(stage, "b", 1000)
    stage.stop("b")
    stage.start("a")
    lock = stage.task("a", "0_0") / "rocksdb" / "kv" / "LOCK"
    wait_until(lambda: is_locked(lock), "a has the task")
    stage.send(50)
    wait_until(lambda: stage.committed() >= 1050, "a has processed the last ones")
    _close_and_compare(run, "reset, grown beyond", 1050)


def _reset(stage: Stage) -> None:
    """Reset the application as the tool does, and give it another input."""
    wait_until(lambda: stage.broker.is_forgotten(stage.id), "members have left and offsets are deleted")
    stage.broker.do(f"reset {stage.id} {stage.input}")
    stage.broker.do(f"recreate {stage.input}")


def _send_and_start(stage: Stage, pod: str, count: int) -> None:
    stage.send(count)
    stage.start(pod)
    wait_until(lambda: stage.committed() >= count, f"{count} committed")


def _close_and_compare(run: Run, when: str, count: int) -> None:
    """Compare with what the application holds, which counted every one of the last `count` records once."""
    stage = run.stage
    last = stage.sent[0]
    keys = [(f"p0-{i}", (stage.begun_ms + i) // 10_000 * 10_000) for i in range(last - count, last)]
    due = {
        "key-value": {key: "1" for key, _ in keys},
        "window": {f"{key}@{start_ms}": "1" for key, start_ms in keys},
    }
    kinds = {"kv": "key-value", "plain": "key-value", "window": "window"}
    wanted = {
        store: compared(held(stage, store, kinds[store]), due[kinds[store]])
        for store in stage.stores.split(",")
    }
    stage.stop()
    for row in run.rows_of():
        run.exact(when, row, wanted[str(row["store"])])


def held(stage: Stage, store: str, kind: str, pod: str = "a") -> Entries:
    """Ask the application for every entry that it has of a store."""
    file = stage.home / "held"
    answer = stage.pods[pod].ask(f"dump {store} {kind} {file} -1")
    if not answer.startswith("dumped"):
        raise LiveError(answer)
    return dict(line.split("\t") for line in file.read_text().splitlines())


def compared(have: Mapping[str, str], due: Mapping[str, str]) -> dict[str, int]:
    """Count what differs."""
    return {
        "missing": len(due.keys() - have.keys()),
        "extra": len(have.keys() - due.keys()),
        "different": sum(have[key] != due[key] for key in have.keys() & due.keys()),
    }


# ----------------------------------------------------------------------------------------- compaction


def compacted(run: Run) -> None:
    """Superseded records and tombstones are compacted away: a store that has its offset is judged by what is left."""
    stage = run.stage
    for _ in range(3):
        stage.send(300)
        for _ in range(4):
            stage.send_again(0, 0, 300)
        stage.send_again(0, 200, 300, delete=True)
        if "a" not in stage.pods:
            stage.start()
        stage.settle()
        _wait_compacted(stage)
    stage.wait_committed()
    run.look("running", also={"undecidable"})
    stage.stop()
    run.look("closed", closed=True)
    plant_all(run)
    stage.start()
    stage.send_again(0, 0, 300)
    stage.send_again(0, 0, 100, delete=True)
    stage.wait_committed()
    stage.kill()
    stage.start("b")
    stage.send_again(0, 0, 300)
    stage.send_again(0, 100, 200, delete=True)
    _wait_compacted(stage)
    stage.wait_committed()
    run.look("killed, compacted", also={"undecidable"})
    stage.stop("b")
    run.look("closed, b", closed=True, pod="b")


def _wait_compacted(stage: Stage) -> None:
    """Wait until a third of the records is gone; what rolls a segment is a record of a later time."""

    def left() -> int:
        stage.send_again(0, 0, 1, later_ms=time.time_ns() // 1_000_000 - stage.begun_ms)
        file = stage.home / "left"
        stage.broker.do(f"read {stage.id}-kv-changelog {file} count")
        return sum(int(line.split("\t")[1]) for line in file.read_text().splitlines())

    wait_until(
        lambda: 0 < left() * 3 < 2 * (stage.sent[0] + stage.repeated[0]), "the changelog is compacted", 90
    )
    print(f"      kv: {left()} records are left of {stage.sent[0] + stage.repeated[0]}", flush=True)


# -------------------------------------------------------------------------------------------- planted


def planted(run: Run) -> None:
    """One entry of each store is taken out, one is altered: just these are named."""
    stage = run.stage
    stage.start()
    stage.send(2000)
    stage.settle()
    stage.wait_committed()
    stage.stop()
    run.look("closed", closed=True)
    plant_all(run)


def plant_all(run: Run) -> None:
    """Damage a copy of the closed state."""
    stage = run.stage
    copy = stage.home / "planted"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(stage.state_dir("a"), copy)
    hurt = {path.parent.name for path in copy.glob("*/*/rocksdb/*/CURRENT") if _plant(path.parent)}
    for store in copy.glob("*/[0-9]*_[0-9]*/*"):
        databases = sorted(path.parent for path in store.glob(f"{store.name}.*/CURRENT"))
        if any(_plant(path) for path in databases):
            hurt.add(store.name)
    names = _names(hurt)
    for row in run.rows_of(state_dir=copy, more=("--kind", "global=key-value")):
        is_hurt = int(str(row["store"]) in names)
        run.exact("planted", row, {"missing": is_hurt, "different": is_hurt})
    for row in run.rows_of(state_dir=copy, more=("--task", "global")) if "global" in hurt else ():
        # who says nothing of its kind is not told that it is damaged
        run.exact("planted, not told", row, {"undecidable": 2})


def _names(paths: set[str]) -> set[str]:
    return {name.rpartition(".")[0] or name for name in paths} | paths


def _plant(database: Path) -> bool:
    """Take out one entry and alter the end of another one's value; False: it has no two."""
    import rocksdict

    options = rocksdict.Options(raw_mode=True)
    families = dict.fromkeys(rocksdict.Rdict.list_cf(str(database), options), options)
    opened: Any = rocksdict.Rdict(str(database), options, column_families=families)
    try:
        for name in families:
            if name == "offsets":
                continue
            family = opened.get_column_family(name)
            # behind an entry of an index there is no value
            found = [(key, value) for key, value in family.items() if value and not key.startswith(b"\1")]
            if len(found) < 2:
                continue
            (gone, _), (altered, value) = found[:2]
            del family[gone]
            family[altered] = value[:-1] + bytes([value[-1] ^ 1])
            family.flush()
            return True
        return False
    finally:
        opened.close()


# -------------------------------------------------------------------------------------------- standbys


def carried_checkpoint(run: Run) -> None:
    """Standbys change threads, nobody holds them, the cleaner takes them, and their offsets live on (KAFKA-8187).

    Which thread has the standbys, and that a callback waits, is said by files (`planted.CONDITIONS`).
    """
    stage = run.stage
    steering = stage.home / "tmp"
    steering.mkdir(parents=True, exist_ok=True)
    first, second, waits = (steering / name for name in ("standbys-on-1", "standbys-on-2", "callback-waits"))
    first.touch()
    # with room for every task it keeps them all, whoever joins
    stage.launch("b", extra={"num.stream.threads": stage.plan.partitions}).ask("start")
    stage.wait_running("b")
    stage.launch("a", slow_unlink_us=300_000, extra={"num.stream.threads": 2}).ask("start")
    stage.wait_running("a")
    stage.send(2000)
    tasks = [f"0_{number}" for number in range(stage.plan.partitions)]
    _wait_checkpoints(stage, tasks, 2000)
    first.rename(second)
    waits.touch()
    stage.start("c")
    stage.idle(3, "the second thread passes by the locks")
    waits.unlink()
    _wait_for(lambda: not any(_is_held(stage, task) for task in tasks), "nobody holds the standbys")
    java = stage.launch("d")
    _wait_for(lambda: not all(_has_current(stage, task) for task in tasks), "the cleaner is at work")
    java.ask("start")  # while it is: tasks are recreated that read the old offsets
    stage.wait_running("d")
    _wait_for(lambda: _new(stage, tasks), "new stores")
    stage.idle(3, "all of them")
    new = _new(stage, tasks)
    stage.send(50)
    _wait_checkpoints(stage, new, 2050)
    for row in run.rows_of():
        found = damage([row])
        is_whole = found == dict.fromkeys(DAMAGE, 0) | {"missing": 2000} or not any(found.values())
        run.judge("standby", row, is_good=is_whole)
    for pod in ("c", "d", "b"):
        stage.stop(pod)
    wait_until(lambda: stage.count()[0] > 0, "a has the tasks", 60)
    wait_until(lambda: stage.committed() >= sum(stage.sent.values()), "all is committed")
    stage.send(50)
    wait_until(lambda: stage.committed() >= sum(stage.sent.values()), "all is committed")
    lost = sum(stage.sent.values()) - stage.count()[0]
    print(f"      the application holds {stage.count()[0]} keys, {lost} are lost", flush=True)
    run.total("active, running", lost)
    stage.stop("a")
    run.total("active, closed", lost)


def _wait_for(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what, 120)


def _is_held(stage: Stage, task: str) -> bool:
    return is_locked(stage.task("a", task) / "rocksdb" / "kv" / "LOCK")


def _has_current(stage: Stage, task: str) -> bool:
    return (stage.task("a", task) / "rocksdb" / "kv" / "CURRENT").exists()


def _new(stage: Stage, tasks: list[str]) -> list[str]:
    return [task for task in tasks if _is_held(stage, task) and _has_current(stage, task)]


def _wait_checkpoints(stage: Stage, tasks: list[str], offset: int) -> None:
    """Wait until a checkpoint of each task says so; up to 2.5 it is the next offset."""

    def have() -> bool:
        files = [stage.task("a", task) / ".checkpoint" for task in tasks]
        return all(file.exists() and f" {offset}\n" in f"{file.read_text()}\n" for file in files)

    _wait_for(have, f"checkpoints at {offset}")
