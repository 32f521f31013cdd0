"""Words of written plays about what is on the disk, and what the application holds."""

from __future__ import annotations

from pathlib import Path

from tests.lab.plan import numbers
from tests.lab.processes import LiveError, wait_until
from tests.lab.stage import Stage, is_locked


def store_closed(stage: Stage) -> None:
    wait_until(lambda: not stage.all_locked("a"), "a store is closed")


def thaw_until_closed(stage: Stage) -> None:
    """Go on until the store of 0_0 is closed."""
    store = stage.task("a", "0_0") / "rocksdb" / "kv"
    manifest = (store / "CURRENT").read_text().strip()
    stage.thaw()
    wait_until(lambda: not is_locked(store / "LOCK"), "the store is closed")
    stage.mark(f"the store is closed ({manifest})")


def directory_gone(stage: Stage, before: str = "") -> None:
    """Wait until the cleaner has taken a directory of pod `a`; only releases before one that is named do."""
    had = stage.tasks("a")
    others = bool(before) and numbers(stage.plan.release) >= numbers(before)
    wait_until(lambda: stage.tasks("a") != had or others, "a directory of a is gone", 60)


def idle_cleaner(stage: Stage, times: float) -> None:
    """Let the cleaner's delay pass, so often."""
    delay_ms = int(str(stage.plan.settings["state.cleanup.delay.ms"]))
    stage.idle(delay_ms / 1000 * times, "the cleaner's delay")


def torn(stage: Stage) -> None:
    """Wait until some task has a checkpoint and a store without `CURRENT` and without a WAL file."""
    has_file = numbers(stage.plan.release) < (4, 3)  # later the offsets are in the store itself

    def is_torn(task: Path) -> bool:
        store = task / "rocksdb" / "kv"
        left = {path.name for path in store.glob("*")} if store.is_dir() or has_file else {"CURRENT"}
        has_checkpoint = (task / ".checkpoint").exists() or not has_file
        return has_checkpoint and "CURRENT" not in left and not any(x.endswith(".log") for x in left)

    wait_until(
        lambda: any(is_torn(stage.task("a", task)) for task in stage.tasks("a")),
        "a deletion has taken CURRENT and left .checkpoint",
        60,
    )


def newest_flushed(stage: Stage) -> None:
    """Wait until the newest segment of a store is flushed."""
    newest = [segments[-1] for segments in _segments(stage).values()]
    wait_until(lambda: any(list(path.glob("*.sst")) for path in newest), "a newer segment is flushed")


def all_but_one_closed(stage: Stage) -> None:
    """Wait until only one database of task 0_0, a store or a segment, is held by somebody."""

    def held() -> list[Path]:
        return [path for path in stage.task("a", "0_0").rglob("LOCK") if is_locked(path)]

    wait_until(lambda: len(held()) <= 1, "all but one are closed")
    stage.proof.append(f"open at the kill: {[path.parent.name for path in held()]}")


def _segments(stage: Stage) -> dict[str, list[Path]]:
    """Directories of the segments of task 0_0, oldest first, by store."""
    task = stage.task("a", "0_0")
    found = {path.parent.name: path.parent for path in task.glob("*/*.[0-9]*") if path.is_dir()}
    return {
        name: sorted((x for x in store.iterdir() if x.is_dir()), key=lambda x: int(x.name.rpartition(".")[2]))
        for name, store in sorted(found.items())
    }


# ------------------------------------------------------------------------------------ proofs


def entries(stage: Stage, when: str) -> None:
    """Ask the application how many entries each store of segments holds; the sum of counts is said, too."""
    stage.entries.append({})
    for name in _segments(stage):
        answer = stage.pods["a"].ask(f"{'sessions' if name == 'session' else 'windows'} {name}").split()
        stage.entries[-1][name] = int(answer[0])
        stage.proof.append(
            f"{when}: {name} entries {answer[0]}, counts {answer[1]}; sent {sum(stage.sent.values())}"
        )


def lost_entries(stage: Stage) -> None:
    """Note by how much the last two answers differ."""
    before, after = stage.entries[-2:]
    stage.proof += [f"LOST of {name}: {before[name] - after[name]} of {before[name]}" for name in before]


def versions(stage: Stage, when: str, latest_ms: int) -> None:
    """Note whether latest versions have the times that they must have; wrong counts are a `LiveError`."""
    sent = stage.sent[0]
    answer = stage.pods["a"].ask(f"versions versioned p0- {sent}").split()
    expected = sent * (stage.begun_ms + latest_ms)
    right = int(answer[0]) == sent and int(answer[1]) == expected
    stage.proof.append(
        f"{when}: latest versions {answer[0]}/{sent}, their times {'right' if right else 'WRONG'}"
    )
    keys, total, highest = stage.prove(when)
    if (keys, total) != (sent, sent + stage.repeated[0]):
        raise LiveError(f"{when}: the counts are not right: {keys} keys, {total}, highest {highest}")


def restorations(stage: Stage) -> None:
    """Note where restorations began."""
    stage.proof += [line for line in stage.pods["a"].lines if line.startswith("restore-start ")]
