"""Record the load of `bench_real.py`: a real application that counts new keys, 2,000 a second and task, under strace.

    python tests/bench/record_real.py --seconds 130 tests/bench/data/real-4.2.2.jsonl.gz

Needs what `tests/lab/record.py` needs. As in production a commit comes every 30 s and one flush with each; memtables
are of 1 MiB instead of 16, so that flushes in between and compactions come often. The recording is proved as those of
`tests/data/traces` are; then blocks of data become holes of the same size, as nobody reads them.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.real_load import TAIL_BYTES
from tests.lab.plan import ALOS, Plan
from tests.lab.processes import Broker, LiveError
from tests.lab.recording import Recording

RELEASE, PARTITIONS = "4.2.2", 4
COMMIT_MS, MEMTABLE_BYTES = 30_000, 1 << 20
RECORDS = 2_000
"""A second, to each task; more makes strace the load."""

Row = dict[str, Any]


def record(seconds: float, base: Path, target: Path) -> str:
    """Record; tell what the application itself says of it.

    Raises:
        LiveError: the replay is not the real directory.
    """
    broker = Broker(base / "broker")
    settings = {"commit.interval.ms": COMMIT_MS, "live.write.buffer": MEMTABLE_BYTES}
    stage = Recording(broker, base / "run", "real", Plan(RELEASE, ALOS, "kv", PARTITIONS, settings))
    try:
        stage.start("a")
        until_s = time.monotonic() + seconds
        while (next_s := time.monotonic() + 1.0) < until_s:
            stage.send(RECORDS)
            time.sleep(max(0.0, next_s - time.monotonic()))
        stage.settle(within_s=300)
        stage.prove("in the end")
        stage.stop("a")
        check = stage.write("a", base / "whole.jsonl.gz")
        if check["differ"]:
            raise LiveError(f"the replay differs from the real directory: {check['differ'][:5]}")
    finally:
        stage.close()
        broker.stop()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        gzip.open(base / "whole.jsonl.gz", "rt", encoding="utf-8") as lines,
        gzip.GzipFile(target, "wb", 9, mtime=0) as file,
    ):
        for row in hollow(json.loads(line) for line in lines):
            file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
    return f"{check['ops']:,} operations, {target.stat().st_size // 1024} KiB; {'; '.join(stage.proof)}"


def hollow(rows: Iterable[Row]) -> Iterator[Row]:
    """Give the same operations; SST files keep their size and their tail, `LOG` keeps its size."""
    sizes: dict[str, int] = {}
    held: dict[str, bytes] = {}
    for row in rows:
        path = row.get("path", "")
        name = path.rpartition("/")[2]
        if row["op"] == "close_w" and path in held:
            tail = held.pop(path)
            begin = sizes[path] - len(tail)
            if begin:
                yield {"t": row["t"], "op": "truncate", "path": path, "size": begin}
            if tail:
                yield {"t": row["t"], "op": "write", "path": path, "off": begin, "b64": _encode(tail)}
        if row["op"] == "create":
            sizes[path] = 0
            if name.endswith(".sst"):
                held[path] = b""
        if row["op"] == "write" and "deleted" not in row:
            data = base64.b64decode(row["b64"])
            sizes[path] = max(sizes.get(path, 0), row.get("off", sizes.get(path, 0)) + len(data))
            if path in held:
                held[path] = (held[path] + data)[-TAIL_BYTES:]
                continue
            if name == "LOG":
                yield {"t": row["t"], "op": "truncate", "path": path, "size": sizes[path]}
                continue
        yield row


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def main() -> int:
    """Record once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--seconds", type=float, default=130.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="statewarden-record-") as scratch:
        sys.stdout.write(f"{record(chosen.seconds, Path(scratch), chosen.target)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
