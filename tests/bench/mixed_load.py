"""The mixed load on many tasks, a process of its own: checkpoints, SST files that come and go, tasks recreated.

Prints one JSON object: task -> (last offset, times it was recreated), for the tasks that it touched, and the number
of operations.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from pathlib import Path

from tests.bench.tree_maker import APPLICATION, STORE, checkpoint
from tests.bench.watch_load import replace_file

_SLICE_S = 0.01
_REMAKE_EVERY, _SST_EVERY = 250, 8
_FIRST_SST = 900_000
"""Far above what the manifests name: to a reader of the store these files are not there."""


class MixedLoad:
    """Works on one application's directory; the same seed makes the same operations."""

    def __init__(self, root: Path, tasks: int, first: int) -> None:
        """Prepare; offsets begin with `first`."""
        self._application = root / APPLICATION
        self._tasks, self._first = tasks, first
        self._random = random.Random(first)
        self._sst: list[Path] = []
        self.done = 0
        self.touched: dict[int, tuple[int, int]] = {}

    def step(self) -> None:
        """Do one operation on one task, chosen by chance."""
        number = self._random.randrange(self._tasks)
        self.done += 1
        if self.done % _REMAKE_EVERY == 0:
            self.recreate(number)
        elif self.done % _SST_EVERY == 0:
            self._replace_sst(number)
        else:
            self._write_checkpoint(number)

    def _write_checkpoint(self, number: int, remade: int = 0) -> None:
        offset = self._first + self.done
        replace_file(str(self._application / f"0_{number}" / ".checkpoint"), checkpoint(number, offset))
        self.touched[number] = (offset, self.touched.get(number, (0, 0))[1] + remade)

    def _replace_sst(self, number: int) -> None:
        made = self._application / f"0_{number}" / "rocksdb" / STORE / f"{_FIRST_SST + self.done}.sst"
        made.write_bytes(b"")
        self._sst.append(made)
        if len(self._sst) > self._tasks // 10:
            self._sst.pop(0).unlink(missing_ok=True)

    def recreate(self, number: int) -> None:
        """Delete a task as its owner would, and make it from a copy, as a restoration would."""
        recreate(self._application / f"0_{number}")
        self._write_checkpoint(number, remade=1)


def recreate(task: Path) -> None:
    """Delete a task's directory, and make it and its stores again."""
    copy = {x.relative_to(task): x.read_bytes() for x in task.rglob("*") if x.is_file()}
    shutil.rmtree(task)
    for name, content in copy.items():
        if name.parts[0] == "rocksdb":
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_bytes(content)


def main(root: Path, tasks: int, rate: float, seconds: float, first: int) -> None:
    """Work at an even rate; fall behind rather than burst."""
    load = MixedLoad(root, tasks, first)
    per_slice = max(1, round(rate * _SLICE_S))
    next_s = began_s = time.monotonic()
    while time.monotonic() - began_s < seconds:
        for _ in range(per_slice):
            load.step()
        next_s = max(next_s + _SLICE_S, time.monotonic())
        time.sleep(max(0.0, next_s - time.monotonic()))
    print(json.dumps({"operations": load.done, "touched": load.touched}))


if __name__ == "__main__":
    where, tasks, rate, seconds, first = sys.argv[1:]
    main(Path(where), int(tasks), float(rate), float(seconds), int(first))
