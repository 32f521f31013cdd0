"""Lives in which a store of segments goes on from one segment's offset and lacks another's records (4.3)."""

from __future__ import annotations

from pathlib import Path

from tests.live.processes import wait_until
from tests.live.stage import Stage, is_locked

SLOW_SYNC_US = 100_000


def lost_segment(stage: Stage) -> None:
    """The newer segment is flushed, the older one never; killed with everything committed and right, started again."""
    _first_segment(stage)
    for batch in range(3):
        stage.send(800, step_ms=3, begin_ms=stage.minute_ms(1) + batch * 2400)
        stage.settle()
        stage.wait_committed()
    newest = {name: segments[-1] for name, segments in _segments(stage).items()}
    wait_until(
        lambda: any(list(path.glob("*.sst")) for path in newest.values()), "a newer segment is flushed"
    )
    _kill_and_prove(stage, _entries(stage, "before the kill"))


def killed_between_segments(stage: Stage) -> None:
    """On a slow volume, killed in its orderly close when all is closed but the newest segment of the last store."""
    _first_segment(stage, SLOW_SYNC_US)
    stage.send(300, step_ms=3, begin_ms=stage.minute_ms(1))
    stage.settle()
    stage.wait_committed()
    before = _entries(stage, "before the close")
    stage.mark("a closes")
    stage.pods["a"].tell("close")
    wait_until(lambda: len(_open(stage)) <= 1, "all but one are closed")
    stage.proof.append(f"open at the kill: {[path.parent.name for path in _open(stage)]}")
    _kill_and_prove(stage, before)


# ------------------------------------------------------------------------------------ steps


def _first_segment(stage: Stage, slow_sync_us: int = 0) -> None:
    """The last records of a segment, too few for a flush; the join's windows are ten seconds wide."""
    stage.send(300, step_ms=30, begin_ms=stage.minute_ms(1) - 9_500)
    stage.start(slow_sync_us=slow_sync_us)
    stage.settle()
    stage.wait_committed()


def _kill_and_prove(stage: Stage, before: dict[str, int]) -> None:
    stage.kill()
    stage.start()
    stage.settle(within_s=90)
    stage.proof += [line for line in stage.pods["a"].lines if line.startswith("restore-start ")]
    after = _entries(stage, "after the kill")
    stage.proof += [f"LOST of {name}: {before[name] - after[name]} of {before[name]}" for name in before]
    stage.send(50, step_ms=3, begin_ms=stage.minute_ms(1) + 8_000)
    stage.settle()
    stage.wait_committed()
    _entries(stage, "after more records")
    stage.stop()


def _entries(stage: Stage, when: str) -> dict[str, int]:
    """Ask the application how many entries each store of segments holds; the sum of counts is said, too."""
    found = {}
    for name in _segments(stage):
        answer = stage.pods["a"].ask(f"{'sessions' if name == 'session' else 'windows'} {name}").split()
        found[name] = int(answer[0])
        stage.proof.append(
            f"{when}: {name} entries {answer[0]}, counts {answer[1]}; sent {sum(stage.sent.values())}"
        )
    return found


def _segments(stage: Stage) -> dict[str, list[Path]]:
    """Directories of the segments of task 0_0, oldest first, by store."""
    task = stage.task("a", "0_0")
    stores = {path.parent.name: path.parent for path in task.glob("*/*.[0-9]*") if path.is_dir()}
    return {
        name: sorted((x for x in store.iterdir() if x.is_dir()), key=lambda x: int(x.name.rpartition(".")[2]))
        for name, store in sorted(stores.items())
    }


def _open(stage: Stage) -> list[Path]:
    """Databases of task 0_0 that somebody holds: stores and segments."""
    return [path for path in stage.task("a", "0_0").rglob("LOCK") if is_locked(path)]
