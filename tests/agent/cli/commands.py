"""What the tests of the command line share: a command's answer, and a planted state directory."""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONG_AGO_S = 1_600_000_000
RECORDED = Path(__file__).resolve().parents[2] / "data" / "rocksdb" / "recorded.tar.gz"
ROCKSDB = "7.9.2"  # a store of a recorded run, with data: what has none does not tell whether it was copied
FACTS = {
    "processing_guarantee": "at_least_once", "kafka_streams_version": "3.9.2", "num_standby_replicas": "0",
    "state_cleanup_delay_ms": "600000", "commit_interval_ms": "30000", "delete_retention_ms": "86400000",
}  # fmt: skip
PLAIN = [word for key, value in FACTS.items() for word in ("--set", f"{key}={value}")]
"""Every fact that detectors ask for, so that none is missing."""


@dataclass(frozen=True)
class Said:
    """What a command said: exit code and both streams."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Read standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def findings(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["line"] == "finding"]

    @property
    def complaint(self) -> str:
        """Give the one line on stderr; fail if there is another one."""
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        return self.err


def plant(
    root: Path,
    *,
    application: str = "app",
    task: str = "0_0",
    store: str = "s",
    checkpoint: bytes | None = None,
) -> Path:
    """Make a state directory with one task whose checkpoint is older than its store, and far beyond it: damage."""
    database = root / application / task / "rocksdb" / store
    database.mkdir(parents=True)
    with tarfile.open(RECORDED) as recorded:
        files = [x for x in recorded.getmembers() if x.name.startswith(f"{ROCKSDB}/")]
        recorded.extractall(database.parent, files, filter="data")
    (database.parent / ROCKSDB).rename(database)
    (root / application / ".lock").touch()
    (database / "LOCK").touch()
    (database / "IDENTITY").write_text("6f5a2f0e-0000-4000-8000-000000000001\n")
    os.utime(database / "IDENTITY", (LONG_AGO_S + 3600, LONG_AGO_S + 3600))  # its data is younger: no copy
    file = root / application / task / ".checkpoint"
    line = f"{application}-{store}-changelog {task.rpartition('_')[2]} 100000"
    file.write_bytes(f"0\n1\n{line}\n".encode() if checkpoint is None else checkpoint)
    os.utime(file, (LONG_AGO_S, LONG_AGO_S))
    return root
