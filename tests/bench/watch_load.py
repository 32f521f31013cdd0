"""The load of the watch benchmark, a process of its own: replaces checkpoints the way Kafka Streams does.

Prints one JSON object: the monotonic time of every replacement, in order. Replacement n writes offset
FIRST + n into the checkpoint of task n modulo TASKS.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from tests.bench.tree_maker import APPLICATION, checkpoint

_SLICE_S = 0.01


def replace_checkpoints(root: Path, tasks: int, rate: float, seconds: float, first: int) -> list[float]:
    """Replace checkpoints in turn, evenly spread over slices of 10 ms; falls behind rather than bursting."""
    paths = [str(root / APPLICATION / f"0_{number}" / ".checkpoint") for number in range(tasks)]
    per_slice = max(1, round(rate * _SLICE_S))
    done: list[float] = []
    next_s = time.monotonic()
    for _ in range(round(seconds / _SLICE_S)):
        for _ in range(per_slice):
            replace_file(paths[len(done) % tasks], checkpoint(len(done) % tasks, first + len(done)))
            done.append(time.monotonic())
        next_s = max(next_s + _SLICE_S, time.monotonic())
        time.sleep(max(0.0, next_s - time.monotonic()))
    return done


def replace_file(path: str, content: bytes, at_ns: int = 0) -> None:
    """Write beside it, then rename: the way of `OffsetCheckpoint`. `at_ns`: its time, if not the machine's."""
    temporary = f"{path}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(descriptor, content)
    if at_ns:
        os.utime(descriptor, ns=(at_ns, at_ns))
    os.close(descriptor)
    os.rename(temporary, path)


if __name__ == "__main__":
    where, tasks, rate, seconds, first = sys.argv[1:]
    times = replace_checkpoints(Path(where), int(tasks), float(rate), float(seconds), int(first))
    print(json.dumps(times))
